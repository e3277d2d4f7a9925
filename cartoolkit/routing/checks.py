"""Ranges of settings, checked where they are given."""

from __future__ import annotations

import math
from numbers import Integral, Real

from cartoolkit.errors import InvalidRequest

__all__ = ["require_number"]


def require_number(
    name: str, value: object, *, least: float = -math.inf, most: float = math.inf, whole: bool = False
) -> None:
    """Refuse what is no finite number in a range; numpy's numbers are numbers, True is none.

    Args:
        name: of the setting.
        value: what was given for it.
        least: the smallest value allowed.
        most: the largest one.
        whole: only integers.

    Raises:
        InvalidRequest: it names the setting, the range and what was given.
    """
    right = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if right and math.isfinite(value) and least <= value <= most:  # pyright: ignore[reportArgumentType, reportOperatorIssue]
        return
    kind = "a whole number" if whole else "a number"
    bounds = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
    raise InvalidRequest(f"{name} must be {kind} {bounds}; got {value!r}.")
