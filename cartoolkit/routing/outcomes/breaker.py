"""Circuit breakers: a model that fails again and again is left alone for a while, then tried once.

A breaker is closed (the model is called), open (it is not), or half open (one call, the probe, finds out).
It opens after `BreakerRules.failures` failures in a row. After `cooldown_s` one probe is let through: if it
succeeds the breaker closes, if it fails the breaker opens for twice as long, up to `longest_cooldown_s`. So
of calls made one after another a dead model costs `failures`, then one now and then, and a model that lives
again is back after one probe.

What says nothing about the model (it refused, the caller was at fault or left) counts as neither: it leaves a
row of failures as it is, and gives the probe back. Time is passed in, in seconds of any clock that only goes
forward.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Literal

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.checks import require_number

__all__ = ["BreakerRules", "Circuit", "CircuitBreakers", "Permit"]

State = Literal["closed", "open", "half open"]
Outcome = Literal["success", "failure", "inconclusive"]


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When a breaker opens and closes.

    Attributes:
        failures: this many in a row open it.
        cooldown_s: how long it stays open the first time.
        longest_cooldown_s: a probe that fails doubles the time up to this.
        probe_timeout_s: a probe of which nothing was heard for so long counts as failed, so that a caller
            that died with it does not shut the model out for ever.

    Raises:
        InvalidRequest: a figure is out of range.
    """

    failures: int = 3
    cooldown_s: float = 60.0
    longest_cooldown_s: float = 960.0
    probe_timeout_s: float = 300.0

    def __post_init__(self) -> None:
        require_number("failures", self.failures, least=1, whole=True)
        for name in ("cooldown_s", "longest_cooldown_s", "probe_timeout_s"):
            value = getattr(self, name)
            require_number(name, value, least=0)
            if not value:
                raise InvalidRequest(f"{name} must be a number of seconds above 0; got {value!r}.")
        if self.longest_cooldown_s < self.cooldown_s:
            raise InvalidRequest(
                f"longest_cooldown_s must be at least cooldown_s, {self.cooldown_s:g}; got"
                f" {self.longest_cooldown_s:g}."
            )


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to call a model once; hand it back with what became of the call.

    Attributes:
        period: of the breaker, when the leave was given; a call that ends in a later one says nothing new.
        is_probe: whether the next calls wait for this one.
    """

    period: int
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Circuit:
    """The breaker of one model; a value, each change gives a new one.

    Attributes:
        rules: when it opens and closes.
        failures: in a row, while it is closed.
        opened_at: when it opened last; None while it is closed.
        cooldown_s: how long it stays open from then on.
        probe_since: when the probe that is under way began; None without one.
        period: counts openings, closings and probes.

    >>> circuit = Circuit(BreakerRules(failures=1, cooldown_s=60))
    >>> circuit = circuit.report(Permit(0), "failure", now=0)
    >>> circuit.state(now=59), circuit.state(now=60)
    ('open', 'half open')
    """

    rules: BreakerRules = BreakerRules()
    failures: int = 0
    opened_at: float | None = None
    cooldown_s: float = 0.0
    probe_since: float | None = None
    period: int = 0

    def opened(self, now: float) -> Circuit:
        """The breaker after it opened; for twice as long as the time before, if it was not closed."""
        rules = self.rules
        longer = rules.cooldown_s if self.opened_at is None else 2 * self.cooldown_s
        cooldown = min(longer, rules.longest_cooldown_s)
        return Circuit(rules, opened_at=now, cooldown_s=cooldown, period=self.period + 1)

    def state(self, now: float) -> State:
        """Closed, open, or half open, which it is from the end of the cool-down to the end of the probe."""
        if self.opened_at is None:
            return "closed"
        return "half open" if now >= self.opened_at + self.cooldown_s else "open"

    def allows(self, now: float) -> bool:
        """Whether a call would be let through; a filter asks this, and only who calls takes the permit."""
        return self._permit(self._without_lost_probe(now), now) is not None

    def acquire(self, now: float) -> tuple[Circuit, Permit | None]:
        """Ask for leave to call; None means: not now."""
        circuit = self._without_lost_probe(now)
        permit = self._permit(circuit, now)
        if permit is None or not permit.is_probe:
            return circuit, permit
        return replace(circuit, probe_since=now, period=permit.period), permit

    @staticmethod
    def _permit(circuit: Circuit, now: float) -> Permit | None:
        match circuit.state(now):
            case "closed":
                return Permit(circuit.period)
            case "half open" if circuit.probe_since is None:
                return Permit(circuit.period + 1, is_probe=True)
        return None

    def _without_lost_probe(self, now: float) -> Circuit:
        since, limit = self.probe_since, self.rules.probe_timeout_s
        return self.opened(since + limit) if since is not None and now >= since + limit else self

    def report(self, permit: Permit, outcome: Outcome, now: float) -> Circuit:
        """The breaker after a call ended.

        A call that began before the breaker last opened, closed or probed changes nothing: what it could tell
        is known already, or out of date.
        """
        circuit = self._without_lost_probe(now)
        if permit.period != circuit.period:
            return circuit
        if outcome == "inconclusive":
            return replace(circuit, probe_since=None) if permit.is_probe else circuit
        if outcome == "success":
            period = circuit.period + permit.is_probe
            return Circuit(self.rules, period=period)
        if permit.is_probe or circuit.failures + 1 >= self.rules.failures:
            return circuit.opened(now)
        return replace(circuit, failures=circuit.failures + 1)


class CircuitBreakers:
    """One breaker a model; may be used from several threads.

    Args:
        rules: of all of them.
    """

    def __init__(self, rules: BreakerRules | None = None) -> None:
        self.rules = rules or BreakerRules()
        self._circuits: dict[str, Circuit] = {}
        self._lock = threading.Lock()

    def circuit(self, model_id: str) -> Circuit:
        """The breaker of a model; a closed one if it was never called."""
        return self._circuits.get(model_id, Circuit(self.rules))

    def allows(self, model_id: str, now: float) -> bool:
        """Whether a call of this model would be let through."""
        return self.circuit(model_id).allows(now)

    def acquire(self, model_id: str, now: float) -> Permit | None:
        """Leave to call this model once, or None; of a model that is being probed only one caller gets it."""
        with self._lock:
            self._circuits[model_id], permit = self.circuit(model_id).acquire(now)
        return permit

    def report(self, model_id: str, permit: Permit, outcome: Outcome, now: float) -> None:
        """Say what became of a call; `outcome` is that of its `Completion`."""
        with self._lock:
            self._circuits[model_id] = self.circuit(model_id).report(permit, outcome, now)

    def why_not(self, model_id: str, now: float) -> str:
        """Why calls are not let through, in words; "" if they are.

        >>> breakers = CircuitBreakers(BreakerRules(failures=1, cooldown_s=60))
        >>> breakers.report("lab/small", Permit(0), "failure", now=0)
        >>> breakers.why_not("lab/small", now=15)
        'failed repeatedly; is tried again in 45 s'
        """
        circuit = self.circuit(model_id)
        if circuit.allows(now) or circuit.opened_at is None:
            return ""
        left = circuit.opened_at + circuit.cooldown_s - now
        if left <= 0:
            return "failed repeatedly; is being tried right now"
        return f"failed repeatedly; is tried again in {left:.0f} s"
