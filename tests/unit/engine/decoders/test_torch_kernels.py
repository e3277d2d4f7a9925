"""What makes one token fast on a processor changes no sums: attention in groups, and the switch of oneDNN."""

import threading
import time

import pytest
import torch
from transformers import FalconConfig, FalconForCausalLM, LlamaConfig, LlamaForCausalLM

from cartoolkit.engine.decoders import torch_matmul
from cartoolkit.engine.decoders.torch_attention import _grouped_sdpa, group_heads
from cartoolkit.engine.decoders.torch_matmul import matmul_for_rows

SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


class Attention(torch.nn.Module):
    """What an attention layer of transformers says of itself."""

    def __init__(self, groups):
        super().__init__()
        self.num_key_value_groups = groups
        self.is_causal = True


@pytest.mark.parametrize(("heads", "key_heads", "new"), [(9, 3, 1), (8, 1, 1), (4, 4, 1), (9, 3, 5)])
def test_attention_in_groups_is_the_textbook_formula(heads, key_heads, new):
    torch.manual_seed(0)
    query = torch.randn(1, heads, new, 8)
    key, value = torch.randn(1, key_heads, 20, 8), torch.randn(1, key_heads, 20, 6)
    seen = torch.ones(new, 20, dtype=torch.bool).tril(20 - new)
    mask = None if new == 1 else seen[None, None]
    module = Attention(heads // key_heads).eval()
    out, _ = _grouped_sdpa(module, query, key, value, mask, scaling=0.3, dropout=0.0)
    every_key, every_value = (x.double().repeat_interleave(heads // key_heads, 1) for x in (key, value))
    scores = (query.double() @ every_key.transpose(2, 3) * 0.3).masked_fill(~seen, -torch.inf)
    expected = (scores.softmax(-1) @ every_value).transpose(1, 2)
    torch.testing.assert_close(out.double(), expected, atol=1e-5, rtol=1e-5)


def test_only_a_model_whose_attention_can_be_exchanged_is_changed():
    llama = LlamaForCausalLM(LlamaConfig(**SMALL, intermediate_size=48)).eval()
    other = LlamaForCausalLM(LlamaConfig(**SMALL, intermediate_size=48)).eval()
    falcon = FalconForCausalLM(FalconConfig(**SMALL)).eval()
    assert group_heads(llama)
    assert not group_heads(falcon)
    assert (other.config._attn_implementation, falcon.config._attn_implementation) == ("sdpa", "sdpa")


def test_one_row_turns_onednn_off_and_leaves_it_as_it_was():
    for before in (True, False):
        torch.backends.mkldnn.enabled = before
        try:
            with matmul_for_rows(1), matmul_for_rows(1):
                assert not torch.backends.mkldnn.enabled
            assert torch.backends.mkldnn.enabled == before
            with pytest.raises(RuntimeError), matmul_for_rows(1):
                raise RuntimeError
            assert torch.backends.mkldnn.enabled == before
        finally:
            torch.backends.mkldnn.enabled = True


def test_a_thread_that_needs_the_other_kernel_waits_for_its_turn():
    seen, inside, done = [], threading.Event(), threading.Event()

    def read_a_prompt():
        inside.set()
        with matmul_for_rows(5):
            seen.append(torch.backends.mkldnn.enabled)
        done.set()

    thread = threading.Thread(target=read_a_prompt)
    with matmul_for_rows(1):
        thread.start()
        inside.wait(5)
        assert not done.wait(0.05)
        assert not torch.backends.mkldnn.enabled
    thread.join(5)
    assert seen == [True]


def test_a_forward_that_hangs_is_waited_for_once_and_no_other_uses_its_kernel(monkeypatch):
    monkeypatch.setattr(torch_matmul, "_PATIENCE", 0.2)
    hanging = matmul_for_rows(1)
    hanging.__enter__()
    waits, seen = [], []
    for rows in (5, 5, 1, 5):
        begun = time.perf_counter()
        with matmul_for_rows(rows):
            waits.append(time.perf_counter() - begun)
            seen.append(torch.backends.mkldnn.enabled)
    assert seen == [True, True, False, True]
    assert waits[0] >= 0.2 > max(waits[1:])
    with matmul_for_rows(1):
        hanging.__exit__(None, None, None)  # it returns after all, and changes nothing
        assert not torch.backends.mkldnn.enabled
    assert torch.backends.mkldnn.enabled
