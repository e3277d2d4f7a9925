"""Where sentences end, against splits made by hand."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.retrieval.sentences import SentenceStream, split_sentences

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=300)


@pytest.mark.parametrize(
    "sentences",
    [
        ["It is Paris.", " It is old."],
        ["Pi is 3.14 today.", " Really?", " Yes!"],
        ["He lives in St. John's.", " Dr. Who does not."],
        ["J. R. R. Tolkien wrote it.", " I did not."],
        ["See e.g. Smith et al. (2020) for it.", " Or not."],
        ["At 5 p.m. it rains."],
        ["It rains at 5 p.m.", " Then it stops."],
        ["See No. 5 for it.", " No.", " It is not there."],
        ["It was born on Jan. 5 1900.", " It died."],
        ['"Stop!" he said.', " He stopped."],
        ['He said "Stop."', " He stopped."],
        ["(It is so.)", " **It is.**", " End"],
        ["Visit example.com now...", " Or then."],
        ["Wait... there is more."],
        ["Cities:", "\n1. Paris", "\n2. Rome", "\n- Oslo"],
        ["One line", "\n\nAnother line\n"],
        ["它在巴黎。", "真的吗？", "「是。」", "好"],
        ["Well?!", " Yes."],
        ["..."],
        ["42"],
    ],
)
def test_sentences_as_a_reader_would_split_them(sentences):
    assert split_sentences("".join(sentences)) == sentences


def test_an_end_is_known_only_when_the_next_word_has_begun():
    stream = SentenceStream()
    assert [stream.feed(piece) for piece in ("It", " is", ".", " ", "So")] == [[], [], [], [], [6]]


def test_a_line_ends_a_sentence_at_once():
    assert SentenceStream().feed("Yes\n") == [3]


def test_a_small_letter_shows_that_a_stop_was_none():
    stream = SentenceStream()
    assert stream.feed("The approx") + stream.feed(".") + stream.feed(" value") == []
    assert stream.feed(" is 3. Yes") == [len("The approx. value is 3.")]


TEXTS = st.text("aB1 .!?\n\"')。？-", max_size=40)


@STEADY
@given(TEXTS)
def test_joined_sentences_are_the_text(text):
    assert "".join(split_sentences(text)) == text


@STEADY
@given(TEXTS, st.lists(st.integers(0, 40), max_size=8))
def test_the_cut_into_tokens_does_not_move_an_end(text, cuts):
    places = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    stream, ends = SentenceStream(), []
    for start, end in pairwise(places):
        ends += stream.feed(text[start:end])
    assert ends == SentenceStream().feed(text)
