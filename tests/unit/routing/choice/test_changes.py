"""What would change a choice: worked out by hand, and tried again by deciding just before and just after."""

import math
from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from model_rows import row

from cartoolkit.routing.choice.changes import STEP, Situation, changes, first_choice
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import PROFILES, Plan, Profile
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine
from cartoolkit.routing.choice.weights import WEIGHTS, moved

GOOD, QUICK = "acme/good", "torch/quick"
# A first token after 1,500 ms is worth 0.25, after 500/3 ms 0.75; 0.3 + 0.6 · 0.995 = 0.897.
HALVES = Profile("mine", 0.5, 0.5, 0.0, first_token=True)


def bench(share):
    return [{"name": "exam", "score": share}]


def two(profile=HALVES, demand=None, **quick):
    good = row(
        GOOD,
        performance={"ttft_ms": 1500},
        benchmarks=bench(0.995),
        cost={"input_per_mtok": 10.0, "output_per_mtok": 0.0},
    )
    fields = {
        "performance": {"ttft_ms": 500 / 3, "prefill_tokens_per_second": 1000},
        "benchmarks": bench(0.0),
    }
    rows = good, row(QUICK, "folder", **fields | quick)
    machine = Machine(loaded=frozenset({QUICK}))
    return Situation(rows, Plan(profile, "chat"), demand or Demand(prompt_tokens=0), machine, {})


def change(situation, what):
    return next((each for each in changes(situation) if each.what == what), None)


def test_the_latency_weight_from_which_the_quick_one_comes_first():
    # 0.897 (1 - w) + 0.25 w = 0.3 (1 - w) + 0.75 w at w = 0.597 / 1.097 = 0.5442
    found = change(two(), "latency")
    assert (found.value, found.now, found.model_id) == (0.545, 0.5, QUICK)
    assert found.text == f"Latency weight raised to 0.545 (now 0.50) → {QUICK}."


def test_the_bonus_from_which_the_local_one_comes_first():
    # 0.5 · 0.897 + 0.5 · 0.25 = 0.5735 against 0.5 · 0.3 + 0.5 · 0.75 = 0.525
    found = change(two(), "local_bonus")
    assert (found.value, found.model_id) == (0.049, QUICK)


def test_the_prompt_from_which_reading_takes_too_long():
    # 0.4 · 0.897 + 0.6 · 0.25 = 0.4 · 0.3 + 0.6 · 500 / (500 + 500/3 + p) at p = 104.9
    situation = two(Profile("mine", 0.4, 0.6, 0.0, first_token=True))
    assert first_choice(situation) == QUICK
    found = change(situation, "prompt_tokens")
    assert (found.value, found.model_id) == (105, GOOD)
    assert found.text == f"A prompt of 105 tokens (now 0) → {GOOD}."


def test_the_price_below_which_the_good_one_is_too_dear():
    # 1,000 tokens at 10 dollars a million
    found = change(two(demand=Demand(prompt_tokens=1000)), "max_cost_usd")
    assert (found.model_id, found.text) == (QUICK, f"A price limit below $0.01 a call → {QUICK}.")
    assert found.value == math.nextafter(0.01, 0)


def test_a_limit_that_is_too_tight_is_loosened_to_what_the_better_one_costs():
    found = change(two(demand=Demand(prompt_tokens=1000, max_cost_usd=0.002)), "max_cost_usd")
    assert (found.value, found.model_id) == (0.01, GOOD)
    assert found.text == f"A price limit of $0.01 a call → {GOOD}."


def test_a_limit_that_nobody_is_known_to_keep_is_taken_away():
    situation = two(demand=Demand(prompt_tokens=1000, max_cost_usd=0.002))
    unpriced = situation.models[0].model_copy(update={"cost": type(situation.models[0].cost)()})
    found = change(replace(situation, models=(unpriced, situation.models[1])), "max_cost_usd")
    assert (found.value, found.model_id, found.text) == (None, GOOD, f"No price limit → {GOOD}.")


def test_a_model_of_unknown_price_is_shut_out_by_any_limit():
    situation = two(demand=Demand(prompt_tokens=1000))
    unpriced = situation.models[0].model_copy(update={"cost": type(situation.models[0].cost)()})
    found = change(replace(situation, models=(unpriced, situation.models[1])), "max_cost_usd")
    assert (found.model_id, found.text) == (QUICK, f"Any price limit → {QUICK}.")


def test_a_time_limit_shuts_the_slow_one_out():
    found = change(two(), "max_latency_ms")
    assert (found.model_id, found.text) == (QUICK, f"A time limit below 1,500 ms → {QUICK}.")


def test_requirements_that_the_good_one_does_not_meet():
    found = [
        each
        for each in changes(two(capabilities=["generate", "vision"]))
        if each.what in ("local", "capability")
    ]
    assert [(each.value, each.model_id, each.text) for each in found] == [
        (None, QUICK, f"Only models on this machine → {QUICK}."),
        ("vision", QUICK, f"Require vision → {QUICK}."),
    ]


def test_the_fewest_failures_after_which_the_other_comes_first():
    # 4 · 0.5735 / (4 + f) · 0.5735 < 0.525 · 0.525 from f = 0.77; with 20 successes from
    # (4 · 0.5735 + 20) / (24 + f) · 0.5735 < 0.275625, which is f = 22.4
    assert change(two(), "failures").value == 1
    known = replace(two(), evidence={GOOD: Evidence(successes=20)})
    assert change(known, "failures").value == 23
    assert change(known, "failures").text == f"23 more calls that fail or are rejected → {QUICK}."


def test_names_in_the_sentences_are_the_callers():
    texts = [each.text for each in changes(two(), name=str.upper)]
    assert texts
    assert all(QUICK.upper() in text for text in texts)


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_second_model_only_a_bound_can_change_anything(count):
    situation = replace(two(), models=two().models[:count])
    assert {each.what for each in changes(situation)} <= {"max_cost_usd", "max_latency_ms", "local"}


def test_models_that_are_alike_never_change_places_by_rounding():
    twins = tuple(row(f"a/{name}", benchmarks=bench(0.4)) for name in "abc")
    assert not [each for each in changes(replace(two(), models=twins)) if each.what in WEIGHTS]


# By deciding again: another path through the code, with the whole table of each decision.


def winner(situation):
    decision = weigh(
        situation.models,
        situation.wanted,
        situation.demand,
        machine=situation.machine,
        evidence=situation.evidence,
    )
    return decision.model_id if decision.eligible else None


def with_change(situation, what, value):
    if what in (*WEIGHTS, "local_bonus"):
        profile = moved(situation.wanted.profile, what, value)
        return replace(situation, wanted=replace(situation.wanted, profile=profile))
    if what == "local":
        return replace(situation, models=tuple(m for m in situation.models if m.is_local))
    if what == "capability":
        return replace(situation, wanted=replace(situation.wanted, require=(value,)))
    if what == "failures":
        chosen = first_choice(situation)
        known = situation.evidence.get(chosen, Evidence())
        worse = replace(known, failures=known.failures + value)
        return replace(situation, evidence={**situation.evidence, chosen: worse})
    return replace(situation, demand=replace(situation.demand, **{what: value}))


def just_before(change):
    """The value next to the change's own, on the side of the present one; None where there is none."""
    if change.what in (*WEIGHTS, "local_bonus"):
        step = math.copysign(STEP, change.value - change.now)
        before = round(change.value - step, 3)
        return before if (change.now - before) * step <= 0 else None
    if change.what in ("prompt_tokens", "output_tokens"):
        return change.value - int(math.copysign(1, change.value - change.now))
    if change.what == "failures":
        return change.value - 1
    if change.what in ("max_cost_usd", "max_latency_ms") and not change.text.startswith(("No", "Any")):
        loosened = change.now is not None and change.value > change.now
        return math.nextafter(change.value, 0) if loosened else math.nextafter(change.value, math.inf)
    return None


some = st.none() | st.floats(1, 1e4)


@st.composite
def rows(draw, model_id):
    kind = draw(st.sampled_from(["folder", "remote_api"]))
    price = draw(st.none() | st.floats(0, 50)) if kind == "remote_api" else None
    speeds = {name: draw(some) for name in ("ttft_ms", "tokens_per_second", "prefill_tokens_per_second")}
    return row(
        model_id,
        kind,
        performance=speeds,
        benchmarks=bench(draw(st.floats(0, 1))),
        context_length=draw(st.none() | st.integers(200, 10**5)),
        cost={"input_per_mtok": price, "output_per_mtok": price},
        capabilities=draw(st.sampled_from([["generate"], ["generate", "code"], ["generate", "vision"]])),
    )


@st.composite
def situations(draw):
    models = tuple(draw(rows(f"any/{name}")) for name in "abcd"[: draw(st.integers(1, 4))])
    counts = st.builds(
        Evidence,
        successes=st.integers(0, 50),
        failures=st.integers(0, 50),
        ttft_ms=some,
        started=st.integers(0, 50),
        prompt_tokens=some,
        ms_per_token=st.none() | st.floats(0.1, 100),
        paced=st.integers(0, 50),
    )
    evidence = {model.id: draw(counts) for model in models if draw(st.booleans())}
    demand = Demand(
        prompt_tokens=draw(st.integers(0, 5000)),
        output_tokens=draw(st.integers(1, 2000)),
        max_cost_usd=draw(st.none() | st.floats(0, 0.05)),
        max_latency_ms=draw(st.none() | st.floats(100, 1e5)),
    )
    profile = PROFILES[draw(st.sampled_from(sorted(PROFILES)))]
    return Situation(models, Plan(profile, "chat"), demand, Machine(), evidence)


@settings(max_examples=30, deadline=None, phases=[Phase.generate])
@given(situations())
def test_every_change_that_is_named_does_what_it_says_and_less_does_not(situation):
    now = winner(situation)
    assert first_choice(situation) == now
    for each in changes(situation):
        after = winner(with_change(situation, each.what, each.value))
        assert after == each.model_id != now, each
        if (before := just_before(each)) is not None:
            assert winner(with_change(situation, each.what, before)) == now, each
