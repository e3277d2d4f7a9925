"""The choice: the posterior by hand, shares against an integral, regret against another implementation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.selection import (
    Deterministic,
    Thompson,
    draw_worths,
    posterior,
    select,
    win_shares,
)
from cartoolkit.routing.choice.situation import Evidence

NONE = Evidence()


def test_the_posterior_by_hand():
    # K = 4: 4 × 0.75 + 3 and 4 × 0.25 + 1; a score above 1 counts as 1, and nothing is below 0.01.
    alpha, beta = posterior([0.75, 1.2, 0.0], [3, 0, 0], [1, 2, 0], prior_strength=4)
    assert alpha.tolist() == pytest.approx([6.0, 4.0, 0.01])
    assert beta.tolist() == pytest.approx([2.0, 2.0, 4.0])


def test_without_outcomes_the_order_is_that_of_the_scores():
    selection = select(["a", "b", "c"], [0.3, 0.9, 0.6], [NONE] * 3, Deterministic())
    assert selection.order == (1, 2, 0)
    # Worth: the score as a reliability, times the score.
    assert selection.expected == pytest.approx((0.09, 0.81, 0.36))
    assert selection.drawn == selection.expected


def test_outcomes_change_the_order():
    # b: (4 × 0.9 + 1) / (4 + 10) × 0.9 = 0.296; c: (4 × 0.6 + 9) / 14 × 0.6 = 0.489.
    seen = [NONE, Evidence(successes=1, failures=9), Evidence(successes=9, failures=1)]
    selection = select(["a", "b", "c"], [0.3, 0.9, 0.6], seen, Deterministic())
    assert selection.order == (2, 1, 0)
    assert selection.expected[1:] == pytest.approx((0.2957142857, 0.4885714286))
    assert selection.reliability(1) == pytest.approx(4.6 / 14)


def test_however_many_outcomes_there_are_the_score_keeps_its_say():
    seen = [Evidence(successes=10_000, failures=100)] * 2
    assert select(["a", "b"], [0.5, 0.6], seen, Deterministic()).order == (1, 0)
    assert win_shares([0.5, 0.6], seen)[1] > 0.999


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(st.floats(0, 1.2), st.floats(0, 1.2), st.integers(0, 50), st.integers(0, 50))
def test_a_higher_score_is_never_worth_less(one, other, successes, failures):
    seen = Evidence(successes, failures)
    worths = [select(["a"], [score], [seen], Deterministic()).expected[0] for score in sorted((one, other))]
    assert worths[0] <= worths[1] + 1e-12


def test_equal_models_are_ordered_by_their_ids():
    assert select(["b", "a"], [0.5, 0.5], [NONE] * 2, Deterministic()).order == (1, 0)


def test_a_seed_gives_the_same_choice_again_and_a_generator_goes_on():
    ids, scores, seen = ["a", "b", "c"], [0.5, 0.5, 0.5], [NONE] * 3
    first = select(ids, scores, seen, Thompson(seed=3))
    assert first == select(ids, scores, seen, Thompson(seed=3))
    going_on = Thompson(seed=np.random.default_rng(3))
    chosen = {select(ids, scores, seen, going_on).order[0] for _ in range(50)}
    assert chosen == {0, 1, 2}


def test_the_fallbacks_follow_the_expected_worth_whatever_was_drawn():
    scores = [0.9, 0.7, 0.5, 0.3]
    for seed in range(50):
        first, *rest = select(["a", "b", "c", "d"], scores, [NONE] * 4, Thompson(seed)).order
        assert rest == [place for place in range(4) if place != first]


def beta_pdf(x, a, b):
    return np.exp(
        (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - math.lgamma(a) - math.lgamma(b) + math.lgamma(a + b)
    )


def chance_of_the_second(scores, shapes):
    """P(S2 θ2 > S1 θ1) as an integral over θ1, by the midpoint rule."""
    n = 20_000
    x = (np.arange(n) + 0.5) / n
    below = np.cumsum(beta_pdf(x, *shapes[1])) / n  # P(θ2 ≤ x)
    needed = np.minimum(scores[0] * x / scores[1], 1)
    above = 1 - np.interp(needed, x, below, right=1.0)
    return float(np.sum(beta_pdf(x, *shapes[0]) * above) / n)


@pytest.mark.parametrize(
    ("scores", "seen", "shapes"),
    [
        ([0.7, 0.6], [NONE, NONE], [(2.8, 1.2), (2.4, 1.6)]),
        ([0.7, 0.6], [Evidence(200, 50), NONE], [(202.8, 51.2), (2.4, 1.6)]),
        ([0.5, 0.5], [Evidence(3, 9), Evidence(9, 3)], [(5, 11), (11, 5)]),
    ],
)
def test_the_shares_of_draws_are_those_of_the_integral(scores, seen, shapes):
    second = chance_of_the_second(scores, shapes)
    shares = win_shares(scores, seen, draws=40_000)
    assert shares.sum() == pytest.approx(1)
    assert shares[1] == pytest.approx(second, abs=4 * math.sqrt(second * (1 - second) / 40_000) + 1e-3)


def test_a_model_with_few_observations_still_gets_tried():
    # The integral above gives 0.19: nearly every fifth choice tries the unknown one.
    known, unknown = Evidence(successes=200, failures=50), Evidence()
    assert win_shares([0.7, 0.65], [known, unknown])[1] > 0.05
    firsts = [
        select(["known", "unknown"], [0.7, 0.65], [known, unknown], Thompson(seed)).order[0]
        for seed in range(300)
    ]
    assert 10 < sum(firsts) < 150


def test_a_model_that_always_fails_is_left_however_high_its_score():
    # Its worth is 0.9 × 3.6 / (4 + f); the other one's is 0.5 × 0.5. They cross at f = 8.96.
    def first(failures):
        return select(["a", "b"], [0.5, 0.9], [NONE, Evidence(failures=failures)], Deterministic()).order[0]

    assert [first(failures) for failures in (0, 8, 9, 100)] == [1, 1, 0, 0]
    shares = [win_shares([0.5, 0.9], [NONE, Evidence(failures=n)])[1] for n in (0, 9, 20, 60)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] < 0.05


def test_a_stronger_prior_holds_to_the_score_for_longer():
    seen = [Evidence(successes=5), Evidence(failures=5)]
    weak, strong = (win_shares([0.4, 0.8], seen, prior_strength=k)[1] for k in (1, 100))
    assert weak < 0.2
    assert strong > 0.9


def test_nothing_to_choose_from_has_no_shares():
    assert win_shares([], []).size == 0


@pytest.mark.parametrize("strength", [0, -1, math.inf, math.nan])
@pytest.mark.parametrize("strategy", [Deterministic, Thompson])
def test_a_prior_strength_is_above_zero(strategy, strength):
    with pytest.raises(InvalidRequest, match="prior_strength"):
        strategy(prior_strength=strength)


@pytest.mark.parametrize("seed", [-1, 0.5, "7", True])
def test_a_seed_is_a_whole_number_or_a_generator(seed):
    with pytest.raises(InvalidRequest, match="seed must be a whole number"):
        Thompson(seed=seed)


# -- a bandit --------------------------------------------------------------------------------------

MEANS = np.array([0.9, 0.7, 0.5])
ROUNDS, BANDITS, SCORE = 2_000, 300, 0.5


def regret_of_ours(seed=1):
    """Mean regret after each round of many bandits at once, all models with the same score."""
    generator = np.random.default_rng(seed)
    won, lost = np.zeros((2, BANDITS, len(MEANS)))
    rows, regret = np.arange(BANDITS), []
    for _ in range(ROUNDS):
        alpha, beta = posterior(np.full(won.shape, SCORE), won, lost, prior_strength=4)
        chosen = draw_worths(SCORE, alpha, beta, generator).argmax(axis=1)
        success = generator.random(BANDITS) < MEANS[chosen]
        won[rows, chosen] += success
        lost[rows, chosen] += ~success
        regret.append((MEANS.max() - MEANS[chosen]).mean())
    return np.cumsum(regret)


def regret_of_the_reference(seed=2):
    """Thompson sampling as in Agrawal & Goyal 2012, algorithm 1, from Beta(2, 2), out of gamma draws."""
    generator = np.random.default_rng(seed)
    counts = np.full((2, BANDITS, len(MEANS)), 2.0)
    regret = np.zeros(ROUNDS)
    for now in range(ROUNDS):
        ups, downs = generator.standard_gamma(counts)
        chosen = np.argmax(ups / (ups + downs), axis=1)
        failed = (generator.random(BANDITS) >= MEANS[chosen]).astype(int)
        counts[failed, np.arange(BANDITS), chosen] += 1
        regret[now] = np.mean(MEANS.max() - MEANS[chosen])
    return np.cumsum(regret)


def slope(regret):
    """Regret gained for each e-fold of time, over the second half of the time on a log scale."""
    rounds = np.arange(1, ROUNDS + 1)
    late = rounds >= math.sqrt(ROUNDS)
    return np.polyfit(np.log(rounds[late]), regret[late], 1)[0]


def test_regret_grows_with_the_logarithm_of_time_as_in_the_reference():
    ours, reference = regret_of_ours(), regret_of_the_reference()
    assert slope(ours) == pytest.approx(slope(reference), rel=0.2)
    # Lai & Robbins 1985: in the long run the best rules gain the sum of gap / KL a factor e. Until then less.
    gaps = MEANS[0] - MEANS[1:]
    kl = MEANS[1:] * np.log(MEANS[1:] / MEANS[0]) + (1 - MEANS[1:]) * np.log((1 - MEANS[1:]) / (1 - MEANS[0]))
    bound = float(np.sum(gaps / kl))
    assert bound == pytest.approx(2.08, abs=0.01)
    assert 0.3 * bound < slope(ours) < 1.2 * bound
    # Twice the time adds what the doubling before added, and not twice of it as a fixed share would.
    doublings = [ours[2 * n - 1] - ours[n - 1] for n in (250, 500, 1_000)]
    assert doublings[2] < 1.4 * doublings[1] < 2 * doublings[0]
