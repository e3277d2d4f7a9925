"""What a measurement on a sample says: intervals, paired tests, and how well a score tells right from wrong.

Pure functions of arrays. Whatever is drawn at random comes from a seed, so equal data give equal figures.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Bin",
    "Detection",
    "Interval",
    "McNemar",
    "auroc",
    "auroc_interval",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_means",
    "calibration_error",
    "detection",
    "mcnemar",
    "reliability",
]

RESAMPLES = 10_000
_CELLS = 4_000_000  # weights that are in memory at a time


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


class McNemar(NamedTuple):
    """What differs between two paired results.

    Attributes:
        only_first: pairs in which only the first is right.
        only_second: pairs in which only the second is right.
        p: two-sided, exact: the chance of a split this uneven if both were equally good.
    """

    only_first: int
    only_second: int
    p: float


class Detection(NamedTuple):
    """How well something that fires finds what is wrong; NaN where there is nothing to divide by.

    Attributes:
        fired: share of all on which it fired.
        precision: share of those on which it fired that are wrong.
        recall: share of those that are wrong on which it fired.
        false_alarms: share of those that are right on which it fired.
        f1: harmonic mean of precision and recall.
        youden: recall less false alarms; 0 for a coin, 1 at best.
    """

    fired: float
    precision: float
    recall: float
    false_alarms: float
    f1: float
    youden: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of about the same probability.

    Attributes:
        probability: mean of what the model claimed.
        right: share that is right.
        count: how many.
    """

    probability: float
    right: float
    count: int


# Means


def bootstrap_mean(
    values: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The mean of one column; see `bootstrap_means`.

    >>> bootstrap_mean([1, 1, 1])
    Interval(value=1.0, low=1.0, high=1.0)
    """
    column = np.asarray(values, np.float64)[:, None]
    return bootstrap_means(column, strata=strata, resamples=resamples, level=level, seed=seed)[0]


def bootstrap_difference(
    first: ArrayLike,
    second: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The mean of `first` less `second`, which are paired and drawn together; see `bootstrap_means`."""
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return bootstrap_mean(difference, strata=strata, resamples=resamples, level=level, seed=seed)


def bootstrap_means(
    values: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> list[Interval]:
    """The mean of each column with its percentile interval (Efron 1979); all columns share the draws.

    values: float [n, m]; NaN is a missing value and left out.
    strata: [n], any labels: as many are drawn of each as there are, which is right for a stratified sample.

    Args:
        values: one row a question.
        strata: None draws from all alike.
        resamples: how many samples are drawn.
        level: share of the resampled means that lie within the interval.
        seed: of the draws.

    Returns:
        One interval a column; NaN where a column has no value.

    Raises:
        InvalidRequest: `values` has another shape.
    """
    table = np.asarray(values, np.float64)
    if table.ndim != 2:
        raise InvalidRequest(f"values must be a table [questions, columns]; got an array {table.shape}.")
    if not len(table):
        return [Interval(math.nan, math.nan, math.nan)] * table.shape[1]
    there = ~np.isnan(table)
    filled = np.where(there, table, 0.0)
    weighted = [
        (weights @ filled, weights @ there) for weights in _weights(len(table), strata, resamples, seed)
    ]
    sums, counts = (np.concatenate(parts) for parts in zip(*weighted, strict=True))
    with np.errstate(invalid="ignore"):  # 0 / 0 where a column has no value
        drawn = sums / counts
        means = filled.sum(axis=0) / there.sum(axis=0)
    tails = [(1 - level) / 2, (1 + level) / 2]
    return [
        Interval(float(mean), *_quantiles(column, tails)) for mean, column in zip(means, drawn.T, strict=True)
    ]


def _quantiles(values: NDArray[np.float64], tails: Sequence[float]) -> tuple[float, float]:
    values = values[~np.isnan(values)]
    low, high = np.quantile(values, tails) if values.size else (math.nan, math.nan)
    return float(low), float(high)


def _weights(
    count: int, strata: ArrayLike | None, resamples: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """How often each of `count` rows is drawn, float [some resamples, count], until there are enough."""
    rng = np.random.default_rng(seed)
    groups = [np.arange(count)] if strata is None else _members(np.asarray(strata))
    batch = max(1, min(resamples, _CELLS // max(count, 1)))
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        weights = np.zeros((size, count))
        for members in groups:
            drawn = rng.integers(0, len(members), (size, len(members)))
            cells = drawn + np.arange(size)[:, None] * len(members)
            counted = np.bincount(cells.ravel(), minlength=size * len(members))
            weights[:, members] = counted.reshape(size, len(members))
        yield weights


def _members(labels: NDArray) -> list[NDArray[np.intp]]:
    """The rows of each label, labels in order."""
    _, codes = np.unique(labels, return_inverse=True)
    return [np.flatnonzero(codes == code) for code in range(codes.max() + 1)] if codes.size else []


# Paired tests


def mcnemar(first: ArrayLike, second: ArrayLike) -> McNemar:
    """Exact McNemar test (the sign test on the pairs that differ) of two paired columns of right and wrong.

    first, second: bool [n], the same questions in the same order.

    Raises:
        InvalidRequest: the columns are not equally long.

    >>> mcnemar([1, 1, 1, 1, 0], [0, 0, 0, 0, 0])  # 4 to 0: 2 / 2**4
    McNemar(only_first=4, only_second=0, p=0.125)
    """
    a, b = np.asarray(first, bool), np.asarray(second, bool)
    if a.shape != b.shape:
        raise InvalidRequest(f"paired results must be equally many; got {len(a)} and {len(b)}.")
    one, other = int((a & ~b).sum()), int((~a & b).sum())
    count = one + other
    tail = sum(math.comb(count, k) for k in range(min(one, other) + 1))
    return McNemar(one, other, min(1.0, 2 * tail / 2**count))


# How well a score tells right from wrong


def auroc(scores: ArrayLike, positive: ArrayLike, groups: ArrayLike | None = None) -> float:
    """The chance that a positive has a higher score than a negative, ties counting half (Mann-Whitney).

    scores: float [n]; positive: bool [n]; groups: [n], any labels.

    Args:
        scores: higher should mean positive.
        positive: what is to be found.
        groups: compare only within each group, so that what the groups differ in plays no part.

    Returns:
        0 to 1; NaN if there is no pair to compare.

    >>> auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False])
    0.875
    """
    kernel, up, down = _pairs(scores, positive, groups)
    comparable = _comparable(up, down, groups)
    total = comparable.sum()
    return float((kernel * comparable).sum() / total) if total else math.nan


def auroc_interval(
    scores: ArrayLike,
    positive: ArrayLike,
    *,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """`auroc` with its percentile interval; positives and negatives are drawn apart, as many as there are."""
    kernel, up, down = _pairs(scores, positive, None)
    if not (len(up) and len(down)):
        return Interval(math.nan, math.nan, math.nan)
    drawn = [
        ((weights[:, : len(up)] @ kernel) * weights[:, len(up) :]).sum(axis=1)
        for weights in _weights(len(up) + len(down), _sides(up, down), resamples, seed)
    ]
    values = np.concatenate(drawn) / (len(up) * len(down))
    return Interval(float(kernel.mean()), *_quantiles(values, [(1 - level) / 2, (1 + level) / 2]))


def _sides(up: NDArray, down: NDArray) -> NDArray:
    return np.repeat([0, 1], [len(up), len(down)])


def _pairs(scores: ArrayLike, positive: ArrayLike, groups: ArrayLike | None) -> tuple[NDArray, ...]:
    """1, ½ or 0 for each pair [positives, negatives], and the indices of both."""
    values, labels = np.asarray(scores, np.float64), np.asarray(positive, bool)
    lengths = {len(values), len(labels)} | (set() if groups is None else {len(np.asarray(groups))})
    if len(lengths) > 1 or np.isnan(values).any():
        raise InvalidRequest("an AUROC needs one score, one label and one group a question, and no NaN.")
    up, down = np.flatnonzero(labels), np.flatnonzero(~labels)
    above, below = values[up][:, None], values[down][None, :]
    return np.where(above > below, 1.0, np.where(above == below, 0.5, 0.0)), up, down


def _comparable(up: NDArray, down: NDArray, groups: ArrayLike | None) -> NDArray:
    if groups is None:
        return np.ones((len(up), len(down)))
    labels = np.asarray(groups)
    return (labels[up][:, None] == labels[down][None, :]).astype(float)


def detection(fired: ArrayLike, wrong: ArrayLike) -> Detection:
    """How well `fired` finds `wrong`; both bool [n].

    >>> detection([1, 1, 1, 0], [1, 1, 0, 1]).precision  # 2 of 3
    0.6666666666666666
    """
    hit, bad = np.asarray(fired, bool), np.asarray(wrong, bool)
    both = int((hit & bad).sum())
    recall, false_alarms = _share(both, bad.sum()), _share((hit & ~bad).sum(), (~bad).sum())
    return Detection(
        fired=_share(hit.sum(), hit.size),
        precision=_share(both, hit.sum()),
        recall=recall,
        false_alarms=false_alarms,
        f1=_share(2 * both, hit.sum() + bad.sum()),
        youden=recall - false_alarms,
    )


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


# Whether a probability means what it says


def reliability(probabilities: ArrayLike, right: ArrayLike, bins: int = 10) -> list[Bin]:
    """What was claimed against what came true, in bins of about equally many answers.

    probabilities: float [n], 0 to 1; right: bool [n]. Equal probabilities are never parted, so a bin may be
    larger than others, and there may be fewer of them.

    >>> reliability([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0], bins=2)  # doctest: +ELLIPSIS
    [Bin(probability=0.3..., right=0.0, count=2), Bin(probability=0.7, right=0.5, count=2)]
    """
    values, hits = np.asarray(probabilities, np.float64), np.asarray(right, bool)
    order = np.argsort(values, kind="stable")
    values, hits = values[order], hits[order]
    cuts = [round(len(values) * i / bins) for i in range(1, bins)]
    # A cut inside a run of equal values moves to the run's end.
    ends = [int(np.searchsorted(values, values[cut - 1], side="right")) for cut in cuts if cut > 0]
    edges = sorted({0, *ends, len(values)})
    return [
        Bin(float(values[a:b].mean()), float(hits[a:b].mean()), b - a) for a, b in itertools.pairwise(edges)
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: the mean distance of claim and truth over all answers; NaN without any.

    >>> calibration_error([Bin(0.5, 0.25, 1), Bin(0.75, 0.75, 3)])  # 0.25 for one of four
    0.0625
    """
    total = sum(each.count for each in bins)
    return (
        sum(abs(each.probability - each.right) * each.count for each in bins) / total if total else math.nan
    )
