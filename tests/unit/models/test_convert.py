"""GGUF to safetensors: the same numbers, the model's own tokenizer, and nothing guessed."""

import importlib
import json

import gguf
import numpy as np
import pytest
import tiny_model
from safetensors.numpy import load_file

from cartoolkit.errors import InvalidCheckpoint, MissingDependency
from cartoolkit.models import convert
from cartoolkit.models.convert_llama import unpermute

IDS = [1, 30, 40, 50, 60, 2]


@pytest.fixture(scope="module")
def converted(tiny_gguf, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted")
    convert.convert_gguf(tiny_gguf, folder)
    return folder


@pytest.fixture(scope="module")
def weights(converted):
    return load_file(converted / "model.safetensors")


def test_norms_are_copied_bit_for_bit(weights):
    source = tiny_model.tensors()
    assert (weights["model.norm.weight"] == source["output_norm.weight"]).all()
    assert (
        weights["model.layers.1.post_attention_layernorm.weight"] == source["blk.1.ffn_norm.weight"]
    ).all()


def test_q4_1_follows_the_formula_of_its_definition(tiny_gguf, weights):
    # ggml's block_q4_1: 32 weights in 20 bytes: scale d and minimum m as float16, then 16 bytes of two
    # 4-bit numbers each; the low halves are weights 0..15, the high halves 16..31; weight = d * q + m.
    tensor = next(t for t in gguf.GGUFReader(tiny_gguf).tensors if t.name == "blk.0.ffn_up.weight")
    blocks = np.asarray(tensor.data).reshape(-1, 20)
    scale, least = blocks[:, :4].copy().view(np.float16).astype(np.float32).T
    packed = blocks[:, 4:]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    expected = (scale[:, None] * numbers + least[:, None]).reshape(tiny_model.INNER, tiny_model.HIDDEN)
    assert (weights["model.layers.0.mlp.up_proj.weight"] == expected).all()


@pytest.mark.parametrize("heads", [2, 4, 8])
def test_unpermute_undoes_what_llama_cpp_does_to_the_rows(heads):
    # llama.cpp, convert_hf_to_gguf.py, LlamaModel.permute: reshape to (heads, 2, rows / heads / 2, columns),
    # then swap the two middle axes.
    original = np.arange(32 * 3, dtype=np.float32).reshape(32, 3)
    permuted = original.reshape(heads, 2, 32 // heads // 2, 3).swapaxes(1, 2).reshape(32, 3)
    assert (unpermute(permuted, heads) == original).all()


def test_query_rows_of_one_head_by_hand():
    # One head of size four: llama.cpp has the halves (0, 1 | 2, 3) interleaved as 0, 2, 1, 3.
    rows = np.array([[0], [2], [1], [3]], dtype=np.float32)
    assert unpermute(rows, 1).ravel().tolist() == [0, 1, 2, 3]


def test_tied_weights_are_kept_once(weights, converted):
    assert "lm_head.weight" not in weights
    assert json.loads((converted / "config.json").read_text())["tie_word_embeddings"] is True


def test_an_output_matrix_of_its_own_is_kept(tmp_path):
    size = (len(tiny_model.vocabulary()), tiny_model.HIDDEN)
    source = tiny_model.write_gguf(tmp_path / "x.gguf", extra={"output.weight": np.ones(size, np.float32)})
    convert.convert_gguf(source, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False
    assert load_file(tmp_path / "model.safetensors")["lm_head.weight"].shape == size


def test_transformers_reads_the_folder_as_it_reads_the_gguf_file(tiny_gguf, converted):
    torch = importlib.import_module("torch")
    from transformers import AutoModelForCausalLM

    direct = AutoModelForCausalLM.from_pretrained(
        tiny_gguf.parent, gguf_file=tiny_gguf.name, dtype=torch.float32
    )
    ours = AutoModelForCausalLM.from_pretrained(converted)
    ids = torch.tensor([IDS])
    with torch.no_grad():
        assert torch.equal(ours(ids).logits, direct(ids).logits)


def test_config_has_the_published_form(converted):
    config = json.loads((converted / "config.json").read_text())
    expected = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 256,
        "rope_theta": 100000.0,
        "rms_norm_eps": 1e-05,
        "vocab_size": 263,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "dtype": "float32",
    }
    assert expected.items() <= config.items()
    assert "quantization_config" not in config


def test_both_ends_of_a_text_are_listed(converted):
    assert json.loads((converted / "generation_config.json").read_text())["eos_token_id"] == [2, 0]


def test_the_tokenizer_splits_digits_before_anything_else(converted):
    # SmolLM2's published tokenizer.json: Digits(individual_digits) and then GPT-2's ByteLevel. So two
    # spaces before a digit are one piece; GPT-2's pattern alone would leave the second to the digit.
    tokenizers = importlib.import_module("tokenizers")
    encoding = tokenizers.Tokenizer.from_file(str(converted / "tokenizer.json")).encode("a  12 hi<|im_end|>")
    assert encoding.tokens == ["a", "ĠĠ", "1", "2", "Ġhi", "<|im_end|>"]


@pytest.mark.parametrize("text", ["héllo  wörld\n\n", "日本語 🙂", "\t<|im_end|> x", " ", "a" * 300])
def test_every_text_comes_back(converted, text):
    tokenizers = importlib.import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(converted / "tokenizer.json"))
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_transformers_finds_special_tokens_and_template(converted):
    transformers = importlib.import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(converted)
    ids = tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id
    assert ids == (2, 1, 2, 0)
    assert tokenizer.chat_template == tiny_model.TEMPLATE
    assert tokenizer.model_max_length == 256
    assert tokenizer.tokenize("a  1") == ["a", "ĠĠ", "1"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architecture": "falcon"}, "general.architecture = 'falcon'"),
        ({"pre": "llama-bpe"}, "tokenizer.ggml.pre = 'llama-bpe'"),
        ({"extra": {"blk.0.attn_q.bias": np.zeros(64, np.float32)}}, "'blk.0.attn_q.bias'"),
        ({"extra": {"rope_freqs.weight": np.zeros(8, np.float32)}}, "'rope_freqs.weight'"),
    ],
)
def test_what_the_converter_does_not_know_is_refused_by_name(tmp_path, changes, named):
    source = tiny_model.write_gguf(tmp_path / "x.gguf", **changes)
    with pytest.raises(InvalidCheckpoint) as caught:
        convert.convert_gguf(source, tmp_path)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"GGUF", b"not a model at all" * 10, b"GGUF\x03\0\0\0" + b"\xff" * 64]
)
def test_a_file_that_is_not_gguf_is_refused(tmp_path, content):
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(InvalidCheckpoint, match=r"x\.gguf"):
        convert.convert_gguf(tmp_path / "x.gguf", tmp_path)


def test_a_missing_library_is_named_before_anything_is_downloaded(monkeypatch):
    monkeypatch.setattr(convert.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="gguf") as caught:
        convert.require_converter()
    assert "pip install" in caught.value.hint
