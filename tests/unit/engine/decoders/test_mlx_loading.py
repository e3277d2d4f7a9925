"""Loading checkpoints with mlx-lm: the model that its makers meant, packed or not, or a clear sentence."""

import gc
import json
import sys
import weakref

import mlx.core as mx
import mlx_lm.utils
import numpy as np
import pytest
import tiny_checkpoints
import torch
from mlx import nn
from tiny_checkpoints import edited, saved

from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
from cartoolkit.errors import InvalidCheckpoint, InvalidRequest, MissingDependency, NotEnoughMemory
from cartoolkit.models import inspect_checkpoint

IDS = [int(i) for i in np.random.default_rng(0).integers(4, tiny_checkpoints.VOCABULARY, 30)]
WINDOW = tiny_checkpoints.WINDOW


def decoder_of(folder, **settings):
    return MlxDecoder.load(inspect_checkpoint(folder), **settings)


def reference(folder, ids):
    """mlx-lm's own loader and forward, without a cache, float32 [len(ids), vocab]."""
    model, _ = mlx_lm.utils.load_model(folder)
    return np.array(model(mx.array([ids]))[0].astype(mx.float32))


def torch_reference(name, ids, **settings):
    with torch.inference_mode():
        model = tiny_checkpoints.build(name, **settings)
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


# What mlx-lm would pass over


def test_settings_that_a_config_leaves_out_are_those_of_transformers(tmp_path):
    """mlx-lm takes a missing `tie_word_embeddings` for true and would drop the output matrix."""
    left_out = edited(saved("llama"), tmp_path / "edited", tie_word_embeddings=None)
    expected = torch_reference("llama", IDS)
    np.testing.assert_allclose(decoder_of(left_out).forward_all(IDS, 0), expected, atol=1e-3)
    assert np.abs(reference(left_out, IDS) - expected).max() > 1


def test_rope_settings_in_their_newer_form_are_not_passed_over():
    expected = torch_reference("llama_3_rope", IDS)
    np.testing.assert_allclose(decoder_of(saved("llama_3_rope")).forward_all(IDS, 0), expected, atol=1e-3)
    assert np.abs(reference(saved("llama_3_rope"), IDS) - expected).max() > 1


@pytest.mark.parametrize("spelling", ["LLAMA", "Llama"])
def test_a_model_type_may_be_spelt_with_capitals(tmp_path, spelling):
    capital = edited(saved("llama"), tmp_path / "edited", model_type=spelling)
    np.testing.assert_allclose(
        decoder_of(capital).forward_all(IDS, 0), torch_reference("llama", IDS), atol=1e-3
    )


def test_a_window_that_mlx_lm_cannot_keep_is_the_context():
    settings = {"sliding_window": WINDOW, "query_pre_attn_scalar": 16}
    decoder = decoder_of(saved("gemma2", **settings))
    assert decoder.info.context_length == WINDOW
    expected = torch_reference("gemma2", IDS[:WINDOW], **settings)
    np.testing.assert_allclose(decoder.forward_all(IDS[:WINDOW], 0), expected, atol=1e-3)


def test_windows_in_an_order_that_mlx_lm_has_not_are_refused():
    layers = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    with pytest.raises(InvalidCheckpoint, match=r"attention windows .* asks for \[8, None, None, 8\]"):
        decoder_of(saved("gemma3", layer_types=layers))


# Precision and packing


def test_the_decoder_says_what_it_runs():
    info = decoder_of(saved("llama")).info
    assert (info.engine, info.device, info.dtype) == ("mlx", mx.default_device().type.name, "float32")
    assert (info.context_length, info.vocab_size) == (tiny_checkpoints.CONTEXT, tiny_checkpoints.VOCABULARY)
    assert info.weights_hash == inspect_checkpoint(saved("llama")).fingerprint


def test_end_tokens_are_those_of_config_generation_config_and_tokenizer(tmp_path):
    copy = edited(saved("llama"), tmp_path / "edited", eos_token_id=[3, 9])
    (copy / "generation_config.json").write_text(json.dumps({"eos_token_id": [7]}))
    assert decoder_of(copy).eos_ids == {2, 3, 7, 9}


def test_without_a_dtype_the_checkpoint_keeps_its_own():
    assert decoder_of(saved("llama", dtype=torch.bfloat16)).info.dtype == "bfloat16"
    assert decoder_of(saved("llama", dtype=torch.bfloat16), dtype="float32").info.dtype == "float32"


@pytest.mark.parametrize(("quantize", "bits"), [("int8", 8), ("int4", 4)])
def test_quantizing_while_loading_gives_what_mlx_lm_quantizes(quantize, bits):
    model, config = mlx_lm.utils.load_model(saved("qwen3"))
    model, _ = mlx_lm.utils.quantize_model(model, config, group_size=64, bits=bits)
    decoder = decoder_of(saved("qwen3"), quantize=quantize)
    assert decoder.info.dtype == f"{bits}-bit affine, group 64"
    expected = np.array(model(mx.array([IDS]))[0])
    # The down projection is 96 wide and packed in groups of 32, which mlx-lm's own call leaves as it is.
    assert np.abs(decoder.forward_all(IDS, 0) - expected).max() < {8: 0.2, 4: 3}[bits]
    packed = dict(decoder._model.named_modules())
    assert packed["model.layers.0.mlp.down_proj"].group_size == 32
    ours, theirs = packed["model.layers.1.self_attn.q_proj"], dict(model.named_modules())
    assert mx.array_equal(ours.weight, theirs["model.layers.1.self_attn.q_proj"].weight)


def test_a_matrix_whose_width_no_group_divides_stays_as_it_is():
    decoder = decoder_of(saved("llama", intermediate_size=72), quantize="int8")
    down = dict(decoder._model.named_modules())["model.layers.0.mlp.down_proj"]
    assert type(down) is nn.Linear
    assert decoder.info.dtype == "8-bit affine, group 64"


MODES = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


@pytest.fixture(scope="module", params=list(MODES))
def packed_folder(request, tmp_path_factory):
    """A checkpoint that mlx-lm itself has packed and saved."""
    target = tmp_path_factory.mktemp(request.param)
    model, config = mlx_lm.utils.load_model(saved("qwen3"))
    tokenizer = mlx_lm.utils.load_tokenizer(saved("qwen3"))
    model, config = mlx_lm.utils.quantize_model(model, config, None, None, mode=request.param)
    mlx_lm.utils.save(target, saved("qwen3"), model, tokenizer, config)
    return request.param, target


def test_a_packed_checkpoint_gives_the_logits_of_mlx_lm(packed_folder):
    mode, target = packed_folder
    decoder = decoder_of(target)
    group, bits = MODES[mode]
    assert decoder.info.dtype == f"{bits}-bit {mode}, group {group}"
    np.testing.assert_array_equal(decoder.forward_all(IDS, 0), reference(target, IDS))


def test_a_dtype_leaves_packed_words_alone(packed_folder):
    _, target = packed_folder
    before = dict(decoder_of(target)._model.named_modules())["model.layers.0.self_attn.q_proj"]
    after = dict(decoder_of(target, dtype="bfloat16")._model.named_modules())[
        "model.layers.0.self_attn.q_proj"
    ]
    assert mx.array_equal(before.weight, after.weight)
    assert after.weight.dtype == mx.uint32


def test_what_is_packed_is_not_packed_again(packed_folder):
    with pytest.raises(InvalidRequest, match="is packed already"):
        decoder_of(packed_folder[1], quantize="int8")


@pytest.mark.parametrize("wrong", [{"dtype": "float64"}, {"quantize": "int3"}])
def test_a_precision_that_is_not_there_is_refused_with_what_is(wrong):
    with pytest.raises(InvalidRequest, match=r"must be one of .*; got"):
        decoder_of(saved("llama"), **wrong)


# What goes wrong while loading


@pytest.mark.parametrize("method", ["awq", "gptq", "bitsandbytes"])
def test_weights_packed_for_others_are_refused(tmp_path, method):
    packed = edited(
        saved("llama"), tmp_path / "edited", quantization_config={"quant_method": method, "bits": 4}
    )
    with pytest.raises(InvalidCheckpoint, match=method):
        decoder_of(packed)


def test_an_architecture_that_mlx_lm_does_not_know_is_named(tmp_path):
    with pytest.raises(InvalidCheckpoint, match="no_such_model"):
        decoder_of(edited(saved("llama"), tmp_path / "edited", model_type="no_such_model"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 5}, "Missing"),
        ({"num_hidden_layers": 3}, "not in model"),
        ({"intermediate_size": 48}, "Expected shape"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_told(tmp_path, change, said):
    with pytest.raises(InvalidCheckpoint, match=f"could not be loaded by mlx-lm: .*{said}"):
        decoder_of(edited(saved("llama"), tmp_path / "edited", **change))


def test_a_file_that_was_cut_off_after_it_was_inspected_is_told(tmp_path):
    copy = edited(saved("llama"), tmp_path / "edited")
    checkpoint = inspect_checkpoint(copy)
    whole = (copy / "model.safetensors").read_bytes()
    for length in (len(whole) // 2, 100, 4, 0):
        (copy / "model.safetensors").write_bytes(whole[:length])
        with pytest.raises(InvalidCheckpoint, match="could not be loaded by mlx-lm"):
            MlxDecoder.load(checkpoint)
    (copy / "model.safetensors").write_bytes(whole)
    assert MlxDecoder.load(checkpoint).info.vocab_size == tiny_checkpoints.VOCABULARY


@pytest.mark.skipif(mx.default_device() != mx.cpu, reason="only the CPU lacks this kernel")
def test_a_kernel_that_is_not_there_is_found_while_loading_and_not_in_the_first_answer():
    with pytest.raises(InvalidCheckpoint, match="Currently only supports float32") as caught:
        decoder_of(saved("qwen3_moe"), dtype="bfloat16")
    assert caught.value.hint == "Load it with dtype='float32'."


def test_a_missing_library_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    with pytest.raises(MissingDependency, match="mlx") as caught:
        decoder_of(saved("llama"))
    assert "pip install 'cartoolkit[mlx]'" in caught.value.hint


def test_weights_that_do_not_fit_are_told_before_they_are_loaded(monkeypatch):
    monkeypatch.setattr("cartoolkit.engine.decoders.mlx_loading.free_memory", lambda: 1000)
    with pytest.raises(NotEnoughMemory, match=r"needs \d+ MB of memory"):
        decoder_of(saved("llama"))


def test_memory_that_runs_out_while_loading_is_told_with_the_size(monkeypatch):
    def refuse(*_):
        raise RuntimeError("[malloc_or_wait] Unable to allocate 20000000000 bytes.")

    checkpoint = inspect_checkpoint(saved("llama"))
    monkeypatch.setattr(mx, "eval", refuse)
    with pytest.raises(NotEnoughMemory, match=r"weights are .* MB: .*Unable to allocate 20000000000"):
        MlxDecoder.load(checkpoint)


@pytest.mark.parametrize("where", ["_carry_out", "layer_caches"])
def test_the_error_of_a_load_that_failed_does_not_hold_the_model(monkeypatch, where):
    held = []

    def fail(model, *_):
        held.append(weakref.ref(model))
        raise MemoryError

    checkpoint = inspect_checkpoint(saved("llama"))
    module = "mlx_decoder" if where == "layer_caches" else "mlx_loading"  # after the load, and within it
    monkeypatch.setattr(f"cartoolkit.engine.decoders.{module}.{where}", fail)
    with pytest.raises(NotEnoughMemory) as caught:
        MlxDecoder.load(checkpoint)
    gc.collect()
    assert [ref() for ref in held] == [None]
    assert caught.value.__traceback__ is not None
