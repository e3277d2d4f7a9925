"""A plain function as a retriever: what it may return, and what it may do instead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest, OutOfMemory, RetrieverFailed
from cartoolkit.retrieval.callback import CallbackRetriever, as_searcher, cut_at_space
from cartoolkit.retrieval.fts5 import FTSRetriever


def test_the_text_is_the_only_hit():
    asked = []

    def ask_mother(query):
        asked.append(query)
        return "  Boil it for ten minutes.\n"

    (hit,) = CallbackRetriever(ask_mother).search("eggs?", 5)
    assert (hit.text, hit.source, hit.score) == ("Boil it for ten minutes.", "ask_mother", 1.0)
    assert asked == ["eggs?"]


@pytest.mark.parametrize("nothing", [None, "", " \n\t"])
def test_no_text_is_no_hit(nothing):
    assert CallbackRetriever(lambda query: nothing).search("x") == []


def test_the_same_text_is_the_same_passage_whatever_was_asked():
    retriever = CallbackRetriever(lambda query: "known" if "a" in query else "other")
    first, second, third = (retriever.search(query)[0].id for query in ("a", "ab", "c"))
    assert first == second != third


def test_what_it_raises_is_told_with_its_cause():
    def broken(query):
        raise ConnectionError("no route to the library")

    with pytest.raises(RetrieverFailed, match="broken raised ConnectionError: no route") as caught:
        CallbackRetriever(broken).search("x")
    assert isinstance(caught.value.__cause__, ConnectionError)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_a_failed_look_up(stop):
    def interrupted(query):
        raise stop

    with pytest.raises(stop):
        CallbackRetriever(interrupted).search("x")


def test_an_error_of_ours_passes_unchanged():
    def engine_inside(query):
        raise OutOfMemory("full")

    with pytest.raises(OutOfMemory):
        CallbackRetriever(engine_inside).search("x")


@pytest.mark.parametrize("answer", [3, b"bytes", ["a"], {"text": "a"}])
def test_what_is_no_text_is_refused_by_its_type(answer):
    with pytest.raises(RetrieverFailed, match=type(answer).__name__):
        CallbackRetriever(lambda query: answer).search("x")


def test_a_megabyte_is_cut_between_words():
    (hit,) = CallbackRetriever(lambda query: "word " * 200_000, max_characters=1002).search("x")
    assert hit.text == ("word " * 200).strip()


@given(st.text(alphabet="ab \n", max_size=30), st.integers(1, 30))
def test_a_cut_keeps_a_beginning_no_longer_than_allowed(text, limit):
    cut = cut_at_space(text, limit)
    assert text.startswith(cut)
    assert len(cut) <= limit
    if len(text) <= limit:
        assert cut == text
    elif cut.strip():
        # It ends where a word ends, unless the only word is longer than allowed.
        assert text[len(cut)].isspace() or len(cut.split()) == 1


def test_what_may_stand_for_a_retriever():
    index = FTSRetriever()
    assert as_searcher(index) is index
    assert as_searcher(lambda query: "text").search("x")[0].text == "text"
    for wrong in (None, "text", 3, FTSRetriever):
        with pytest.raises(InvalidRequest, match="no retriever"):
            as_searcher(wrong)
