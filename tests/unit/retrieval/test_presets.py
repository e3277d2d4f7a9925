"""Policies by name, their settings, and what is said of names that are not there."""

import json

import pytest

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import (
    PRESETS,
    AttendedWords,
    Budget,
    ContentTokenBelow,
    Continue,
    EntropyAttention,
    EverySentence,
    MaskedLookahead,
    Never,
    Partial,
    Policy,
    RegenerateSentence,
    Restart,
    WindowMaxProb,
    preset,
)


def test_the_presets_are_the_five_of_the_design_and_dragin():
    assert list(PRESETS) == ["none", "upfront", "seed", "flare", "rollback", "dragin"]
    assert all(policy.name == name for name, policy in PRESETS.items())


def test_the_seed_s_numbers():
    seed = preset("seed")
    assert seed.trigger == WindowMaxProb(0.4, 3)
    assert (seed.query, seed.resume, seed.pre_retrieve) == (Partial(), Restart(), False)
    assert (seed.budget.max_retrievals, seed.budget.cooldown_tokens) == (2, 0)


def test_flare_s_numbers():
    flare = preset("flare")
    assert (flare.trigger.threshold, flare.query.mask_below, flare.passages_per_query) == (0.8, 0.4, 2)


def test_dragin_s_numbers():
    dragin = preset("dragin")
    assert (dragin.trigger, dragin.query) == (EntropyAttention(1.2), AttendedWords(25))
    assert (dragin.resume, dragin.passages_per_query) == (RegenerateSentence(), 3)


def test_dragin_alone_reads_attention():
    readers = [name for name, p in PRESETS.items() if p.trigger.reads_attention or p.query.reads_attention]
    assert readers == ["dragin"]


def test_settings_of_every_part_by_their_names():
    policy = preset(
        "rollback", threshold=0.5, max_retrievals=1, max_words=8, pre_retrieve=True, context="replace"
    )
    assert policy.trigger == ContentTokenBelow(0.5)
    assert policy.budget == Budget(max_retrievals=1)
    assert (policy.query.max_words, policy.pre_retrieve, policy.context) == (8, True, "replace")
    assert preset("rollback").trigger.threshold == 0.6


def test_a_whole_part_may_be_given_and_its_settings_beside_it():
    policy = preset("seed", query=MaskedLookahead(), mask_below=0.2, resume=Continue())
    assert (policy.query, policy.resume) == (MaskedLookahead(0.2), Continue())


@pytest.mark.parametrize("name", PRESETS)
def test_a_policy_s_settings_give_the_policy_again(name):
    policy = PRESETS[name]
    assert policy.changed(**policy.settings()) == policy


def test_an_unknown_preset_is_refused_with_those_there_are():
    with pytest.raises(InvalidRequest, match="no policy 'flair'") as caught:
        preset("flair")
    assert caught.value.hint.startswith("Presets are: none, upfront, seed, flare, rollback")


def test_an_unknown_setting_is_refused_with_those_there_are():
    with pytest.raises(
        InvalidRequest, match="'treshold' is not a setting of the policy 'rollback'"
    ) as caught:
        preset("rollback", treshold=0.5)
    assert "threshold" in caught.value.hint
    assert "cooldown_tokens" in caught.value.hint
    with pytest.raises(InvalidRequest, match="'threshold' is not a setting of the policy 'none'"):
        preset("none", threshold=0.5)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"threshold": 2}, "threshold must be a number from 0 to 1; got 2"),
        ({"max_retrievals": -1}, "max_retrievals must be a whole number of at least 0; got -1"),
        ({"max_kept_tokens": 0}, "max_kept_tokens must be a whole number of at least 1, or None; got 0"),
        ({"deadline_s": "soon"}, "deadline_s must be a number of at least 0, or None; got 'soon'"),
        ({"deadline_s": float("nan")}, "deadline_s must be a number of at least 0"),
        ({"passages_per_query": 0}, "passages_per_query must be a whole number of at least 1"),
        ({"context": "prepend"}, "context must be one of append, replace; got 'prepend'"),
        ({"layout": "none"}, "layout must be one of context_first, question_first; got 'none'"),
        ({"trigger": "entropy"}, "trigger must be a Trigger; got 'entropy'"),
        ({"trigger": EverySentence}, "trigger must be a Trigger"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    with pytest.raises(InvalidRequest, match=message):
        preset("rollback", **setting)


def test_policies_compare_by_value_and_cannot_be_changed_in_place():
    assert Policy(trigger=Never()) == Policy()
    assert len({preset("seed"), preset("seed"), preset("flare")}) == 2
    with pytest.raises(AttributeError):
        Policy().name = "other"


@pytest.mark.parametrize("name", PRESETS)
def test_a_policy_can_be_written_into_a_trace(name):
    described = json.loads(json.dumps(PRESETS[name].describe()))
    assert described["name"] == name
    assert described["trigger"]["kind"] == type(PRESETS[name].trigger).__name__
    assert described["budget"]["max_retrievals"] == PRESETS[name].budget.max_retrievals
