"""Each trigger on a sequence whose answer is worked out by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_answers import tokens

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    AnyTokenInSentence,
    ContentTokenBelow,
    EntropyAbove,
    EntropyTrend,
    EverySentence,
    EveryTokens,
    Never,
    Trigger,
    WindowMaxProb,
)

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=200)


def fires(trigger, *pieces):
    """Positions at which a trigger fires that is shown a growing answer and never reset."""
    read = tokens(*pieces)
    return [n for n in range(len(read)) if trigger.on_token(read[: n + 1])]


def probs(*values):
    return [(f" w{i}", value) for i, value in enumerate(values)]


def entropies(*values):
    return [{"text": f" w{i}", "entropy": value} for i, value in enumerate(values)]


def test_a_window_fires_at_the_third_low_token_running_and_on():
    #                                     low  low  no   low  low  low  low
    assert fires(WindowMaxProb(0.4, 3), *probs(0.3, 0.1, 0.4, 0.2, 0.3, 0.39, 0.1)) == [5, 6]


def test_a_window_says_which_tokens_and_where():
    fire = WindowMaxProb(0.4, 3).on_token(tokens(*probs(0.9, 0.3, 0.2, 0.1)))
    assert (fire.first, fire.at, fire.positions) == (1, 3, (1, 2, 3))
    assert fire.reason == "3 tokens running below 0.4"


def test_a_window_of_one_sees_the_first_token():
    assert fires(WindowMaxProb(0.4, 1), *probs(0.3, 0.9)) == [0]


def test_punctuation_counts_in_the_seed_s_window_and_can_be_left_out():
    pieces = [(" a", 0.1), (",", 0.9), (" b", 0.1), (",", 0.1), (" c", 0.1)]
    assert fires(WindowMaxProb(0.4, 3), *pieces) == [4]
    assert fires(WindowMaxProb(0.4, 3, skip_wordless=True), *pieces) == [4]
    assert fires(WindowMaxProb(0.4, 2), *pieces) == [3, 4]
    assert fires(WindowMaxProb(0.4, 2, skip_wordless=True), *pieces) == [2, 4]


def test_a_content_token_fires_at_once_and_signs_do_not():
    pieces = [(" is", 0.5), (",", 0.1), (" Bel", 0.59), ("mop", 0.6), ("an", 0.99)]
    assert fires(ContentTokenBelow(0.6), *pieces) == [0, 2]
    assert fires(ContentTokenBelow(0.6, skip_wordless=False), *pieces) == [0, 1, 2]


def test_function_words_are_exempt_where_the_policy_says_so():
    pieces = [(" the", 0.1), ("rmal", 0.1), (" of", 0.1), (" Spain", 0.1)]
    # " the" looks like a whole word until the next token comes.
    assert fires(ContentTokenBelow(0.6, skip_function_words=True), *pieces) == [1, 3]


def test_the_first_word_of_a_sentence_is_exempt_where_the_policy_says_so():
    pieces = [("Cer", 0.1), ("tainly", 0.1), (" it", 0.1), (".", 0.9), (" For", 0.1), (" you", 0.1)]
    assert fires(ContentTokenBelow(0.6, skip_sentence_initial=True), *pieces) == [2, 5]
    assert fires(ContentTokenBelow(0.6), *pieces) == [0, 1, 2, 4, 5]


def test_the_taken_token_s_probability_can_be_looked_at_instead_of_the_likeliest_one_s():
    sampled = {"text": " Lyon", "max_prob": 0.9, "logprob": math.log(0.05)}
    assert fires(ContentTokenBelow(0.6), sampled) == []
    assert fires(ContentTokenBelow(0.6, signal="prob"), sampled) == [0]


def test_a_part_of_a_character_may_be_a_word():
    part = {"text": "", "bytes": b"\xe5\xb7", "incomplete": True, "max_prob": 0.1}
    assert fires(ContentTokenBelow(0.6), part) == [0]


def test_a_sentence_fires_with_all_its_low_tokens():
    sentence = tokens(("It", 0.9), (" is", 0.7), (" Bel", 0.3), ("ize", 0.85), (".", 0.2))
    fire = AnyTokenInSentence(0.8).on_sentence(sentence)
    assert (fire.first, fire.at, fire.positions) == (1, 5, (1, 2))
    assert "lowest at 0.300" in fire.reason
    assert AnyTokenInSentence(0.3).on_sentence(sentence) is None
    assert AnyTokenInSentence(0.8).on_token(sentence) is None


def test_what_the_caller_wrote_does_not_make_a_sentence_fire():
    sentence = tokens({"text": "X is", "forced": True, "max_prob": 0.01}, (" Y", 0.9))
    assert AnyTokenInSentence(0.8).on_sentence(sentence) is None


def test_entropy_fires_above_its_threshold():
    assert fires(EntropyAbove(2.0), *entropies(1.9, 2.0, 2.1)) == [2]


def test_a_trend_fires_where_entropy_accelerates():
    # Second differences: 0, 0, 1.5, -0.5; smoothed by 0.9: 0, 0, 1.35, -0.315.
    values = (0.5, 0.5, 0.5, 0.5, 2.0, 3.0)
    assert fires(EntropyTrend(1.0), *entropies(*values)) == [4]
    assert fires(EntropyTrend(1.36), *entropies(*values)) == []


@STEADY
@given(st.lists(st.floats(0, 8), min_size=1, max_size=40), st.floats(0.75, 1))
def test_a_trend_is_the_recurrence_over_all_tokens(values, smoothing):
    trend, fired = 0.0, []
    for i in range(len(values)):
        if i >= 2:
            trend = smoothing * (values[i] - 2 * values[i - 1] + values[i - 2]) + (1 - smoothing) * trend
        fired.append(trend)
    read = tokens(*entropies(*values))
    got = [EntropyTrend(0, smoothing)._trend(reversed(read[: i + 1])) for i in range(len(read))]
    assert got == pytest.approx(fired, abs=1e-6)


def test_every_n_tokens_and_every_sentence_know_no_doubt():
    read = tokens(" a", " b", " c")
    assert fires(EveryTokens(2), " a", " b", " c") == [1, 2]
    fire = EveryTokens(3).on_token(read)
    assert (fire.first, fire.at, fire.positions) == (3, 3, ())
    fire = EverySentence().on_sentence(read)
    assert (fire.first, fire.at, fire.positions) == (3, 3, ())
    assert EverySentence().on_token(read) is None


def test_never_fires_at_nothing():
    read = tokens((" a", 0.01))
    assert Never().on_token(read) is None
    assert Never().on_sentence(read) is None


@pytest.mark.parametrize(
    "trigger",
    [WindowMaxProb(), ContentTokenBelow(), ContentTokenBelow(signal="prob"), EntropyAbove(), EntropyTrend()],
)
def test_a_step_without_numbers_is_refused_with_what_to_do(trigger):
    with pytest.raises(InvalidRequest, match=r"step 0 \(' a'\) carries no \w+: .* inspect=False") as caught:
        trigger.on_token(tokens({"text": " a"}))
    assert "inspect=True" in caught.value.hint


def test_a_sentence_without_numbers_is_refused():
    with pytest.raises(InvalidRequest, match="carries no max_prob"):
        AnyTokenInSentence().on_sentence(tokens({"text": " a"}))


@pytest.mark.parametrize("trigger", [Never(), EveryTokens(1), EverySentence(), Trigger()])
def test_triggers_that_look_at_no_numbers_need_none(trigger):
    trigger.on_token(tokens({"text": " a"}))
    trigger.on_sentence(tokens({"text": " a"}))


@pytest.mark.parametrize(
    "build",
    [
        lambda: WindowMaxProb(1.1),
        lambda: WindowMaxProb(0.4, 0),
        lambda: WindowMaxProb(0.4, 2.5),
        lambda: ContentTokenBelow(float("nan")),
        lambda: ContentTokenBelow("0.4"),
        lambda: ContentTokenBelow(True),
        lambda: AnyTokenInSentence(0.4, signal="entropy"),
        lambda: EntropyAbove(-1),
        lambda: EntropyTrend(1, 0.5),
        lambda: EveryTokens(0),
    ],
)
def test_settings_out_of_range_are_refused(build):
    with pytest.raises(InvalidRequest, match="must be"):
        build()
