"""Simulated policies against a loop that goes request by request, figures by hand, and theory's promises."""

import itertools
import random
import zlib

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.simulation.bandits import (
    Constant,
    EpsilonGreedy,
    Oracle,
    Random,
    RouterRule,
    Thompson,
)
from cartoolkit.routing.simulation.comparison import batches, simulate_traffic
from cartoolkit.routing.simulation.traffic import Traffic, synthetic_traffic


def one_task(*chances, requests=1000):
    table = np.array([chances], float)
    names = tuple(f"m{number}" for number in range(len(chances)))
    return Traffic(names, ("k",), ("t",), table, table * 0, table * 0, np.zeros(requests, int))


def regret_at(simulation, policy=0):
    """Mean total regret up to the end of each window."""
    return simulation.sums["regret"][policy].cumsum(axis=1).mean(axis=0)


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


# By hand


@pytest.fixture
def by_hand():
    """Two kinds; the recorded answers are certain, so nothing is drawn."""
    return Traffic(
        ("dear", "cheap"),
        ("hard", "easy"),
        ("t", "t"),
        np.array([[1.0, 0.0], [1.0, 1.0]]),
        np.array([[0.5, 0.1], [0.5, 0.1]]),
        np.array([[300.0, 100.0], [300.0, 100.0]]),
        np.array([0, 1, 1, 0]),
    )


def test_the_figures_of_constants_and_the_oracle(by_hand):
    policies = [Constant("dear"), Constant("cheap"), Oracle(), Constant()]
    table = simulate_traffic(by_hand, policies, runs=2, usd_worth=1.0).summary().set_index("policy")
    # Value on hard: dear 1 - 0.5, cheap 0 - 0.1. On easy: dear 0.5, cheap 0.9.
    assert table.total_regret.to_dict() == pytest.approx(
        {"constant dear": 0.8, "constant cheap": 1.2, "oracle": 0.0, "best constant": 0.8}
    )
    assert table.right.to_dict() == pytest.approx(
        {"constant dear": 1.0, "constant cheap": 0.5, "oracle": 1.0, "best constant": 1.0}
    )
    assert table.loc["oracle", "usd"] == pytest.approx((0.5 + 0.1 + 0.1 + 0.5) / 4)
    assert table.loc["oracle", "latency_ms"] == pytest.approx(200)
    assert table.loc["oracle", ["usd_low", "usd_high"]].tolist() == pytest.approx([0.3, 0.3])
    assert table.loc["constant cheap", ["most_used", "most_used_share"]].tolist() == ["cheap", 1.0]


def test_the_tables_over_time(by_hand):
    simulation = simulate_traffic(by_hand, [Oracle()], runs=2, windows=2, usd_worth=1.0)
    shares = simulation.shares()
    assert shares.groupby("requests").share.apply(list).to_dict() == {2: [0.5, 0.5], 4: [0.5, 0.5]}
    cheap = simulate_traffic(by_hand, [Constant("cheap")], runs=2, windows=2, usd_worth=1.0).over_time()
    assert cheap[cheap.metric == "total_regret"].value.tolist() == pytest.approx([0.6, 1.2])
    assert cheap[cheap.metric == "right"].value.tolist() == [0.5, 0.5]


def test_what_a_second_is_worth_changes_the_best_model(by_hand):
    table = simulate_traffic(by_hand, [Constant()], runs=1, second_worth=6.0).summary()
    assert table.most_used[0] == "cheap"  # 1 - 1.8 and 1 - 1.8 for dear; 0 - 0.6 and 1 - 0.6 for cheap


def test_an_unknown_price_is_no_price_of_nothing(by_hand):
    usd = np.array([[0.5, np.nan], [0.5, np.nan]])
    unpriced = Traffic(
        by_hand.models, by_hand.kinds, by_hand.tasks, by_hand.right, usd, usd, by_hand.sequence
    )
    table = simulate_traffic(unpriced, [Constant("dear"), Constant("cheap")], runs=2).summary()
    assert table.usd[0] == 0.5
    assert np.isnan(table.usd[1])
    with pytest.raises(InvalidRequest, match="not known of cheap"):
        simulate_traffic(unpriced, usd_worth=1.0)


# Against a loop


def reference(traffic, policy, runs, seed, choose):
    """One request after another, with the same random numbers; total regret and right answers of each run."""
    luck = np.random.default_rng([seed, 0]).random((runs, len(traffic)))
    rng = np.random.default_rng([seed, 1, zlib.crc32(policy.name.encode())])
    seen = [{} for _ in range(runs)]  # (task, model) -> [right, wrong]
    regret, right = [0.0] * runs, [0] * runs
    for request, kind in enumerate(traffic.sequence):
        chances, task = traffic.right[kind], traffic.tasks[kind]
        counts = [
            [run.setdefault((task, model), [0, 0]) for model in range(len(traffic.models))] for run in seen
        ]
        for run, model in enumerate(choose(counts, rng)):
            is_right = luck[run, request] < chances[model]
            counts[run][model][0 if is_right else 1] += 1
            regret[run] += chances.max() - chances[model]
            right[run] += is_right
    return regret, right


def draw(counts, rng):
    for run in counts:
        draws = [rng.beta(2 + right, 2 + wrong) for right, wrong in run]
        yield draws.index(max(draws))


def be_greedy(counts, rng):
    explores = rng.random((len(counts), 1)) < 0.25
    models = rng.integers(0, len(counts[0]), (len(counts), 1))
    for run, explore, model in zip(counts, explores, models, strict=True):
        rates = [right / (right + wrong) if right + wrong else 1.0 for right, wrong in run]
        yield int(model[0]) if explore[0] else rates.index(max(rates))


@pytest.mark.parametrize(("policy", "choose"), [(Thompson(), draw), (EpsilonGreedy(0.25), be_greedy)])
def test_batches_of_one_are_the_same_as_a_loop(policy, choose):
    traffic = synthetic_traffic(400, models=4, tasks=2, seed=5)
    simulation = simulate_traffic(traffic, [policy], runs=3, seed=11, batch=1)
    regret, right = reference(traffic, policy, 3, 11, choose)
    assert simulation.sums["regret"][0].sum(axis=1) == pytest.approx(regret)
    assert simulation.sums["right"][0].sum(axis=1).tolist() == right


def test_thompson_loses_as_much_as_an_implementation_with_other_random_numbers():
    rng = random.Random(4)

    def regret(requests, chances):
        counts = [[2, 2] for _ in chances]
        lost = 0.0
        for _ in range(requests):
            draws = [rng.betavariate(*each) for each in counts]
            model = draws.index(max(draws))
            counts[model][rng.random() >= chances[model]] += 1
            lost += max(chances) - chances[model]
        return lost

    chances = (0.8, 0.6, 0.3)
    other = np.array([regret(600, chances) for _ in range(60)])
    ours = simulate_traffic(one_task(*chances, requests=600), [Thompson()], runs=200, batch=1)
    ours = ours.sums["regret"][0].sum(axis=1)
    error = np.hypot(other.std() / np.sqrt(60), ours.std() / np.sqrt(200))
    assert abs(ours.mean() - other.mean()) < 4 * error


# What theory promises


def test_thompsons_regret_grows_with_the_logarithm_and_that_of_the_others_with_the_requests():
    traffic = one_task(0.9, 0.7, 0.5, requests=16_000)
    policies = [Thompson(), EpsilonGreedy(0.1), Random()]
    simulation = simulate_traffic(traffic, policies, runs=200, windows=16)
    for policy, is_logarithmic in enumerate((True, False, False)):
        at = regret_at(simulation, policy)
        doubled = at[3] - at[1], at[7] - at[3], at[15] - at[7]  # 2, 4, 8 and 16 thousand requests
        ratios = [later / earlier for earlier, later in itertools.pairwise(doubled)]
        assert all(ratio < 1.5 if is_logarithmic else 1.8 < ratio < 2.2 for ratio in ratios)


def test_regret_of_thompson_comes_near_the_bound_of_lai_and_robbins():
    # Lai & Robbins 1985: regret / log n tends to Σ gap / KL(chance, best): 0.2 / KL(0.6, 0.8) = 1.915
    bound = 0.2 / (0.6 * np.log(0.6 / 0.8) + 0.4 * np.log(0.4 / 0.2))
    simulation = simulate_traffic(one_task(0.8, 0.6, requests=32_000), [Thompson()], runs=60, windows=32)
    at = regret_at(simulation)
    slope = (at[31] - at[1]) / np.log(32_000 / 2000)
    assert 0.4 * bound < slope < 1.6 * bound


def test_growing_batches_cost_no_regret_and_huge_ones_do():
    traffic = synthetic_traffic(6000, models=6, tasks=2, seed=2)
    totals = [
        simulate_traffic(traffic, [Thompson()], runs=20, batch=batch).sums["regret"][0].sum(axis=1)
        for batch in (1, None, 3000)
    ]
    error = np.hypot(totals[0].std(), totals[1].std()) / np.sqrt(20)
    assert abs(totals[0].mean() - totals[1].mean()) < 4 * error
    assert totals[2].mean() > 3 * totals[0].mean()


def test_a_model_that_dies_is_left_and_one_with_few_observations_still_gets_tried():
    alive, dead = one_task(0.9, 0.6, requests=1000), one_task(0.0, 0.6, requests=3000)
    simulation = simulate_traffic(alive.then(dead), [Thompson()], runs=20, batch=10, windows=4)
    share = simulation.chosen[0].sum(axis=0) / 20_000
    assert share[0, 0] > 0.9
    assert share[3, 0] < 0.05
    assert (simulation.chosen[0, :, 0] > 0).all()


def test_what_is_believed_beforehand_decides_until_it_is_refuted():
    traffic = one_task(0.2, 0.8, requests=2000)
    believer = Thompson(prior_strength=20, prior={"m0": 0.95, "m1": 0.05})
    chosen = simulate_traffic(traffic, [believer], runs=20, batch=1, windows=200).chosen[0].sum(axis=0)
    assert chosen[0, 0] > 0.95 * chosen[0].sum()
    assert chosen[-1, 1] > 0.9 * chosen[-1].sum()


def test_the_router_leaves_a_model_whose_reliability_is_low_though_its_score_is_high():
    rule = RouterRule({"m0": 0.9, "m1": 0.6})
    traffic = one_task(0.3, 0.9, requests=3000)  # worth 0.27 and 0.54
    chosen = simulate_traffic(traffic, [rule], runs=10, windows=3000).chosen[0].sum(axis=0)
    assert chosen[0, 0] >= 8  # the first of 3,000 requests, in ten runs
    assert chosen[-100:, 1].sum() > 0.95 * 1000


def test_the_router_keeps_to_a_score_that_outweighs_reliability():
    rule = RouterRule({"m0": 0.9, "m1": 0.3})
    traffic = one_task(0.5, 1.0, requests=3000)  # worth 0.45 and 0.30: regret of 0.5 a request goes on
    simulation = simulate_traffic(traffic, [rule], runs=10, windows=30)
    assert simulation.sums["regret"][0, :, -1].mean() > 0.9 * 0.5 * 100


def test_the_router_without_draws_takes_the_best_expected_worth():
    # 0.6 * (4 * 0.6 / 4) = 0.36 against 0.5 * 0.5 = 0.25, and nothing is ever seen of the other one.
    rule = RouterRule({"m0": 0.5, "m1": 0.6}, explores=False)
    simulation = simulate_traffic(one_task(1.0, 1.0, requests=500), [rule], runs=2)
    assert simulation.chosen[0].sum(axis=(0, 1)).tolist() == [0, 1000]


def test_random_is_spread_evenly():
    counts = simulate_traffic(one_task(0.1, 0.5, 0.9, requests=3000), [Random()], runs=10).chosen.sum(
        (0, 1, 2)
    )
    assert counts == pytest.approx([10_000] * 3, rel=0.05)


# What changes a result and what does not


def test_the_same_seed_gives_the_same_figures_and_other_policies_do_not_matter():
    traffic = synthetic_traffic(500, models=3, seed=1)
    alone = simulate_traffic(traffic, [Thompson()], runs=2, seed=3).sums["regret"][0]
    among = simulate_traffic(traffic, [Random(), Thompson()], runs=2, seed=3).sums["regret"][1]
    other = simulate_traffic(traffic, [Thompson()], runs=2, seed=4).sums["regret"][0]
    assert (alone == among).all()
    assert (alone != other).any()


def test_every_request_is_counted_once_however_many_windows():
    for windows in (1, 7, 50, 1000):
        simulation = simulate_traffic(synthetic_traffic(100, models=3), runs=2, windows=windows)
        assert (simulation.chosen.sum(axis=(2, 3)) == 100).all()
        assert simulation.ends[-1] == 100
        assert len(simulation.ends) == min(windows, 100)


def test_one_run_has_no_interval():
    table = simulate_traffic(synthetic_traffic(100, models=3), [Random()], runs=1).summary()
    assert np.isnan(table.right_low[0])
    assert 0 <= table.right[0] <= 1


def test_batches_cover_everything_once():
    for requests, batch in ((1, None), (999, None), (10, 3), (10, 100)):
        spans = list(batches(requests, batch))
        assert [place for start, end in spans for place in range(start, end)] == list(range(requests))


def test_the_figure_of_regret_has_a_line_a_policy_with_its_last_value(by_hand):
    policies = [Constant("cheap"), Oracle()]
    axes = simulate_traffic(by_hand, policies, runs=2, usd_worth=100).plot_regret()
    # Value on hard: cheap 0 - 10 against dear 1 - 50; on easy 1 - 10 against 1 - 50: cheap is always best.
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["constant cheap (0)", "oracle (0)"]


def test_the_figure_of_shares_stacks_to_one():
    simulation = simulate_traffic(synthetic_traffic(600, models=6), [Thompson()], runs=2, windows=3)
    axes = simulation.plot_shares("Thompson", models=3)
    assert len(axes.get_legend().get_texts()) == 4
    assert axes.get_legend().get_texts()[-1].get_text() == "3 others"
    tops = [band.get_paths()[0].vertices[:, 1].max() for band in axes.collections]
    assert tops[-1] == pytest.approx(1)
    with pytest.raises(InvalidRequest, match="no policy 'random'"):
        simulation.plot_shares("random")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runs": 0}, "runs"),
        ({"windows": 0}, "windows"),
        ({"batch": 0}, "batch"),
        ({"usd_worth": -1}, "usd_worth"),
        ({"second_worth": float("nan")}, "second_worth"),
        ({"policies": []}, "at least one"),
        ({"policies": [Random(), Random()]}, "different names"),
        ({"policies": [Constant("gpt")]}, "no model 'gpt'"),
        ({"policies": [RouterRule({"m0": 1.0})]}, "m1 has none"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(InvalidRequest, match=said):
        simulate_traffic(one_task(0.5, 0.6), **settings)


def test_policies_out_of_range_are_refused():
    with pytest.raises(InvalidRequest, match="epsilon"):
        EpsilonGreedy(1.5)
    with pytest.raises(InvalidRequest, match="prior_strength"):
        Thompson(prior_strength=0)
    with pytest.raises(InvalidRequest, match="the prior of 'm0'"):
        Thompson(prior={"m0": 1.2})
    with pytest.raises(InvalidRequest, match="the score of 'm0'"):
        RouterRule({"m0": -0.1})
