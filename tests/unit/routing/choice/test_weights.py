"""Moving a weight: what is asked for holds, the others keep their ratio, and the sum stays one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import PROFILES, Plan, Profile
from cartoolkit.routing.choice.weights import WEIGHTS, moved
from cartoolkit.routing.rows.schema import ModelSchema

shares = st.floats(0, 1)


@st.composite
def profiles(draw):
    quality = draw(shares)
    latency = draw(st.floats(0, 1 - quality))
    return Profile("any", quality, latency, max(0.0, 1 - quality - latency), draw(shares))


@given(profiles(), st.sampled_from(WEIGHTS), shares)
def test_the_three_sum_to_exactly_one_and_the_moved_one_is_as_asked(profile, name, value):
    after = moved(profile, name, value)
    assert math.fsum(after.weights) == 1
    assert getattr(after, name) == value
    assert all(0 <= weight <= 1 for weight in after.weights)
    assert (after.local_bonus, after.name) == (profile.local_bonus, profile.name)


@given(profiles(), st.sampled_from(WEIGHTS), shares)
def test_the_other_two_keep_their_ratio(profile, name, value):
    first, second = (each for each in WEIGHTS if each != name)
    after = moved(profile, name, value)
    crossed = (
        getattr(after, first) * getattr(profile, second),
        getattr(after, second) * getattr(profile, first),
    )
    if getattr(profile, first) + getattr(profile, second) > 0:
        assert crossed[0] == pytest.approx(crossed[1], abs=1e-12)
    else:
        assert getattr(after, first) == pytest.approx(getattr(after, second), abs=1e-12)


def test_two_others_that_are_zero_share_what_is_left():
    assert moved(Profile("all", 1, 0, 0), "quality", 0.5).weights == (0.5, 0.25, 0.25)


def test_the_bonus_moves_alone():
    after = moved(PROFILES["batch"], "local_bonus", 0.5)
    assert (after.weights, after.local_bonus) == ((0.60, 0.15, 0.25), 0.5)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, True, "0.5"])
def test_a_weight_out_of_range_is_refused(value):
    with pytest.raises(InvalidRequest, match="latency must be a number from 0 to 1"):
        moved(PROFILES["batch"], "latency", value)


def test_an_unknown_weight_is_refused_with_the_ones_there_are():
    with pytest.raises(InvalidRequest, match=r"'latncy' is no weight\. Did you mean 'latency'"):
        moved(PROFILES["batch"], "latncy", 0.5)


def test_a_decision_shows_a_weight_that_is_not_round_in_full():
    own = moved(PROFILES["interactive"], "quality", 1 / 3)
    row = ModelSchema.model_validate(
        {"id": "acme/large", "capabilities": ["generate"], "source": {"kind": "remote_api"}}
    )
    decision = weigh([row], Plan(own, "chat"))
    # 0.40 · (2/3) / 0.55 and 0.15 · (2/3) / 0.55
    assert "0.3333 × 0.500 + 0.4848 × " in decision.reason
    assert "0.1818 × 0.500 a" in str(decision)
