"""Which look-ups a policy would have made over a recorded run, without a model.

A recording cannot say what the model would have written with other passages. So a look-up that the
recorded run did not make is taken to find something new and to change nothing: the text goes on as it
was recorded. Where the recorded run dropped tokens, the replay drops the same ones, so that a run's own
policy gives its own look-ups again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.retrieval.controller import drive
from cartoolkit.retrieval.decisions import Ended, Failed, Finish, Found, LookUp, Rewound, Supposed
from cartoolkit.retrieval.events import RETRIEVAL
from cartoolkit.trace import Step, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cartoolkit.retrieval.decisions import Report
    from cartoolkit.retrieval.policy import Policy

__all__ = ["Recording", "Simulation", "simulate"]


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run, made ready for being replayed many times, as while a threshold is dragged.

    Attributes:
        steps: in the order of decoding, without their candidates and without those that the policy never saw.
        look_ups: how many of these steps came before them -> data of their events, in order; see
            `retrieval_event`. One before the answer is not among them.
        ended: why the run ended.
        upfront: data of the look-up before the answer, if there was one.
    """

    steps: tuple[Step, ...]
    look_ups: Mapping[int, list[Mapping[str, Any]]] = field(default_factory=dict)
    ended: str = "stop"
    upfront: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, run: Trace | Sequence[Step]) -> Self:
        """A recording of a trace, or of steps none of which was dropped.

        A trace that dropped tokens without an event that tells where is read as its kept tokens alone.
        """
        if not isinstance(run, Trace):
            return cls(tuple(run))
        made = [event for event in run.events if event.kind == RETRIEVAL]
        events = [event for event in made if not event.data.get("upfront")]
        upfront = next((event.data for event in made if event.data.get("upfront")), None)
        unseen = {row for e in events for row in range(e.at, e.at + e.data.get("unseen", 0))}
        look_ups: dict[int, list[Mapping[str, Any]]] = {}
        for event in events:
            before = event.at - sum(row < event.at for row in unseen)
            look_ups.setdefault(before, []).append(event.data)
        dropped = any(event.data.get("dropped") for event in events)
        steps = (step for step in _light_steps(run) if dropped or step.kept)
        seen = tuple(step for step in steps if step.index not in unseen)
        return cls(seen, look_ups, run.header.stop_reason or "stop", upfront)

    def reports(self) -> Iterator[Report]:
        """What a controller has to be told, outcomes of look-ups aside; `Ended` without end."""
        for position, step in enumerate(self.steps):
            yield from self._events(position)
            yield step
        yield from self._events(len(self.steps))
        while True:
            yield Ended(self.ended)

    def _events(self, position: int) -> Iterator[Report]:
        for recorded in self.look_ups.get(position, ()):
            if recorded.get("dropped"):
                if recorded.get("ended"):
                    yield Ended(recorded["ended"])
                yield Rewound(recorded["keep"])

    def row(self, position: int) -> int:
        """`Step.index` of the step after `position` steps, or the one that would follow the last."""
        if position < len(self.steps):
            return self.steps[position].index
        return self.steps[-1].index + 1 if self.steps else 0

    def outcome(self, look_up: LookUp, position: int) -> Report:
        """What came of a look-up after `position` steps: as recorded, or supposed to be something new."""
        same = (each for each in self.look_ups.get(position, ()) if each.get("query") == look_up.query)
        recorded = (self.upfront if look_up.upfront else next(same, None)) or {}
        outcome = recorded.get("outcome", "found")
        if outcome == "found":
            return Supposed()
        return Found() if outcome == "nothing" else Failed(str(recorded.get("note", outcome)))


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a policy would have done.

    Attributes:
        look_ups: in order.
        finish: how and where it would have ended. Its tally counts every look-up as one that brought
            something new.
        at: `Step.index` of the step before which each look-up would have been made.
    """

    look_ups: tuple[LookUp, ...]
    finish: Finish
    at: tuple[int, ...] = ()

    @property
    def trigger_steps(self) -> tuple[int, ...]:
        """`Step.index` of all steps in doubt, each once, ascending: what a plot marks."""
        return tuple(sorted({index for look_up in self.look_ups for index in look_up.trigger_steps}))


def simulate(
    run: Recording | Trace | Sequence[Step], policy: Policy, question: str = "", *, thinking: bool = False
) -> Simulation:
    """Replay a recorded run under a policy.

    Args:
        run: what was recorded; make a `Recording` of it once to replay it often.
        policy: what decides.
        question: what the user asked; queries are built with it.
        thinking: the prompt ended inside a ``<think>`` block that it opened.

    Raises:
        InvalidRequest: a step carries no numbers that the policy needs.
    """
    recording = run if isinstance(run, Recording) else Recording.of(run)
    controller = drive(policy, question, thinking=thinking)
    reports = recording.reports()
    look_ups: list[LookUp] = []
    at: list[int] = []
    decision, position = next(controller), 0
    while not isinstance(decision, Finish):
        if isinstance(decision, LookUp):
            look_ups.append(decision)
            at.append(recording.row(position))
            report = recording.outcome(decision, position)
        else:
            report = next(reports)
            position += isinstance(report, Step)
        decision = controller.send(report)
    return Simulation(tuple(look_ups), decision, tuple(at))


def _light_steps(trace: Trace) -> Iterator[Step]:
    """The steps of a trace without their candidates, which are most of the work."""
    names = ("token_id", "logprob", "max_prob", "entropy", "elapsed")
    columns = [trace.columns[name].tolist() for name in names]
    flags = [trace.flag(name).tolist() for name in ("incomplete", "special", "forced", "kept")]
    rows = zip(trace.texts, trace.attentions, *columns, *flags, strict=True)
    for index, (text, attention, token_id, logprob, max_prob, entropy, elapsed, *bits) in enumerate(rows):
        incomplete, special, forced, kept = bits
        yield Step(
            index,
            token_id,
            text,
            trace.token_bytes[token_id],
            incomplete=incomplete,
            special=special,
            logprob=logprob,
            max_prob=max_prob,
            entropy=entropy,
            elapsed=elapsed,
            forced=forced,
            kept=kept,
            attention=attention,
        )
