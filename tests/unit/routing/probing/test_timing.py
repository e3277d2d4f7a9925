"""From repeats to figures: medians with intervals that hold, and the line of the first token."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cartoolkit.routing.probing.timing import fit_prefill, median_figure, median_interval

TIMES = st.floats(0.01, 1e6)


@pytest.mark.parametrize("n", range(1, 6))
def test_fewer_than_six_repeats_have_no_interval(n):
    assert median_interval([1.0] * n) is None


@pytest.mark.parametrize(
    ("n", "k"),
    # Conover, Practical Nonparametric Statistics, table A3 for p = 1/2: ranks of the 95 % interval.
    [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8)],
)
def test_the_interval_ends_at_the_ranks_of_the_sign_test(n, k):
    assert median_interval(list(range(1, n + 1))) == (k, n + 1 - k)


@pytest.mark.parametrize("n", range(6, 60))
def test_the_interval_is_the_narrowest_that_covers_95_percent(n):
    low, _ = median_interval(list(range(1, n + 1)))

    def coverage(rank):
        return sum(comb(n, k) for k in range(int(rank), n - int(rank) + 1)) / 2**n

    assert coverage(low) >= 0.95 > coverage(low + 1)


def test_the_interval_covers_the_true_median_of_a_skewed_distribution():
    draws = np.random.default_rng(1).exponential(1.0, (2000, 9))
    hits = [low <= np.log(2) <= high for low, high in map(median_interval, draws.tolist())]
    # 96.1 % by the binomial; three standard errors of 2,000 draws are 1.3 %.
    assert np.mean(hits) == pytest.approx(0.961, abs=0.013)


@given(st.lists(TIMES, min_size=1, max_size=30))
def test_a_median_lies_in_its_interval_and_says_how_many_it_comes_from(values):
    figure = median_figure(values)
    assert figure.basis == "measured"
    assert figure.n == len(values)
    assert figure.low is None or min(values) <= figure.low <= figure.value <= figure.high <= max(values)


def test_the_line_through_exact_times_is_found():
    # 80 ms to begin with, and 2 ms a token: 500 tokens a second
    line = fit_prefill({n: [80 + 2.0 * n] * 6 for n in (32, 128, 512)})
    assert line.ttft_ms.value == pytest.approx(80)
    assert line.tokens_per_second.value == pytest.approx(500)
    assert (line.tokens_per_second.low, line.tokens_per_second.high) == pytest.approx((500, 500))
    assert line.tokens_per_second.n == 18


def test_errors_count_by_their_share_of_the_time():
    """By hand: weights 1, 1/4, 1/16 for the medians 1, 2, 4 at 1, 2, 3 tokens.

    Sums of w = 21/16, wn = 27/16, wn² = 41/16, wt = 28/16, wnt = 1 + 1 + 12/16 = 44/16.
    Slope = (21·44 - 27·28) / (21·41 - 27²) = 168/132; start = (28 - 27·168/132) / 21 = -0.303, so the line
    goes through zero: slope = 44/41 ms a token.
    """
    line = fit_prefill({1: [1.0], 2: [2.0], 3: [4.0]})
    assert line.ttft_ms.value == 0
    assert line.tokens_per_second.value == pytest.approx(1000 / (44 / 41))


def test_the_line_is_that_of_numpy_with_the_same_weights():
    medians = {10: 31.0, 40: 52.0, 160: 171.0, 640: 690.0}
    slope, start = np.polyfit(
        list(medians), list(medians.values()), 1, w=1 / np.array(list(medians.values()))
    )
    line = fit_prefill({n: [t] for n, t in medians.items()})
    assert line.ttft_ms.value == pytest.approx(start)
    assert line.tokens_per_second.value == pytest.approx(1000 / slope)


def test_one_stray_repeat_does_not_move_the_line():
    times = {n: [50 + n] * 5 + [9000.0] for n in (32, 128, 512)}
    assert fit_prefill(times).ttft_ms.value == pytest.approx(50)


def test_without_a_longer_prompt_there_is_no_speed():
    line = fit_prefill({32: [40.0, 42.0, 41.0]})
    assert line.ttft_ms.value == 41
    assert line.tokens_per_second is None


def test_where_longer_prompts_do_not_take_longer_there_is_no_speed():
    line = fit_prefill({32: [300.0], 512: [280.0]})
    assert line.ttft_ms.value == 300
    assert line.tokens_per_second is None


def test_few_repeats_give_a_line_and_no_interval():
    line = fit_prefill({32: [40.0, 44.0], 512: [500.0, 530.0]})
    assert (line.ttft_ms.low, line.tokens_per_second.high) == (None, None)


def test_intervals_of_the_line_grow_with_the_noise_and_hold_the_truth():
    rng = np.random.default_rng(3)

    def line(noise):
        return fit_prefill(
            {n: ((60 + 1.5 * n) * rng.lognormal(0, noise, 6)).tolist() for n in (32, 128, 512)}
        ).tokens_per_second

    quiet, loud = line(0.01), line(0.1)
    assert quiet.low <= 1000 / 1.5 <= quiet.high
    assert loud.high - loud.low > quiet.high - quiet.low


@given(st.dictionaries(st.integers(1, 5000), st.lists(TIMES, min_size=6, max_size=8), min_size=1, max_size=4))
def test_a_line_is_never_below_zero_and_lies_in_its_intervals(times):
    line = fit_prefill(times)
    assert line.ttft_ms.value >= 0
    assert line.tokens_per_second is None or line.tokens_per_second.value > 0
