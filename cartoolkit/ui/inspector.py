"""The Inspector: write a prompt, watch the model answer it, and look at every choice it made."""

from __future__ import annotations

import contextlib
import html
import logging
import secrets
import threading
from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.engine.engine import Engine
from cartoolkit.errors import CartoolkitError, InvalidRequest
from cartoolkit.requests import make_request
from cartoolkit.ui.controls import Buttons, RunPicker, SamplerControls
from cartoolkit.ui.run_view import RunView
from cartoolkit.ui.twin import Twin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartoolkit.engine import Result, Session
    from cartoolkit.trace import ModelInfo, Trace

__all__ = ["Inspector"]

_log = logging.getLogger(__name__)
_EXAMPLE = "Why is the sky blue? Answer in two sentences."
# Runs that are kept to go back to.
_KEPT = 20


class Inspector(W.VBox):
    """A prompt box, the sampler's controls and a live view of the answer.

    Attributes:
        engine: what answers.
        prompt: the text box.
        controls: the sampler's controls; their values may be set and observed as with any ipywidget.
        buttons: Generate, Pause, Step, Stop.
        picker: goes back and forth between the runs (`RunPicker`).
        view: text, plot and candidates (`RunView`); `view.selected` and `view.threshold` may be set.
    """

    def __init__(self, engine: Engine, prompt: str = _EXAMPLE, **settings: Any) -> None:  # noqa: ANN401
        """Build the widget; nothing is generated yet.

        Args:
            engine: a loaded engine.
            prompt: what stands in the prompt box at first.
            settings: first values of the controls, fields of `GenerateParams`. Without a `seed` the first
                run uses 0, so that it can be repeated; `seed=None` takes a new one for each run.

        Raises:
            InvalidRequest: a setting is unknown or out of range.
        """
        if not isinstance(engine, Engine):
            raise InvalidRequest(
                f"the Inspector takes an engine; got a {type(engine).__name__}.",
                hint="Load one first: engine = ct.load()",
            )
        # The box may stand empty at first; it is asked for a prompt when Generate is pressed.
        request = make_request(prompt or _EXAMPLE, **{"seed": 0, **settings})
        self.engine = engine
        self.prompt = W.Textarea(
            prompt,
            placeholder="Ask something",
            layout=W.Layout(flex="1 1 320px", width="auto", min_height="132px", align_self="stretch"),
        )
        self.prompt.add_class("cartoolkit-prompt")
        self.controls = SamplerControls(request.params)
        self.buttons = Buttons()
        self.picker = RunPicker()
        self.view = RunView(show_model=False)
        self.view.on_branch(self._branch_or_explain)
        self._refusal = W.HTML(layout=W.Layout(display="none"))
        self._request = request
        self._session: Session | None = None
        self._sessions: list[Session] = []
        self._branching = threading.Lock()
        self._twin = Twin(self)
        self._connect_buttons()
        head = W.HTML(self._twin.hiding_style + _header(engine.info))
        super().__init__(
            [
                W.HBox([head, self.picker, self.buttons], layout=_row("space-between")),
                W.HBox([self.prompt, self.controls], layout=_row("flex-start")),
                self._refusal,
                self.view,
            ],
            layout=W.Layout(width="100%"),
        )

    # Running

    @property
    def session(self) -> Session | None:
        """The session shown; ``await inspector.session`` waits for its end."""
        return self._session

    @property
    def trace(self) -> Trace | None:
        """The record of the run shown, also while it is growing; None before the first run."""
        return self._session.trace if self._session else None

    @property
    def result(self) -> Result | None:
        """The answer shown, after waiting for its end; None before the first run."""
        return self._session.result() if self._session else None

    @property
    def runs(self) -> list[Trace]:
        """The records of the runs shown so far, branches among them, oldest first; the last 20 at most."""
        return [session.trace for session in self._sessions]

    def start(self, prompt: str | None = None, *, paused: bool = False) -> Session:
        """Do what the Generate button does.

        Args:
            prompt: put into the prompt box first; None takes what stands there.
            paused: begin with a pause; nothing is read before Step or Resume.

        Raises:
            InvalidRequest: there is no prompt, or a control is out of range.
            EngineBusy: another session is running on this engine.
        """
        if prompt is not None:
            self.prompt.value = prompt
        if not self.prompt.value.strip():
            raise InvalidRequest("There is no prompt yet; write one into the box first.")
        params = self.controls.params()
        if self.controls.new_seed.value:
            params["seed"] = self.controls.seed.value = secrets.randbits(31)
        request = self._request.model_copy(update={"prompt": self.prompt.value, "messages": None})
        self._refusal.layout.display = "none"
        session = self.engine.start(request, paused=paused, quiet=True, **params)
        self.show(session)
        return session

    def branch(self, at: int, token: int | None = None) -> Session:
        """Do what a click on a candidate does: go on from a step of the run shown, in a run of its own.

        What runs is ended. The new run has the settings of the run that it leaves, whatever the controls
        say by now, and counts what it takes over towards ``max_tokens``. A new draw takes a new seed, or it
        would give the same token again; after a token that was put there the draws are those of the old run.

        Args:
            at: index of the first step that is not taken over; negative counts from the end.
            token: the id of the token to put there; None draws again.

        Raises:
            InvalidRequest: there is no run yet, or no such step or token.
            EngineBusy: another session is running on the engine.
            EngineClosed: the engine is gone.
        """
        if (session := self._session) is None:
            raise InvalidRequest("There is no run yet to branch off; generate one first.")
        return self._branch_off(session, at, token)

    def _branch_off(self, session: Session, at: int, token: int | None) -> Session:
        settings = {"seed": secrets.randbits(31)} if token is None else {}
        branch = session.branch(at=at, token=token, **settings)
        self._show(branch, selected=branch.header.events[-1].at)
        return branch

    def show(self, session: Session) -> None:
        """Show a session that was started elsewhere, for instance by ``engine.start``."""
        self._show(session)

    def _show(self, session: Session, *, selected: int | None = None) -> None:
        self._refusal.layout.display = "none"
        self._session = session
        if session not in self._sessions:
            self._sessions = [*self._sessions, session][-_KEPT:]
        follower = threading.Thread(
            target=self._follow, args=(session,), name="cartoolkit-inspector", daemon=True
        )
        self.view.show(session, selected=selected)
        follower.start()

    def _follow(self, session: Session) -> None:
        """Keep the buttons true while the session runs, and the static twin when it has ended."""
        changed = threading.Event()
        unsubscribe = session.subscribe(changed.set)
        state = ""
        while self._session is session and self.comm is not None and not session.done:
            # A session says that it has ended a moment before it is done; its end is told below.
            if (now := session.state) != state and now not in ("finished", "failed"):
                state = now
                self._show_state(session, state)
            changed.wait(1)
            changed.clear()
        unsubscribe()
        # Where a branch has ended it, the branch is shown next.
        if not self._branching.locked():
            self._settle(session)

    def _settle(self, session: Session) -> None:
        if self._session is session:
            self._show_state(session, session.state)
            # A closed Inspector leaves its twin, which must not stay in the middle of the run.
            session.wait()
            self._twin.refresh()

    def _show_state(self, session: Session, state: str) -> None:
        self.buttons.show_state(state)
        sessions = self._sessions
        if session in sessions:
            place = sessions.index(session) + 1
            self.picker.show_place(place, len(sessions), running=not session.done)

    # The buttons and candidates; their callbacks may come on any thread and must not raise into the kernel.

    def _connect_buttons(self) -> None:
        self.buttons.generate.on_click(lambda _: self._start_or_explain())
        self.buttons.pause.on_click(lambda _: self._pause_or_resume())
        self.buttons.step.on_click(lambda _: self._session and self._session.step())
        self.buttons.stop.on_click(lambda _: self._session and self._session.stop())
        self.picker.previous.on_click(lambda _: self._turn_to(-1))
        self.picker.next.on_click(lambda _: self._turn_to(+1))

    def _start_or_explain(self) -> None:
        if self._session is not None and not self._session.done:
            return  # the second click of a double click
        with self._explaining("the Generate button"):
            self.start()

    def _branch_or_explain(self, session: Session, at: int, token: int | None) -> None:
        """Branch on a thread of its own: the token that is being computed has to be waited for."""
        if not self._branching.acquire(blocking=False):
            return  # the second click of a double click

        def work() -> None:
            try:
                with self._explaining("a branch"):
                    self._branch_off(session, at, token)
            finally:
                self._branching.release()
            # What ended meanwhile was not settled: the old run if this was refused, or a short branch.
            if (shown := self._session) is not None and shown.done:
                self._settle(shown)

        threading.Thread(target=work, name="cartoolkit-branch", daemon=True).start()

    def _turn_to(self, direction: int) -> None:
        """Show the run before (-1) or after (1) the one shown, unless one is running."""
        session, sessions = self._session, self._sessions
        if session is None or not session.done or self._branching.locked():
            return
        place = sessions.index(session) + direction
        if 0 <= place < len(sessions):
            self._show(sessions[place])

    @contextlib.contextmanager
    def _explaining(self, what: str) -> Iterator[None]:
        """Show errors in the widget instead of losing them in the kernel."""
        try:
            yield
        except CartoolkitError as error:
            self._explain(str(error), error.hint)
        except Exception as error:  # noqa: BLE001 - shown in the widget
            _log.exception("%s failed", what)
            advice = "This is a fault of cartoolkit; please report it."
            self._explain(f"{type(error).__name__}: {error}", advice)

    def _pause_or_resume(self) -> None:
        if (session := self._session) is not None:
            session.resume() if session.state == "paused" else session.pause()

    def _explain(self, message: str, hint: str | None) -> None:
        advice = f"<br>{html.escape(hint)}" if hint else ""
        self._refusal.value = (
            '<div role="alert" style="border-left:3px solid #b42318;padding:4px 10px;line-height:1.5">'
            f"<b>{html.escape(message)}</b>{advice}</div>"
        )
        self._refusal.layout.display = None

    # Showing it

    def close(self) -> None:
        """Take the live view out of the notebook, which leaves the static twin; a running session goes on."""
        for child in self.children:
            _close(child)
        super().close()

    def freeze(self) -> None:
        """Replace the widget in the notebook by its static twin, which needs no kernel to be read."""
        self._twin.freeze()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        live = super()._repr_mimebundle_(**options) or {}
        return {**live, **self._twin.bundle()}

    def _ipython_display_(self) -> None:
        self._twin.display()


def _close(widget: W.Widget) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    widget.close()


def _row(justify: str) -> W.Layout:
    return W.Layout(
        display="flex", flex_flow="row wrap", justify_content=justify, align_items="flex-start", width="100%"
    )


def _header(info: ModelInfo) -> str:
    chip = (
        "display:inline-block;font-family:var(--jp-code-font-family,monospace);font-size:12px;"
        "border:1px solid var(--jp-border-color1,#bbb);border-radius:10px;padding:0 8px;margin-left:6px;"
        "color:var(--jp-ui-font-color1,inherit);line-height:20px"
    )
    facts = [info.engine, f"{info.device} · {info.dtype}", f"{info.context_length:,} ctx"]
    chips = "".join(f'<span style="{chip}">{html.escape(fact)}</span>' for fact in facts)
    return f'<b style="font-size:14px">{html.escape(info.name)}</b>{chips}'
