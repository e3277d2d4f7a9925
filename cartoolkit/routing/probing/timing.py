"""From repeated timings to figures: medians, and the line that longer prompts move the first token along.

Of six repeats or more, a median has an interval that supposes nothing about how times are distributed:
between the order statistics that hold it in 95 % of all cases (the sign test turned round; Conover,
Practical Nonparametric Statistics, 3rd ed., 3.2). Of fewer there is none, and none is given.

The line goes through the medians of all lengths, ``ttft = start + tokens / speed``. Noise grows with the
time, so relative errors are what is made small: least squares with the weights ``1 / median²``. A start
below zero is no time, and the line is then put through zero. Where each length has six repeats, its intervals
come from a bootstrap that draws them anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.routing.rows.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PrefillLine", "fit_prefill", "median_figure", "median_interval"]

_DRAWS = 2000
_FEWEST = 6
_SEED = 20
_COVERED = 0.95


@dataclass(frozen=True, slots=True)
class PrefillLine:
    """How the time to the first token grows with the prompt.

    Attributes:
        ttft_ms: where the line meets a prompt of no tokens, milliseconds, never below 0.
        tokens_per_second: prompt tokens read a second; None where longer prompts did not take longer, or only
            one length was measured.
    """

    ttft_ms: Figure
    tokens_per_second: Figure | None


def median_figure(values: Sequence[float]) -> Figure:
    """The median of measurements, with its interval where there are enough of them.

    Args:
        values: at least one, none below 0.

    >>> median_figure([4.0, 1.0, 2.0])
    Figure(value=2.0, basis='measured', low=None, high=None, n=3)
    """
    low, high = median_interval(values) or (None, None)
    return Figure(value=float(np.median(values)), basis="measured", low=low, high=high, n=len(values))


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The narrowest pair of order statistics that holds the median in 95 % of all cases, else None.

    The k-th value from either end holds it unless fewer than k of the n fall on one side:
    ``1 - 2 · P(Binomial(n, 1/2) < k)``.

    >>> median_interval([6, 1, 5, 2, 4, 3]), median_interval([5, 1, 4, 2, 3])
    ((1.0, 6.0), None)
    """
    ordered, n = sorted(map(float, values)), len(values)
    outside, k = 0.0, 0
    while k < n // 2 and 1 - 2 * (outside + math.comb(n, k) / 2**n) >= _COVERED:
        outside += math.comb(n, k) / 2**n
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def fit_prefill(times_ms: Mapping[int, Sequence[float]]) -> PrefillLine:
    """Put the line through what was measured.

    Args:
        times_ms: prompt length in tokens -> times to the first token in milliseconds, one a repeat, above 0.

    >>> line = fit_prefill({100: [300.0], 200: [500.0], 400: [900.0]})
    >>> round(line.ttft_ms.value), round(line.tokens_per_second.value)
    (100, 500)
    """
    lengths = np.array(sorted(times_ms), float)
    repeats = [np.array(times_ms[int(n)], float) for n in lengths]
    n = sum(map(len, repeats))
    start, slope = _line(lengths, np.array([[np.median(each) for each in repeats]]))
    if len(lengths) < 2 or slope[0] <= 0:
        return PrefillLine(median_figure(repeats[0].tolist()), None)
    if min(map(len, repeats)) < _FEWEST:
        return PrefillLine(_figure(float(start[0]), None, n), _figure(1000 / float(slope[0]), None, n))
    drawn_start, drawn_slope = _line(lengths, _drawn_medians(repeats))
    drawn_speed = np.full_like(drawn_slope, np.inf)
    np.divide(1000, drawn_slope, out=drawn_speed, where=drawn_slope > 0)
    return PrefillLine(
        _figure(float(start[0]), drawn_start, n),
        _figure(1000 / float(slope[0]), drawn_speed, n),
    )


def _line(lengths: np.ndarray, medians: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Start and slope for each row of medians; lengths: float [k], medians: float [rows, k], both [rows]."""
    weights = medians**-2
    total = weights.sum(axis=1)
    mean_n = (weights * lengths).sum(axis=1) / total
    mean_t = (weights * medians).sum(axis=1) / total
    away = lengths - mean_n[:, None]
    spread = (weights * away**2).sum(axis=1)
    slope = (weights * away * (medians - mean_t[:, None])).sum(axis=1) / np.where(spread > 0, spread, np.inf)
    start = mean_t - slope * mean_n
    through_zero = (weights * lengths * medians).sum(axis=1) / (weights * lengths**2).sum(axis=1)
    return np.maximum(start, 0.0), np.where(start < 0, through_zero, slope)


def _drawn_medians(repeats: Sequence[np.ndarray]) -> np.ndarray:
    """Medians of repeats that were drawn anew with replacement, float [draws, lengths]."""
    rng = np.random.default_rng(_SEED)
    return np.stack([np.median(rng.choice(each, (_DRAWS, len(each))), axis=1) for each in repeats], axis=1)


def _figure(value: float, drawn: np.ndarray | None, n: int) -> Figure:
    """A value with the middle 95 % of what was drawn, which may have no upper end."""
    if drawn is None:
        return Figure(value=value, basis="measured", n=n)
    # A quantile between a number and infinity would not be one.
    ends = np.quantile(drawn, [(1 - _COVERED) / 2, (1 + _COVERED) / 2], method="nearest")
    low, high = min(float(ends[0]), value), max(float(ends[1]), value)
    return Figure(value=value, basis="measured", low=low, high=high if math.isfinite(high) else None, n=n)
