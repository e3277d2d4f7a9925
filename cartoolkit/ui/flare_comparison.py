"""The same question under several policies, answered one after another in the background."""

from __future__ import annotations

import asyncio
import threading
from html import escape
from typing import TYPE_CHECKING

from cartoolkit.errors import CartoolkitError
from cartoolkit.trace.glyphs import clip, visible_line
from cartoolkit.trace.html_style import DIM, INK, LINE, PAPER
from cartoolkit.trace.look_ups import look_ups_of
from cartoolkit.ui._protocol import BesideRow

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    import pandas as pd

    from cartoolkit.engine import Session
    from cartoolkit.retrieval import Policy

__all__ = ["PolicyComparison", "beside_html"]

_TICK = 0.2
_COLUMNS = ("policy", "answer", "look-ups", "decoded", "read", "ms")


class PolicyComparison:
    """Runs of one question, a row for each policy, made by `FlareView.compare`.

    ``await comparison`` and `wait` wait for the last row; `to_frame` is the table as far as it is known.

    Attributes:
        question: what is asked.
        sessions: policy's name -> its run, of those that have been begun.
    """

    def __init__(
        self,
        question: str,
        policies: Mapping[str, Policy],
        begin: Callable[[Policy], Session],
        *,
        first: Sequence[str] = (),
        done: Mapping[str, Session] | None = None,
        on_change: Callable[[bool], object],
    ) -> None:
        """Begin at once.

        Args:
            question: what is asked.
            policies: name -> policy, in the order of the rows.
            begin: starts the run of a policy.
            first: names of those to run before the others.
            done: runs that are there already; one that is not over is waited for.
            on_change: called when rows have changed, with whether that was the last time.
        """
        self.question = question
        self.sessions: dict[str, Session] = dict(done or {})
        self._given = frozenset(self.sessions.values())
        self._names = list(policies)
        self._policies = policies
        self._begin = begin
        self._on_change = on_change
        self._failed: dict[str, str] = {}
        self._stopped = False
        self._done = threading.Event()
        left = [name for name in self._names if name not in self.sessions]
        order = sorted(left, key=lambda name: name not in first)
        threading.Thread(target=self._run, args=(order,), name="cartoolkit-compare", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether the last policy has answered, or somebody stopped it."""
        return self._done.is_set()

    def stop(self) -> None:
        """End the run that is going on, and begin no other."""
        self._stopped = True
        for session in tuple(self.sessions.values()):
            session.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the last row is there or `timeout` seconds have passed; whether it is there."""
        return self._done.wait(timeout)

    def __await__(self) -> Generator[object, None, PolicyComparison]:
        return self._finished().__await__()

    async def _finished(self) -> PolicyComparison:
        # In ticks: the notebook's interrupt does not wake an idle event loop.
        try:
            while not self.done:  # noqa: ASYNC110 - an asyncio.Event would not be woken by it either
                await asyncio.sleep(_TICK / 4)
        except asyncio.CancelledError:
            self.stop()
            raise
        return self

    def session_of(self, row: int) -> Session | None:
        """The run of a row; None if it has not been begun."""
        return self.sessions.get(self._names[row]) if 0 <= row < len(self._names) else None

    def rows(self, shown: Session | None = None) -> list[BesideRow]:
        """What is known now, one row a policy; `shown` is the run on the page."""
        return [self._row(name, shown) for name in self._names]

    def to_frame(self) -> pd.DataFrame:
        """What is known now: policy, answer, look_ups, decoded, prefilled, ms, failed; one row a policy."""
        import pandas as pd

        columns = ["policy", "answer", "look_ups", "decoded", "prefilled", "ms", "failed"]
        return pd.DataFrame(self.rows(), columns=columns)

    def _run(self, order: Sequence[str]) -> None:
        try:
            for session in tuple(self.sessions.values()):
                self._follow(session)
            for name in order:
                if self._stopped:
                    break
                self._answer(name)
        finally:
            self._done.set()
            self._on_change(True)

    def _answer(self, name: str) -> None:
        try:
            session = self._begin(self._policies[name])
        except CartoolkitError as error:
            self._failed[name] = str(error)
            return
        self.sessions[name] = session
        if self._stopped:
            session.stop()
        self._follow(session)

    def _follow(self, session: Session) -> None:
        while not session.wait(_TICK):
            self._on_change(False)
        self._on_change(False)
        # Somebody pressed Stop: that is meant for all of it.
        self._stopped |= session not in self._given and session.header.stop_reason == "stopped"

    def _row(self, name: str, shown: Session | None) -> BesideRow:
        session = self.sessions.get(name)
        if session is None:
            return BesideRow(
                policy=name, answer="", look_ups=0, decoded=0, prefilled=0, ms=None, running=False,
                failed=self._failed.get(name, ""), shown=False,
            )  # fmt: skip
        steps, header = session.steps[:], session.header
        look_ups = look_ups_of(header.events)
        return BesideRow(
            policy=name,
            answer="".join(step.text for step in steps if step.kept),
            look_ups=len(look_ups),
            decoded=len(steps),
            prefilled=header.prefill_tokens + sum(each.prefill_tokens or 0 for each in look_ups),
            ms=steps[-1].elapsed * 1000 if steps else 0.0,
            running=not session.done,
            failed=str(session.error) if session.error is not None else "",
            shown=session is shown,
        )


def beside_html(rows: Sequence[BesideRow]) -> str:
    """The table for a still page; empty without rows."""
    if not rows:
        return ""
    head = "".join(_cell(name, "th", right=i > 1) for i, name in enumerate(_COLUMNS))
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    table = (
        f'<table style="border-collapse:collapse;font-size:12px;margin:6px 0"><tr>{head}</tr>{body}</table>'
    )
    title = "<b>The same question under other policies</b>"
    style = "overflow-x:auto;font-family:system-ui,sans-serif;font-size:13px;margin-top:8px"
    return f'<div style="{style}">{title}{table}</div>'


def _cells(row: BesideRow) -> str:
    known = row["ms"] is not None
    answer = row["failed"] or row["answer"] or ("" if known else "not asked yet")
    counts = [f"{row[name]:,}" for name in ("look_ups", "decoded", "prefilled")]
    numbers = [*counts, f"{row['ms']:,.0f}"] if known else ["–"] * 4
    name = escape(clip(visible_line(row["policy"]), 40))
    texts = [f"<b>{name}</b>" if row["shown"] else name, escape(clip(visible_line(answer), 300))]
    return "".join(_cell(text, "td", right=i > 1) for i, text in enumerate([*texts, *numbers]))


def _cell(content: str, tag: str, *, right: bool) -> str:
    ink = DIM if tag == "th" else INK
    style = (
        f"background:{PAPER};color:{ink};border-top:1px solid {LINE};padding:3px 6px;vertical-align:top;"
        f"text-align:{'right' if right else 'left'}"
    )
    return f'<{tag} style="{style}">{content}</{tag}>'
