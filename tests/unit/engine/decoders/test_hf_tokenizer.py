"""A tokenizer's true bytes, against the text itself and against transformers' own decode."""

import importlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
from cartoolkit.trace import TextStream

tokenizers = importlib.import_module("tokenizers")
transformers = importlib.import_module("transformers")
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers  # noqa: E402

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=150)
TEXT = st.text(max_size=60) | st.text("aé🙂👍🏽\u200d👩\u0301\u202e字한\x00\x1b\t\n \u2581Ġ", max_size=40)
HARD = [
    "👩\u200d👩\u200d👧\u200d👦 family",  # joined by zero-width joiners
    "e\u0301 n\u0303 \u1112\u1161\u11ab",  # combining marks and jamo
    "你好，世界 こんにちは 안녕하세요",
    "\x00\x01\x7f\x1b[31m\r\n\t",
    "   leading, trailing and  inner spaces   ",
    "\u202eright to left\u202c \ufeff \ufffd",
    "<|im_start|>user\n<|im_end|> <|endoftext|> <0x41> ▁ Ġ",
    "🏴\U000e0067\U000e0062\U000e007f 𝔘𝔫𝔦 \U0010ffff",
]


def stream_text(tokenizer: HFTokenizer, ids) -> str:
    """The bytes of all tokens but the control ones, decoded piece by piece."""
    stream = TextStream()
    pieces = [stream.feed(tokenizer.token_bytes(i)) for i in ids if i not in tokenizer.special_ids]
    return "".join(pieces) + stream.flush()


def joined_bytes(tokenizer: HFTokenizer, ids) -> bytes:
    return b"".join(map(tokenizer.token_bytes, ids))


# The default model's tokenizer


@pytest.fixture(scope="module")
def smollm():
    from cartoolkit.models import resolve

    return HFTokenizer(transformers.AutoTokenizer.from_pretrained(resolve().path, local_files_only=True))


@pytest.mark.model
@pytest.mark.parametrize("text", HARD)
def test_the_bytes_of_a_hard_text_s_tokens_are_the_text_s_bytes(smollm, text):
    assert joined_bytes(smollm, smollm.encode(text)) == text.encode()


# The published vocabulary has no token for 21 bytes (huggingface/smollm#81): those that no UTF-8 text holds,
# the first bytes of two unused planes, and six control characters. Its encoder drops them without a word.
MISSING = {*range(0xC0, 0xC2), *range(0xF5, 0x100), 0xF1, 0xF2, 0x04, 0x06, 0x13, 0x14, 0x16, 0x1D}


@pytest.mark.model
@STEADY
@given(TEXT)
@example("a\x04b \U00040000")
def test_the_bytes_of_any_text_s_tokens_are_the_text_s_bytes(smollm, text):
    expected = bytes(byte for byte in text.encode() if byte not in MISSING)
    assert joined_bytes(smollm, smollm.encode(text)) == expected


@pytest.mark.model
@STEADY
@given(st.lists(st.integers(0, 49_151) | st.integers(0, 20) | st.integers(100, 300), max_size=30))
@example([5, 2, 6])
def test_the_stream_equals_transformers_decode_for_any_ids(smollm, ids):
    # Among ids 17 to 272 are the single bytes, so that broken UTF-8 is common; 0 to 16 are control tokens.
    assert stream_text(smollm, ids) == smollm.decode(ids)


@pytest.mark.model
def test_a_four_byte_emoji_over_several_tokens_keeps_each_token_s_true_bytes(smollm):
    # ollama/ollama#13497: the pieces came back as U+FFFD.
    ids = smollm.encode("🫠")
    assert len(ids) > 1
    assert joined_bytes(smollm, ids) == "🫠".encode()
    stream = TextStream()
    assert [stream.feed(smollm.token_bytes(i)) for i in ids] == [""] * (len(ids) - 1) + ["🫠"]


@pytest.mark.model
def test_control_tokens_are_known_by_id_and_named_by_their_bytes(smollm):
    assert {0, 1, 2} <= smollm.special_ids
    assert smollm.token_bytes(1) == b"<|im_start|>"
    assert smollm.encode("<|im_start|>user<|im_end|>")[::2] == [1, 2]
    assert smollm.decode([1, 2]) == ""


@pytest.mark.model
def test_every_id_of_the_default_model_has_bytes_and_the_single_bytes_are_known(smollm):
    pieces = [smollm.token_bytes(i) for i in range(49_152)]
    assert all(pieces)
    assert {byte for byte in range(256) if bytes([byte]) not in pieces} == MISSING


@pytest.mark.model
@pytest.mark.parametrize("beyond", [49_152, 50_000, 10**6])
def test_an_id_beyond_the_vocabulary_has_no_bytes_and_no_text(smollm, beyond):
    assert smollm.token_bytes(beyond) == b""


# Small tokenizers of each kind


def wrapped(tokenizer: Tokenizer, **tokens) -> HFTokenizer:
    return HFTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens))


@pytest.fixture(scope="module")
def byte_level():
    """All single bytes, one merge, two added tokens and one control token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)} | {"Ġa": 256, "<0x41>": 257}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("Ġ", "a")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken("    ", normalized=False), AddedToken("naïve🙂", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<|end|>")])
    return wrapped(tokenizer, eos_token="<|end|>")


@STEADY
@given(TEXT)
@example("a a    naïve🙂<|end|>Ġ")
def test_byte_level_tokens_hold_the_text_s_bytes(byte_level, text):
    assert joined_bytes(byte_level, byte_level.encode(text)) == text.encode()


@STEADY
@given(st.lists(st.integers(0, 270), max_size=20))
def test_a_byte_level_stream_equals_transformers_decode(byte_level, ids):
    # 261 to 270 are beyond the vocabulary.
    assert stream_text(byte_level, ids) == byte_level.decode(ids)


def test_a_byte_level_token_that_reads_like_a_byte_is_text(byte_level):
    assert byte_level.token_bytes(257) == b"<0x41>"


def test_added_tokens_are_their_text_and_only_the_control_one_is_special(byte_level):
    assert [byte_level.token_bytes(i) for i in (258, 259, 260, 261)] == [
        b"    ",
        "naïve🙂".encode(),
        b"<|end|>",
        b"",
    ]
    assert byte_level.special_ids == {260}


PIECES = ["▁", "H", "i", "▁H", "▁Hi", "é", "e"]
MERGES = [("▁", "H"), ("▁H", "i")]


def sentencepiece() -> Tokenizer:
    """Byte fallback, merges over ▁, three control tokens: the model part of Llama 2."""
    vocabulary = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>"])}
    vocabulary |= {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocabulary |= {piece: 259 + i for i, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, MERGES, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.add_special_tokens([AddedToken(token) for token in ("<unk>", "<s>", "</s>")])
    return tokenizer


def llama_2() -> Tokenizer:
    tokenizer = sentencepiece()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def metaspace() -> Tokenizer:
    tokenizer = sentencepiece()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = sentencepiece()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


NAMES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
PLAIN = st.text(st.characters(exclude_characters="▁", exclude_categories=["Cs"]), max_size=30)


@pytest.fixture(scope="module", params=[llama_2, metaspace, gemma], ids=lambda make: make.__name__)
def with_spaces(request):
    """A tokenizer that writes spaces as ▁, and whether it puts one before the text."""
    return wrapped(request.param(), **NAMES), request.param is not gemma


@STEADY
@given(PLAIN)
@example("Hi Hi 🙂\n\x00 é")
def test_sentencepiece_tokens_hold_the_text_s_bytes_and_one_space_before(with_spaces, text):
    tokenizer, space_before = with_spaces
    data = joined_bytes(tokenizer, tokenizer.encode(text))
    expected = text.encode()
    # Metaspace adds its space only where the text does not begin with one.
    assert data in ((b" " + expected, expected) if space_before else (expected,))
    if text and not text.startswith(" "):
        assert data.startswith(b" ") is space_before


@STEADY
@given(PLAIN)
def test_a_sentencepiece_stream_of_a_text_equals_transformers_decode(with_spaces, text):
    tokenizer, space_before = with_spaces
    ids = tokenizer.encode(text)
    # The decoder takes off the space that the encoder put on; bytes stay as they are.
    expected = tokenizer.decode(ids)
    assert stream_text(tokenizer, ids) in ((" " + expected, expected) if space_before else (expected,))


@STEADY
@given(st.lists(st.integers(1, 270), max_size=12))
def test_a_fallback_byte_is_that_byte_and_control_tokens_are_left_out(with_spaces, ids):
    tokenizer, _ = with_spaces
    by_hand = b""
    for i in ids:
        if 3 <= i < 259:
            by_hand += bytes([i - 3])
        elif 259 <= i < 266:
            by_hand += PIECES[i - 259].replace("▁", " ").encode()
    assert stream_text(tokenizer, ids) == by_hand.decode(errors="replace")


def test_names_of_control_tokens_in_a_text_become_those_tokens(with_spaces):
    tokenizer, _ = with_spaces
    assert tokenizer.encode("<s>Hi</s>")[0] == 1
    assert tokenizer.encode("<s>Hi</s>")[-1] == 2
    assert tokenizer.special_ids == {0, 1, 2}


@pytest.mark.parametrize("text", ["Hi", " Hi", "  Hi", "\nHi", "\n\n", "é Hi", "", "</s>", " "])
def test_a_continuation_has_its_own_bytes_and_no_space_of_the_tokenizer_s(with_spaces, byte_level, text):
    for tokenizer in (with_spaces[0], byte_level):
        assert joined_bytes(tokenizer, tokenizer.encode_continuation(text)) == text.encode()


def test_a_continuation_is_encoded_as_inside_a_longer_text(with_spaces):
    tokenizer, _ = with_spaces
    inside = {"Hi": "éHi", " Hi": "é Hi"}
    for text, longer in inside.items():
        before = len(tokenizer.encode("é"))
        assert tokenizer.encode_continuation(text) == tokenizer.encode(longer)[before:]


def test_a_byte_level_tokenizer_that_puts_a_space_before_a_text_puts_none_before_a_continuation():
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    spaced = wrapped(tokenizer)
    assert joined_bytes(spaced, spaced.encode("Hi")) == b" Hi"
    assert joined_bytes(spaced, spaced.encode_continuation("Hi")) == b"Hi"


def test_a_continuation_that_the_tokenizer_has_no_tokens_for_is_encoded_as_a_whole_text():
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "it": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    words = wrapped(tokenizer, unk_token="[UNK]")
    assert words.encode_continuation("nothing") == words.encode("nothing")


def test_wordpiece_tokens_keep_the_space_that_belongs_to_them():
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2, "it": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece()
    words = wrapped(tokenizer, unk_token="[UNK]")
    ids = words.encode("playing it")
    assert [words.token_bytes(i) for i in ids] == [b" play", b"ing", b" it"]
    assert stream_text(words, ids) == " " + words.decode(ids)


def test_words_that_end_in_a_mark_keep_the_space_behind_them():
    # GPT-1: </w> ends a word.
    vocabulary = {"<unk>": 0, "p": 1, "l</w>": 2, "pl</w>": 3, "a": 4}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, [("p", "l</w>")], unk_token="<unk>", end_of_word_suffix="</w>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    words = wrapped(tokenizer, unk_token="<unk>")
    ids = words.encode("pl apl")
    assert [words.token_bytes(i) for i in ids] == [b"pl ", b"a", b"pl "]
    assert stream_text(words, ids) == words.decode(ids) + " "


# The rest of the wrapper


class Config:
    def __init__(self, eos_token_id):
        self.eos_token_id = eos_token_id


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([], {260}),
        ([Config(None)], {260}),
        ([Config(7)], {260, 7}),
        ([Config([7, 8]), Config((9,))], {260, 7, 8, 9}),
        ([object()], {260}),
    ],
)
def test_end_tokens_are_those_of_the_tokenizer_and_of_every_config(byte_level, configs, expected):
    assert byte_level.eos_ids(*configs) == expected


def test_a_beginning_token_is_added_when_asked_and_only_then():
    from tokenizers.processors import TemplateProcessing

    tokenizer = gemma()
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    begins = wrapped(tokenizer, **NAMES)
    assert begins.encode("Hi", add_special_tokens=True) == [1, *begins.encode("Hi")]
    assert 1 not in begins.encode("Hi")


@pytest.mark.parametrize("length", [0, 5000])
def test_texts_of_any_length_are_encoded_without_a_warning(byte_level, length, caplog):
    byte_level._tokenizer.model_max_length = 10
    assert len(byte_level.encode("b" * length)) == length
    assert not caplog.records


def test_a_tokenizer_without_a_template_has_none(byte_level):
    assert byte_level.chat_template is None


@pytest.mark.parametrize("source", ["{{ bos_token }}x", {"default": "{{ bos_token }}x", "tool_use": "y"}])
def test_the_template_knows_the_control_tokens_names(source):
    tokenizer = wrapped(gemma(), **NAMES)
    tokenizer._tokenizer.chat_template = source
    assert tokenizer.chat_template.render([]) == "<s>x"


def test_bytes_are_worked_out_once(byte_level):
    assert byte_level.token_bytes(65) is byte_level.token_bytes(65)
