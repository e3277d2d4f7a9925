"""Weight-only int8: the layer against the formula in float64, and the default model against float32."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from cartoolkit.engine import load
from cartoolkit.engine.decoders.torch_decoder import TorchDecoder
from cartoolkit.engine.decoders.torch_int8 import check_quantize, quantize_linears
from cartoolkit.engine.decoders.torch_int8_linear import Int8Linear
from cartoolkit.errors import InvalidRequest, MissingDependency
from tests.unit.engine.decoders.test_torch_decoder import read, tokenizer

SIZES = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
LLAMA = LlamaConfig(**SIZES, num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=True)
GPT2 = GPT2Config(vocab_size=64, n_embd=64, n_layer=2, n_head=4, n_positions=64)


@pytest.mark.parametrize("rows", [1, 4, 5, 40])
@pytest.mark.parametrize("bias", [None, torch.linspace(-1, 1, 80)])
def test_a_packed_layer_multiplies_by_the_rounded_weights(rows, bias):
    torch.manual_seed(0)
    matrix, x = torch.randn(80, 64, dtype=torch.bfloat16), torch.randn(2, rows, 64, dtype=torch.bfloat16)
    layer = Int8Linear.packed(matrix, None if bias is None else bias.bfloat16())
    weights = matrix.double()
    scale = (weights.abs().amax(1, keepdim=True) / 127).bfloat16().double()
    expected = x.double() @ (torch.round(weights / scale) * scale).T + (0 if bias is None else bias)
    error = (layer(x).double() - expected).abs().max()
    # A result in bfloat16 has 8 bits, and it is rounded after each of product, scale and bias.
    assert error < 1.5 * 2**-8 * expected.abs().max()


def test_rounding_moves_no_weight_by_more_than_half_a_step():
    torch.manual_seed(0)
    matrix = torch.randn(16, 64) * torch.logspace(-3, 3, 16)[:, None]
    matrix[3] = 0
    layer = Int8Linear.packed(matrix, None)
    step = matrix.abs().amax(1, keepdim=True) / 127
    assert ((layer.steps * layer.scale[:, None] - matrix).abs() <= step * 0.501).all()


@pytest.mark.parametrize(
    ("model", "layers"),
    [(LlamaForCausalLM(LLAMA), 7 * 2), (GPT2LMHeadModel(GPT2), 4 * 2)],
    ids=["llama", "gpt2"],
)
def test_every_linear_layer_is_packed_but_an_output_that_is_the_embedding(model, layers):
    before = sum(p.numel() for p in model.parameters())
    assert quantize_linears(model) == layers
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    packed = sum(m.steps.numel() for m in model.modules() if isinstance(m, Int8Linear))
    biases = sum(m.bias.numel() for m in model.modules() if isinstance(m, Int8Linear) and m.bias is not None)
    assert packed + biases + sum(p.numel() for p in model.parameters()) == before


def test_a_packed_model_reads_on_as_it_reads_at_once():
    torch.manual_seed(0)
    model = LlamaForCausalLM(LLAMA).bfloat16().eval()
    quantize_linears(model)
    decoder = TorchDecoder(model, tokenizer(), quantization="int8")
    assert decoder.info.dtype == "int8"
    ids = list(range(4, 34))
    whole, _ = read(decoder, ids, chunk=30)
    read(decoder, [*ids[:11], 5, 6])
    steps, reused = read(decoder, ids, chunk=1)
    assert reused == 11
    assert np.abs(steps - whole).max() < 0.03 * np.abs(whole).max()


def test_what_is_not_int8_is_refused_and_so_is_a_torch_without_the_kernel(monkeypatch):
    cpu = torch.device("cpu")
    check_quantize(None, cpu)
    check_quantize("int8", cpu)
    with pytest.raises(InvalidRequest, match="quantize must be 'int8' for the torch engine; got 'int4'"):
        check_quantize("int4", cpu)
    monkeypatch.delattr(torch.ops.aten, "_weight_int8pack_mm")
    monkeypatch.setattr(type(torch.ops.aten), "__getattr__", _nothing)
    with pytest.raises(MissingDependency, match=r"quantize='int8' needs a kernel that torch .* lacks on cpu"):
        check_quantize("int8", cpu)


def _nothing(_namespace, name):
    raise AttributeError(name)


@pytest.mark.model
def test_the_default_model_in_int8_stays_close_to_float32():
    """Mean Kullback-Leibler divergence over teacher-forced tokens; 2,000 of a licence give 0.007."""
    packed = load(engine="torch", dtype="bfloat16", quantize="int8", quiet=True)
    exact = load(engine="torch", dtype="float32", quiet=True)
    ids = exact.decoder.encode(LICENCE)[:200]
    p, q = (_logprobs(engine.decoder, ids) for engine in (exact, packed))
    divergence = (p.exp() * (p - q)).sum(-1).mean()
    assert 1e-4 < divergence < 0.025


def _logprobs(decoder, ids):
    decoder.clear_kv_cache()
    return torch.log_softmax(torch.from_numpy(decoder.forward_all(ids, 0)).double(), -1)


LICENCE = """
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files, to deal in the software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and sell copies of it, and to permit persons to
whom it is furnished to do so. The sky over the harbour was the colour of slate when the last boat came in,
and the men on the quay knew from the way she lay in the water that the nets were full. Nobody spoke. In a
quiet room at the end of the street somebody was learning the names of the planets by heart, from the nearest
to the sun to the one that is so far away that a year on it is longer than two of our lives put together.
"""
