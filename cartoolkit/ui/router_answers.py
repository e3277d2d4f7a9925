"""The answers to the latest prompt of a `RouterTable`: a row and a token view for each attempt."""

from __future__ import annotations

import dataclasses
import html
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.routing.calls.attempts import ROUTED
from cartoolkit.trace.glyphs import clip
from cartoolkit.ui._router_protocol import RunRow
from cartoolkit.ui.conductor import close_all
from cartoolkit.ui.run_view import RunView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.engine import Session
    from cartoolkit.routing.calls.attempts import Attempt, Routed
    from cartoolkit.trace import Trace

__all__ = ["LONGEST_ANSWER", "Answer", "Answers"]

LONGEST_ANSWER = 2000
"""Characters of an answer that the table shows; its token view shows all of it."""

RUNNING = "running"


@dataclass(frozen=True)
class Answer:
    """One model that was asked.

    Attributes:
        model_id: of the model.
        session: what is going on, or went on; None where nothing ran.
        attempt: how it ended; None before that.
        failed: an error's sentence, for one that ended without an attempt.
        story: how it came to it, in a sentence.
        verdict: what somebody found of it.
    """

    model_id: str
    session: Session | None = None
    attempt: Attempt | None = None
    failed: str = ""
    story: str = ""
    verdict: bool | None = None

    @property
    def trace(self) -> Trace | None:
        """What was generated."""
        if self.attempt is not None:
            return self.attempt.trace
        return self.session.trace if self.session else None

    def row(self, place: int) -> RunRow:
        """The answer as the table shows it; `place` names it while it has no trace id."""
        trace, attempt = self.trace, self.attempt
        outcome = attempt.outcome if attempt else "failure" if self.failed else RUNNING
        return RunRow(
            trace_id=attempt.trace_id if attempt else f"{RUNNING} {place}",
            model=self.model_id,
            text=clip(trace.text, LONGEST_ANSWER) if trace else "",
            ms=attempt.latency_ms if attempt else None,
            tokens=trace.completion_tokens if trace else 0,
            story=self.story or self.failed or f"{self.model_id} is answering.",
            verdict=self.verdict,
            outcome=outcome,
        )


class Answers(W.Box):
    """Keeps the answers, and shows the token view of each that ran, two or three beside each other."""

    def __init__(self) -> None:
        layout = W.Layout(display="flex", flex_flow="row wrap", width="100%", grid_gap="12px")
        super().__init__(layout=layout)
        self._answers: tuple[Answer, ...] = ()
        self._lock = threading.RLock()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers to the latest prompt, in the order in which the models were asked."""
        return self._answers

    @property
    def views(self) -> tuple[RunView, ...]:
        """The token views, in the same order."""
        return tuple(
            part for column in self.children for part in column.children if isinstance(part, RunView)
        )

    def rows(self) -> list[RunRow]:
        """The answers as the table shows them."""
        return [answer.row(place) for place, answer in enumerate(self._answers)]

    def clear(self) -> None:
        """Forget them, and close their views."""
        with self._lock:
            old, self.children, self._answers = self.children, (), ()
        for column in old:
            close_all(column)

    def begin(self, model_id: str, session: Session) -> None:
        """A model has begun to answer."""
        with self._lock:
            self._answers = (*self._answers, Answer(model_id, session))
            self.children = (*self.children, _column(model_id, session))

    def end(self, routed: Routed, *, story: str = "") -> None:
        """A request was answered; what was begun is completed by what became of it."""
        events = {e.data.get("trace_id"): e.text for e in routed.trace.events if e.kind == ROUTED}
        self.fail(routed.attempts, {key: story or text for key, text in events.items()})

    def fail(self, attempts: Sequence[Attempt], stories: dict[object, str] | None = None) -> None:
        """A request has ended with these attempts, none of them an answer unless `stories` say so."""
        with self._lock:
            for attempt in attempts:
                told = (stories or {}).get(attempt.trace_id) or f"{attempt}."
                self._put(attempt.model_id, attempt=attempt, story=told)

    def give_up(self, model_id: str, message: str) -> None:
        """A model has ended with an error that belongs to no attempt that we know of."""
        with self._lock:
            self._put(model_id, failed=message)

    def drop_running(self, message: str) -> None:
        """Whatever has not ended by now never will; `message` says why."""
        with self._lock:
            for answer in self._answers:
                if answer.attempt is None and not answer.failed:
                    self._put(answer.model_id, failed=message)

    def _put(self, model_id: str, **known: object) -> None:
        """Complete the last answer of a model that has not ended, or put a new one."""
        open_ones = [
            place
            for place, each in enumerate(self._answers)
            if each.model_id == model_id and each.attempt is None and not each.failed
        ]
        answers = list(self._answers)
        if open_ones:
            answers[open_ones[-1]] = dataclasses.replace(answers[open_ones[-1]], **known)  # pyright: ignore[reportArgumentType]
        else:
            answers.append(Answer(model_id, **known))  # pyright: ignore[reportArgumentType]
        self._answers = tuple(answers)

    def judge(self, trace_id: str, *, accepted: bool) -> bool:
        """Remember a verdict; whether there is such an answer."""
        with self._lock:
            found = [a for a in self._answers if a.attempt is not None and a.attempt.trace_id == trace_id]
            self._answers = tuple(
                dataclasses.replace(a, verdict=accepted) if a in found else a for a in self._answers
            )
        return bool(found)


def _column(model_id: str, session: Session) -> W.VBox:
    head = W.HTML(f'<b style="overflow-wrap:anywhere">{html.escape(model_id)}</b>')
    return W.VBox([head, RunView(session)], layout=W.Layout(flex="1 1 420px", min_width="0"))
