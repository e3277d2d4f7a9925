"""Intervals, tests and curves against scipy 1.17.1, scikit-learn 1.9.1 and statsmodels 0.15.0.

Numbers of those libraries stand here as constants, with the call that gave them; others are fractions that
can be worked out by hand.
"""

import math

import numpy as np
import pytest

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.statistics import (
    Bin,
    auroc,
    auroc_interval,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_means,
    calibration_error,
    detection,
    mcnemar,
    reliability,
)

VALUES = [3.1, 2.2, 5.9, 4.0, 1.2, 7.7, 3.3, 2.8, 6.1, 4.4, 0.3, 5.0]
SCORES = [0.1, 0.4, 0.35, 0.8, 0.4, 0.9, 0.2, 0.4, 0.7, 0.15]
LABELS = [0, 0, 1, 1, 1, 1, 0, 0, 0, 0]


def pairs(both, only_first, only_second, neither):
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


def test_the_bootstrap_interval_of_a_mean_is_scipy_s():
    # scipy.stats.bootstrap((VALUES,), np.mean, n_resamples=200_000, method="percentile"): 2.692 to 4.992
    interval = bootstrap_mean(VALUES)
    assert interval.value == pytest.approx(46 / 12)
    assert interval.low == pytest.approx(2.692, abs=0.05)
    assert interval.high == pytest.approx(4.992, abs=0.05)


def test_the_bootstrap_interval_of_a_share_is_scipy_s():
    # the same call for 27 ones of 60: 20/60 to 35/60
    interval = bootstrap_mean([1] * 27 + [0] * 33)
    assert interval == pytest.approx((0.45, 20 / 60, 35 / 60), abs=1e-9)


def test_the_same_seed_gives_the_same_interval_and_another_one_hardly_another():
    assert bootstrap_mean(VALUES, seed=1) == bootstrap_mean(VALUES, seed=1)
    assert bootstrap_mean(VALUES, seed=1) != bootstrap_mean(VALUES, seed=2)
    assert bootstrap_mean(VALUES, seed=1).low == pytest.approx(bootstrap_mean(VALUES, seed=2).low, abs=0.1)


def test_strata_take_away_what_differs_between_them():
    values, strata = [0, 0, 0, 1, 1, 1], list("aaabbb")
    assert bootstrap_mean(values, strata=strata) == (0.5, 0.5, 0.5)
    loose = bootstrap_mean(values)
    assert (loose.low, loose.high) == pytest.approx((1 / 6, 5 / 6))


def test_strata_may_be_in_any_order_and_of_any_kind():
    together = bootstrap_mean([0, 0, 4, 6], strata=["a", "a", "b", "b"])
    mixed = bootstrap_mean([0, 4, 0, 6], strata=[1, 2, 1, 2])
    # Two of {4, 6} beside two zeros: 8/4, 10/4 or 12/4, the ends each a quarter of the time.
    assert together == mixed == (2.5, 2.0, 3.0)


def test_missing_values_are_left_out():
    ones, none = bootstrap_means([[1, np.nan], [np.nan, np.nan], [1, np.nan]])
    assert ones == (1, 1, 1)
    assert all(math.isnan(each) for each in none)


def test_nothing_measured_gives_no_number():
    assert all(math.isnan(each) for each in bootstrap_mean([]))


def test_columns_are_drawn_together():
    values = np.random.default_rng(0).normal(size=(30, 1))
    one, twice = bootstrap_means(np.hstack([values, 2 * values]))
    assert twice == pytest.approx(tuple(2 * each for each in one))


def test_many_rows_are_drawn_in_batches_that_change_nothing_but_memory():
    values = np.random.default_rng(0).normal(size=30_000)
    interval = bootstrap_mean(values, resamples=300)
    # Normal theory: 1.96 standard errors of 1 / sqrt(30,000).
    assert interval.high - interval.value == pytest.approx(1.96 * values.std() / math.sqrt(30_000), rel=0.25)


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(InvalidRequest, match=r"table \[questions, columns\]; got an array \(3,\)"):
        bootstrap_means([1, 2, 3])


def test_a_paired_difference_knows_that_pairs_go_together():
    first, second = [2.0, 4.0, 6.0, 8.0], [1.0, 3.0, 5.0, 7.0]
    assert bootstrap_difference(first, second) == (1, 1, 1)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p"),
    [
        (9, 2, 0.0654296875),  # statsmodels mcnemar([[10, 9], [2, 5]], exact=True)
        (2, 9, 0.0654296875),
        (3, 7, 0.34375),  # scipy.stats.binomtest(3, 10)
        (20, 41, 0.009853448195259268),  # scipy.stats.binomtest(20, 61)
        (0, 0, 1.0),
        (5, 5, 1.0),
    ],
)
def test_mcnemar_is_exact(only_first, only_second, p):
    result = mcnemar(*pairs(10, only_first, only_second, 5))
    assert result[:2] == (only_first, only_second)
    assert result.p == pytest.approx(p, rel=1e-12)


def test_mcnemar_of_unpaired_results_is_refused():
    with pytest.raises(InvalidRequest, match="got 2 and 3"):
        mcnemar([1, 0], [1, 0, 1])


def test_auroc_counts_ties_half():
    # sklearn.metrics.roc_auc_score(LABELS, SCORES) and mannwhitneyu / (4 * 6): 19 of 24 pairs
    assert auroc(SCORES, LABELS) == pytest.approx(19 / 24)
    assert auroc([-s for s in SCORES], LABELS) == pytest.approx(5 / 24)
    assert auroc([1, 1, 1], [1, 0, 0]) == 0.5
    assert auroc([math.inf, math.inf], [1, 0]) == 0.5


def test_auroc_within_groups_compares_only_there():
    scores, labels = [0.9, 0.8, 0.2, 0.1], [1, 1, 0, 0]
    assert auroc(scores, labels) == 1
    # Within a: .9 above .2; within b: .8 above .1.
    assert auroc(scores, labels, groups=["a", "b", "a", "b"]) == 1
    # 0.3 is above 0.1 in a; 0.5 is below 0.9 in b.
    assert auroc([0.3, 0.1, 0.5, 0.9], [1, 0, 1, 0], groups=["a", "a", "b", "b"]) == 0.5
    assert math.isnan(auroc([1, 2], [1, 0], groups=["a", "b"]))


def test_auroc_without_both_kinds_is_no_number():
    assert math.isnan(auroc([1, 2], [1, 1]))
    assert all(math.isnan(each) for each in auroc_interval([1, 2], [1, 1]))


def test_auroc_refuses_what_is_not_there():
    with pytest.raises(InvalidRequest, match="no NaN"):
        auroc([math.nan, 1], [1, 0])
    with pytest.raises(InvalidRequest, match="one score, one label"):
        auroc([1.0], [1, 0])


def test_the_interval_of_an_auroc_is_scipy_s():
    # scipy.stats.bootstrap((up, down), share of pairs, n_resamples=100_000, method="percentile"): .4375 to 1
    interval = auroc_interval(SCORES, LABELS, resamples=20_000)
    assert interval.value == pytest.approx(19 / 24)
    assert (interval.low, interval.high) == pytest.approx((0.4375, 1.0), abs=0.021)


def test_detection_is_scikit_learn_s_precision_recall_and_f1():
    fired, wrong = [1, 1, 0, 1, 0, 1, 1, 0], [1, 0, 1, 1, 0, 1, 0, 0]
    found = detection(fired, wrong)
    # scikit-learn: precision_recall_fscore_support(wrong, fired, average="binary")
    assert (found.precision, found.recall, found.f1) == pytest.approx((0.6, 0.75, 2 / 3))
    # By hand: fired on 5 of 8, on 2 of the 4 right ones; 3/4 - 2/4.
    assert (found.fired, found.false_alarms, found.youden) == (0.625, 0.5, 0.25)


def test_what_never_fires_has_no_precision():
    found = detection([0, 0], [1, 0])
    assert math.isnan(found.precision)
    assert (found.recall, found.f1) == (0, 0)


def test_a_reliability_curve_is_scikit_learn_s():
    p = [0.05, 0.15, 0.22, 0.31, 0.38, 0.44, 0.57, 0.63, 0.71, 0.79, 0.86, 0.93]
    right = [0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1]
    order = [3, 1, 0, 2, 11, 5, 4, 6, 8, 7, 10, 9]
    bins = reliability(np.array(p)[order], np.array(right)[order], bins=4)
    # scikit-learn: calibration_curve(right, p, n_bins=4, strategy="quantile")
    assert [each.probability for each in bins] == pytest.approx([0.14, 1.13 / 3, 1.91 / 3, 0.86])
    assert [each.right for each in bins] == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1])
    assert [each.count for each in bins] == [3, 3, 3, 3]
    # |.14 - 1/3| + |1.13/3 - 1/3| + |1.91/3 - 2/3| + .14, each a quarter
    assert calibration_error(bins) == pytest.approx((0.58 / 3 + 0.13 / 3 + 0.09 / 3 + 0.14) / 4)


def test_equal_probabilities_stay_in_one_bin_whatever_their_order():
    bins = reliability([0.5, 0.5, 0.5, 0.9], [1, 0, 0, 1], bins=4)
    assert bins == [Bin(0.5, 1 / 3, 3), Bin(0.9, 1.0, 1)]
    assert reliability([0.5, 0.5, 0.5, 0.9], [0, 0, 1, 1], bins=4) == bins


def test_fewer_answers_than_bins_and_none_at_all():
    assert reliability([0.25], [1], bins=10) == [Bin(0.25, 1.0, 1)]
    assert reliability([], [], bins=10) == []
    assert math.isnan(calibration_error([]))
