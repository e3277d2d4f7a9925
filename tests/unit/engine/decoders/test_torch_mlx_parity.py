"""torch and MLX on the same weights: the same logits, whatever was read before, for many architectures."""

import numpy as np
import pytest
import tiny_checkpoints
import torch

from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from cartoolkit.models import inspect_checkpoint

# Three windows long, so that windows have moved on by the end of the prompt.
IDS = [int(i) for i in np.random.default_rng(0).integers(4, tiny_checkpoints.VOCABULARY, 24)]
CHUNK = 7
BETWEEN_ENGINES = 1e-3
BETWEEN_READS = 1e-4


@pytest.fixture(scope="module", params=list(tiny_checkpoints.ARCHITECTURES))
def decoders(request, tmp_path_factory):
    """The two decoders of one checkpoint, in float32."""
    checkpoint = inspect_checkpoint(tiny_checkpoints.save(request.param, tmp_path_factory.mktemp("tiny")))
    return (
        TorchDecoder.load(checkpoint, device=torch.device("cpu"), dtype=torch.float32),
        MlxDecoder.load(checkpoint, dtype="float32"),
    )


def read(decoder, ids):
    """Logits after the last id, the way the loop reads a prompt, float32 [vocab]."""
    done = decoder.begin_prompt(ids)
    while len(ids) - done > CHUNK:
        decoder.prefill(ids[done : done + CHUNK], done)
        done += CHUNK
    return decoder.forward(ids[done:], done).copy()


def test_logits_differ_visibly_between_tokens(decoders):
    for decoder in decoders:
        decoder.clear_kv_cache()
        rows = decoder.forward_all(IDS, 0)
        assert rows.std(axis=1).min() > 0.5
        assert len(set(rows.argmax(axis=1))) > 3


def test_every_prompt_token_has_the_same_logits(decoders):
    rows = []
    for decoder in decoders:
        decoder.clear_kv_cache()
        rows.append(decoder.forward_all(IDS, 0))
    np.testing.assert_allclose(*rows, atol=BETWEEN_ENGINES, rtol=0)


def test_twenty_decoded_tokens_have_the_same_logits(decoders):
    for decoder in decoders:
        decoder.clear_kv_cache()
    rows = [read(decoder, IDS) for decoder in decoders]
    for n in range(20):
        np.testing.assert_allclose(*rows, atol=BETWEEN_ENGINES, rtol=0)
        chosen = int(rows[0].argmax())
        rows = [decoder.forward([chosen], len(IDS) + n).copy() for decoder in decoders]
    np.testing.assert_allclose(*rows, atol=BETWEEN_ENGINES, rtol=0)


def test_a_crop_at_every_position_changes_no_logits(decoders):
    """After `begin_prompt` with any shared prefix: as from an empty cache, and the same on both engines."""
    for shared in range(len(IDS) + 1):
        other = [*IDS[:shared], *IDS[:3]]
        read_on = []
        for decoder in decoders:
            decoder.clear_kv_cache()
            fresh = decoder.forward_all(other, 0)[shared:].copy()
            read(decoder, IDS)
            cropped = [read(decoder, other[: shared + 1])]
            cropped += [decoder.forward([other[n]], n).copy() for n in range(shared + 1, len(other))]
            np.testing.assert_allclose(cropped, fresh, atol=BETWEEN_READS, rtol=0, err_msg=f"{shared} shared")
            read_on.append(cropped)
        np.testing.assert_allclose(*read_on, atol=BETWEEN_ENGINES, rtol=0, err_msg=f"{shared} shared")


def test_both_say_the_same_of_the_checkpoint(decoders):
    ours, theirs = (decoder.info for decoder in decoders)
    assert ours.context_length == theirs.context_length == tiny_checkpoints.CONTEXT
    assert ours.vocab_size == theirs.vocab_size == tiny_checkpoints.VOCABULARY
    assert ours.weights_hash == theirs.weights_hash != ""
    assert ours.tokenizer_hash == theirs.tokenizer_hash != ""
    assert decoders[0].eos_ids == decoders[1].eos_ids == {2, 3}
    assert decoders[0].encode("Hi <s>") == decoders[1].encode("Hi <s>")
