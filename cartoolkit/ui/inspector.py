"""The Inspector: write a prompt, watch the model answer it, and look at every choice it made."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.engine.engine import Engine
from cartoolkit.errors import InvalidRequest
from cartoolkit.remote.remote_engine import RemoteEngine
from cartoolkit.requests import make_request
from cartoolkit.ui.conductor import Conductor, header_html, row_layout
from cartoolkit.ui.controls import Buttons, SamplerControls
from cartoolkit.ui.run_view import RunView
from cartoolkit.ui.twin import Twin
from cartoolkit.ui.twinned import Twinned

if TYPE_CHECKING:
    from cartoolkit.engine import Result, Session
    from cartoolkit.trace import Trace

__all__ = ["Inspector"]

_EXAMPLE = "Why is the sky blue? Answer in two sentences."


class Inspector(Twinned):
    """A prompt box, the sampler's controls and a live view of the answer.

    Attributes:
        engine: what answers.
        prompt: the text box.
        controls: the sampler's controls; their values may be set and observed as with any ipywidget.
        buttons: Generate, Pause, Step, Stop.
        picker: goes back and forth between the runs (`RunPicker`).
        view: text, plot and candidates (`RunView`); `view.selected` and `view.threshold` may be set.
    """

    def __init__(self, engine: Engine | RemoteEngine, prompt: str = _EXAMPLE, **settings: Any) -> None:  # noqa: ANN401
        """Build the widget; nothing is generated yet.

        Args:
            engine: a loaded engine, or one that asks a server, whose runs cannot be branched.
            prompt: what stands in the prompt box at first.
            settings: first values of the controls, fields of `GenerateParams`. Without a `seed` the first
                run uses 0, so that it can be repeated; `seed=None` takes a new one for each run.

        Raises:
            InvalidRequest: a setting is unknown or out of range.
        """
        if not isinstance(engine, Engine | RemoteEngine):
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
        self.view = RunView(show_model=False)
        if isinstance(engine, Engine):
            self.view.on_branch(self._branch_or_explain)
        self._request = request
        self._twin = Twin(self)
        self._conductor = Conductor(self, self.view, self._twin, Buttons(), self.start)
        self.buttons, self.picker = self._conductor.buttons, self._conductor.picker
        head = W.HTML(self._twin.hiding_style + header_html(engine.info))
        super().__init__(
            [
                W.HBox([head, self.picker, self.buttons], layout=row_layout("space-between")),
                W.HBox([self.prompt, self.controls], layout=row_layout("flex-start")),
                self._conductor.refusal,
                self.view,
            ],
            layout=W.Layout(width="100%"),
        )

    # Running

    @property
    def session(self) -> Session | None:
        """The session shown; ``await inspector.session`` waits for its end."""
        return self._conductor.session

    @property
    def trace(self) -> Trace | None:
        """The record of the run shown, also while it is growing; None before the first run."""
        return self._conductor.trace

    @property
    def result(self) -> Result | None:
        """The answer shown, after waiting for its end; None before the first run."""
        return self.session.result() if self.session else None

    @property
    def runs(self) -> list[Trace]:
        """The records of the runs shown so far, branches among them, oldest first; the last 20 at most."""
        return [session.trace for session in self._conductor.sessions]

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
        if (session := self.session) is None:
            raise InvalidRequest("There is no run yet to branch off; generate one first.")
        return self._branch_off(session, at, token)

    def _branch_off(self, session: Session, at: int, token: int | None) -> Session:
        settings = {"seed": secrets.randbits(31)} if token is None else {}
        branch = session.branch(at=at, token=token, **settings)
        self._conductor.show(branch, selected=branch.header.events[-1].at)
        return branch

    def show(self, session: Session) -> None:
        """Show a session that was started elsewhere, for instance by ``engine.start``."""
        self._conductor.show(session)

    def _branch_or_explain(self, session: Session, at: int, token: int | None) -> None:
        self._conductor.replace_later("a branch", lambda: self._branch_off(session, at, token))
