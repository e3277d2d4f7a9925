"""What became of a request: one attempt a model that was asked, and the answer with its story.

An attempt ends in one of these ways, and what ends it says what comes next:

==================================  ===============================  =======================================
what happened                       outcome, reason                  what comes next
==================================  ===============================  =======================================
an answer                           success                          it is returned
the time limit passed               failure, timeout                 the next model; a partial answer is kept
no memory                           failure, out_of_memory           the next model
any other error                     failure, error                   the next model
busy, spend limit, unfit input      inconclusive, refused            the next model
the content was refused             inconclusive, refused            the error is raised
the request is at fault             inconclusive, invalid_request    the error is raised
stopped or interrupted              inconclusive, cancelled          what there is is returned
==================================  ===============================  =======================================
"""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from cartoolkit.errors import (
    ContentRefused,
    DecodeTimeout,
    EngineBusy,
    InvalidRequest,
    NotEnoughMemory,
    OutOfMemory,
    PromptTooLong,
    SpendLimitExceeded,
    UnsupportedMode,
)
from cartoolkit.trace import Event, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.engine.result import Result
    from cartoolkit.routing.choice.decision import Decision

__all__ = [
    "ROUTED",
    "Attempt",
    "Outcome",
    "Reason",
    "Routed",
    "ending_of_answer",
    "ending_of_error",
    "routed_trace_id",
    "story",
    "with_result",
    "with_story",
]

ROUTED = "routed"
"""Kind of the events by which a trace tells how it was routed."""

Outcome = Literal["success", "failure", "inconclusive"]
Reason = Literal["", "error", "timeout", "out_of_memory", "refused", "cancelled", "invalid_request"]

_OUT_OF_MEMORY = (OutOfMemory, NotEnoughMemory, MemoryError)
# A prompt that is too long for one model may fit another one.
_REFUSED = (ContentRefused, EngineBusy, PromptTooLong, SpendLimitExceeded, UnsupportedMode)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One model that was asked once.

    Attributes:
        trace_id: names this attempt; `Router.feedback` takes it.
        model_id: of the model.
        outcome: "inconclusive" says nothing about the model.
        reason: why it is no success, in one word; "" for a success.
        message: the same in a sentence; "" for a success.
        latency_ms: from when the model, loaded and free, was asked, to the end; None if it was not asked.
        usd: what was billed; 0 only if nobody bills for it, None if nobody knows.
        trace: what was generated, also of an attempt that failed half-way; None if nothing ran.
        error: what was raised, if something was.
    """

    trace_id: str
    model_id: str
    outcome: Outcome = "success"
    reason: Reason = ""
    message: str = ""
    latency_ms: float | None = None
    usd: float | None = None
    trace: Trace | None = None
    error: BaseException | None = None

    @property
    def is_answer(self) -> bool:
        """Whether the request ends with what this attempt brought: an answer, or what a stop left of one."""
        return self.outcome == "success" or (self.reason == "cancelled" and self.error is None)

    @property
    def ends_the_request(self) -> bool:
        """Whether its error is raised at once: another model would be no help, or nobody waits any more."""
        return self.reason in {"invalid_request", "cancelled"} or isinstance(self.error, ContentRefused)

    @property
    def has_partial_answer(self) -> bool:
        """Whether it ran out of time with some text."""
        return self.reason == "timeout" and self.trace is not None and bool(self.trace.text)

    def __str__(self) -> str:
        took = "" if self.latency_ms is None else f" after {self.latency_ms:,.0f} ms"
        if not self.reason:
            return f"{self.model_id} answered{took}"
        return f"{self.model_id}: {_WORDS[self.reason]}{took}: {self.message}"


_WORDS: dict[Reason, str] = {
    "error": "failed",
    "timeout": "ran out of time",
    "out_of_memory": "ran out of memory",
    "refused": "could not be asked",
    "cancelled": "was stopped",
    "invalid_request": "cannot be asked this",
}


def ending_of_error(error: BaseException) -> tuple[Outcome, Reason]:
    """What an error that was raised by a model, or on the way to it, says of the attempt."""
    if isinstance(error, _REFUSED):
        return "inconclusive", "refused"
    if isinstance(error, InvalidRequest):
        return "inconclusive", "invalid_request"
    if isinstance(error, _OUT_OF_MEMORY):
        return "failure", "out_of_memory"
    return "failure", "timeout" if isinstance(error, DecodeTimeout) else "error"


def ending_of_answer(stop_reason: str) -> tuple[Outcome, Reason]:
    """What the stop reason of a `Result` says of the attempt."""
    if stop_reason == "local_decode_timeout":
        return "failure", "timeout"
    return ("inconclusive", "cancelled") if stop_reason == "stopped" else ("success", "")


@dataclass(frozen=True, slots=True, repr=False)
class Routed:
    """An answer, which model gave it and why, and what was tried before it.

    Attributes:
        decision: the choice, term by term.
        attempts: every model that was asked, in order.
        result: the answer as its engine gave it; the trace tells the story in its events.
    """

    decision: Decision
    attempts: tuple[Attempt, ...]
    result: Result

    @property
    def answered(self) -> Attempt:
        """The attempt that the answer is of."""
        named = routed_trace_id(self.trace)
        return next(attempt for attempt in self.attempts if attempt.trace_id == named)

    @property
    def text(self) -> str:
        """The answer."""
        return self.result.text

    @property
    def trace(self) -> Trace:
        """How it came about, token by token."""
        return self.result.trace

    @property
    def trace_id(self) -> str:
        """Names the answer for `Router.feedback`."""
        return self.answered.trace_id

    @property
    def model_id(self) -> str:
        """The model that answered."""
        return self.answered.model_id

    @property
    def usd(self) -> float | None:
        """The bill of all attempts; None if one of them is not known."""
        bills = [attempt.usd for attempt in self.attempts]
        return None if None in bills else sum(bill for bill in bills if bill is not None)

    @property
    def story(self) -> str:
        """Which model answered, and what happened before, in a sentence or more."""
        return " ".join(event.text for event in self.trace.events if event.kind == ROUTED)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        failed = len(self.attempts) - 1
        tried = f", after {failed} other{'s' * (failed > 1)}" if failed else ""
        return f"<Routed to {self.model_id}{tried}: {self.text[:60]!r}>"

    def _repr_html_(self) -> str:
        """Who answered, the answer's still view, which tells the story, and the decision folded away."""
        before = (attempt for attempt in self.attempts if attempt is not self.answered)
        failed = ", ".join(f"{each.model_id} {_WORDS[each.reason]}" for each in before)
        line = f"<b>{html.escape(self.model_id)}</b> answered"
        return (
            f"<p>{line}{html.escape(f'; {failed}' if failed else '')}.</p>{self.trace.to_html()}"
            f"<details><summary>How it was decided</summary>{self.decision._repr_html_()}</details>"
        )


def story(decision: Decision, attempts: Sequence[Attempt], answer: Attempt) -> list[Event]:
    """One event an attempt, in order: the first says why it was chosen, the others that they were next.

    Args:
        decision: the choice.
        attempts: every model that was asked.
        answer: the one of them whose answer is returned.

    Returns:
        Events of kind `ROUTED` at step 0. Their data hold ``model_id``, ``trace_id``, ``outcome``,
        ``reason``, ``ms`` (or None) and ``answered``, which is true for the answer's own.
    """
    return [
        Event(
            kind=ROUTED,
            text=f"{decision.reason if place == 0 else _next(attempt)} {_end(attempt, answer)}".strip(),
            data={
                "model_id": attempt.model_id,
                "trace_id": attempt.trace_id,
                "outcome": attempt.outcome,
                "reason": attempt.reason,
                "ms": attempt.latency_ms,
                "answered": attempt is answer,
            },
        )
        for place, attempt in enumerate(attempts)
    ]


def _next(attempt: Attempt) -> str:
    return f"{attempt.model_id} was asked next."


def _end(attempt: Attempt, answer: Attempt) -> str:
    if not attempt.reason:
        return ""
    took = "" if attempt.latency_ms is None else f" after {attempt.latency_ms:,.0f} ms"
    end = f"It {_WORDS[attempt.reason]}{took}: {attempt.message.rstrip('.')}."
    partial = attempt is answer and attempt.reason == "timeout"
    return f"{end} What it had written is the answer, since there is no other." if partial else end


def with_story(trace: Trace, events: Sequence[Event]) -> Trace:
    """The trace with events put before its own; it shares the arrays."""
    return Trace(
        trace.header.model_copy(update={"events": [*events, *trace.header.events]}),
        trace.columns,
        trace.texts,
        prompt_ids=trace.prompt_ids,
        prompt_logprobs=trace.prompt_logprobs,
        token_bytes=trace.token_bytes,
        attentions=trace.attentions,
    )


def with_result(result: Result, events: Sequence[Event]) -> Result:
    """The result whose trace tells the story."""
    return replace(result, trace=with_story(result.trace, events))


def routed_trace_id(trace: Trace) -> str | None:
    """The id by which the answer in a trace can be judged; None for one that no router gave, or a branch."""
    if any(event.kind == "branch" for event in trace.events):
        return None
    own = (event.data for event in trace.events if event.kind == ROUTED and event.data.get("answered"))
    return next((str(data["trace_id"]) for data in own if "trace_id" in data), None)
