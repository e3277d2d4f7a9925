"""Moving one weight of a workload: the other two make room, so that the three go on summing to one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import unknown
from cartoolkit.routing.checks import require_number

if TYPE_CHECKING:
    from cartoolkit.routing.choice.intent import Profile

__all__ = ["WEIGHTS", "moved", "shown_weight"]

WEIGHTS = ("quality", "latency", "cost")
"""The weights that sum to one; the local bonus stands beside them."""


def moved(profile: Profile, name: str, value: float) -> Profile:
    """The profile with a weight, or the local bonus, at `value`; the other two weights keep their ratio.

    Two others that are both zero share what is left evenly. The bonus moves alone.

    Args:
        profile: the weights as they are.
        name: `quality`, `latency`, `cost` or `local_bonus`.
        value: 0 to 1.

    Raises:
        InvalidRequest: there is no such weight, or the value is out of range.

    >>> from cartoolkit.routing.choice.intent import PROFILES
    >>> [round(weight, 3) for weight in moved(PROFILES["interactive"], "latency", 0.7).weights]
    [0.225, 0.7, 0.075]
    """
    if name not in (*WEIGHTS, "local_bonus"):
        raise InvalidRequest(unknown("weight", name, (*WEIGHTS, "local_bonus")))
    require_number(name, value, least=0, most=1)
    if name == "local_bonus":
        return profile.changed(local_bonus=float(value))
    first, second = (each for each in WEIGHTS if each != name)
    left = 1 - value
    both = getattr(profile, first) + getattr(profile, second)
    share = getattr(profile, first) / both if both else 0.5
    one = left * share
    # Rounded once, at the end: the three then sum to exactly one.
    other = max(0.0, math.fsum((1.0, -value, -one)))
    return profile.changed(**{name: float(value), first: one, second: other})


def shown_weight(weight: float) -> str:
    """A weight as people write it: two decimals, and four only if it has more than two.

    >>> shown_weight(0.4), shown_weight(7 / 12)
    ('0.40', '0.5833')
    """
    return f"{weight:.2f}" if round(weight, 2) == round(weight, 6) else f"{weight:.4f}"
