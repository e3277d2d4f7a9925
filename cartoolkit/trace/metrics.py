"""Figures over a whole run, as pure functions of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["low_runs", "perplexity", "tokens_per_second"]


def perplexity(logprobs: ArrayLike) -> float:
    """Exp of the mean surprisal.

    logprobs: float [n], natural log; NaN entries are left out. NaN if none is left.

    >>> round(perplexity([np.log(0.5), np.log(0.125)]), 6)
    4.0
    """
    values = np.asarray(logprobs, np.float64)
    values = values[~np.isnan(values)]
    return float(np.exp(-values.mean())) if values.size else float("nan")


def low_runs(values: ArrayLike, threshold: float, window: int = 3) -> list[tuple[int, int]]:
    """Stretches of at least `window` consecutive values below `threshold`, as (first, one past the last).

    values: float [n].

    >>> low_runs([0.9, 0.1, 0.2, 0.3, 0.9, 0.1], threshold=0.4)
    [(1, 4)]
    """
    below = np.concatenate(([False], np.asarray(values, np.float64) < threshold, [False]))
    edges = np.flatnonzero(below[1:] != below[:-1])
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= window]


def tokens_per_second(elapsed: ArrayLike) -> float:
    """Decoding speed between the first and the last token, without the prefill.

    elapsed: float [n], seconds from the request to each token, NaN for one taken over from another run.
    Returns NaN for fewer than two tokens.

    >>> tokens_per_second([1.0, 1.5, 2.0])
    2.0
    """
    times = np.asarray(elapsed, np.float64)
    times = times[~np.isnan(times)]
    if times.size < 2 or times[-1] <= times[0]:
        return float("nan")
    return float((times.size - 1) / (times[-1] - times[0]))
