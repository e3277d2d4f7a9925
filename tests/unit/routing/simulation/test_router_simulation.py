"""`simulate` on ledgers, tables and made-up traffic; mixes of equal cost by hand; a dead model over time."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_rows import local, remote

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.intent import Profile
from cartoolkit.routing.outcomes.records import Completion, Verdict
from cartoolkit.routing.simulation.bandits import Constant, Mixed, Oracle, Random, RouterRule
from cartoolkit.routing.simulation.comparison import simulate_traffic
from cartoolkit.routing.simulation.mixing import equal_cost_mix
from cartoolkit.routing.simulation.simulating import AT_EQUAL_COST, random_at_equal_cost, scores_for, simulate
from cartoolkit.routing.simulation.traffic import Traffic

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=80)


def traffic(right, usd, ms, models=("a", "b"), requests=400):
    """Requests of one kind."""
    tables = (np.array([values], float) for values in (right, usd, ms))
    return Traffic(models, ("k",), ("t",), *tables, np.zeros(requests, int))


# -- mixes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "mean", "shares"),
    [
        ([1, 2], 1.25, [0.75, 0.25]),
        ([1, 2, 3], 2, [1 / 3, 1 / 3, 1 / 3]),
        # Shares 4 : 2 : 1 have the mean (0 × 4 + 1 × 2 + 2 × 1) / 7, and are of the form exp(-rate × cost).
        ([0, 1, 2], 4 / 7, [4 / 7, 2 / 7, 1 / 7]),
        ([0, 1, 2], 10 / 7, [1 / 7, 2 / 7, 4 / 7]),
        ([5, 5], 5, [0.5, 0.5]),
        ([0, 0], 0, [0.5, 0.5]),
        ([1, 1, 9], 1, [0.5, 0.5, 0]),
        ([1, 2, 4], 4, [0, 0, 1]),
    ],
)
def test_a_mix_of_equal_cost_by_hand(costs, mean, shares):
    assert equal_cost_mix(costs, mean).tolist() == pytest.approx(shares)


def test_no_mix_costs_less_than_the_cheapest_or_more_than_the_dearest():
    assert equal_cost_mix([1, 2], 0.9) is None
    assert equal_cost_mix([1, 2], 2.1) is None
    with pytest.raises(InvalidRequest, match="the cost of every model"):
        equal_cost_mix([1, float("nan")], 1)


@STEADY
@given(st.lists(st.floats(0, 1e4), min_size=2, max_size=20), st.floats(0, 1))
def test_a_mix_has_the_mean_that_was_asked_for(costs, place):
    mean = min(costs) + place * (max(costs) - min(costs))
    shares = equal_cost_mix(costs, mean)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    assert shares @ np.array(costs) == pytest.approx(mean, rel=1e-6, abs=1e-6)


def test_a_mix_takes_each_model_as_often_as_its_share():
    world = traffic([0.5] * 3, [0] * 3, [0] * 3, models=("a", "b", "c"), requests=20_000)
    done = simulate_traffic(world, [Mixed({"c": 0.7, "a": 0.3})], runs=2)
    assert (done.chosen[0].sum(axis=(0, 1)) / 40_000).tolist() == pytest.approx([0.3, 0, 0.7], abs=0.01)


def test_shares_that_are_none_are_refused():
    with pytest.raises(InvalidRequest, match="with sum 1"):
        Mixed({"a": 0.5, "b": 0.6})
    with pytest.raises(InvalidRequest, match="no model 'z'"):
        simulate_traffic(traffic([1, 1], [0, 0], [1, 1]), [Mixed({"z": 1.0})])


# -- random at equal cost --------------------------------------------------------------------------


def test_it_spends_as_much_as_what_it_is_compared_with():
    world = traffic([0.9, 0.4, 0.5], [0.04, 0.01, 0.02], [9, 9, 9], models=("a", "b", "c"), requests=20_000)
    done = simulate_traffic(world, [Mixed({"a": 0.5, "b": 0.5}), Random()], runs=4)
    mix = random_at_equal_cost(done, "mix")  # 0.025 a request
    usd = done.joined(simulate_traffic(world, [mix], runs=4)).summary().set_index("policy").usd
    assert usd[AT_EQUAL_COST] == pytest.approx(0.025, rel=0.02)
    assert usd["mix"] == pytest.approx(0.025, rel=0.02)


def test_where_nobody_bills_the_time_is_the_cost():
    world = traffic([1, 1], [0, 0], [100, 300])
    done = simulate_traffic(world, [Mixed({"a": 0.25, "b": 0.75}, "mine"), Constant("a")], runs=2)
    spent = done.sums["latency_ms"][0].sum() / 800
    assert random_at_equal_cost(done, "mine").shares["b"] == pytest.approx((spent - 100) / 200)
    assert random_at_equal_cost(done, "constant a").shares == {"a": 1.0, "b": 0.0}


def test_it_says_why_there_is_none():
    unknown = simulate_traffic(traffic([1, 1], [np.nan, 1], [1, np.nan]), [Random()])
    with pytest.raises(InvalidRequest, match="The latency_ms of b is not known"):
        random_at_equal_cost(unknown, "random")
    with pytest.raises(InvalidRequest, match="The usd of a is not known"):
        random_at_equal_cost(unknown, "random", cost="usd")
    with pytest.raises(InvalidRequest, match="no policy 'oracle'"):
        random_at_equal_cost(unknown, "oracle")
    # Two kinds, each with its own cheap model: who chooses by the kind pays less than any mix.
    cheap = np.array([[1.0, 9.0], [9.0, 1.0]])
    world = Traffic(("a", "b"), ("k", "l"), ("t", "u"), 1 / cheap, cheap, cheap, np.array([0, 1]))
    with pytest.raises(InvalidRequest, match=r"costs 1 usd a request as 'oracle' does: .* 5 to 5"):
        random_at_equal_cost(simulate_traffic(world, [Oracle()]), "oracle")


# -- simulate --------------------------------------------------------------------------------------


def call(number, model, right=True, task="chat", **about):
    about = {"latency_ms": 100.0, "usd": 0.0} | about
    done = Completion(trace_id=f"t{number}", model_id=model, task=task, time=number, **about)
    return [done] if right else [done, Verdict(trace_id=done.trace_id, accepted=False, time=number)]


def ledger():
    """Ten calls each: `acme/large` is right in eight and dear, `torch/small` in four and free."""
    rows = []
    for n in range(10):
        rows += call(n, "acme/large", right=n < 8, usd=0.02, latency_ms=500.0)
        rows += call(n + 10, "torch/small", right=n < 4, latency_ms=100.0)
    return rows


def test_a_ledger_is_gone_through_again_with_every_policy():
    done = simulate(ledger(), rows=[remote(), local()], requests=600, runs=3)
    table = done.summary().set_index("policy")
    assert list(table.index) == [
        "router", "Thompson", "epsilon-greedy 0.1", "best constant", "random", "oracle", AT_EQUAL_COST
    ]  # fmt: skip
    assert table.usd["best constant"] == pytest.approx(0.02)
    assert table.latency_ms["oracle"] == pytest.approx(500)
    assert table.total_regret["random"] == pytest.approx(600 * 0.2, rel=0.15)  # 0.4 lost every other time
    assert table.usd[AT_EQUAL_COST] == pytest.approx(table.usd["router"], rel=0.15)


def test_policies_of_ones_own_are_simulated_alone():
    done = simulate(ledger(), [Constant("torch/small")], requests=100, runs=2)
    assert done.policies == ("constant torch/small",)
    assert done.summary().right[0] == pytest.approx(0.4, abs=0.2)


def test_a_table_and_nothing_at_all_will_do_as_traffic():
    items = pd.DataFrame(
        [
            {"item": item, "model": model, "right": float(model == "b"), "latency_ms": 1.0}
            for item in range(3)
            for model in "ab"
        ]
    )
    assert simulate(items, [Oracle()], runs=1).summary().right[0] == 1
    assert len(simulate(requests=50, runs=1).traffic) == 50


def test_where_costs_are_not_known_it_is_said_and_the_rest_is_simulated(capsys):
    done = simulate(traffic([1, 0], [np.nan] * 2, [np.nan] * 2), runs=2)
    assert AT_EQUAL_COST not in done.policies
    assert done.policies[0] == "router"
    assert capsys.readouterr().out == (
        "Left out: random at equal cost. The latency_ms of a, b is not known, so no mix is known to cost as"
        " much.\n"
    )


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(InvalidRequest, match="too few calls"):
        simulate(ledger()[:4])
    with pytest.raises(InvalidRequest, match="this traffic has 400 requests; got requests=7"):
        simulate(traffic([1, 1], [0, 0], [1, 1]), requests=7)


def test_simulations_of_other_traffic_or_of_a_policy_twice_are_not_joined():
    world = traffic([1, 1], [0, 0], [1, 1])
    one = simulate_traffic(world, [Random()], runs=2)
    for other in (
        simulate_traffic(world, [Oracle()], runs=3),
        simulate_traffic(world, [Oracle()], runs=2, windows=3),
        simulate_traffic(traffic([1, 1], [0, 0], [1, 1]), [Oracle()], runs=2),
    ):
        with pytest.raises(InvalidRequest, match="same traffic, runs and windows"):
            one.joined(other)
    with pytest.raises(InvalidRequest, match="different names"):
        one.joined(one)


# -- the router's scores ---------------------------------------------------------------------------


def test_a_model_without_a_row_is_scored_by_its_time_and_price():
    world = traffic([1, 1, 1], [0.01, 0, np.nan], [5_000, 0, np.nan], models=("a", "b", "c"))
    weights = Profile("mine", 0.5, 0.3, 0.2, local_bonus=0.1)
    # Quality ½ for all. a: 0.25 + 0.3 × ½ + 0.2 × ½; b: 0.25 + 0.3 + 0.2; c: what is not known is ½.
    assert scores_for(world, workload=weights) == pytest.approx({"a": 0.5, "b": 0.75, "c": 0.5})


def test_a_model_with_a_row_is_scored_by_it_as_if_it_were_loaded():
    world = traffic([1, 1], [1, 1], [9_999, 9_999], models=("acme/large", "torch/small"))
    # 400 + 2,560 ms; 256 × (1 + 4) millionths; local: no price and the bonus of batch.
    latency, cost = 5_000 / 7_960, 0.01 / (0.01 + 0.00128)
    assert scores_for(world, [remote(), local()], "batch") == pytest.approx(
        {
            "acme/large": 0.60 * 0.5 + 0.15 * latency + 0.25 * cost,
            "torch/small": 0.60 * 0.5 + 0.15 * latency + 0.25 * 1 + 0.08,
        }
    )


# -- a model that dies and comes back --------------------------------------------------------------


def test_a_dead_model_is_left_within_the_failures_that_the_arithmetic_gives():
    # Worth without draws: 0.9 × (3.6 + s) / (4 + s + f) against 0.5 × 0.5, both before any success. The
    # better one fails every time, so it is left at f with 0.9 × 3.6 / (4 + f) < 0.25: f = 9 failures.
    world = traffic([0.0, 1.0], [0, 0], [0, 0], requests=50)
    rule = RouterRule({"a": 0.9, "b": 0.5}, explores=False)
    done = simulate_traffic(world, [rule], runs=2, batch=1, windows=50)
    assert done.chosen[0, :, :, 0].sum(axis=1).tolist() == [9, 9]
    assert done.chosen[0, :, :9, 0].all()


def test_a_model_that_recovers_is_found_again_by_draws_and_not_without_them():
    # Dead for 60 requests, then always right, while the other one is right in 6 of 10.
    dead, back = (traffic([chance, 0.6], [0, 0], [0, 0], requests=n) for chance, n in ((0, 60), (1, 4_000)))
    rules = [RouterRule({"a": 0.7, "b": 0.7}, explores=explores) for explores in (True, False)]
    done = simulate_traffic(dead.then(back), rules, runs=20, batch=1, windows=20)
    late = done.chosen[:, :, -1, 0].mean(axis=1) / np.diff(done.ends)[-1]
    assert late[0] > 0.9
    assert late[1] < 0.3  # it comes back only where the other one has a streak of bad luck


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"requests": "many"}, "requests must be a whole number of at least 1; got 'many'"),
        ({"requests": 0}, "requests must be a whole number of at least 1; got 0"),
        ({"runs": "8"}, "runs must be a whole number of at least 1; got '8'"),
        ({"min_calls": "few"}, "min_calls must be a whole number of at least 0; got 'few'"),
        ({"seed": "x"}, "seed must be a whole number of at least 0; got 'x'"),
        ({"usd_worth": "x"}, "usd_worth must be a number of at least 0; got 'x'"),
        ({"demand": {"output_tokens": 5}}, "demand must be a Demand"),
    ],
)
def test_what_is_no_number_is_refused_in_a_sentence(wrong, said):
    with pytest.raises(InvalidRequest, match=said):
        simulate(**{"requests": 10} | wrong)


def test_a_simulation_shows_its_summary_and_not_its_arrays():
    done = simulate(requests=100, runs=2)
    assert repr(done).startswith("<TrafficSimulation: 100 requests, 2 runs; policies router, Thompson")
    assert "array" not in repr(done)
    shown = done._repr_html_()
    assert "Traffic: 100 requests of 15 kinds, 20 models, 2 runs." in shown
    assert "best constant" in shown
    assert "total_regret" in shown
