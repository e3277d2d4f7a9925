"""Gemma 3's GGUF to safetensors: llama.cpp, which reads the same file itself, is the reference throughout."""

import ctypes
import importlib
import json

import numpy as np
import pytest
import tiny_gemma
from safetensors.numpy import load_file

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models import convert, inspect_checkpoint
from cartoolkit.models.convert_gemma3 import merges_of

TEXT = "the cat the hat\n\nher   aaaaa rat <td>at"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny_gemma.write_gemma(tmp_path_factory.mktemp("gemma") / "tiny.gguf")


@pytest.fixture(scope="module")
def converted(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted")
    convert.convert_gguf(source, folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(converted):
    return importlib.import_module("tokenizers").Tokenizer.from_file(str(converted / "tokenizer.json"))


@pytest.fixture(scope="module")
def llama(source):
    llama_cpp = importlib.import_module("llama_cpp")
    f32 = 0  # of ggml: the cache in float32, as the other libraries have it
    model = llama_cpp.Llama(
        str(source), n_ctx=128, n_threads=1, type_k=f32, type_v=f32, logits_all=True, verbose=False
    )
    yield model
    model.close()


@pytest.fixture(scope="module")
def reference(llama):
    """llama.cpp's log-probabilities at each position of the text, float64 [tokens, vocabulary]."""
    llama_cpp = importlib.import_module("llama_cpp")
    ids = llama.tokenize(TEXT.encode(), add_bos=True, special=True)
    llama.reset()
    llama.eval(ids)
    size = llama.n_vocab()
    rows = [
        np.ctypeslib.as_array(
            ctypes.cast(llama_cpp.llama_get_logits_ith(llama.ctx, n), ctypes.POINTER(ctypes.c_float)), (size,)
        ).copy()
        for n in range(len(ids))
    ]
    return ids, log_softmax(np.array(rows))


def log_softmax(logits):
    logits = np.asarray(logits, dtype=np.float64)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def test_the_text_is_longer_than_two_windows(reference):
    assert len(reference[0]) > 2 * tiny_gemma.WINDOW


def test_torch_reads_from_the_folder_what_llama_cpp_reads_from_the_file(converted, reference):
    torch = importlib.import_module("torch")
    from transformers import AutoModelForCausalLM

    ids, expected = reference
    model = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.float32)
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    np.testing.assert_allclose(log_softmax(logits), expected, atol=1e-2)


def test_mlx_reads_from_the_folder_what_llama_cpp_reads_from_the_file(converted, reference):
    pytest.importorskip("mlx_lm")
    from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder

    ids, expected = reference
    decoder = MlxDecoder.load(inspect_checkpoint(converted))
    start = decoder.begin_prompt(ids)
    np.testing.assert_allclose(log_softmax(decoder.forward(ids[start:], start)), expected[-1], atol=1e-2)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "the",
        " the",
        "there  cat",
        "aaaaaaa",
        "aaaaaaaaaaaaa",
        "\n\n\n",
        "a    b",
        "    ",
        "é日🙂 the",
        "<td><td>",
        "<eos>cat<end_of_turn>",
        "",
    ],
)
def test_a_text_has_the_tokens_that_llama_cpp_gives_it(llama, tokenizer, text):
    assert tokenizer.encode(text).ids == llama.tokenize(text.encode(), add_bos=True, special=True)


@pytest.mark.parametrize("text", [TEXT, " the  cat", "é日🙂", "\n\n\n", "    "])
def test_every_text_comes_back(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_norms_lose_the_one_that_llama_cpp_added(converted):
    weights, stored = load_file(converted / "model.safetensors"), tiny_gemma.tensors()
    for name, there in (
        ("model.norm", "output_norm"),
        ("model.layers.3.self_attn.q_norm", "blk.3.attn_q_norm"),
        ("model.layers.6.pre_feedforward_layernorm", "blk.6.ffn_norm"),
    ):
        assert (weights[f"{name}.weight"] == stored[f"{there}.weight"] - np.float32(1)).all()
    assert (weights["model.embed_tokens.weight"] == stored["token_embd.weight"]).all()
    assert len(weights) == len(stored)


def test_config_has_the_published_form(converted):
    # The keys and constants of google/gemma-3-270m's config.json, with the sizes of the tiny model.
    config = json.loads((converted / "config.json").read_text())
    expected = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "attention_bias": False,
        "attn_logit_softcapping": None,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "final_logit_softcapping": None,
        "head_dim": 32,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 64,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention", "sliding_attention"],
        "max_position_embeddings": 128,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "pad_token_id": 0,
        "query_pre_attn_scalar": 32,
        "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": None,
        "rope_theta": 1000000.0,
        "sliding_window": 8,
        "tie_word_embeddings": True,
    }
    assert expected.items() <= config.items()


def test_a_base_model_has_no_chat_template_and_ends_where_a_text_or_a_turn_ends(converted):
    settings = json.loads((converted / "tokenizer_config.json").read_text())
    assert "chat_template" not in settings
    assert (settings["bos_token"], settings["eos_token"], settings["unk_token"]) == (
        "<bos>",
        "<eos>",
        "<unk>",
    )
    assert json.loads((converted / "generation_config.json").read_text())["eos_token_id"] == [1, 4]


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"gemma3.rope.scaling.type": "linear"}, "gemma3.rope.scaling.type = 'linear'"),
        ({"gemma3.final_logit_softcapping": 30.0}, "gemma3.final_logit_softcapping = 30.0"),
        ({"gemma3.attention.sliding_window_pattern": 4}, "gemma3.attention.sliding_window_pattern = 4"),
        ({"gemma3.rope.freq_base_swa": 20_000.0}, "gemma3.rope.freq_base_swa = 20000.0"),
        ({"tokenizer.ggml.add_eos_token": True}, "tokenizer.ggml.add_eos_token = True"),
    ],
)
def test_what_the_converter_does_not_know_is_refused_by_name(tmp_path, extra, named):
    path = tiny_gemma.write_gemma(tmp_path / "x.gguf", extra=extra)
    with pytest.raises(InvalidCheckpoint) as caught:
        convert.convert_gguf(path, tmp_path)
    assert named in str(caught.value)


def test_a_file_that_does_not_begin_texts_with_a_token_is_refused(tmp_path):
    path = tiny_gemma.write_gemma(tmp_path / "x.gguf", left_out="add_bos_token")
    with pytest.raises(InvalidCheckpoint, match="add_bos_token = None"):
        convert.convert_gguf(path, tmp_path)


def test_merges_follow_the_scores_of_what_they_make():
    pieces = {"abc": -5.0, "a": -1.0, "b": -2.0, "c": -3.0, "bc": -4.0, "ab": -6.0}
    assert merges_of(pieces) == [("b", "c"), ("a", "bc"), ("ab", "c"), ("a", "b")]
