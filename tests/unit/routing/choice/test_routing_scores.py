"""Scores: each term by hand, the orderings that the seed's comments promise, and monotonicity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import local, remote, row

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import WORKLOADS
from cartoolkit.routing.choice.intent import PROFILES
from cartoolkit.routing.choice.latency import expected_latency
from cartoolkit.routing.choice.scores import score
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine, estimate_tokens
from cartoolkit.routing.outcomes.records import Tally

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=60)
DEMAND = Demand(prompt_tokens=1_000, output_tokens=500)


def total(model, workload="interactive", demand=DEMAND, **more):
    return score(model, PROFILES[workload], demand, **more).total


def loaded(*models):
    return Machine(loaded=frozenset(model.id for model in models))


# -- latency ---------------------------------------------------------------------------------------


def expected(model, demand=DEMAND, machine=None, *, first_token=False):
    found = expected_latency(model, demand, machine or Machine(), first_token=first_token)
    return found.ms, found.basis


def test_a_remote_answer_takes_its_first_token_and_then_its_speed():
    # 400 + 500 tokens at 100 a second.
    assert expected(remote()) == (5_400, "declared")
    assert expected(remote(), first_token=True) == (400, "declared")


def test_a_longer_prompt_takes_longer_where_the_prefill_speed_is_known():
    model = row(performance={"ttft_ms": 100, "prefill_tokens_per_second": 2_000, "tokens_per_second": 50})
    assert expected(model) == (100 + 500 + 10_000, "declared")
    assert expected(model, Demand(4_000, 500), first_token=True) == (100 + 2_000, "declared")


def test_a_model_that_is_not_loaded_is_loaded_first():
    model = local(load=1_000)
    assert expected(model)[0] == 1_000 + 5_400
    assert expected(model, machine=loaded(model))[0] == 5_400


def test_unknown_times_are_assumed_and_marked():
    # 1,000 ms to the first token and 500 tokens at 20 a second; see the constants of `latency`.
    assert expected(row()) == (1_000 + 25_000, "assumed")
    # A hundred MB are read at 500 MB a second.
    small = row(kind="folder", cost={"size_mb": 100}, performance={"ttft_ms": 100, "tokens_per_second": 50})
    assert expected(small) == (200 + 100 + 10_000, "assumed")
    # And fetched at 10 MB a second where they are not here.
    away = small.model_copy(update={"weights_ready": False, "downloads_weights": True})
    assert expected(away) == (10_000 + 200 + 100 + 10_000, "assumed")


def test_a_providers_median_stands_for_an_unknown_first_token():
    model = row(performance={"latency_p50_ms": 700, "tokens_per_second": 100})
    assert expected(model, first_token=True) == (700, "declared")


def test_a_time_is_as_sure_as_its_least_sure_part():
    model = row(performance={"ttft_ms": {"value": 100, "basis": "measured"}, "tokens_per_second": 50})
    assert expected(model, first_token=True) == (100, "measured")
    assert expected(model) == (10_100, "declared")


# -- the three terms -------------------------------------------------------------------------------


def term(name, model, workload="interactive", **more):
    return getattr(score(model, PROFILES[workload], DEMAND, **more), name)


@pytest.mark.parametrize(
    ("model", "evidence", "value", "basis"),
    [
        (row(), Evidence(), 0.5, "assumed"),
        # A benchmark: 0.3 + 0.6 × (0.9 + 0.7) / 2 = 0.78.
        (
            row(benchmarks=[{"name": "a", "score": 0.9}, {"name": "b", "score": 0.7}]),
            Evidence(),
            0.78,
            "declared",
        ),
        # A probe of 15 items: (5 × 0.5 + 15 × 0.9) / 20 = 0.8.
        (row(quality={"value": 0.9, "basis": "measured", "n": 15}), Evidence(), 0.8, "measured"),
        # A declared figure counts as 5 items: (5 × 0.5 + 5 × 0.9) / 10 = 0.7, half of it assumed.
        (row(quality=0.9), Evidence(), 0.7, "assumed"),
        # And ten verdicts: (2.5 + 13.5 + 10 × 0.2) / 30 = 0.6.
        (
            row(quality={"value": 0.9, "basis": "measured", "n": 15}),
            Evidence(quality=0.2, graded=10),
            0.6,
            "measured",
        ),
    ],
)
def test_quality_by_hand(model, evidence, value, basis):
    found = term("quality", model, evidence=evidence)
    assert (found.value, found.basis) == (pytest.approx(value), basis)


def test_quality_is_a_fifth_less_without_the_capability_of_the_task():
    able = row(capabilities=["generate", "code"])
    assert term("quality", able, task="code").value == 0.5
    assert term("quality", row(), task="code").value == pytest.approx(0.4)
    assert term("quality", row(), task="extract").value == 0.5


def test_latency_by_hand():
    # 5,000 / (5,000 + 5,400) of the whole answer; 500 / (500 + 400) of the first token.
    assert term("latency", remote()).value == pytest.approx(5_000 / 10_400)
    assert term("latency", remote(), "fastest").value == pytest.approx(500 / 900)


@pytest.mark.parametrize(
    ("model", "value", "basis"),
    [
        (remote(usd=(1.0, 4.0)), 0.01 / 0.013, "declared"),  # 1,000 × 1 + 500 × 4 millionths: $0.003
        (remote(usd=(0, 0)), 1.0, "declared"),
        (row(), 0.5, "assumed"),
        (local(), 1.0, "assumed"),
        (local(cost={"input_per_mtok": 8, "output_per_mtok": 4}), 0.5, "declared"),  # 0.008 + 0.002
    ],
)
def test_cost_by_hand(model, value, basis):
    found = term("cost", model)
    assert (found.value, found.basis) == (pytest.approx(value), basis)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_score_is_the_weighted_sum_and_the_bonus_of_a_local_model(workload):
    quality, latency, cost = PROFILES[workload].weights
    for model, bonus in ((local(), PROFILES[workload].local_bonus), (remote(), 0.0)):
        found = score(model, PROFILES[workload], DEMAND)
        by_hand = quality * found.quality.value + latency * found.latency.value + cost * found.cost.value
        assert found.total == pytest.approx(by_hand + bonus)
        assert found.local_bonus == bonus


# -- what the seed's comments promise --------------------------------------------------------------

EQUAL = {"ttft": 400.0, "speed": 100.0}


@pytest.mark.parametrize("workload", ["local_preferred", "fastest"])
def test_the_local_model_wins_a_tie_decisively(workload):
    here, away = local(**EQUAL), remote(usd=(0, 0), **EQUAL)
    assert total(here, workload, machine=loaded(here)) == pytest.approx(total(away, workload) + 0.20)


def test_interactive_work_breaks_no_tie():
    here, away = local(**EQUAL), remote(usd=(0, 0), **EQUAL)
    assert total(here, machine=loaded(here)) == pytest.approx(total(away))


def test_local_is_preferred_more_strongly_than_in_the_background():
    here, away = local(**EQUAL), remote(usd=(0, 0), **EQUAL)
    margins = [
        total(here, workload, machine=loaded(here)) - total(away, workload)
        for workload in ("interactive", "batch", "background", "local_preferred")
    ]
    assert margins == pytest.approx([0.0, 0.08, 0.15, 0.20])


def test_fastest_follows_the_first_token_alone():
    soon = remote(ttft=100, speed=5, quality=0.5)
    quick = remote(ttft=900, speed=500, quality=0.5)
    assert total(soon, "fastest") > total(quick, "fastest")
    assert total(soon) < total(quick)
    # The speed of writing is not in it at all.
    assert total(remote(speed=1), "fastest") == total(remote(speed=1_000), "fastest")


def test_fastest_prefers_the_sooner_of_two_even_to_the_better_one():
    soon = remote(ttft=200, quality={"value": 0.2, "n": 100})
    good = remote(ttft=1_500, quality={"value": 0.9, "n": 100})
    assert total(soon, "fastest") > total(good, "fastest")
    assert total(soon, "batch") < total(good, "batch")


def test_a_loaded_local_model_can_still_lose():
    slow = local(ttft=4_000, speed=3, quality={"value": 0.2, "n": 100})
    good = remote(ttft=300, speed=120, usd=(0.15, 0.6), quality={"value": 0.9, "n": 100})
    for workload in ("fastest", "local_preferred", "interactive"):
        assert total(slow, workload, machine=loaded(slow)) < total(good, workload)


def test_what_a_loaded_local_model_loses_by_can_be_computed():
    # Quality: (5 × 0.5 + 95 × 0.2) / 100 = 0.215 and (5 × 0.5 + 95 × 0.9) / 100 = 0.88. First token:
    # 500 / (500 + 4,500) = 0.1 and 500 / (500 + 125) = 0.8. Cost: 1 and 0.01 / (0.01 + 0.01) = 0.5.
    slow = local(ttft=4_500, quality={"value": 0.2, "n": 95})
    good = remote(ttft=125, usd=(5, 10), quality={"value": 0.9, "n": 95})
    here, away = total(slow, "fastest", machine=loaded(slow)), total(good, "fastest")
    assert here == pytest.approx(0.10 * 0.215 + 0.85 * 0.1 + 0.05 * 1 + 0.20)  # 0.3565
    assert away == pytest.approx(0.10 * 0.88 + 0.85 * 0.8 + 0.05 * 0.5)  # 0.793
    # Were they equally soon, the bonus would keep the choice here: 0.0215 + 0.68 + 0.05 + 0.20 = 0.9515.
    soon = local(ttft=125, quality={"value": 0.2, "n": 95})
    assert total(soon, "fastest", machine=loaded(soon)) == pytest.approx(0.9515)


def test_a_tie_within_the_bonus_goes_to_the_local_model_and_a_lead_above_it_does_not():
    # As local_preferred the bonus of 0.20 outweighs a lead in quality of 0.20 / 0.55 = 0.364.
    here = local(**EQUAL, quality={"value": 0.1, "n": 10**6})
    for quality, wins_here in ((0.46, True), (0.47, False)):
        away = remote(usd=(0, 0), **EQUAL, quality={"value": quality, "n": 10**6})
        assert (total(here, "local_preferred", machine=loaded(here)) > total(away, "local_preferred")) is (
            wins_here
        )


def test_a_streamed_remote_model_is_fastest_where_nothing_is_loaded():
    here, away = local(ttft=100, load=8_000), remote(ttft=400, usd=(0.15, 0.6))
    assert total(here, "fastest", machine=loaded(here)) > total(away, "fastest")
    assert total(here, "fastest") < total(away, "fastest")


def test_batch_work_waits_for_quality_that_interactive_work_does_not():
    slow = remote(ttft=2_000, speed=15, quality={"value": 0.9, "n": 100})
    quick = remote(ttft=200, speed=200, quality={"value": 0.6, "n": 100})
    assert total(quick, "interactive") > total(slow, "interactive")
    assert total(quick, "background") < total(slow, "background")


# -- monotonicity ----------------------------------------------------------------------------------

SHARES = st.floats(0, 1)
MONEY = st.floats(0, 100)
TIMES = st.floats(0, 1e5)
SPEEDS = st.floats(0.1, 1e4)
WORKLOAD = st.sampled_from(sorted(PROFILES))
KINDS = st.sampled_from(["remote_api", "folder", "local_server"])
TINY = 1e-12
"""Sums of the same terms may differ in the last bit."""


@STEADY
@given(
    SHARES, SHARES, WORKLOAD, KINDS, st.integers(1, 500), st.sampled_from(["benchmark", "probe", "verdicts"])
)
def test_raising_quality_never_lowers_a_score(one, other, workload, kind, n, where):
    low, high = sorted((one, other))

    def at(value):
        fields = {
            "benchmark": {"benchmarks": [{"name": "x", "score": value}]},
            "probe": {"quality": {"value": value, "n": n}},
            "verdicts": {},
        }[where]
        evidence = Evidence(quality=value, graded=n) if where == "verdicts" else Evidence()
        return total(row(kind=kind, **fields), workload, evidence=evidence)

    assert at(high) >= at(low) - TINY


@STEADY
@given(MONEY, MONEY, WORKLOAD, KINDS, st.sampled_from(["input", "output", "tier"]))
def test_raising_a_price_never_raises_a_score(one, other, workload, kind, where):
    low, high = sorted((one, other))

    def at(usd):
        cost = {"input_per_mtok": 3.0, "output_per_mtok": 3.0}
        if where == "tier":
            cost["pricing_tiers"] = [{"min_prompt_tokens": 500, "input_per_mtok": usd}]
        else:
            cost[f"{where}_per_mtok"] = usd
        return total(row(kind=kind, cost=cost), workload)

    assert at(high) <= at(low) + TINY


@STEADY
@given(TIMES, TIMES, WORKLOAD, KINDS, st.sampled_from(["ttft_ms", "load_ms", "latency_p50_ms"]))
def test_raising_a_latency_never_raises_a_score(one, other, workload, kind, name):
    low, high = sorted((one, other))
    scores = [total(row(kind=kind, performance={name: ms}), workload) for ms in (low, high)]
    assert scores[1] <= scores[0] + TINY


@STEADY
@given(TIMES, TIMES, SPEEDS, SPEEDS, KINDS)
def test_as_fastest_the_sooner_of_two_models_wins_whatever_their_speeds(one, other, speed, of_other, kind):
    soon, late = sorted((one, other))
    scores = [
        total(row(kind=kind, performance={"ttft_ms": ms, "tokens_per_second": each}), "fastest")
        for ms, each in ((soon, speed), (late, of_other))
    ]
    assert scores[1] <= scores[0] + TINY


@STEADY
@given(SPEEDS, SPEEDS, WORKLOAD, KINDS, st.sampled_from(["tokens_per_second", "prefill_tokens_per_second"]))
def test_a_slower_model_never_scores_more(one, other, workload, kind, name):
    slow, fast = sorted((one, other))
    scores = [total(row(kind=kind, performance={name: speed}), workload) for speed in (slow, fast)]
    assert scores[0] <= scores[1] + TINY


@STEADY
@given(WORKLOAD, KINDS, SHARES, MONEY, TIMES)
def test_every_term_lies_between_zero_and_one(workload, kind, quality, usd, ms):
    cost = {"input_per_mtok": usd, "output_per_mtok": usd}
    model = row(kind=kind, quality=quality, cost=cost, performance={"ttft_ms": ms})
    found = score(model, PROFILES[workload], DEMAND)
    assert all(0 <= each.value <= 1 for each in found.terms)
    assert 0 <= found.total <= 1 + PROFILES[workload].local_bonus + TINY


# -- what it depends on ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Demand(prompt_tokens=-1), "prompt_tokens must be a whole number of at least 0; got -1"),
        (lambda: Demand(output_tokens=0), "output_tokens must be a whole number of at least 1; got 0"),
        (lambda: Demand(max_cost_usd=float("nan")), "max_cost_usd must be a number of at least 0; got nan"),
        (lambda: Evidence(failures=0.5), "failures must be a whole number of at least 0; got 0.5"),
        (lambda: Demand(require=("visio",)), "require must be a list of capabilities; got ('visio',)"),
        (lambda: Demand(require="vision"), "require must be a list of capabilities; got 'vision'"),
        (lambda: Evidence(quality=2), "quality must be a number from 0 to 1; got 2"),
    ],
)
def test_impossible_numbers_are_refused(make, said):
    with pytest.raises(InvalidRequest) as failure:
        make()
    assert str(failure.value).startswith(said)


def test_the_numbers_of_numpy_are_numbers():
    assert Demand(prompt_tokens=np.int64(3)).prompt_tokens == 3


def test_a_tally_is_evidence():
    tally = Tally(
        calls=9, success_count=5, fail_count=3, inconclusive_count=1, accepted=1, rejected=2, ema_quality=0.4
    )
    assert Evidence.of(tally) == Evidence(successes=5, failures=3, quality=0.4, graded=3)


def test_four_characters_count_as_a_token():
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
