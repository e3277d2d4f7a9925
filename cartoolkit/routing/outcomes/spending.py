"""Spend limits: so many dollars in so much time, checked before a call and settled after it.

A call reserves what it may cost, so that calls under way at the same time cannot pass a limit together; when
it ends, the reservation becomes what was billed. A bill above its reservation is booked in full: the limit is
then passed by the difference, and nothing more is let through.

A price that nobody knows is not 0. With a limit set, a call without an estimate is refused;
`unpriced="allow"` lets it through and counts it, and the status says that what was spent is a lower bound. A
call that nobody bills, as of a model on this machine, has the estimate 0. Times are seconds since 1970,
passed in. A control knows the calls that it settled or replayed: processes that share a ledger see each
other's bills after a replay, not before.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Literal

from cartoolkit.errors import InvalidRequest, SpendLimitExceeded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartoolkit.routing.outcomes.records import Completion

__all__ = ["Reservation", "SpendControl", "SpendLimits", "SpendStatus"]

_NANO = 1_000_000_000  # sums are whole billionths of a dollar, which do not drift


@dataclass(frozen=True, slots=True)
class SpendLimits:
    """Dollars at most; None is no limit. Windows roll: a day is the last 24 hours.

    Attributes:
        per_call: of one call, by its estimate.
        per_hour: in the last 60 minutes.
        per_day: in the last 24 hours.
        per_month: in the last 30 days.

    Raises:
        InvalidRequest: a limit is negative or no number. 0 is a limit: nothing that is billed is called.
    """

    per_call: float | None = None
    per_hour: float | None = None
    per_day: float | None = None
    per_month: float | None = None

    def __post_init__(self) -> None:
        for name in ("per_call", *_WINDOWS):
            value = getattr(self, name)
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if value is not None and not (is_number and 0 <= float(value) < math.inf):
                raise InvalidRequest(f"{name} must be US dollars ≥ 0, or None for no limit; got {value!r}.")

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return any(getattr(self, name) is not None for name in ("per_call", *_WINDOWS))


_WINDOWS = {"per_hour": 3600.0, "per_day": 86_400.0, "per_month": 30 * 86_400.0}
_WORDS = {"per_hour": "the last hour", "per_day": "the last 24 hours", "per_month": "the last 30 days"}


@dataclass(frozen=True, slots=True)
class SpendStatus:
    """One window at one moment.

    Attributes:
        window: name of its limit, such as ``per_day``.
        limit: US dollars, or None.
        spent: what is known to be billed in it.
        reserved: what calls under way may still cost.
        left: what the next call may cost; None without a limit, 0 if it is passed.
        unpriced: calls in it whose bill nobody knows; with any, `spent` is a lower bound.
    """

    window: str
    limit: float | None
    spent: float
    reserved: float
    left: float | None
    unpriced: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a call may cost, held until it is settled.

    Attributes:
        number: tells reservations apart.
        usd: the estimate; None if nobody knows.
    """

    number: int
    usd: float | None


class _Window:
    """Bills of the last seconds, in billionths of a dollar."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._bills: deque[tuple[float, int | None]] = deque()
        self.spent = 0
        self.unpriced = 0

    def add(self, time: float, nano: int | None) -> None:
        self._bills.append((time, nano))
        self._count(nano, 1)

    def roll(self, now: float) -> None:
        # A bill from a clock that was ahead stays until that time has passed: too careful, never too free.
        while self._bills and self._bills[0][0] <= now - self._seconds:
            self._count(self._bills.popleft()[1], -1)

    def _count(self, nano: int | None, sign: int) -> None:
        if nano is None:
            self.unpriced += sign
        else:
            self.spent += sign * nano


class SpendControl:
    """Keeps to spend limits; may be used from several threads.

    Args:
        limits: none by default.
        unpriced: whether a call of unknown price is refused while there is a limit, or let through and
            counted.

    >>> control = SpendControl(SpendLimits(per_day=1.00))
    >>> held = control.reserve(0.75, now=0)
    >>> control.why_not(0.50, now=1)
    '$0.5 may pass the limit of $1 for the last 24 hours: $0 spent, $0.75 reserved'
    >>> control.settle(held, 0.25, now=2)
    >>> control.why_not(0.50, now=3)
    ''
    """

    def __init__(
        self, limits: SpendLimits | None = None, *, unpriced: Literal["refuse", "allow"] = "refuse"
    ) -> None:
        if unpriced not in {"refuse", "allow"}:
            raise InvalidRequest(f"unpriced must be 'refuse' or 'allow'; got {unpriced!r}.")
        self.limits = limits or SpendLimits()
        self.unpriced = unpriced
        self._windows = {name: _Window(seconds) for name, seconds in _WINDOWS.items()}
        self._held: dict[int, int] = {}
        self._number = 0
        self._lock = threading.Lock()

    def replay(self, completions: Iterable[Completion]) -> None:
        """Count what earlier calls were billed, as when a ledger is read at the start."""
        with self._lock:
            for row in sorted(completions, key=lambda row: row.time):
                self._book(row.time, _nano(row.held_usd if row.usd is None else row.usd))

    def why_not(self, estimate: float | None, now: float) -> str:
        """Why a call that may cost `estimate` US dollars is not let through, in words; "" if it is.

        Args:
            estimate: None if nobody knows; 0 only if nobody bills it.
            now: seconds since 1970.

        Raises:
            InvalidRequest: the estimate is negative or no number.
        """
        with self._lock:
            return self._why_not(_nano(estimate), now)

    def _why_not(self, nano: int | None, now: float) -> str:
        if nano is None:
            refused = self.limits.is_set and self.unpriced == "refuse"
            return "nobody knows what it costs, and there is a spend limit" if refused else ""
        if not nano:
            return ""
        per_call = _nano(self.limits.per_call)
        if per_call is not None and nano > per_call:
            return f"{_usd(nano)} is above the limit of {_usd(per_call)} for one call"
        return next(filter(None, (self._why_not_in(name, nano, now) for name in _WINDOWS)), "")

    def _why_not_in(self, name: str, nano: int, now: float) -> str:
        limit, window = _nano(getattr(self.limits, name)), self._windows[name]
        window.roll(now)
        held = sum(self._held.values())
        if limit is None or window.spent + held + nano <= limit:
            return ""
        spent = ("at least " if window.unpriced else "") + _usd(window.spent)
        return (
            f"{_usd(nano)} may pass the limit of {_usd(limit)} for {_WORDS[name]}: {spent} spent,"
            f" {_usd(held)} reserved"
        )

    def reserve(self, estimate: float | None, now: float) -> Reservation:
        """Hold what a call may cost; settle the reservation when it has ended, however it ended.

        Raises:
            SpendLimitExceeded: it does not fit into a limit, or its price is not known; nothing is held.
            InvalidRequest: the estimate is negative or no number.
        """
        nano = _nano(estimate)
        with self._lock:
            if reason := self._why_not(nano, now):
                raise SpendLimitExceeded(
                    f"The call was not made: {reason}.",
                    hint="Raise the limit, wait, or take a model that costs less or is priced.",
                )
            self._number += 1
            self._held[self._number] = nano or 0
            return Reservation(self._number, estimate)

    def settle(self, held: Reservation, billed: float | None, now: float) -> None:
        """Put what was billed in the place of a reservation; settling one twice changes nothing.

        Args:
            held: of the call.
            billed: US dollars; 0 if the call failed before it cost anything. None if nobody knows: then the
                estimate counts as billed.
            now: seconds since 1970.
        """
        nano = _nano(billed if billed is not None else held.usd)
        with self._lock:
            if self._held.pop(held.number, None) is not None:
                self._book(now, nano)

    def _book(self, time: float, nano: int | None) -> None:
        for window in self._windows.values():
            window.add(time, nano)
            window.roll(time)

    def status(self, now: float) -> list[SpendStatus]:
        """Each window, from the shortest on."""
        with self._lock:
            return [self._status(name, now) for name in _WINDOWS]

    def _status(self, name: str, now: float) -> SpendStatus:
        limit, window = _nano(getattr(self.limits, name)), self._windows[name]
        window.roll(now)
        held = sum(self._held.values())
        left = None if limit is None else max(0, limit - window.spent - held) / _NANO
        return SpendStatus(
            name, getattr(self.limits, name), window.spent / _NANO, held / _NANO, left, window.unpriced
        )


def _nano(usd: float | None) -> int | None:
    if usd is None:
        return None
    if not 0 <= usd < math.inf:
        raise InvalidRequest(f"a price must be US dollars ≥ 0, or None if nobody knows; got {usd!r}.")
    # What costs anything at all is never taken for what nobody bills.
    return max(round(usd * _NANO), 1 if usd else 0)


def _usd(nano: int) -> str:
    return f"${nano / _NANO:.6g}"
