"""The tokenizer in a GGUF file against the same model's tokenizer in transformers."""

import contextlib

import gguf
import pytest
import tiny_gguf
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder
from cartoolkit.models import inspect_checkpoint, resolve

TEXTS = [
    "",
    " ",
    "   leading and trailing   ",
    "Hello, world!",
    "line\nbreaks\r\n\n\n and\ttabs",
    "0 12 345 6789 3.14159 1_000_000 0x1F",
    "it's we're I'll DON'T",
    "日本の首都は東京です。",
    "¿Cuál es la capital de España?",
    "🌙👩‍👩‍👧‍👦🏳️‍🌈",
    "e\u0301 \u00e9 \ufb01 \u200b \ufeff \u2028",
    "zero\0byte",
    "\0",
    "def f(x):\n    return x ** 2  # комментарий\n",
    "<|im_start|>user\nHello<|im_end|>\n",
    "<|im_start|><|im_start|>",
    " <|im_end|> and <|endoftext|>text",
    "<|im_start",
    "<repo_name>a<file_sep>b<empty_output>",
    "a" * 3000,
    "\U0010ffff\ud7ff\ue000",
]
# Bytes that SmolLM2's vocabulary has no token for: control characters, and beginnings of characters that
# UTF-8 or Unicode hardly use.
MISSING = {4, 6, 19, 20, 22, 29, 192, 193, 241, 242, *range(245, 256)}
PIECES = st.sampled_from(
    [" ", "  ", "\n", "\t", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "'s", "١٢", "¾"]
)


@pytest.fixture(scope="module")
def pair():
    """The default model's GGUF decoder and the tokenizer of its conversion."""
    tokenizer = HFTokenizer(AutoTokenizer.from_pretrained(resolve(None).path))
    checkpoint = resolve(None, formats=("gguf",))
    with contextlib.closing(LlamaCppDecoder.load(checkpoint, context_length=512)) as decoder:
        yield decoder, tokenizer


@pytest.mark.model
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:20]))
def test_text_becomes_the_same_ids(pair, text):
    decoder, tokenizer = pair
    assert decoder.encode(text) == tokenizer.encode(text)
    assert decoder.encode(text, add_special_tokens=True) == tokenizer.encode(text, add_special_tokens=True)


@pytest.mark.model
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text() | st.text("0123456789 .,-") | PIECES, max_size=8).map("".join))
def test_any_text_becomes_the_same_ids_and_comes_back_alike(pair, text):
    decoder, tokenizer = pair
    assume(not MISSING & set(text.encode()))
    ids = decoder.encode(text)
    assert ids == tokenizer.encode(text)
    assert decoder.decode(ids) == tokenizer.decode(ids)


@pytest.mark.model
def test_bytes_that_have_no_token_are_dropped_and_what_stands_around_them_may_merge_or_not(pair):
    """transformers drops them before it merges, llama.cpp after: only there the ids differ."""
    decoder, tokenizer = pair
    there = set().union(*map(decoder.token_bytes, range(decoder.info.vocab_size)))
    assert set(range(256)) - there == MISSING
    assert decoder.encode('"\x16:') == decoder.encode('"') + decoder.encode(":")
    assert tokenizer.encode('"\x16:') == tokenizer.encode('":') == decoder.encode('":')
    assert decoder.decode(decoder.encode('"\x16:')) == tokenizer.decode(tokenizer.encode('"\x16:')) == '":'


@pytest.mark.model
def test_every_token_has_the_same_bytes(pair):
    decoder, tokenizer = pair
    assert decoder.info.vocab_size == 49_152
    for i in range(decoder.info.vocab_size):
        assert decoder.token_bytes(i) == tokenizer.token_bytes(i), i
    assert decoder.token_bytes(-1) == decoder.token_bytes(49_152) == b""


@pytest.mark.model
def test_control_tokens_and_the_template_are_the_same(pair):
    decoder, tokenizer = pair
    assert decoder.special_ids == tokenizer.special_ids
    ours, theirs = decoder.chat_template, tokenizer.chat_template
    assert ours.source == theirs.source
    assert ours.special_tokens.items() <= theirs.special_tokens.items()
    assert set(ours.special_tokens) == {"bos_token", "eos_token"}


@pytest.mark.model
def test_end_tokens_are_those_of_the_checkpoint_and_two_that_llama_cpp_knows_by_name(pair):
    decoder, tokenizer = pair
    assert tokenizer.eos_ids() == {2}
    assert {decoder.token_bytes(i) for i in decoder.eos_ids - {2}} == {b"<|endoftext|>", b"<reponame>"}


@pytest.mark.model
def test_half_a_character_decodes_to_the_same_replacement(pair):
    decoder, tokenizer = pair
    ids = decoder.encode("日本🌙é")
    assert any(decoder.decode([i]) == "\ufffd" for i in ids)
    for first in range(len(ids)):
        for last in range(first + 1, len(ids) + 1):
            assert decoder.decode(ids[first:last]) == tokenizer.decode(ids[first:last])


@pytest.mark.parametrize("half", ["\ud800", "a\udfff"])
@pytest.mark.model
def test_half_a_surrogate_is_no_text(pair, half):
    with pytest.raises(UnicodeEncodeError):
        pair[0].encode(half)


# The two ways in which most GGUF files write their vocabulary


@pytest.fixture(scope="module", params=["bpe", "spm"])
def tiny_pair(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "tiny.gguf"
    tiny_gguf.write("llama", path, vocabulary=request.param)
    tokenizer = HFTokenizer(getattr(tiny_gguf, request.param)())
    with contextlib.closing(LlamaCppDecoder.load(inspect_checkpoint(path))) as decoder:
        yield decoder, tokenizer, request.param


@pytest.mark.parametrize(
    "text",
    [
        "the hen and a lamb",
        " the",
        "  the  ant",
        "é ñ 日🌙",
        "a.\nb? c!",
        "<s>the</s>",
        "<end> the",
        "than an then",
        "",
    ],
)
def test_a_tiny_vocabulary_encodes_as_its_twin(tiny_pair, text):
    decoder, tokenizer, _ = tiny_pair
    assert decoder.encode(text) == tokenizer.encode(text)


def test_a_tiny_vocabulary_has_the_bytes_of_its_twin(tiny_pair):
    decoder, tokenizer, _ = tiny_pair
    for i in range(128):
        assert decoder.token_bytes(i) == tokenizer.token_bytes(i), i
    assert decoder.special_ids == {0, 1, 2, 3}
    assert decoder.chat_template.source == tiny_gguf.TEMPLATE
    assert decoder.chat_template.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}


def test_a_beginning_token_is_added_where_the_file_asks_for_it(tiny_pair):
    decoder, _, _ = tiny_pair
    plain = decoder.encode("the ant")
    assert decoder.encode("the ant", add_special_tokens=True) == [1, *plain]


def test_the_space_that_llama_2_puts_before_a_text_stays(tiny_pair):
    decoder, tokenizer, kind = tiny_pair
    ids = decoder.encode("the ant")
    assert decoder.decode(ids) == (" the ant" if kind == "spm" else "the ant")
    assert tokenizer.decode(ids) == "the ant"


@pytest.mark.parametrize("text", ["the", " the", "  the", "\nthe", "n", ".", "th\n an", "", "</s>", " "])
def test_a_continuation_has_its_own_bytes_and_the_ids_of_its_twin(tiny_pair, text):
    decoder, tokenizer, _ = tiny_pair
    ids = decoder.encode_continuation(text)
    assert b"".join(map(decoder.token_bytes, ids)) == text.encode()
    assert ids == tokenizer.encode_continuation(text)


def test_gguf_py_reads_the_same_tokens(tiny_pair, tmp_path):
    """What the writer of this file wrote is what the reader of the same library finds."""
    decoder, _, kind = tiny_pair
    path = tmp_path / "again.gguf"
    tiny_gguf.write("llama", path, vocabulary=kind)
    tokens = gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].contents()
    assert len(tokens) == decoder.info.vocab_size
    assert [tokens[i].encode() for i in decoder.special_ids] == [
        decoder.token_bytes(i) for i in decoder.special_ids
    ]
