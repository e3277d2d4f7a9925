"""Words, sentences and thinking of an answer that grows and is cut back."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scripted_answers import step, steps, tokens

from cartoolkit.retrieval.answer import Answer, spoken_text
from cartoolkit.retrieval.words import starts_word

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=300)


def words(*pieces):
    return [token.word for token in tokens(*pieces)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (("The", " cap", "ital", " is"), [0, 1, 1, 3]),
        (("Ber", "k", "elium", "."), [0, 0, 0, 0]),
        ((" don", "'t", " well", "-", "known"), [0, 0, 2, 2, 2]),
        # Some tokenizers write the blank and the digits apart; the blank belongs to the number.
        (("in", " ", "19", "52"), [0, 1, 1, 1]),
        (("(", "Paris", ")"), [0, 1, 1]),
        (("a", "\n\n", "b"), [0, 1, 2]),
        (("在", "巴", "黎"), [0, 1, 2]),
        ((" 3", ".", "14"), [0, 0, 0]),
    ],
)
def test_a_word_goes_from_blank_to_blank(pieces, expected):
    assert words(*pieces) == expected


def test_a_character_of_several_tokens_is_not_torn():
    pieces = [
        " caf",
        {"text": "", "bytes": b"\xc3", "incomplete": True},
        {"text": "é", "bytes": b"\xa9"},
        " is",
    ]
    assert words(*pieces) == [0, 0, 0, 3]
    pieces = ["在", {"text": "", "bytes": b"\xe5\xb7", "incomplete": True}, {"text": "巴", "bytes": b"\xb4"}]
    assert words(*pieces) == [0, 1, 1]


@pytest.mark.parametrize(
    ("text", "before", "starts"),
    [("a", "", True), (" a", "b", True), ("a", " ", False), ("-", "b", False), ("a", "“", True)],
)
def test_where_a_token_begins_a_word(text, before, starts):
    assert starts_word(text, before) is starts


def test_sentences_come_out_with_the_token_that_makes_them_certain():
    answer = Answer()
    ended = [answer.add(each) for each in steps("It", " is", " so", ".", " And", " not")]
    assert [[spoken_text(s) for s in each] for each in ended] == [[], [], [], [], ["It is so."], []]
    assert [t.sentence for t in answer.tokens] == [0, 0, 0, 0, 4, 4]
    assert [t.initial for t in answer.tokens] == [True, False, False, False, True, False]
    assert [spoken_text(s) for s in answer.close()] == [" And not"]


def test_a_token_with_two_sentences_in_it_ends_the_first():
    answer = Answer()
    (ended,) = [s for each in steps("It is", ".\nYes", " or no") for s in answer.add(each)]
    assert spoken_text(ended) == "It is.\nYes"
    assert answer.tokens[2].sentence == 2


def test_a_blank_that_waited_for_the_next_word_moves_to_its_sentence():
    answer = Answer()
    for each in steps("So", ".", " ", "It"):
        answer.add(each)
    assert [t.sentence for t in answer.tokens] == [0, 0, 2, 2]
    assert [t.initial for t in answer.tokens][2:] == [True, True]


def test_nothing_but_signs_is_no_sentence():
    answer = Answer()
    for each in steps("…", "\n\n"):
        answer.add(each)
    assert answer.close() == []


@pytest.mark.parametrize(
    "pieces",
    [
        ("<think>", "Hm", ". So", "</think>", "\n\n", "Paris"),
        ("<", "think", ">Hm", ". So </", "think", ">", "\n\n", "Paris"),
        ("<think>Hm</think>", "\n\n", "Paris"),
        ("\n<think>", "a < b", "</think>\n\n", "\n\n", "Paris"),
    ],
)
def test_thinking_is_not_spoken(pieces):
    assert spoken_text(tokens(*pieces)) == "\n\nParis"


def test_thinking_that_the_prompt_began_is_not_spoken():
    assert spoken_text(tokens("Hm", "</think>", " Paris", thinking=True)) == " Paris"
    # Nobody said so, and the closing tag tells.
    assert spoken_text(tokens("Hm", "</think>", " Paris")) == " Paris"


def test_tags_that_are_control_tokens_are_seen_by_their_bytes():
    tag = {"text": "", "special": True}
    pieces = [
        tag | {"bytes": b"<think>"},
        "Hm",
        tag | {"bytes": b"</think>"},
        "Paris",
        tag | {"bytes": b"<|im_end|>"},
    ]
    assert [t.spoken for t in tokens(*pieces)] == [False, False, False, True, False]


def test_a_smaller_than_sign_is_no_tag():
    assert spoken_text(tokens("a", " <", " b", " <", "th", "en")) == "a < b <then"


def test_what_the_caller_wrote_is_read_but_not_watched():
    read = tokens({"text": "X is", "forced": True}, " Y")
    assert [t.watched for t in read] == [False, True]
    assert spoken_text(read) == "X is Y"


PIECES = st.sampled_from(
    ["It", " is", " so", ".", " ", "\n", "。", "国", "<think>", "</think>", "<", " Mr", " A", '."', "-"]
)


@STEADY
@given(st.lists(PIECES, max_size=14), st.integers(0, 14))
@example(["It", ".", " ", "A"], 3)
def test_writing_the_same_again_after_a_cut_gives_the_same(pieces, keep):
    # A closing tag that nobody saw begin rewrites the past, so that only whole answers have it.
    if "<think>" not in pieces:
        pieces = [piece for piece in pieces if piece != "</think>"]
    once, again = Answer(), Answer()
    for index, piece in enumerate(pieces):
        once.add(step(index, piece))
        again.add(step(index, piece))
    expected = list(once.tokens)
    again.truncate(keep)
    for index, piece in list(enumerate(pieces))[keep:]:
        again.add(step(index, piece))
    assert [t._replace(step=None) for t in again.tokens] == [t._replace(step=None) for t in expected]


@STEADY
@given(st.lists(PIECES, max_size=20))
def test_places_are_in_order(pieces):
    for token in tokens(*pieces):
        assert 0 <= token.word <= token.position
        assert 0 <= token.sentence <= token.position
