"""Cache layers that grow in place, against transformers' own layers fed with the same keys and values."""

import pytest
import torch
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from cartoolkit.engine.decoders.torch_layers import GrowingLayer, GrowingWindowLayer

PORTIONS = [3, 1, 1, 300, 1, 7, 1, 260, 1, 1]


def states(count, seed):
    """Keys [1, 2, count, 4] and values [1, 2, count, 6]."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(1, 2, count, 4, generator=generator),
        torch.randn(1, 2, count, 6, generator=generator),
    )


@pytest.mark.parametrize(
    ("growing", "own"),
    [
        (GrowingLayer, DynamicLayer),
        (lambda: GrowingWindowLayer(8), lambda: DynamicSlidingWindowLayer(8)),
        (lambda: GrowingWindowLayer(1000), lambda: DynamicSlidingWindowLayer(1000)),
    ],
    ids=["full", "short window", "long window"],
)
def test_what_a_token_sees_is_what_transformers_own_layer_shows(growing, own):
    ours, theirs = growing(), own()
    for seed, count in enumerate(PORTIONS):
        assert ours.get_mask_sizes(count) == theirs.get_mask_sizes(count)
        for mine, expected in zip(
            ours.update(*states(count, seed)), theirs.update(*states(count, seed)), strict=True
        ):
            torch.testing.assert_close(mine, expected, rtol=0, atol=0)
        assert ours.get_seq_length() == theirs.get_seq_length()
        torch.testing.assert_close(ours.keys, theirs.keys, rtol=0, atol=0)
        torch.testing.assert_close(ours.values, theirs.values, rtol=0, atol=0)


@pytest.mark.parametrize("make", [GrowingLayer, lambda: GrowingWindowLayer(8)], ids=["full", "window"])
@pytest.mark.parametrize("removed", [1, 20, 299])
def test_a_cropped_layer_goes_on_like_one_that_never_saw_the_rest(make, removed):
    cropped, fresh = make(), make()
    keys, values = states(400, 0)
    cropped.update(keys, values)
    cropped.crop(-removed)
    fresh.update(keys[:, :, : 400 - removed], values[:, :, : 400 - removed])
    for mine, expected in zip(cropped.update(*states(5, 1)), fresh.update(*states(5, 1)), strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=0)


def test_a_token_and_a_crop_move_no_memory():
    layer = GrowingLayer()
    layer.update(*states(300, 0))
    place = layer.keys.data_ptr()
    layer.update(*states(1, 1))
    layer.crop(-200)
    layer.update(*states(90, 2))
    assert layer.keys.data_ptr() == place


def test_a_window_lets_go_of_what_lies_far_behind_it_and_says_so():
    layer = GrowingWindowLayer(8)
    for seed in range(30):
        layer.update(*states(100, seed))
    assert layer._keys.length <= 8 + 2 * 1024
    assert layer.can_crop_to(3000 - 900)
    assert not layer.can_crop_to(500)
    with pytest.raises(ValueError, match="cannot go back to 500 tokens"):
        layer.crop(-2500)


def test_a_layer_that_was_reset_is_empty():
    for layer in (GrowingLayer(), GrowingWindowLayer(8)):
        layer.update(*states(30, 0))
        layer.reset()
        assert layer.get_seq_length() == 0
        keys, _ = layer.update(*states(2, 1))
        torch.testing.assert_close(keys, states(2, 1)[0])
