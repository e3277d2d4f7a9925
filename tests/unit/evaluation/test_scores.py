"""Scores of doubt on answers made by hand."""

import math
from dataclasses import replace

import pytest
from scripted_engine import said, step, trace

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.scores import CONTROL, SCORES, doubt_scores, mean_probability


def test_every_score_is_made_of_the_tokens_that_a_reader_reads():
    steps = [
        step(0, "Given", prob=0.01, entropy=9, forced=True),
        step(1, " It", prob=0.5, entropy=1.5),
        step(2, " gone", prob=0.02, entropy=8, kept=False),
        step(3, " is", prob=0.25, entropy=2.5),
        step(4, " so", prob=0.5, entropy=0.5),
        step(5, ".", prob=1.0, entropy=0.0),
        step(6, "", prob=0.03, entropy=7, special=True),
    ]
    scores = doubt_scores(trace(steps))
    assert list(scores) == list(SCORES)
    assert scores["1 - lowest probability"] == 0.75
    # Windows .5 .25 .5 and .25 .5 1: the surest tokens are .5 and 1.
    assert scores["1 - surest window of 3"] == 0.5
    assert scores["highest entropy"] == 2.5
    # 1/2, 1/4, 1/2, 1: four bits over four tokens.
    assert scores["-mean log probability"] == pytest.approx(math.log(2))
    assert scores[CONTROL] == 4
    assert mean_probability(trace(steps)) == pytest.approx(2.25 / 4)


def test_an_answer_shorter_than_the_window_is_one_window():
    assert doubt_scores(said("Yes indeed", 0.25, 0.5))["1 - surest window of 3"] == 0.5


def test_an_empty_answer_has_no_doubt():
    empty = trace([step(0, "", special=True)])
    assert set(doubt_scores(empty).values()) == {0}
    assert mean_probability(empty) == 1


def test_an_answer_that_was_not_inspected_is_refused():
    blind = trace([replace(step(0, "Yes"), max_prob=math.nan)])
    with pytest.raises(InvalidRequest, match="inspect=False"):
        doubt_scores(blind)
