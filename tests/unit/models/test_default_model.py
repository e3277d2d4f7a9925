"""The real default model, fetched once into the user's cache: what its makers published, and it answers.

transformers' own reading of the same GGUF file is the reference for the numbers.
"""

import importlib
import time

import pytest

from cartoolkit.models import CATALOG, DEFAULT_MODEL, cache, fetch, resolve

pytestmark = pytest.mark.model
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def folder():
    return fetch()


@pytest.fixture(scope="module")
def tokenizer(folder):
    return importlib.import_module("transformers").AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(folder):
    return importlib.import_module("transformers").AutoModelForCausalLM.from_pretrained(folder)


def test_the_capital_of_france_is_paris(model, tokenizer):
    prompt = tokenizer.apply_chat_template(
        QUESTION, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    text = model.generate(**prompt, max_new_tokens=20, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert tokenizer.decode(text) == "The capital of France is Paris.<|im_end|>"


def test_settings_are_those_its_makers_published(folder):
    # config.json of HuggingFaceTB/SmolLM2-135M-Instruct on the hub, as of its release.
    published = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "max_position_embeddings": 8192,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 9,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "pad_token_id": 2,
        "rms_norm_eps": 1e-05,
        "rope_theta": 100000,
        "tie_word_embeddings": True,
        "vocab_size": 49152,
    }
    assert published.items() <= resolve().config.items()


def test_the_catalog_describes_what_is_there(folder):
    found, entry = resolve(), CATALOG[DEFAULT_MODEL]
    assert (found.parameters, found.context_length) == (entry.parameters, entry.context_length)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= entry.disk_bytes
    assert found.fingerprint == f"sha256:{cache.sha256_of(folder / 'model.safetensors')}"
    assert found.is_catalog


def test_special_tokens_survive(tokenizer):
    assert (tokenizer.eos_token_id, tokenizer.eos_token) == (2, "<|im_end|>")
    assert tokenizer.convert_tokens_to_ids("<|endoftext|>") == 0
    assert tokenizer.convert_tokens_to_ids("<|im_start|>") == 1
    assert len(tokenizer) == 49152


def test_the_chat_template_is_the_published_one(tokenizer):
    # The rendering that the model card documents, default system message included.
    assert tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True, tokenize=False) == (
        "<|im_start|>system\n"
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_two_spaces_before_a_digit_are_one_token(tokenizer):
    # SmolLM2's tokenizer.json splits single digits off first, llama.cpp's "smollm" rule (\p{N}) likewise.
    assert tokenizer.tokenize("a  12 x") == ["a", "ĠĠ", "1", "2", "Ġx"]


def test_the_second_call_takes_milliseconds(folder):
    resolve()
    started = time.perf_counter()
    resolve()
    assert time.perf_counter() - started < 0.05


@pytest.fixture(scope="module")
def original():
    """The GGUF file itself, kept beside what was made from it."""
    return fetch(format="gguf")


def test_the_gguf_file_is_the_pinned_one_and_says_what_its_conversion_says(original, folder):
    file, converted = resolve(formats=("gguf",)), resolve()
    source = CATALOG[DEFAULT_MODEL].source
    assert file.fingerprint == f"sha256:{cache.sha256_of(original)}" == f"sha256:{source.sha256}"
    assert (file.name, file.is_catalog, file.context_length) == (converted.name, True, 8192)
    assert (file.parameters, file.quantization.name) == (converted.parameters, "Q4_1")
    shared = file.config.keys() & converted.config.keys()
    assert {key: file.config[key] for key in shared} == pytest.approx(
        {k: converted.config[k] for k in shared}
    )
    assert {"model_type", "num_hidden_layers", "max_position_embeddings", "vocab_size"} <= shared


def test_llama_cpp_opens_the_file_as_the_header_says(original):
    llama_cpp = importlib.import_module("llama_cpp")
    model = llama_cpp.Llama(str(original), vocab_only=True, verbose=False)
    metadata, found = model.metadata, resolve(formats=("gguf",))
    assert int(metadata["llama.context_length"]) == found.context_length
    assert model.n_vocab() == found.config["vocab_size"]
    model.close()


def test_logits_equal_those_of_transformers_reading_the_gguf_file(original, model, tokenizer):
    import torch
    from transformers import AutoModelForCausalLM

    direct = AutoModelForCausalLM.from_pretrained(
        original.parent, gguf_file=original.name, dtype=torch.float32
    )
    ids = tokenizer(
        "The quick brown fox jumps over the lazy dog. In 1969, men landed on", return_tensors="pt"
    )
    with torch.no_grad():
        difference = (model(**ids).logits - direct(**ids).logits).abs().max().item()
    assert difference <= 1e-4
