"""What became of each call: counted when it ends, and counted again if somebody rejects the answer later.

A call that ends well is a success at once, because most answers are never judged. A verdict may follow,
once: a rejection turns the success into a failure, an acceptance confirms it. How sure the verdict is moves
only the moving average of quality, never the counts. Everything here is a pure function of the rows, in their
order, so a replayed ledger gives the same figures again.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cartoolkit.routing.outcomes.tally import EMA_ALPHA, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "EMA_ALPHA",
    "VERDICT_WINDOW",
    "Booking",
    "Completion",
    "ModelProfile",
    "OutcomeTracker",
    "Tally",
    "Verdict",
]

VERDICT_WINDOW = 7 * 24 * 3600.0
"""Seconds after a call within which a verdict on it counts."""

Booking = Literal[
    "booked", "known already", "unknown trace", "judged before", "no answer to judge", "too late"
]
"""What a row changed: only "booked" changed something."""

# Ids and names only: an error's text may quote a prompt or a key, and neither belongs into a file that stays.
_Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@/+-]+$", max_length=200)]
_Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=40)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Completion(_Row):
    """One attempt of one model that has ended. None is unknown; it is never written as 0.

    Attributes:
        trace_id: names this attempt; an attempt of another model after it has another id.
        model_id: of the model, ``provider/name:variant``.
        task: what it was asked for, such as ``chat``.
        time: when it ended, seconds since 1970.
        outcome: "inconclusive" says nothing about the model: it refused, or the caller was at fault or left.
        reason: why it is not a success, in one word; "" for a success.
        latency_ms: from the request to the end of the answer, once the model is in memory.
        ttft_ms: from the request to the first token of the answer, likewise.
        prompt_tokens: of the whole prompt.
        cached_tokens: of these, those that were in a cache and were not read again.
        completion_tokens: sampled.
        usd: what was billed; 0 only if nobody bills for it, as for a model on this machine.
        usd_is_estimate: the bill was worked out from a price list, not told by the provider.
        held_usd: what the spend limits count in the place of a bill that nobody knows; None if there is one,
            or nobody knows that either.
    """

    kind: Literal["completion"] = "completion"
    trace_id: _Id
    model_id: _Id
    task: _Name
    time: _Time
    outcome: Literal["success", "failure", "inconclusive"] = "success"
    reason: Literal["", "error", "timeout", "out_of_memory", "refused", "cancelled", "invalid_request"] = ""
    latency_ms: _Amount | None = None
    ttft_ms: _Amount | None = None
    prompt_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    usd: _Amount | None = None
    usd_is_estimate: bool = False
    held_usd: _Amount | None = None

    @model_validator(mode="after")
    def _reason_fits(self) -> Self:
        blames_nobody = self.reason in {"refused", "cancelled", "invalid_request"}
        fitting = "success" if not self.reason else "inconclusive" if blames_nobody else "failure"
        if self.outcome != fitting:
            raise ValueError(f"reason {self.reason!r} goes with outcome {fitting!r}, not {self.outcome!r}")
        return self

    @model_validator(mode="after")
    def _starts_before_it_ends(self) -> Self:
        if self.ttft_ms is not None and self.latency_ms is not None and self.ttft_ms > self.latency_ms:
            raise ValueError(f"ttft_ms {self.ttft_ms:g} is above latency_ms {self.latency_ms:g}")
        return self


class Verdict(_Row):
    """What somebody, or something, found of an answer.

    Attributes:
        trace_id: of the attempt that gave the answer.
        accepted: False turns the success that was booked into a failure.
        time: seconds since 1970.
        confidence: how sure the verdict is, 0 to 1; a click is 1, a guess from what happened next is less.
    """

    kind: Literal["verdict"] = "verdict"
    trace_id: _Id
    accepted: bool
    time: _Time
    confidence: float = Field(default=1.0, ge=0, le=1)

    @property
    def quality(self) -> float:
        """The verdict as a quality from 0 to 1: the confidence, or 1 less it for a rejection.

        >>> Verdict(trace_id="a", accepted=False, time=0, confidence=0.75).quality
        0.25
        """
        return self.confidence if self.accepted else 1 - self.confidence


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known of one model from its calls, as it was when it was asked for.

    Attributes:
        model_id: of the model.
        total: all its calls.
        tasks: the same by task.
        updated_at: time of the latest row about it, seconds since 1970; None if there is none.
    """

    model_id: str
    total: Tally = field(default_factory=Tally)
    tasks: Mapping[str, Tally] = field(default_factory=lambda: MappingProxyType({}))
    updated_at: float | None = None

    def task_stats(self, task: str) -> Tally:
        """Its calls of one task; all zero if there is none."""
        return self.tasks.get(task, Tally())

    def should_degrade(self, threshold: int) -> bool:
        """Whether it failed over `threshold` times more often than it succeeded.

        >>> ModelProfile("a/b", Tally(success_count=2, fail_count=5)).should_degrade(3)  # 5 > 2 + 3 is false
        False
        """
        return self.total.fail_count > self.total.success_count + threshold


@dataclass(slots=True)
class _Running:
    """A profile that is being added to."""

    total: Tally = field(default_factory=Tally)
    tasks: dict[str, Tally] = field(default_factory=dict)
    updated_at: float = 0.0

    def add(self, row: Completion | Verdict, task: str) -> None:
        for tally in (self.total, self.tasks.setdefault(task, Tally())):
            if isinstance(row, Completion):
                tally.add_completion(row)
            else:
                tally.add_verdict(row)
        self.updated_at = max(self.updated_at, row.time)

    def profile(self, model_id: str) -> ModelProfile:
        copies = {task: dataclasses.replace(tally) for task, tally in self.tasks.items()}
        return ModelProfile(
            model_id, dataclasses.replace(self.total), MappingProxyType(copies), self.updated_at
        )


@dataclass(slots=True)
class _Call:
    """A call on which a verdict may still come."""

    row: Completion
    judged: bool = False


class OutcomeTracker:
    """The profiles that a sequence of rows gives, row by row.

    An attempt is booked once, whatever id it comes with again, and judged once. Both are remembered for
    `VERDICT_WINDOW` after the attempt, by the rows' own times and not by a clock, so a replay books the same.
    May be used from several threads.

    >>> tracker = OutcomeTracker()
    >>> tracker.apply(Completion(trace_id="t1", model_id="lab/small:q4", task="chat", time=10))
    'booked'
    >>> tracker.apply(Verdict(trace_id="t1", accepted=False, time=20))
    'booked'
    >>> tracker.apply(Verdict(trace_id="t1", accepted=True, time=30))
    'judged before'
    >>> tracker.profile("lab/small:q4").total.fail_count
    1
    """

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def replay(cls, rows: Iterable[Completion | Verdict]) -> Self:
        """A tracker that has seen `rows` in their order."""
        tracker = cls()
        for row in rows:
            tracker.apply(row)
        return tracker

    def apply(self, row: Completion | Verdict) -> Booking:
        """Book a row; the answer says whether it changed anything, and why not."""
        with self._lock:
            booking = self._complete(row) if isinstance(row, Completion) else self._judge(row)
            self._forget(row.time)
        return booking

    def _complete(self, row: Completion) -> Booking:
        if row.trace_id in self._calls:
            return "known already"
        self._calls[row.trace_id] = _Call(row)
        self._book(row, row)
        return "booked"

    def _judge(self, row: Verdict) -> Booking:
        call = self._calls.get(row.trace_id)
        if call is None:
            return "unknown trace"
        if call.row.outcome != "success":
            return "no answer to judge"
        if call.judged:
            return "judged before"
        if row.time - call.row.time > VERDICT_WINDOW:
            return "too late"
        call.judged = True
        self._book(row, call.row)
        return "booked"

    def _book(self, row: Completion | Verdict, call: Completion) -> None:
        self._running.setdefault(call.model_id, _Running()).add(row, call.task)

    def _forget(self, now: float) -> None:
        while self._calls:
            first = next(iter(self._calls.values()))
            if now - first.row.time <= VERDICT_WINDOW:
                return
            self._calls.popitem(last=False)

    @property
    def profiles(self) -> dict[str, ModelProfile]:
        """Every model that was called, in the order of first calls."""
        with self._lock:
            return {model_id: running.profile(model_id) for model_id, running in self._running.items()}

    def profile(self, model_id: str) -> ModelProfile:
        """One model's profile; an empty one if it was never called."""
        with self._lock:
            running = self._running.get(model_id)
            return running.profile(model_id) if running else ModelProfile(model_id)
