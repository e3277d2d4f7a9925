"""Cutting texts into passages: nothing lost, nothing too long, sentences whole where they fit."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.chunks import chunk_spans

PROSE = st.lists(
    st.sampled_from(
        ["One. ", "Dr. Who came. ", "It is 3.14 m\nlong! ", "\n\n", "- item\n", "Why? ", "x" * 50, "e\u0301"]
    )
).map("".join)


def chunks(text, size=600, overlap=0):
    return [text[start:end] for start, end in chunk_spans(text, size, overlap)]


@given(st.text() | PROSE, st.integers(1, 80))
@settings(deadline=None)
def test_chunks_without_overlap_joined_are_the_text(text, size):
    made = chunks(text, size)
    assert "".join(made) == text
    assert all(0 < len(each) <= size for each in made)


@given(PROSE, st.integers(2, 80), st.data())
@settings(deadline=None)
def test_chunks_with_overlap_cover_the_text_and_go_forward(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = chunk_spans(text, size, overlap)
    assert [span for span in spans if span[1] - span[0] > size] == []
    if text:
        assert (spans[0][0], spans[-1][1]) == (0, len(text))
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end
        assert end - next_start <= overlap


def test_sentences_are_kept_whole_and_packed():
    text = "Iron is hard. Dr. Curie saw it glow at 3.5 volts. Gold is soft. Lead is heavy."
    assert chunks(text, 50) == [
        "Iron is hard. Dr. Curie saw it glow at 3.5 volts.",
        " Gold is soft. Lead is heavy.",
    ]


def test_the_last_sentences_are_repeated_whole():
    text = "First one. Second one. Third one. Fourth one."
    assert chunks(text, 24, 12) == [
        "First one. Second one.",
        " Second one. Third one.",
        " Third one. Fourth one.",
    ]
    # Half a sentence is not repeated.
    assert chunks(text, 24, 8) == ["First one. Second one.", " Third one. Fourth one."]


def test_a_line_that_was_wrapped_by_hand_is_no_end():
    text = "The melting point\nof gold is high. It is\nsoft."
    assert chunks(text, 34) == ["The melting point\nof gold is high.", " It is\nsoft."]


def test_a_paragraph_ends_a_sentence_without_a_full_stop():
    assert chunks("A heading\n\nThen text", 12) == ["A heading\n\n", "Then text"]


def test_a_long_sentence_is_cut_between_words_and_a_long_word_between_characters():
    assert chunks("aaa bbb ccc ddd", 8) == ["aaa bbb ", "ccc ddd"]
    assert chunks("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_a_mark_stays_with_its_letter():
    made = chunks("e\u0301" * 20, 7)
    assert [each for each in made if unicodedata.category(each[0]).startswith("M")] == []


def test_chinese_sentences_end_without_a_space():
    assert chunks("金是软的。铁是硬的。铅是重的。", 11) == ["金是软的。铁是硬的。", "铅是重的。"]


def test_a_megabyte_without_a_full_stop_takes_no_time():
    import time

    start = time.perf_counter()
    assert sum(map(len, chunks("word and " * 111_111))) == 999_999
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (10, 10), (10, -1)])
def test_sizes_that_make_no_sense_are_refused(size, overlap):
    with pytest.raises(InvalidRequest, match=str(size)):
        chunk_spans("text", size, overlap)
