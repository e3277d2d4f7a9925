"""Scoring: the record of a text that somebody else wrote."""

import math

import numpy as np
import pytest
from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit.engine import Engine
from cartoolkit.errors import InvalidRequest, PromptTooLong
from cartoolkit.requests import make_request

A, B, C = 1, 2, 3
WORDS = [b"a", b"b", b"c"]


@pytest.fixture
def engine():
    # Of four tokens the scripted one has one half, the others a sixth each.
    with Engine(lambda: ScriptedDecoder(WORDS, [A, B, C, EOS], context_length=16)) as engine:
        yield engine


def test_every_token_carries_the_probability_that_the_model_gave_it(engine):
    trace = engine.score("c", continuation="abb").trace
    assert trace.columns["token_id"].tolist() == [A, B, B]
    assert np.exp(trace.columns["logprob"]) == pytest.approx([1 / 2, 1 / 2, 1 / 6])
    assert trace.columns["rank"].tolist() == [1, 1, 4]
    assert trace.flag("forced").all()
    assert np.isnan(trace.columns["draw"]).all()


def test_ids_and_text_are_scored_alike(engine):
    by_text, by_ids = engine.score("c", continuation="abc"), engine.score("c", continuation=[A, B, C])
    assert by_text.trace.columns["logprob"].tolist() == by_ids.trace.columns["logprob"].tolist()
    assert by_text.text == "abc"


def test_an_end_token_inside_does_not_end_the_record(engine):
    trace = engine.score("c", continuation=[A, EOS, C]).trace
    assert trace.columns["token_id"].tolist() == [A, EOS, C]


def test_perplexity_is_that_of_the_text(engine):
    trace = engine.score("c", continuation="abb").trace
    assert trace.perplexity == pytest.approx((2 * 2 * 6) ** (1 / 3))


@pytest.mark.parametrize("continuation", ["", [], [9], ["a"], [True], [-1]])
def test_what_are_no_tokens_is_refused(engine, continuation):
    with pytest.raises(InvalidRequest, match="continuation must be token ids from 0 to 3"):
        engine.score("c", continuation=continuation)


def test_a_text_that_does_not_fit_is_refused_before_it_is_read(engine):
    with pytest.raises(PromptTooLong, match="context window of 16 tokens: 1 and 20"):
        engine.score("c", continuation=[A] * 20)
    assert engine.session is None


def test_a_stop_string_of_the_request_does_not_end_the_record(engine):
    request = make_request("c", stop="bb", temperature=0)
    assert engine.score(request, continuation="abbc").trace.columns["token_id"].tolist() == [A, B, B, C]


@pytest.mark.parametrize(
    "setting", [{"max_tokens": 2}, {"stop": "b"}, {"ignore_eos": True}, {"truncate": True}]
)
def test_a_setting_that_would_cut_the_record_is_refused(engine, setting):
    with pytest.raises(InvalidRequest, match=f"{next(iter(setting))} does not go with score"):
        engine.score("c", continuation="abb", **setting)


def test_ids_of_numpy_are_ids(engine):
    scored = engine.score("c", continuation=np.array([A, B], np.int32))
    assert engine.score("c", continuation=scored.trace.columns["token_id"]).text == "ab"


def test_settings_shape_the_processed_distribution_only(engine):
    plain = engine.score("c", continuation="abb", temperature=1, top_p=1).trace
    greedy = engine.score("c", continuation="abb", temperature=0).trace
    assert plain.columns["logprob"].tolist() == greedy.columns["logprob"].tolist()
    assert greedy.columns["processed_logprob"].tolist() == [0, 0, -math.inf]
