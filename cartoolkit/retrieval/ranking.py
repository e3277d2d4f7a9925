"""The best of many scores, without sorting all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

__all__ = ["best_places"]


def best_places(scores: np.ndarray, k: int) -> np.ndarray:
    """Places of the `k` greatest of `scores` (or of all, if they are fewer), greatest first, ties by place.

    Args:
        scores: any floats without NaN, shape [n].
        k: at least 1.

    Returns:
        int64 of shape [min(k, n)].
    """
    import numpy as np

    places = np.arange(len(scores))
    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")][:k]
