"""The largest values of a long row, without sorting all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["descending_prefixes", "top_ids"]


def top_ids(values: np.ndarray, n: int) -> np.ndarray:
    """Indices of the n largest finite values, largest first, ties by index; fewer if there are fewer.

    values: float [v] without NaN. Returns int64 [≤ n].

    The n-th largest maximum over blocks is a lower bound of the n-th largest value, so one pass finds
    a few more than n and only those are sorted.

    >>> top_ids(np.array([0.5, 2.0, -np.inf, 2.0, 1.0]), 3)
    array([1, 3, 4])
    """
    near = np.flatnonzero(values >= _lower_bound(values, n))
    found = values[near]
    if len(found) and found.min() == -np.inf:
        near, found = near[found > -np.inf], found[found > -np.inf]
    return near[np.argsort(-found, kind="stable")[:n]]


def _lower_bound(values: np.ndarray, n: int) -> float:
    """At least n values are greater than or equal to this."""
    block = len(values) // (8 * n) if n else 0
    if block < 2:
        return -np.inf
    blocks = len(values) // block
    maxima = values[: blocks * block].reshape(blocks, block).max(axis=1)
    return float(np.partition(maxima, blocks - n)[blocks - n])


def descending_prefixes(values: np.ndarray) -> Iterator[np.ndarray]:
    """Growing prefixes of the descending order of all finite values: 64, then 1024, then all.

    values: float [v]. Whoever needs the head of a distribution stops early and never pays for the sort.
    """
    for n in (64, 1024):
        if n < len(values):
            yield top_ids(values, n)
    yield top_ids(values, len(values))
