"""Ranges of settings, checked when a policy is put together."""

from __future__ import annotations

import math

from cartoolkit.errors import InvalidRequest

__all__ = ["require_at_least", "require_choice", "require_probability"]


def require_probability(name: str, value: object) -> None:
    """Refuse what is no number from 0 to 1.

    Raises:
        InvalidRequest: it names the setting, the range and what was given.
    """
    if not _is_number(value) or not 0 <= float(value) <= 1:  # pyright: ignore[reportArgumentType]
        raise InvalidRequest(f"{name} must be a number from 0 to 1; got {value!r}.")


def require_at_least(
    name: str, value: object, least: float, *, whole: bool = True, optional: bool = False
) -> None:
    """Refuse what is no number of at least `least`; None passes where it is `optional`.

    Raises:
        InvalidRequest: it names the setting, the range and what was given.
    """
    if optional and value is None:
        return
    kind = "a whole number" if whole else "a number"
    right = _is_number(value) and (isinstance(value, int) or not whole)
    if not right or not least <= float(value) < math.inf:  # pyright: ignore[reportArgumentType]
        unless = ", or None" if optional else ""
        raise InvalidRequest(f"{name} must be {kind} of at least {least:g}{unless}; got {value!r}.")


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is none of `choices`.

    Raises:
        InvalidRequest: it names the setting, the choices and what was given.
    """
    if value not in choices:
        raise InvalidRequest(f"{name} must be one of {', '.join(choices)}; got {value!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
