"""An answer that stops where it doubts, looks something up, and goes on with what was found.

It runs the one loop of all engines (`loop.decode`) and shows its steps to a policy's controller. Where that
wants to go back, the loop is begun anew over the new prompt and the steps that stand, as a branch is: the
draws are those of their places, and the cache keeps what the old and the new prompt share.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.events import (
    STOP,
    Amended,
    Decoded,
    Ending,
    LookedUp,
    LookingUp,
    Prefilled,
    Revised,
    Taken,
)
from cartoolkit.engine.grounding import Grounding
from cartoolkit.engine.loop import FRESH, Beginning, decode
from cartoolkit.errors import DecodeTimeout
from cartoolkit.retrieval import Ended, Finish, LookUp, ResumeFrom, drive, retrieval_event

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.events import Event, Reply
    from cartoolkit.requests import GenerateParams, GenerateRequest
    from cartoolkit.retrieval import Decision, Policy
    from cartoolkit.trace import Event as TraceEvent
    from cartoolkit.trace import Step

    _Loop = Generator[Event, Reply, Ending]

__all__ = ["decode_with_look_ups"]


def decode_with_look_ups(
    decoder: Decoder,
    prompt: Sequence[int],
    params: GenerateParams,
    *,
    request: GenerateRequest,
    policy: Policy,
    question: str,
    seed: int,
    beginning: Beginning = FRESH,
    started: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> _Loop:
    """As `decode`, with look-ups where `policy` wants them.

    The reply to a `LookingUp` is what came of it, or `STOP`.

    Args:
        decoder: where tokens become logits.
        prompt: ids of the request without any passage.
        params: as for `decode`; `max_tokens` counts the tokens that stand.
        request: what a prompt with passages is made of.
        policy: what decides.
        question: what the user asked.
        seed: of the stream of draws.
        beginning: what the answer begins with; forced tokens are never rolled back.
        started: as for `decode`.
        clock: as for `decode`.

    Raises:
        ForwardFailed, DecodeTimeout: as `decode`; where tokens stand already, a time limit ends the answer.
    """
    started = clock() if started is None else started
    grounding = Grounding(request, decoder, policy.layout)
    most, room = policy.budget.max_context_tokens, grounding.room()
    controller = drive(
        policy.changed(max_context_tokens=room if most is None else min(most, room)),
        question,
        count_tokens=grounding.count_tokens,
        thinking=_opens_thinking(decoder, prompt),
    )
    loop = partial(decode, decoder, seed=seed, started=started, clock=clock)
    timer = _Clock(clock, started, params.time_limit)
    writing = _Writing(
        controller, grounding, loop, params, prompt=prompt, forced=beginning.forced, clock=timer
    )
    return (yield from writing.write())


def _opens_thinking(decoder: Decoder, prompt: Sequence[int]) -> bool:
    """Whether the template ends inside a block of thinking."""
    return b"".join(map(decoder.token_bytes, prompt[-8:])).rstrip().endswith(b"<think>")


class _Clock:
    """Seconds since the request, and those that are left of its time limit."""

    def __init__(self, clock: Callable[[], float], started: float, limit: float | None) -> None:
        self._clock, self._started, self.limit = clock, started, limit

    def now(self) -> float:
        return self._clock() - self._started

    def at_most(self, seconds: float | None) -> float | None:
        left = None if self.limit is None else max(self.limit - self.now(), 0.0)
        return min((each for each in (seconds, left) if each is not None), default=None)


class _Then(Enum):
    """How it goes on behind some steps."""

    GO_ON = "decode the next one"
    STOP = "somebody wants it to end"
    WRITE_ON = "begin a new loop over what stands"


class _Writing:
    """One answer in the making: the rows of its trace, and which of them stand."""

    def __init__(
        self,
        controller: Generator[Decision, Any, None],
        grounding: Grounding,
        loop: Callable[..., _Loop],
        params: GenerateParams,
        *,
        prompt: Sequence[int],
        forced: Sequence[int],
        clock: _Clock,
    ) -> None:
        self._grounding = grounding
        self._controller = controller
        self._prompt = list(prompt)
        self._forced = tuple(forced)
        self._begin = loop
        self._params = params
        self._clock = clock
        self._rows = 0
        self._kept: list[Step] = []
        self._has_read = False
        # The look-up for which the prompt is being read again, and when that began.
        self._reading_for: TraceEvent | None = None
        self._reading_since = 0.0

    def write(self) -> _Loop:
        """From the look-up before the answer, if there is one, to its end."""
        decision = next(self._controller)
        if isinstance(decision, LookUp):
            if (yield from self._look_up(decision)) is _Then.STOP:
                return Ending("stopped", "by the user")
            self._reading_for = None  # what is read now is the prompt itself
        then = _Then.WRITE_ON
        while not isinstance(then, Ending):
            then = yield from self._write_on()
        return then

    def _write_on(self) -> Generator[Event, Reply, Ending | _Then]:
        """Decode from what stands until the end, or until there is something else to go on with."""
        if self._grounding.leaves_no_room(len(self._prompt) + len(self._kept)):
            return Ending("length", "the context window is full")
        forced = self._forced[sum(step.forced for step in self._kept) :]
        loop = self._begin(self._prompt, self._params, beginning=Beginning(tuple(self._kept), forced))
        again, reply = deque(self._kept), None
        while True:
            try:
                event = loop.send(reply)
            except StopIteration as end:
                return end.value if reply == STOP else (yield from self._after_end(end.value))
            except DecodeTimeout:
                if not self._kept:
                    raise
                return Ending("local_decode_timeout", f"after {self._clock.limit:g} s")
            if isinstance(event, Taken | Decoded):
                steps = yield from self._new(event.steps, again)
                then = yield from self._hand_on(event, steps, loop, stopping=reply == STOP)
                reply = STOP if then is _Then.STOP else None
            else:
                reply, then = (yield from self._read(event)), _Then.GO_ON
            if isinstance(then, Ending) or then is _Then.WRITE_ON:
                return then

    def _hand_on(
        self, event: Taken | Decoded, steps: tuple[Step, ...], loop: _Loop, *, stopping: bool
    ) -> Generator[Event, Reply, Ending | _Then]:
        """Hand steps on, and let the policy see them unless somebody wants an end."""
        if isinstance(event, Decoded):
            stopping |= (yield Decoded(steps, event.final)) == STOP
        return _Then.STOP if stopping else (yield from self._consider(steps, loop))

    def _read(self, event: Event) -> Generator[Event, Reply, Reply]:
        """Hand on how far the prompt is read; at its end it is known what a look-up has cost."""
        if not isinstance(event, Prefilled):
            return (yield event)
        reply = yield replace(event, again=self._has_read)
        if event.done == event.total:
            self._has_read = True
            # What is in the cache now follows from this run alone, so all of it may be used again.
            self._params = self._params.model_copy(update={"repeatable": False})
            if self._reading_for is not None:
                figures = {
                    "prefill_tokens": event.done - event.reused,
                    "reused_tokens": event.reused,
                    "prefill_ms": (self._clock.now() - self._reading_since) * 1000,
                }
                data = self._reading_for.data | figures
                yield Amended(self._reading_for.model_copy(update={"data": data}))
                self._reading_for = None
        return reply

    def _new(self, steps: Sequence[Step], again: deque[Step]) -> Generator[Event, Reply, tuple[Step, ...]]:
        """The steps that are new, as rows of the trace.

        Those that stood already come first `again`, decoded anew: a stop string that begins in them and ends
        behind them cuts their text.
        """
        cut, new = [], []
        for step in steps:
            if again:
                before = again.popleft()
                if step.text != before.text:
                    cut.append(replace(before, text=step.text))
            else:
                new.append(replace(step, index=self._rows + len(new)))
        if cut:
            yield Revised(tuple(cut))
        self._rows += len(new)
        return tuple(new)

    def _consider(self, steps: Sequence[Step], loop: _Loop) -> Generator[Event, Reply, Ending | _Then]:
        """Show steps to the policy, and do what it decides."""
        for place, step in enumerate(steps, 1):
            self._kept.append(step)
            decision = self._controller.send(step)
            if isinstance(decision, LookUp):
                decision = yield from self._look_up(decision, loop, unseen=steps[place:])
            if isinstance(decision, Finish):
                unseen = [*steps[place:], *(yield from self._leave(loop))]
                yield Revised(_dropped(unseen))
                return Ending(decision.reason, decision.note)
            if isinstance(decision, ResumeFrom):
                return _Then.WRITE_ON
            if isinstance(decision, _Then):
                return decision
        return _Then.GO_ON

    def _after_end(self, ending: Ending) -> Generator[Event, Reply, Ending | _Then]:
        """The loop has no more; the policy may still want the last sentence written anew."""
        decision = self._controller.send(Ended(ending.reason))
        if isinstance(decision, LookUp):
            decision = yield from self._look_up(decision, ended=ending.reason)
        return _Then.WRITE_ON if isinstance(decision, ResumeFrom) else ending

    def _look_up(
        self,
        look_up: LookUp,
        loop: _Loop | None = None,
        *,
        unseen: Sequence[Step] = (),
        ended: str = "",
    ) -> Generator[Event, Any, Decision | _Then]:
        """Have something looked up; if something new was found, drop what does not stand any more.

        Args:
            look_up: what.
            loop: the one that waits for it, if one does.
            unseen: steps that it has brought, behind the one that the policy saw last.
            ended: why the loop ended, if it has.
        """
        look_up = replace(look_up, timeout_s=self._clock.at_most(look_up.timeout_s))
        since = self._clock.now()
        report = yield LookingUp(look_up)
        if report == STOP:
            return _Then.STOP
        ms = (self._clock.now() - since) * 1000
        decision = self._controller.send(report)
        at, prompt, dropped = self._rows - len(unseen), None, []
        if isinstance(decision, ResumeFrom):
            unseen = [*unseen, *(yield from self._leave(loop))]
            dropped = [*self._kept[decision.keep :], *unseen]
            del self._kept[decision.keep :]
            self._prompt = prompt = self._grounding.prompt(decision.context).ids
        else:
            unseen = ()
        figures = {"ms": ms, "unseen": len(unseen)}
        if isinstance(decision, ResumeFrom):
            figures["context_tokens"] = sum(
                self._grounding.count_tokens(hit.text) for hit in decision.context
            )
        event = retrieval_event(look_up, report, decision, at=at, ended=ended, **figures)
        yield LookedUp(event, prompt, _dropped(dropped))
        if prompt is not None:
            self._reading_for, self._reading_since = event, self._clock.now()
        return decision

    def _leave(self, loop: _Loop | None) -> Generator[Event, Reply, list[Step]]:
        """End a loop early; the steps that it held back, which are rows of the trace now."""
        held: list[Step] = []
        try:
            while loop is not None:
                if isinstance(event := loop.send(STOP), Decoded):
                    held += yield from self._new(event.steps, deque())
        except StopIteration:
            pass
        if held:
            yield Decoded(tuple(held), final=True)
        return held


def _dropped(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, kept=False) for step in steps)
