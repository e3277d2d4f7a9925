"""A random choice that costs as much as something else on average, to be compared with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["equal_cost_mix"]

_STEPS = 200  # halvings; doubles hold about 60


def equal_cost_mix(costs: ArrayLike, mean: float) -> NDArray[np.float64] | None:
    """How often each model is taken by the most random choice whose mean cost is `mean`.

    Of all shares p with sum(p * costs) = mean these have the largest entropy: p is proportional to
    exp(-rate * costs), with the one rate that gives the mean (Jaynes 1957).

    costs: float [models], finite, at least one.

    Args:
        costs: of a call of each model, in whatever unit.
        mean: in the same unit.

    Returns:
        Shares, float64 [models], with sum 1; None if every mix costs more, or every one less.

    Raises:
        InvalidRequest: a cost is not known.

    >>> equal_cost_mix([1.0, 2.0], 1.25).round(6).tolist()
    [0.75, 0.25]
    >>> equal_cost_mix([1.0, 2.0], 0.5) is None
    True
    """
    values = np.asarray(costs, np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InvalidRequest(f"a mix needs the cost of every model; got {values.tolist()}.")
    low, high = values.min(), values.max()
    slack = 1e-9 * max(abs(low), abs(high))
    if not low - slack <= mean <= high + slack:
        return None
    if high - low <= slack:
        return np.full(values.shape, 1 / values.size)
    place, wanted = (values - low) / (high - low), (mean - low) / (high - low)
    if not 0 < wanted < 1:
        return _only(place == round(wanted))
    return _shares(place, _rate(place, wanted))


def _only(which: NDArray[np.bool_]) -> NDArray[np.float64]:
    return which / which.sum()


def _shares(place: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """Shares proportional to exp(-rate * place); place is from 0 to 1."""
    weights = np.exp(-rate * (place if rate > 0 else place - 1))
    return weights / weights.sum()


def _rate(place: NDArray[np.float64], wanted: float) -> float:
    """The rate at which the mean place is `wanted`, by halving; the mean falls with the rate."""
    high = 1.0
    while _shares(place, high) @ place > wanted:
        high *= 2
    low = -1.0
    while _shares(place, low) @ place < wanted:
        low *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _shares(place, middle) @ place > wanted else (low, middle)
    return (low + high) / 2
