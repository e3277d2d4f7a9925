"""What is asked and what survives, on an answer whose words can be counted."""

import math

import pytest
from scripted_answers import tokens

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    ContentWords,
    Continue,
    MaskedLookahead,
    Partial,
    Question,
    QuestionAndAccepted,
    RegenerateSentence,
    Restart,
    RollbackToWord,
)
from cartoolkit.retrieval.queries import Query, Situation
from cartoolkit.retrieval.resume import Resume
from cartoolkit.retrieval.triggers import Fire

#           0     1         2     3         4      5     6       7     8      9
PIECES = ["He", " was", " old", ".", (" Ber", 0.3), ("k", 0.9), ("el", 0.9), " was", " found", (" in", 0.2)]
QUESTION = "Who found Berkelium?"


def situation(first, at, pieces=PIECES, **options):
    return Situation(QUESTION, tokens(*pieces, **options), Fire(first, at, (first,), ""))


def test_partial_is_what_was_written_before_the_trigger_without_the_question():
    assert Partial().build(situation(4, 6)) == "He was old. Berk"
    assert Partial(max_words=2).build(situation(4, 6)) == "old. Berk"


def test_the_question_alone():
    assert Question().build(situation(4, 6)) == QUESTION


def test_accepted_text_ends_before_the_word_in_doubt():
    assert QuestionAndAccepted().build(situation(5, 5)) == f"{QUESTION} He was old."
    assert QuestionAndAccepted(max_words=1).build(situation(5, 5)) == f"{QUESTION} old."
    assert QuestionAndAccepted().build(situation(0, 0)) == QUESTION


def test_all_is_accepted_where_nothing_is_in_doubt():
    everything = len(PIECES)
    assert QuestionAndAccepted().build(situation(everything, everything)).endswith("found in")


def test_a_masked_look_ahead_leaves_doubtful_words_out_whole():
    # The sentence is " Berkel was found in"; of it Berkel and in are in doubt.
    assert MaskedLookahead(0.4).build(situation(4, 10)) == f"{QUESTION} was found"
    assert MaskedLookahead(0.4, ask_question=False).build(situation(4, 10)) == "was found"
    assert MaskedLookahead(0.25, ask_question=False).build(situation(4, 10)) == "Berkel was found"
    assert MaskedLookahead(0.4, ask_question=False, max_words=1).build(situation(4, 10)) == "found"


def test_the_look_ahead_of_a_trigger_without_doubt_is_the_last_sentence():
    fire = Fire(10, 10, (), "")
    asked = MaskedLookahead(0.25, ask_question=False).build(Situation(QUESTION, tokens(*PIECES), fire))
    assert asked == "Berkel was found"


def test_a_mask_looks_at_the_taken_token():
    taken = [{"text": "Lyon", "max_prob": 0.9, "logprob": math.log(0.05)}, " is"]
    assert MaskedLookahead(0.4, ask_question=False).build(situation(0, 2, taken)) == "is"


def test_what_the_caller_wrote_is_not_masked():
    forced = [
        {"text": "Rome", "forced": True, "logprob": math.log(0.01), "max_prob": 0.9},
        (" is", 0.9),
        (" X", 0.1),
    ]
    assert MaskedLookahead(0.4, ask_question=False).build(situation(2, 3, forced)) == "Rome is"


def test_content_words_of_question_and_text_each_once():
    assert ContentWords().build(situation(9, 9)) == "found Berkelium old Berkel"
    assert ContentWords(max_words=3).build(situation(9, 9)) == "found Berkelium Berkel"
    assert ContentWords(max_words=1).build(situation(9, 9)) == "found"


@pytest.mark.parametrize("query", [Partial(), QuestionAndAccepted(), ContentWords(), MaskedLookahead()])
def test_thinking_and_control_tokens_do_not_enter_a_query(query):
    tag = {"text": "\ufffd", "special": True, "bytes": b"<|im_end|>", "max_prob": 0.9, "logprob": -0.1}
    pieces = ["<think>", " secret", "</think>", " Paris", tag, " is", (" old", 0.1)]
    asked = query.build(situation(6, 6, pieces))
    assert "Paris" in asked
    assert not {"secret", "think", "\ufffd", "im_end"} & set(
        asked.replace("<", " ").replace(">", " ").split()
    )


@pytest.mark.parametrize(
    ("resume", "survivors"),
    [(Restart(), 0), (RollbackToWord(), 4), (RegenerateSentence(), 4), (Continue(), 10)],
)
def test_what_survives_a_doubt_in_the_middle_of_a_word(resume, survivors):
    assert resume.keep(tokens(*PIECES), Fire(6, 6, (6,), "")) == survivors


def test_a_rollback_keeps_the_rest_of_the_sentence():
    assert RollbackToWord().keep(tokens(*PIECES), Fire(8, 8, (8,), "")) == 8
    assert RegenerateSentence().keep(tokens(*PIECES), Fire(8, 8, (8,), "")) == 4


@pytest.mark.parametrize("resume", [RollbackToWord(), RegenerateSentence()])
def test_nothing_is_dropped_where_nothing_is_in_doubt(resume):
    assert resume.keep(tokens(*PIECES), Fire(10, 10, (), "")) == 10


def test_only_a_regenerated_sentence_stands_unseen():
    assert [r.accepts_next_sentence for r in (Restart, RollbackToWord, RegenerateSentence, Continue)] == [
        False, False, True, False,
    ]  # fmt: skip


def test_the_bases_say_nothing_of_their_own():
    with pytest.raises(NotImplementedError):
        Query().build(situation(0, 0))
    with pytest.raises(NotImplementedError):
        Resume().keep([], Fire(0, 0, (), ""))


@pytest.mark.parametrize("build", [lambda: Partial(0), lambda: MaskedLookahead(2), lambda: ContentWords(0)])
def test_settings_out_of_range_are_refused(build):
    with pytest.raises(InvalidRequest, match="must be"):
        build()
