"""One generation in the background: watch it, pause it, step it, stop it, wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Literal

from cartoolkit.engine.asking import ask
from cartoolkit.engine.events import (
    STOP,
    Amended,
    Decoded,
    LookedUp,
    LookingUp,
    Noted,
    Prefilled,
    Revised,
    Scored,
    Taken,
    Waiting,
)
from cartoolkit.engine.frames import release_frames
from cartoolkit.engine.kernel import in_kernel
from cartoolkit.engine.mailbox import Mailbox
from cartoolkit.engine.result import Result
from cartoolkit.errors import DecodeTimeout, EngineClosed, EngineError, ForwardFailed
from cartoolkit.notices import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cartoolkit.engine.branching import Forced
    from cartoolkit.engine.events import Ending, Event, Reply
    from cartoolkit.requests import GenerateParams
    from cartoolkit.retrieval import LookUp, Searcher
    from cartoolkit.trace import Event as TraceEvent
    from cartoolkit.trace import Step, Trace, TraceHeader
    from cartoolkit.trace.recorder import TraceRecorder

__all__ = ["Session", "State"]

State = Literal["waiting", "prefilling", "running", "looking_up", "paused", "finished", "failed"]
_TICK = 0.1
# Seconds that one forward may go on after the time limit before it is taken to hang.
_HANG_GRACE = 30.0
_log = logging.getLogger(__name__)


class Session:
    """A running generation; made by `Engine.start`.

    Every method may be called from any thread and returns at once, except `wait` and `result`.

    Attributes:
        progress: prompt tokens read so far; None before the prefill.
        error: what went wrong, if the state is ``failed``.
    """

    def __init__(
        self,
        recorder: TraceRecorder,
        params: GenerateParams,
        loop: Callable[..., Generator[Event, Reply, Ending]],
        *,
        started: float,
        paused: bool,
        searcher: Searcher | None = None,
        branch: Callable[..., Session] | None = None,
    ) -> None:
        self._recorder = recorder
        self._params = params
        self._loop = loop
        self._searcher = searcher
        self._branch = weakref.WeakMethod(branch) if branch else None
        self._started = started
        self._mailbox = Mailbox(paused=paused)
        self._done = threading.Event()
        self._ending = threading.Lock()
        self._is_ending = self._given_up = False
        self._heard = started
        self._listeners: list[Callable[[], None]] = []
        self._phase: State = "waiting"
        self.progress: Prefilled | None = None
        self.error: BaseException | None = None

    # Watching

    @property
    def state(self) -> State:
        """What it is doing now."""
        return "paused" if self._mailbox.paused and not self.done else self._phase

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._done.is_set()

    @property
    def steps(self) -> list[Step]:
        """The steps so far; do not change the list.

        It only grows; a step that is rolled back is replaced by one with `kept=False`.
        """
        return self._recorder.steps

    @property
    def header(self) -> TraceHeader:
        """Model, settings and events of the run, without building the trace."""
        return self._recorder.header

    @property
    def trace(self) -> Trace:
        """The record up to now."""
        return self._recorder.trace()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after every change, on the worker's thread; it must be quick and must not block.

        Returns:
            A function that ends the subscription.
        """
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    # Steering

    def pause(self) -> None:
        """Stop before the next token, ready to go on."""
        self._mailbox.pause()

    def resume(self) -> None:
        """Go on after a pause."""
        self._mailbox.resume()

    def step(self, tokens: int = 1) -> None:
        """Decode `tokens` more and pause."""
        self._mailbox.step(tokens)

    def stop(self) -> None:
        """End it within one token, or one chunk of the prompt; what there is is kept."""
        self._mailbox.stop()

    def branch(self, *, at: int, token: Forced | None = None, **settings: Any) -> Session:  # noqa: ANN401
        """End this session if it still runs, and answer again, differently from step `at` on.

        See `Engine.branch` for the arguments and errors.

        Raises:
            EngineClosed: the engine is gone.
        """
        branch = self._branch() if self._branch else None
        if branch is None:
            raise EngineClosed(
                "the engine of this session is gone; load the model and use engine.branch(trace)."
            )
        return branch(self, at=at, token=token, **settings)

    # Waiting

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it has ended or `timeout` seconds have passed; whether it has ended.

        An interrupt (Ctrl-C, the notebook's ■) stops the session and waits for its end; a second one raises.
        """
        try:
            return self._wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            return self._wait(timeout)

    def _wait(self, timeout: float | None) -> bool:
        # Short waits let the interrupt through on every platform.
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not self._done.wait(min(_TICK, max(deadline - time.monotonic(), 0))):
            if time.monotonic() >= deadline:
                return False
        return True

    def result(self) -> Result:
        """Wait for the end and return the answer.

        Raises:
            EngineError: the model failed; `error.trace` holds what there was.
        """
        self.wait()
        if self.error is not None:
            # Raised anew at every call, without the frames of the calls before.
            raise self.error.with_traceback(None)
        return Result.of(self.trace)

    def __await__(self) -> Generator[object, None, Result]:
        return self._finished().__await__()

    async def _finished(self) -> Result:
        """Wait in ticks: the notebook's interrupt does not wake an idle event loop.

        A cancel stops the session. In a notebook it is the interrupt button, and the result is what there
        is; elsewhere it is a timeout or a task group, which must learn that it was heard.
        """
        try:
            await self._ticks()
        except asyncio.CancelledError:
            self.stop()
            task = asyncio.current_task()
            if task is None or not in_kernel():
                raise
            task.uncancel()
            await self._ticks()
        return self.result()

    async def _ticks(self) -> None:
        while not self.done:  # noqa: ASYNC110 - an asyncio.Event would not be woken by the interrupt either
            await asyncio.sleep(_TICK / 2)

    # Working, on the worker's thread

    def run(self, get_source: Callable[[], object], *, on_corruption: Callable[[], None]) -> None:
        """Drive the loop to its end; called once, by the engine's worker. Errors end up in `error`.

        Args:
            get_source: what the loop takes tokens from, a decoder or a connection. Asked for here, so that
                no frame that outlives a failed forward in its traceback holds the model.
            on_corruption: called after a failed forward, before anyone learns of it, and when one returns
                that was given up.
        """
        try:
            self._drive(get_source())
        except BaseException as error:  # noqa: BLE001 - whoever waits for the session must learn of it
            if self._claim_end():
                _log.debug("a session failed", exc_info=True)
                self._fail(error, on_corruption)
        else:
            if self._claim_end():
                self._finish()
        if self._given_up:
            # What the forward brought after all, a row or an error, is nobody's any more.
            on_corruption()

    def _drive(self, source: object) -> None:
        prompt, clock = self._recorder.prompt_ids, self._clock
        loop = self._loop(source, prompt, self._params, started=self._started, clock=clock)
        reply: Reply = None
        try:
            while True:
                event = loop.send(reply)
                self._heard = self._clock()
                self._record(event)
                reply = self._next_order(event)
                self._heard = self._clock()
        except StopIteration as end:
            if not self._given_up:
                self._recorder.update(stop_reason=end.value.reason, stop_detail=end.value.detail)

    def _clock(self) -> float:
        """Seconds that stand still during a pause."""
        return time.perf_counter() - self._mailbox.paused_seconds

    def _record(self, event: Event) -> None:
        if self._given_up:
            raise _Abandoned
        if isinstance(event, Waiting):
            return
        if isinstance(event, Decoded | Taken):
            self._recorder.add_steps(event.steps)
        elif isinstance(event, Scored):
            self._recorder.prompt_logprobs = event.logprobs
        elif isinstance(event, Prefilled):
            self._record_reading(event)
        elif isinstance(event, Noted):
            self._recorder.update(**event.fields)
        elif isinstance(event, LookingUp):
            self._phase = "looking_up"
        else:
            self._record_look_up(event)
        self._notify()

    def _record_reading(self, event: Prefilled) -> None:
        self.progress = event
        self._phase = "running" if event.done == event.total else "prefilling"
        if not event.again:
            self._recorder.update(
                prefill_tokens=event.done - event.reused,
                reused_tokens=event.reused,
                prefill_seconds=self._clock() - self._started,
            )

    def _record_look_up(self, event: LookedUp | Amended | Revised) -> None:
        events: list[TraceEvent] = self.header.events
        if isinstance(event, Revised):
            self._recorder.revise(event.steps)
        elif isinstance(event, LookedUp):
            self._recorder.revise(event.dropped)
            if event.prompt is not None:
                self._recorder.prompt_ids = event.prompt
            events = [*events, event.event]
            self._phase = "running" if self.steps else "prefilling"
        else:
            events = [*events[:-1], event.event]
        self._recorder.update(events=events)

    def _look_up(self, look_up: LookUp) -> Reply:
        assert self._searcher is not None, "a policy that looks things up was started without a retriever"
        report = ask(self._searcher, look_up, cancelled=lambda: self._mailbox.stopped or self._given_up)
        return STOP if report is None else report

    def _next_order(self, event: Event) -> Reply:
        """Look something up or wait out a pause; STOP if that is what was asked for."""
        if isinstance(event, LookingUp):
            return self._look_up(event.look_up)
        if isinstance(event, Prefilled):
            spend, waits = event.done == event.total, True
        else:
            spend = waits = isinstance(event, Decoded) and not event.final
        if waits:
            self._mailbox.wait_for_permission(spend=spend, on_change=self._notify)
        return STOP if self._mailbox.stopped else None

    def watch(self, on_hang: Callable[[], None]) -> None:
        """Wait beside the worker, and give the session up if a forward does not return; called once.

        A thread that computes cannot be ended from outside. What can be done is to stop waiting for it: the
        session ends at its time limit with what there is, and `on_hang` lets go of thread and decoder.
        """
        if self._params.time_limit is None:
            return
        while not self._done.wait(max(self._patience(), _TICK)):
            # In this order: a pause that ends between the two has put the clock right before it says so.
            if not self._mailbox.paused and self._patience() <= 0 and self._claim_end(give_up=True):
                on_hang()
                self._give_up()
                return

    def _patience(self) -> float:
        """Seconds until the running forward is taken to hang: silent for long, and past the time limit."""
        now = self._clock()
        limit = self._params.time_limit or float("inf")
        return max(self._started + limit - now, self._heard + _HANG_GRACE - now)

    def _give_up(self) -> None:
        said = f"after {self._params.time_limit:g} s; a forward of the model did not return"
        if self.steps:
            self._recorder.update(stop_reason="local_decode_timeout", stop_detail=said)
            self._finish()
            return
        error = DecodeTimeout(
            f"the time limit passed {said}, and no token had been produced.",
            hint="The model is loaded again on the next call. If it happens again, another program may be "
            "using all of the processor or the device.",
        )
        self._fail(error, lambda: None)

    def _fail(self, error: BaseException, on_corruption: Callable[[], None]) -> None:
        self.error = error
        self._recorder.update(stop_reason="error", stop_detail=in_words(error))
        if isinstance(error, EngineError):
            error.trace = self.trace
        if isinstance(error, ForwardFailed):
            release_frames(error)
            self._recorder.finish()  # a decoder that is closed may not know its tokens any more
            on_corruption()
        self._finish("failed")

    def _claim_end(self, *, give_up: bool = False) -> bool:
        """Whether the caller is the one who ends the session: the worker, or the watchdog beside it."""
        with self._ending:
            claimed, self._is_ending = not self._is_ending, True
            self._given_up = self._given_up or (claimed and give_up)
        return claimed

    def _finish(self, phase: State = "finished") -> None:
        self._phase = phase
        try:
            self._recorder.finish()
        finally:
            self._done.set()  # whatever happens, nobody waits for ever
        self._notify()

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception:  # noqa: BLE001 - whatever it is, it is the view's
                # A broken view must not end the generation.
                _log.exception("a listener of a session failed")

    def __repr__(self) -> str:
        return f"<Session: {self.state}, {len(self.steps)} tokens>"


class _Abandoned(Exception):
    """The session was given up while a forward was running, which has returned after all."""
