"""The live view of one run: text, plot and candidates. Its browser half is `widgets/src/run_view.ts`."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from cartoolkit.trace.look_ups import RETRIEVAL
from cartoolkit.ui._protocol import (
    PROTOCOL_VERSION,
    Branch,
    BranchPoint,
    Failure,
    Finish,
    Parts,
    Pick,
    Prefill,
    RunInfo,
    Update,
    parse_message,
    steps_block,
)
from cartoolkit.ui.look_up_parts import LookUpParts, policy_info
from cartoolkit.ui.twin import still_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.engine import Session
    from cartoolkit.trace import Step, Trace, TraceHeader

__all__ = ["RunView"]

_STATIC = Path(__file__).parent / "static"
# Between 33 and 50 ms: fluid to the eye, and far below what the notebook's channel can carry.
_INTERVAL = 0.04
# Seconds for a branch to take its first tokens over before it is shown without any.
_PATIENCE = 0.15
# Events that have a part of their own.
_TOLD_ELSEWHERE = ("branch", RETRIEVAL)
_STALE = "That token belongs to a run that was no longer shown; nothing was changed."
_log = logging.getLogger(__name__)


class RunView(anywidget.AnyWidget):
    """Shows a session while it runs and afterwards; any number of views of it stay in step.

    Attributes:
        metric: what the text is coloured by: ``max_prob``, ``prob``, ``entropy`` or ``surprisal``.
        threshold: raw max probability below which a token counts as doubtful.
        selected: index of the step shown beside the text, or None.
        snapshot: the finished run, kept with a saved notebook.
        show_model: whether the view names the model; False where something around it does.
        can_branch: whether a click on a candidate goes on with it; see `on_branch`.
    """

    _esm = _STATIC / "index.js"
    view = traitlets.Unicode("run").tag(sync=True)
    metric = traitlets.Enum(["max_prob", "prob", "entropy", "surprisal"], "max_prob").tag(sync=True)
    threshold = traitlets.Float(0.4, min=0, max=1).tag(sync=True)
    selected = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)
    snapshot = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    show_model = traitlets.Bool(default_value=True).tag(sync=True)
    can_branch = traitlets.Bool(default_value=False).tag(sync=True)

    def __init__(self, session: Session | None = None, **traits: Any) -> None:  # noqa: ANN401
        unknown = [name for name in traits if name not in self.trait_names()]
        if unknown:
            raise TypeError(f"{type(self).__name__} has no setting {unknown[0]!r}.")
        super().__init__(**traits)
        self._run = ""
        self._seq = 0
        self._sent: list[Step] = []
        self._look_ups = LookUpParts()
        self._session: Session | None = None
        self._remark = ""
        self._branch: Callable[[Session, int, int | None], object] | None = None
        # The pump and a view that has just appeared may both want to send.
        self._sending = threading.RLock()
        self.on_msg(self._receive)
        if session is not None:
            self.show(session)

    @property
    def session(self) -> Session | None:
        """What is shown."""
        return self._session

    @property
    def trace(self) -> Trace | None:
        """The record of the run shown, also while it is growing; None before the first run."""
        return self._session.trace if self._session else None

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict, dict]:  # noqa: ANN401
        live, metadata = super()._repr_mimebundle_(**options) or ({}, {})
        return {**live, **still_bundle(self.trace)}, metadata

    def on_branch(self, handler: Callable[[Session, int, int | None], object]) -> None:
        """Offer every candidate to go on with, and call `handler` when a reader takes one.

        Args:
            handler: gets the session, the index of the step, and the id of the token that shall stand
                there or None for a new draw. It is called on the kernel's thread and must not block.
        """
        self._branch = handler
        self.can_branch = True

    def show(self, session: Session, *, selected: int | None = None) -> None:
        """Follow a session from its first token to its end, with one of its steps selected."""
        with self._sending:
            self._session, self._run, self._sent = session, secrets.token_hex(4), []
            self._look_ups, self._remark = LookUpParts(), ""
        self.selected = selected
        self.snapshot = None
        changed = threading.Event()
        unsubscribe = session.subscribe(changed.set)
        pump = threading.Thread(
            target=self._pump, args=(session, changed, unsubscribe), name="cartoolkit-view", daemon=True
        )
        pump.start()

    def close(self) -> None:
        """Take the view out of the notebook and forget the session, which goes on."""
        super().close()
        # anywidget keeps every view for as long as the process lives; the run must not be kept with it.
        self._session = self._branch = self.snapshot = None

    def _pump(self, session: Session, changed: threading.Event, unsubscribe: Callable[[], None]) -> None:
        """Send what has changed, at most once an interval, until the session ends or nobody follows it."""
        if _branch_point(session.header) is not None:
            _wait_for_first_step(session, changed)
        self._send_update(session, first=0, whole=True)
        while self._follows(session) and not session.done:
            if changed.wait(1):
                changed.clear()
                self._send_update(session)
                time.sleep(_INTERVAL)
        unsubscribe()
        self._send_update(session)
        self._take_snapshot(session)

    def _take_snapshot(self, session: Session) -> None:
        with self._sending:
            if self._follows(session):
                content, buffers = self._update(session, first=0, whole=True)
                self.snapshot = {**content, "buffers": buffers}

    def _follows(self, session: Session) -> bool:
        return self._session is session and self.comm is not None  # None once the widget is closed

    def _send_update(self, session: Session, *, first: int | None = None, whole: bool = False) -> None:
        """Send what is new, from step `first` on; None sends the steps that have changed."""
        with self._sending:
            if not self._follows(session):
                return
            first = _first_change(self._sent, session.steps) if first is None else first
            content, buffers = self._update(session, first=first, whole=whole)
            self.send(content, buffers)

    def _receive(self, _widget: object, content: object, _buffers: object) -> None:
        """Answer a view that has appeared or noticed a gap. Called by the front end, on any thread."""
        try:
            message = parse_message(content)
        except ValueError as error:
            _log.warning("%s", error)
            return
        if isinstance(message, Branch):
            self._hand_on(message)
        elif isinstance(message, Pick):
            self._pick_row(message.row)
        elif (session := self._session) is not None:
            # Steps that a look-up dropped may have been sent before the view was there.
            known = message.run == self._run and not self._has_look_ups(session)
            self._send_update(session, first=message.steps if known else 0, whole=True)

    @staticmethod
    def _has_look_ups(session: Session) -> bool:
        return any(event.kind == RETRIEVAL for event in session.header.events)

    def _pick_row(self, row: int) -> None:
        """Show the run of a row of a comparison, which this view has none of."""
        _log.warning("row %d of a comparison was asked for in a view that has none; it was ignored", row)

    def _hand_on(self, message: Branch) -> None:
        """Let the owner branch off the run shown; of any other run nothing is done but to say so."""
        session, branch = self._session, self._branch
        if session is None or branch is None:
            _log.warning("a branch was asked for in a view that offers none; it was ignored")
        elif message.run == self._run and message.step >= len(session.steps):
            _log.warning("a branch was asked for at step %d, which is not there", message.step)
        elif message.run != self._run:
            self._remark = _STALE
            self._send_update(session)
        else:
            try:
                branch(session, message.step, message.token)
            except Exception:  # noqa: BLE001 - it is the owner's, and must not go up into the kernel
                _log.exception("a branch failed")

    def _update(self, session: Session, *, first: int, whole: bool) -> tuple[Update, list[Any]]:
        """Everything from step `first` on; `whole` adds what never changes during a run."""
        # Read the state before the steps: a session that has finished has all of them.
        state, every = session.state, session.steps[:]
        steps = every[first:]
        self._sent[first:] = steps
        self._seq += 1
        parts: Parts = {
            **self._look_ups.changed(session.header, every, whole=whole),
            **self._more_parts(session, whole=whole),
        }
        content = Update(
            type="update", v=PROTOCOL_VERSION, run=self._run, seq=self._seq, state=state, **parts
        )
        buffers: list[Any] = []
        if whole:
            content["info"] = _info(session.header)
        content["notices"] = self._notices(session.header)
        if steps:
            content["steps"], buffers = steps_block(steps, first)
        if (progress := session.progress) is not None:
            content["prefill"] = Prefill(done=progress.done, total=progress.total, reused=progress.reused)
        if state == "finished":
            content["finish"] = _finish(session)
        if session.error is not None:
            content["failure"] = Failure(
                message=str(session.error), hint=getattr(session.error, "hint", None) or ""
            )
        return content, buffers

    def _more_parts(self, session: Session, *, whole: bool) -> Parts:  # noqa: ARG002 - for views with more
        """What else has changed; `whole`: all there is."""
        return Parts()

    def _notices(self, header: TraceHeader) -> list[str]:
        texts = [event.text for event in header.events if event.kind not in _TOLD_ELSEWHERE]
        return [*texts, self._remark] if self._remark else texts


def _first_change(sent: Sequence[Step], steps: Sequence[Step]) -> int:
    """The first step that has not been sent as it is now; one that changes is replaced by another object."""
    pairs = enumerate(zip(sent, steps, strict=False))
    return next((i for i, (before, now) in pairs if before is not now), min(len(sent), len(steps)))


def _wait_for_first_step(session: Session, changed: threading.Event) -> None:
    """Let a branch take its tokens over, so that the text which stays does not go and come back."""
    deadline = time.monotonic() + _PATIENCE
    while not session.steps and not session.done and session.state != "paused":
        if (left := deadline - time.monotonic()) <= 0:
            return
        changed.wait(left)
        changed.clear()


def _branch_point(header: TraceHeader) -> BranchPoint | None:
    """Where the run left the one that it goes on from; None if it is no branch."""
    branches = [event for event in header.events if event.kind == "branch"]
    return BranchPoint(at=branches[-1].at, text=branches[-1].text) if branches else None


def _info(header: TraceHeader) -> RunInfo:
    params = {name: value for name, value in header.params.items() if name != "logit_bias"}
    info = RunInfo(
        model=header.model.name,
        engine=header.model.engine,
        device=header.model.device,
        dtype=header.model.dtype,
        context_length=header.model.context_length,
        prompt=header.prompt,
        params=params,
    )
    if header.model.vocab_size:
        info["vocab_size"] = header.model.vocab_size
    if (point := _branch_point(header)) is not None:
        info["branch"] = point
    if (policy := policy_info(header)) is not None:
        info["policy"] = policy
    return info


def _finish(session: Session) -> Finish:
    trace = session.trace
    return Finish(
        stop_reason=trace.header.stop_reason,
        stop_detail=trace.header.stop_detail,
        completion_tokens=trace.completion_tokens,
        ttft_ms=trace.ttft_ms,
        tokens_per_second=trace.tokens_per_second,
    )
