"""One attempt of one model: admitted, opened, run, and written down, whatever becomes of it."""

from __future__ import annotations

import logging
import math
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cartoolkit.engine.frames import release_frames
from cartoolkit.engine.result import Usage
from cartoolkit.errors import (
    EngineBusy,
    MissingDependency,
    ModelNotFound,
    NetworkUnavailable,
    PromptTooLong,
    RateLimited,
    RemoteError,
    SpendLimitExceeded,
)
from cartoolkit.notices import in_words
from cartoolkit.routing.calls.attempts import Attempt, ending_of_answer, ending_of_error
from cartoolkit.routing.outcomes.records import Completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.engine import Session
    from cartoolkit.intents import Task
    from cartoolkit.requests import GenerateRequest
    from cartoolkit.routing.calls.attempts import Outcome, Reason
    from cartoolkit.routing.calls.serving import Shelf
    from cartoolkit.routing.outcomes.books import Books
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.trace import Trace

    OnStart = Callable[[ModelSchema, Session], None]

__all__ = ["Call", "make_attempt", "may_cost"]

_log = logging.getLogger(__name__)
_BEFORE_ANYTHING_IS_BILLED = (
    EngineBusy, MissingDependency, ModelNotFound, NetworkUnavailable, PromptTooLong, RateLimited,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """What all attempts at one request share.

    Attributes:
        request: without what only a router heeds.
        task: the kind of answer, for the ledger.
        prompt_tokens: about how many it has, for the spend limits.
        pinned: the caller named the model.
        on_start: told of each session as it begins.
    """

    request: GenerateRequest
    task: Task
    prompt_tokens: int
    pinned: bool = False
    on_start: OnStart | None = None


@dataclass(slots=True)
class _Run:
    """What is known of an attempt while it is under way."""

    session: Session | None = None
    begun: float = field(default_factory=time.perf_counter)
    error: BaseException | None = None
    left: bool = False  # the caller did, by an interrupt that nothing else caught

    @property
    def trace(self) -> Trace | None:
        """What was generated; None if nothing ran, or if not even that can be said."""
        try:
            return self.session.trace if self.session else getattr(self.error, "trace", None)
        except Exception:  # noqa: BLE001 - a decoder that failed may not know its tokens any more
            return None

    @property
    def ending(self) -> tuple[Outcome, Reason]:
        if self.left:
            return "inconclusive", "cancelled"
        if self.error is not None:
            return ending_of_error(self.error)
        assert self.session is not None
        return ending_of_answer(self.session.header.stop_reason)


def may_cost(model: ModelSchema, prompt_tokens: int, output_tokens: int) -> float | None:
    """The most that a call may cost in USD: 0 where nobody bills, None where nobody knows."""
    if model.is_local and not model.cost.is_priced:
        return 0.0
    return model.cost.usd(prompt_tokens, output_tokens)


def make_attempt(model: ModelSchema, call: Call, shelf: Shelf, books: Books) -> Attempt:
    """Ask one model once. What goes wrong is in the attempt; nothing is raised.

    Args:
        model: the row.
        call: the request and what goes with it.
        shelf: where its engine is.
        books: what admits the call, and is told of its end.
    """
    trace_id = uuid.uuid4().hex
    estimate = may_cost(model, call.prompt_tokens, call.request.params.max_tokens)
    try:
        admission = books.admit(model.id, estimate, pinned=call.pinned)
    except SpendLimitExceeded as error:
        return _not_asked(model, trace_id, in_words(error), error)
    if isinstance(admission, str):
        return _not_asked(model, trace_id, admission)
    run = _Run()
    try:
        _go(run, model, call, shelf)
    finally:
        if run.error is not None:
            # The attempt is kept, and what its frames hold, such as an engine, must not be.
            release_frames(run.error)
        attempt, row = _ended(run, model, call, trace_id=trace_id, now=books.now)
        books.settle(admission, row, row.usd)
    return attempt


def _not_asked(model: ModelSchema, trace_id: str, why: str, error: BaseException | None = None) -> Attempt:
    """An attempt that was not made, and is not written down."""
    return Attempt(trace_id, model.id, "inconclusive", "refused", why, usd=0.0, error=error)


def _go(run: _Run, model: ModelSchema, call: Call, shelf: Shelf) -> None:
    """Run the session to its end; how it ended is in `run`."""
    try:
        with shelf.take(model, patience=call.request.params.time_limit) as answerer:
            run.begun = time.perf_counter()
            run.session = answerer.start(call.request)
            _tell(call, model, run.session)
            run.session.wait()
            run.error = run.session.error
    except Exception as error:  # noqa: BLE001 - any library's; the next model may do better
        run.error = error
    except BaseException as error:  # noqa: BLE001 - the caller leaves; `dispatch` raises it when all is written
        run.error, run.left = error, True
        if run.session is not None:
            run.session.stop()


def _tell(call: Call, model: ModelSchema, session: Session) -> None:
    if call.on_start is None:
        return
    try:
        call.on_start(model, session)
    except Exception:  # noqa: BLE001 - whatever it is, it is the view's, and no fault of the model
        _log.exception("on_start failed")


def _ended(
    run: _Run, model: ModelSchema, call: Call, *, trace_id: str, now: float
) -> tuple[Attempt, Completion]:
    """The attempt for the caller, and the row for the ledger, which holds nothing of the prompt."""
    outcome, reason = run.ending
    trace = run.trace
    latency_ms = _latency_ms(run, trace, reason)
    usage = None if trace is None else Usage.of(trace)
    usd, is_estimate = _bill(model, run, usage)
    attempt = Attempt(
        trace_id, model.id, outcome, reason, _message(run, reason), latency_ms, usd, trace, run.error
    )
    ttft_ms = trace.ttft_ms if trace is not None and outcome == "success" else None
    row = Completion(
        trace_id=trace_id,
        model_id=model.id,
        task=call.task,
        time=now,
        outcome=outcome,
        reason=reason,
        latency_ms=latency_ms,
        ttft_ms=ttft_ms,
        prompt_tokens=usage and usage.prompt_tokens,
        cached_tokens=usage and usage.reused_tokens,
        completion_tokens=usage and usage.completion_tokens,
        usd=usd,
        usd_is_estimate=is_estimate,
    )
    return attempt, row


def _latency_ms(run: _Run, trace: Trace | None, reason: Reason) -> float | None:
    """Time from the request to the last token by the session's clock, which stands still in a pause."""
    if run.session is None:
        return None
    if trace is not None and not reason and len(trace):
        elapsed = float(trace.columns["elapsed"][-1])
        if not math.isnan(elapsed):
            return 1000 * elapsed
    return 1000 * (time.perf_counter() - run.begun)


def _bill(model: ModelSchema, run: _Run, usage: Usage | None) -> tuple[float | None, bool]:
    """What an attempt cost in USD, None if nobody knows; and whether it was worked out and not told."""
    if model.is_local and not model.cost.is_priced:
        return 0.0, False
    if run.session is None or _is_refusal_to_answer(run.error):
        return 0.0, False
    if usage is None:
        return None, False
    from cartoolkit.remote import usd_of

    return usd_of(model, usage)


def _is_refusal_to_answer(error: BaseException | None) -> bool:
    """Whether an error came in the place of an answer, for which nobody bills then."""
    answered_with_status = isinstance(error, RemoteError) and error.status is not None
    return answered_with_status or isinstance(error, _BEFORE_ANYTHING_IS_BILLED)


def _message(run: _Run, reason: Reason) -> str:
    if run.left:
        return "the request was interrupted"
    if run.error is not None:
        return in_words(run.error)
    if reason == "timeout" and run.session is not None:
        return f"the answer was cut {run.session.header.stop_detail}".strip()
    return "the user stopped it" if reason == "cancelled" else ""
