"""Ranges and kinds of settings, checked where they are given."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeVar

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["require_kind", "require_number", "several"]

_Each = TypeVar("_Each")


def require_kind(name: str, value: object, *kinds: type, hint: str | None = None) -> None:
    """Refuse what is of another kind than a setting has.

    Args:
        name: of the setting.
        value: what was given for it.
        kinds: what it may be.
        hint: how to get one.

    Raises:
        InvalidRequest: it names the setting, the kinds and what was given.
    """
    if isinstance(value, kinds):
        return
    wanted = " or ".join(kind.__name__ for kind in kinds)
    given = f"the class {value.__name__}" if isinstance(value, type) else repr(value)[:80]
    raise InvalidRequest(f"{name} must be a {wanted}; got {given}.", hint=hint)


def several(name: str, values: Iterable[_Each], *, example: str) -> list[_Each]:
    """What stands in a list; a text is none, although Python would take it for a list of letters.

    Args:
        name: of the setting.
        values: what was given for it.
        example: a list as it should be.

    Raises:
        InvalidRequest: it is no list.
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidRequest(f"{name} must be a list, such as {example}; got {values!r}.")
    return list(values)


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
