"""What a caller wants: the workloads of the seed, and every unknown name refused before anything runs."""

import pytest
from model_rows import row

from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.intents import WORKLOADS, IntentHint
from cartoolkit.requests import GenerateRequest
from cartoolkit.routing.choice.intent import PROFILES, Profile, needs_of, plan, profile
from cartoolkit.routing.rows.registry import Registry

REGISTRY = Registry([row("acme/large"), row("acme/small", name="Small"), row("other/small", name="Small")])


@pytest.mark.parametrize(
    ("workload", "weights", "bonus", "is_sensitive"),
    [
        # RoutingWorkload in car-inference's tasks/generate.rs: weights, local_bonus, is_latency_sensitive.
        ("interactive", (0.45, 0.40, 0.15), 0.00, True),
        ("batch", (0.60, 0.15, 0.25), 0.08, False),
        ("background", (0.65, 0.05, 0.30), 0.15, False),
        ("local_preferred", (0.55, 0.20, 0.25), 0.20, True),
        ("fastest", (0.10, 0.85, 0.05), 0.20, True),
    ],
)
def test_the_workloads_are_the_seeds(workload, weights, bonus, is_sensitive):
    of = PROFILES[workload]
    assert (of.weights, of.local_bonus, of.latency_sensitive) == (weights, bonus, is_sensitive)


def test_there_are_five_workloads_and_interactive_is_the_default():
    assert WORKLOADS == ("interactive", "batch", "background", "local_preferred", "fastest")
    assert plan(REGISTRY).profile is PROFILES["interactive"]


@pytest.mark.parametrize("name", PROFILES)
def test_the_weights_of_every_profile_sum_to_one(name):
    assert sum(PROFILES[name].weights) == pytest.approx(1, abs=1e-6)


def test_only_fastest_looks_at_the_first_token_alone():
    assert [name for name, of in PROFILES.items() if of.first_token] == ["fastest"]


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        ({}, "batch"),
        ({"task": "code"}, "batch"),
        ({"prefer_local": True}, "local_preferred"),
        ({"prefer_fast": True}, "fastest"),
        ({"prefer_quality": True}, "prefer_quality"),
        ({"high_stakes": True}, "high_stakes"),
        ({"high_stakes": True, "prefer_fast": True, "prefer_local": True}, "high_stakes"),
    ],
)
def test_a_preference_takes_the_place_of_the_workload(hint, name):
    assert plan(REGISTRY, workload="batch", intent=hint).profile.name == name


def test_what_high_stakes_outranks_is_told():
    wanted = plan(REGISTRY, intent={"high_stakes": True, "prefer_fast": True})
    assert wanted.set_aside == ("prefer_fast, since high_stakes outranks it",)
    assert not wanted.profile.explores


def test_high_stakes_weighs_quality_more_than_any_other_profile():
    heaviest = max(PROFILES.values(), key=lambda of: of.quality)
    assert heaviest.name == "high_stakes"


def test_two_preferences_contradict_each_other():
    with pytest.raises(InvalidRequest, match="prefer_local and prefer_fast ask for different weights"):
        plan(REGISTRY, intent={"prefer_local": True, "prefer_fast": True})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"workload": "interactve"}, "'interactve' is no workload. Did you mean 'interactive'?"),
        ({"intent": {"task": "coding"}}, "'coding' is no task. Did you mean 'code'?"),
        ({"intent": {"require": ["visio"]}}, "'visio' is no capability. Did you mean 'vision'?"),
        ({"intent": {"prefer_lokal": True}}, "'prefer_lokal' is no field of an intent. Did you mean"),
        ({"intent": {"prefer_local": "yes"}}, "prefer_local must be True or False; got 'yes'."),
        ({"intent": {"exclude_models": 3}}, "exclude_models must be a list of ids or names; got 3."),
    ],
)  # fmt: skip
def test_an_unknown_name_is_an_error_with_what_is_meant_perhaps(asked, said):
    with pytest.raises(InvalidRequest) as failure:
        plan(REGISTRY, **asked)
    assert str(failure.value).startswith(said)


@pytest.mark.parametrize(
    "asked", [{"model": "acme/lrge"}, {"intent": {"exclude_models": ["acme/lrge"]}}], ids=["pin", "exclude"]
)
def test_an_unknown_model_is_an_error_and_never_another_model(asked):
    with pytest.raises(ModelNotFound, match="model not found: 'acme/lrge'"):
        plan(REGISTRY, **asked)


def test_a_model_that_is_named_is_a_pin_and_the_hint_is_only_kept():
    wanted = plan(REGISTRY, model="large", intent={"prefer_fast": True, "require": ["vision"]})
    assert (wanted.pinned, wanted.require, wanted.profile.name) == ("acme/large", (), "interactive")
    assert wanted.set_aside == (
        "prefer_fast, since a model is named",
        "require, since a model is named",
    )


def test_a_name_excludes_every_model_that_has_it():
    wanted = plan(REGISTRY, intent=IntentHint(exclude_models="Small"))
    assert wanted.excluded == {"acme/small", "other/small"}


def test_weights_of_ones_own_are_taken_if_they_sum_to_one():
    mine = Profile("mine", 0.2, 0.2, 0.6, local_bonus=0.1)
    assert plan(REGISTRY, workload=mine).profile is mine
    with pytest.raises(InvalidRequest, match=r"must sum to 1; 0.2 \+ 0.2 \+ 0.5 = 0.9"):
        Profile("mine", 0.2, 0.2, 0.5)
    with pytest.raises(InvalidRequest, match="quality must be a number from 0 to 1"):
        Profile("mine", 1.2, -0.2, 0.0)
    with pytest.raises(InvalidRequest, match="local_bonus"):
        Profile("mine", 0.2, 0.2, 0.6, local_bonus=2)


def test_a_profile_is_changed_by_the_names_of_its_settings():
    changed = profile("fastest").changed(local_bonus=0)
    assert (changed.weights, changed.local_bonus, changed.first_token) == ((0.10, 0.85, 0.05), 0, True)
    with pytest.raises(InvalidRequest, match="'bonus' is no setting of a profile"):
        profile("fastest").changed(bonus=0)


def test_a_request_needs_what_its_blocks_are_made_of():
    text = GenerateRequest(prompt="Hello")
    image = {"role": "user", "content": [{"type": "image", "url": "x"}, {"type": "text", "text": "What?"}]}
    assert needs_of(text) == ("generate",)
    assert needs_of(GenerateRequest(messages=[image])) == ("generate", "vision")
