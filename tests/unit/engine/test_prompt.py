"""From a request to the ids that are read: templates, cuts, refusals."""

import pytest

from cartoolkit.chat import ChatTemplate
from cartoolkit.engine.prompt import prepare_prompt
from cartoolkit.errors import InvalidRequest, PromptTooLong, UnsupportedMode
from cartoolkit.requests import make_request
from cartoolkit.trace import ModelInfo

BEGIN = 1
LOST = "\x04"
TEMPLATE = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Reader:
    """One id a character: its code point; text that is not from a template gets BEGIN before it."""

    def __init__(self, *, window=1000, template=None):
        self.chat_template = template
        self.special_ids = frozenset([BEGIN])
        self.info = ModelInfo(
            name="tiny", engine="none", device="cpu", dtype="float32", context_length=window, vocab_size=2**21
        )

    def encode(self, text, *, add_special_tokens=False):
        return [BEGIN] * add_special_tokens + [ord(character) for character in text if character != LOST]

    def token_bytes(self, token_id):
        return b"" if token_id == BEGIN else chr(token_id).encode()


def read(request, decoder=None, **settings):
    return prepare_prompt(make_request(request, **settings), decoder or Reader())


def read_text(request, decoder=None, **settings):
    ids = read(request, decoder, **settings).ids
    return ("^" if ids[0] == BEGIN else "") + "".join(chr(i) for i in ids if i != BEGIN)


# Cutting: room = window - min(max_tokens, window // 4), and the end of the prompt stays


@pytest.mark.parametrize(
    ("window", "max_tokens", "room"),
    [
        (100, 10, 90),  # max_tokens is what is kept free
        (100, 24, 76),
        (100, 25, 75),  # a quarter of the window
        (100, 26, 75),  # and never more
        (100, 512, 75),
        (103, 512, 78),  # 103 // 4 = 25
        (7, 1, 6),
        (3, 512, 3),  # 3 // 4 = 0
        (1, 1, 1),
    ],
)
def test_a_prompt_is_cut_to_the_window_less_the_headroom(window, max_tokens, room):
    text = "".join(map(chr, range(200, 200 + 2 * window)))
    for length in (room - 1, room):
        if length > 1:
            prompt = read(text[: length - 1], Reader(window=window), max_tokens=max_tokens)
            assert (len(prompt.ids), prompt.events) == (length, [])
    # One token too many: the beginning token goes first.
    prompt = read(text[:room], Reader(window=window), max_tokens=max_tokens)
    assert prompt.ids == list(map(ord, text[:room]))
    prompt = read(text, Reader(window=window), max_tokens=max_tokens)
    assert prompt.ids == list(map(ord, text[-room:]))


def test_a_cut_is_recorded_with_its_figures():
    (event,) = read("x" * 1500, Reader(window=1000), max_tokens=100).events
    assert event.kind == "truncated"
    assert event.data == {"from": 1501, "to": 900, "context_length": 1000}
    assert "first 601 of 1,501 tokens" in event.text
    assert "context window of 1,000 tokens" in event.text


def test_a_cut_shows_the_whole_message_as_it_was_written():
    assert read("x" * 1500, Reader(window=1000)).shown == "x" * 1500


def test_truncate_false_refuses_with_the_figures_and_what_to_do():
    with pytest.raises(PromptTooLong) as caught:
        read("x" * 1500, Reader(window=1000), max_tokens=100, truncate=False)
    message = str(caught.value)
    assert all(figure in message for figure in ("1,501 tokens", "900 fit", "1,000", "100 are kept"))
    assert "max_tokens" in caught.value.hint


def test_truncate_false_accepts_what_just_fits():
    decoder = Reader(window=1000)
    assert len(read("x" * 899, decoder, max_tokens=100, truncate=False).ids) == 900
    with pytest.raises(PromptTooLong):
        read("x" * 900, decoder, max_tokens=100, truncate=False)


# Templates


def test_a_prompt_becomes_a_user_turn_of_the_template():
    expected = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert read_text("Hi", Reader(template=TEMPLATE)) == expected


def test_a_base_model_gets_the_plain_text_after_its_beginning_token():
    assert read_text("Once upon") == "^Once upon"


def test_chat_template_false_sends_the_plain_text_after_the_beginning_token():
    assert read_text("Once upon", Reader(template=TEMPLATE), chat_template=False) == "^Once upon"


def test_a_prompt_with_the_template_s_marks_is_left_as_it_is():
    written = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell, "
    assert read_text(written, Reader(template=TEMPLATE)) == written


def test_a_prompt_in_the_templates_form_gets_the_beginning_token_unless_it_has_it():
    template = ChatTemplate(
        "{{ bos_token }}{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}",
        {"bos_token": "<s>"},
    )
    assert read_text("[INST] Hi [/INST]", Reader(template=template)) == "^[INST] Hi [/INST]"
    assert read_text("<s>[INST] Hi [/INST]", Reader(template=template)) == "<s>[INST] Hi [/INST]"


def test_characters_that_the_vocabulary_cannot_write_are_said():
    (event,) = read(f"a{LOST}b{LOST}", Reader()).events
    assert event.kind == "unwritable"
    assert event.data == {"characters": 2}
    assert "2 characters of the prompt ('\\x04')" in event.text


def test_characters_that_are_normalised_into_others_are_no_loss():
    decoder = Reader()
    encode = decoder.encode
    decoder.encode = lambda text, **options: encode(text.lower(), **options)
    assert read("LOUD", decoder).events == []


def test_a_question_about_a_mark_is_an_ordinary_message():
    question = "What does <|im_end|> mean?"
    assert read_text(question, Reader(template=TEMPLATE)) == (
        f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )


def test_marks_of_another_template_are_ordinary_text():
    assert "user\n[INST] Hi [/INST]<|im_end|>" in read_text("[INST] Hi [/INST]", Reader(template=TEMPLATE))
    # A base model has no marks at all.
    assert read_text("<|im_start|>") == "^<|im_start|>"


def test_messages_that_talk_about_marks_keep_their_roles():
    conversation = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is <|im_start|>?"},
    ]
    expected = (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhat is <|im_start|>?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert read_text(conversation, Reader(template=TEMPLATE)) == expected
    # A prompt beside them is ignored, marks and all.
    assert read_text("<|im_start|>", Reader(template=TEMPLATE), messages=conversation) == expected


def test_a_context_that_holds_marks_does_not_turn_the_template_off():
    text = read_text("Hi", Reader(template=TEMPLATE), context="a page about <|im_end|>")
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_the_context_is_read_with_and_without_a_template():
    written = "<|im_start|>user\nHi<|im_end|>\n"
    for decoder, prompt in [
        (Reader(), "Hi"),
        (Reader(template=TEMPLATE), "Hi"),
        (Reader(template=TEMPLATE), written),
    ]:
        text = read_text(prompt, decoder, context="The sky is green.")
        assert text.index("The sky is green.") < text.index("Hi")


def test_a_refusal_of_the_template_is_an_invalid_request_with_a_hint():
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(InvalidRequest, match="roles must alternate") as caught:
        read("Hi", Reader(template=template))
    assert "chat_template=False" in caught.value.hint


def test_the_last_message_is_what_is_shown():
    conversation = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert read(conversation).shown == "b"


# Refusals


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_a_block_that_is_not_text_is_refused_by_type_and_place(kind):
    conversation = [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [{"type": "text", "text": "this"}, {"type": kind, "url": "file.bin"}]},
    ]
    with pytest.raises(UnsupportedMode, match=f"message 1 holds a block of type '{kind}'") as caught:
        read(conversation)
    assert "tiny reads text only" in str(caught.value)
    assert caught.value.hint


def test_blocks_of_text_are_read_one_after_the_other():
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert read_text([{"role": "user", "content": blocks}]) == "^ab"


def test_a_prompt_that_encodes_to_nothing_is_refused():
    class Silent(Reader):
        def encode(self, text, *, add_special_tokens=False):
            return []

    with pytest.raises(InvalidRequest, match="holds no token of this model; got 'Hi'"):
        read("Hi", Silent())
    with pytest.raises(InvalidRequest, match="no token"):
        read([{"role": "user", "content": ""}], Silent())


def test_an_empty_message_is_read_as_what_the_template_makes_of_it():
    assert read_text([{"role": "user", "content": ""}], Reader(template=TEMPLATE)).startswith(
        "<|im_start|>user\n<"
    )
