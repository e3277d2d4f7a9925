"""What every widget around a run view needs: buttons that follow the run, refusals, older runs, the twin.

It is a part of such a widget, not its base: the widget says what its main button does, lays the parts out,
and asks the conductor to show a session.
"""

from __future__ import annotations

import html
import threading
from typing import TYPE_CHECKING

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.ui.controls import Buttons, RunPicker
from cartoolkit.ui.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.engine import Session
    from cartoolkit.trace import ModelInfo, Trace
    from cartoolkit.ui.run_view import RunView
    from cartoolkit.ui.twin import Twin

__all__ = ["Conductor", "close_all", "header_html", "row_layout"]

# Runs that are kept to go back to.
_KEPT = 20


class Conductor:
    """Shows sessions in a view and keeps everything around it true.

    Args:
        owner: the widget that it is a part of.
        view: where runs are shown.
        twin: the still copy of the widget.
        buttons: the first of them does `start`.
        start: what the first button does; may raise, which is explained in the widget.

    Attributes:
        buttons: start, Pause, Step, Stop.
        picker: goes back and forth between the runs.
        refusal: where an error is explained, hidden while there is none.
        session: what is shown.
        sessions: what has been shown, oldest first.
        replacing: held while work is under way that may end the run shown and show another.
    """

    def __init__(
        self, owner: W.Widget, view: RunView, twin: Twin, buttons: Buttons, start: Callable[[], object]
    ) -> None:
        self._owner = owner
        self._view = view
        self._twin = twin
        self._start = start
        self.buttons = buttons
        self.picker = RunPicker()
        self.refusal = Refusal()
        self.session: Session | None = None
        self.sessions: list[Session] = []
        self.replacing = threading.Lock()
        self._connect_buttons()

    @property
    def trace(self) -> Trace | None:
        """The record of the run shown, also while it is growing; None before the first run."""
        return self.session.trace if self.session else None

    def show(self, session: Session, *, selected: int | None = None) -> None:
        """Follow a session in the view, with one of its steps selected."""
        self.refusal.clear()
        self.session = session
        if session not in self.sessions:
            self.sessions = [*self.sessions, session][-_KEPT:]
        follower = threading.Thread(
            target=self._follow, args=(session,), name="cartoolkit-inspector", daemon=True
        )
        self._view.show(session, selected=selected)
        follower.start()

    def _follow(self, session: Session) -> None:
        """Keep the buttons true while the session runs, and the static twin when it has ended."""
        changed = threading.Event()
        unsubscribe = session.subscribe(changed.set)
        state = ""
        while self.session is session and self._owner.comm is not None and not session.done:
            # A session says that it has ended a moment before it is done; its end is told below.
            if (now := session.state) != state and now not in ("finished", "failed"):
                state = now
                self._show_state(session, state)
            changed.wait(1)
            changed.clear()
        unsubscribe()
        # Where something else has ended it, that is shown next.
        if not self.replacing.locked():
            self.settle(session)

    def settle(self, session: Session) -> None:
        """Say that a session which has ended has ended, if it is the one shown."""
        if self.session is session:
            self._show_state(session, session.state)
            # A closed widget leaves its twin, which must not stay in the middle of the run.
            session.wait()
            self._twin.refresh()

    def _show_state(self, session: Session, state: str) -> None:
        self.buttons.show_state(state)
        sessions = self.sessions
        if session in sessions:
            place = sessions.index(session) + 1
            self.picker.show_place(place, len(sessions), running=not session.done)

    # The buttons; their callbacks may come on any thread and must not raise into the kernel.

    def _connect_buttons(self) -> None:
        self.buttons.generate.on_click(lambda _: self._start_or_explain())
        self.buttons.pause.on_click(lambda _: self._pause_or_resume())
        self.buttons.step.on_click(lambda _: self.session and self.session.step())
        self.buttons.stop.on_click(lambda _: self.session and self.session.stop())
        self.picker.previous.on_click(lambda _: self._turn_to(-1))
        self.picker.next.on_click(lambda _: self._turn_to(+1))

    def _start_or_explain(self) -> None:
        if self.session is not None and not self.session.done:
            return  # the second click of a double click
        with self.refusal.explaining(f"the {self.buttons.generate.description} button"):
            self._start()

    def _pause_or_resume(self) -> None:
        if (session := self.session) is not None:
            session.resume() if session.state == "paused" else session.pause()

    def _turn_to(self, direction: int) -> None:
        """Show the run before (-1) or after (1) the one shown, unless one is running."""
        session, sessions = self.session, self.sessions
        if session is None or not session.done or self.replacing.locked():
            return
        place = sessions.index(session) + direction
        if 0 <= place < len(sessions):
            self.show(sessions[place])

    def replace_later(self, what: str, work: Callable[[], object]) -> None:
        """Do `work`, which ends the run shown and shows another, on a thread of its own.

        The token that is being computed has to be waited for. While one such work is under way, another is
        not begun: it would be the second click of a double click.
        """
        if not self.replacing.acquire(blocking=False):
            return

        def run() -> None:
            try:
                with self.refusal.explaining(what):
                    work()
            finally:
                self.replacing.release()
            # What ended meanwhile was not settled: the old run if this was refused, or a short new one.
            if (shown := self.session) is not None and shown.done:
                self.settle(shown)

        threading.Thread(target=run, name="cartoolkit-branch", daemon=True).start()


def close_all(widget: W.Widget) -> None:
    """Close a widget and everything in it."""
    for child in getattr(widget, "children", ()):
        close_all(child)
    widget.close()


def row_layout(justify: str) -> W.Layout:
    """A row that wraps, as wide as the page."""
    return W.Layout(
        display="flex", flex_flow="row wrap", justify_content=justify, align_items="flex-start", width="100%"
    )


def header_html(info: ModelInfo) -> str:
    """The model's name, with engine, device, precision and context beside it."""
    chip = (
        "display:inline-block;font-family:var(--jp-code-font-family,monospace);font-size:12px;"
        "border:1px solid var(--jp-border-color1,#bbb);border-radius:10px;padding:0 8px;margin-left:6px;"
        "color:var(--jp-ui-font-color1,inherit);line-height:20px"
    )
    where = " · ".join(filter(None, (info.device, info.dtype)))
    facts = [info.engine, where, f"{info.context_length:,} ctx" if info.context_length else ""]
    chips = "".join(f'<span style="{chip}">{html.escape(fact)}</span>' for fact in facts if fact)
    return f'<b style="font-size:14px">{html.escape(info.name)}</b>{chips}'
