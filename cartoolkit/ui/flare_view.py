"""The FlareView: ask, watch the model doubt, look something up and go on, and compare policies."""

from __future__ import annotations

import secrets
import weakref
from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it
import traitlets

from cartoolkit.engine.engine import Engine
from cartoolkit.errors import InvalidRequest
from cartoolkit.requests import make_request
from cartoolkit.retrieval import as_searcher
from cartoolkit.retrieval.presets import as_policy, preset
from cartoolkit.ui.conductor import Conductor, header_html, row_layout
from cartoolkit.ui.controls import Buttons, text_button
from cartoolkit.ui.flare_comparison import PolicyComparison, beside_html
from cartoolkit.ui.flare_controls import FlareControls
from cartoolkit.ui.flare_run_view import FlareRunView
from cartoolkit.ui.twin import Twin, still_bundle
from cartoolkit.ui.twinned import Twinned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.engine import Result, Session
    from cartoolkit.retrieval import Policy, Searcher, Simulation
    from cartoolkit.trace import Trace
    from cartoolkit.ui._protocol import BesideRow

__all__ = ["FlareView"]

_POLICIES = ("none", "upfront", "seed", "flare", "rollback")
# Seconds to wait for a comparison to let go of the engine: a token, or a chunk of the prompt.
_PATIENCE = 5.0
_COMPARE, _STOP = "Compare policies", "Stop comparing"


class FlareView(Twinned):
    """A question box, a policy with its settings, and a live view of an answer that looks things up.

    The threshold's slider and the line in the plot are one value. Dragging it shows at once which look-ups
    the run on the page would have made with it; the next answer uses it.

    Attributes:
        engine: what answers.
        retriever: where it looks things up.
        question: the text box.
        controls: policy, threshold, budget and the sampler's controls (`FlareControls`).
        buttons: Compare policies and Answer; Pause, Step and Stop while it runs.
        picker: goes back and forth between the runs (`RunPicker`).
        view: text, plot and look-ups; `view.selected` and `view.threshold` may be set.
        comparison: the last one, or None.
    """

    def __init__(
        self,
        engine: Engine,
        retriever: Searcher | Callable[[str], str | None],
        question: str = "",
        *,
        policy: str | Policy = "rollback",
        **settings: Any,  # noqa: ANN401
    ) -> None:
        """Build the widget; nothing is generated yet.

        Args:
            engine: a loaded engine.
            retriever: a function from query to text, or anything with `search(query, k)`.
            question: what stands in the box at first.
            policy: the name of a preset, or a policy of one's own; the dropdown offers it beside the presets.
            settings: first values of the controls, fields of `GenerateParams`, and ``answer_start``, with
                which the answer begins. Without them it answers greedily, with at most 64 tokens.

        Raises:
            InvalidRequest: there is no such policy or setting, or the retriever cannot search.
        """
        if not isinstance(engine, Engine):
            raise InvalidRequest(
                f"the FlareView takes an engine; got a {type(engine).__name__}.",
                hint="Load one first: engine = ct.load()",
            )
        # The box may stand empty at first; it is asked for a question when Answer is pressed.
        given = {"temperature": 0.0, "seed": 0, "max_tokens": 64, **settings}
        self._request = make_request(question or "?", **given)
        self.engine = engine
        self.retriever = as_searcher(retriever)
        self.question = W.Textarea(
            question,
            placeholder="Ask something that stands in the passages",
            layout=W.Layout(flex="1 1 320px", width="auto", min_height="132px", align_self="stretch"),
        )
        self.question.add_class("cartoolkit-prompt")
        self.controls = FlareControls(as_policy(policy), self._request, attention=bool(engine.info.attention))
        self.view = FlareRunView(show_model=False)
        self.comparison: PolicyComparison | None = None
        # What each run was asked, to know it again; a run that is forgotten takes its entry along.
        self._asked: weakref.WeakKeyDictionary[Session, tuple[str, Policy, str]] = weakref.WeakKeyDictionary()
        self._compare_button = text_button(
            _COMPARE, "table", "Ask the same under every policy, one after another"
        )
        self._twin = Twin(self, self._still)
        buttons = Buttons("Answer", "Answer the question", beside=[self._compare_button])
        self._conductor = Conductor(self, self.view, self._twin, buttons, self.start)
        self.buttons, self.picker = buttons, self._conductor.picker
        self._connect()
        head = W.HTML(self._twin.hiding_style + header_html(engine.info))
        super().__init__(
            [
                W.HBox([head, self.picker, self.buttons], layout=row_layout("space-between")),
                W.HBox([self.question, self.controls], layout=row_layout("flex-start")),
                self._conductor.refusal,
                self.view,
            ],
            layout=W.Layout(width="100%"),
        )

    def _connect(self) -> None:
        traitlets.link((self.controls.threshold, "value"), (self.view, "threshold"))
        self.controls.observe(lambda _: self.view.suppose(self.policy), "current")
        self.view.on_pick(self._show_row)
        self._compare_button.on_click(lambda _: self._compare_or_stop())
        self.view.suppose(self.policy)

    # What decides

    @property
    def policy(self) -> Policy:
        """The policy as the controls stand; may be set to a preset's name or to a policy."""
        return self.controls.current

    @policy.setter
    def policy(self, policy: str | Policy) -> None:
        self.controls.choose(as_policy(policy))

    @property
    def simulation(self) -> Simulation | None:
        """What `policy` would have done over the run shown; None before the first run.

        Raises:
            InvalidRequest: the run carries no numbers that the policy needs.
        """
        return self.view.simulation(self.policy)

    # Running

    @property
    def session(self) -> Session | None:
        """The session shown; ``await view.session`` waits for its end."""
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
        """The records of the runs shown so far, oldest first; the last 20 at most."""
        return [session.trace for session in self._conductor.sessions]

    def start(self, question: str | None = None, *, paused: bool = False) -> Session:
        """Do what the Answer button does; a comparison that is going on is ended.

        Args:
            question: put into the box first; None takes what stands there.
            paused: begin with a pause; nothing is read before Step or Resume.

        Raises:
            InvalidRequest: there is no question, or a control is out of range.
            EngineBusy: another session is running on this engine.
        """
        question = self._take_question(question)
        self._end_comparison()
        if self.controls.sampler.new_seed.value:
            self.controls.sampler.seed.value = secrets.randbits(31)
        session = self._begin(question, self.policy, paused=paused)
        self._conductor.show(session)
        return session

    def show(self, session: Session) -> None:
        """Show a session that was started elsewhere, for instance by ``engine.start``."""
        self._conductor.show(session)

    def _take_question(self, question: str | None) -> str:
        if question is not None:
            self.question.value = question
        if not self.question.value.strip():
            raise InvalidRequest("There is no question yet; write one into the box first.")
        return self.question.value

    def _begin(self, question: str, policy: Policy, *, paused: bool = False) -> Session:
        settings = self.controls.settings()
        request = self._request.model_copy(update={"prompt": question, "messages": None})
        session = self.engine.start(
            request, retrieval=policy, retriever=self.retriever, paused=paused, quiet=True, **settings
        )
        self._asked[session] = question, policy, repr(settings)
        return session

    # Comparing

    def compare(
        self, policies: str | Sequence[str] = _POLICIES, question: str | None = None
    ) -> PolicyComparison:
        """Answer the same question under other policies too, one after another in the background.

        Each is as it was set in the controls, or else the preset; all of them ask for as many passages as the
        policy shown, whose row comes first if it is not among them. Its run is shown if there is none yet.

        Args:
            policies: names of presets, or of policies that the controls offer; one name or several.
            question: put into the box first; None takes what stands there.

        Returns:
            The comparison; ``await`` it, or `wait`, for its last row.

        Raises:
            InvalidRequest: there is no question, or no such policy.
        """
        question = self._take_question(question)
        chosen = self._chosen(policies)
        self._end_comparison()
        known = self._known(question)
        self.comparison = PolicyComparison(
            question,
            chosen,
            self._begin_beside(question, shows=known is None),
            first=[self.policy.name],
            done={self.policy.name: known} if known is not None else None,
            on_change=self._tell,
        )
        self.view.show_beside(self._rows)
        self._compare_button.description = _STOP
        return self.comparison

    def _chosen(self, policies: str | Sequence[str]) -> dict[str, Policy]:
        own = self.policy
        policies = [policies] if isinstance(policies, str) else policies
        names = [*([] if own.name in policies else [own.name]), *policies]
        found = {name: self.controls.named(name) or preset(name) for name in names}
        return {name: p.changed(passages_per_query=own.passages_per_query) for name, p in found.items()}

    def _known(self, question: str) -> Session | None:
        """The run shown, if the present policy would only repeat it."""
        session = self.session
        if session is None or session.error is not None or session.header.stop_reason == "stopped":
            return None
        asked = question, self.policy, repr(self.controls.settings())
        return session if self._asked.get(session) == asked else None

    def _begin_beside(self, question: str, *, shows: bool) -> Callable[[Policy], Session]:
        """Starts a run of a comparison, and shows the first one where none of it is shown yet."""
        waiting = [True] if shows else []

        def begin(policy: Policy) -> Session:
            session = self._begin(question, policy)
            if waiting:
                waiting.clear()
                self._conductor.show(session)
            return session

        return begin

    def _rows(self, session: Session | None) -> list[BesideRow]:
        """The comparison, beside runs of its question."""
        comparison = self.comparison
        if comparison is None or session is None or session.header.prompt != comparison.question:
            return []
        return comparison.rows(session)

    def _tell(self, last: bool) -> None:  # noqa: FBT001 - as a comparison calls it
        if self.comm is None:
            return
        if last:
            self._compare_button.description = _COMPARE
        self.view.tell(keep=last)
        if last:
            self._twin.refresh()

    def _end_comparison(self) -> None:
        if self.comparison is not None and not self.comparison.done:
            self.comparison.stop()
            self.comparison.wait(_PATIENCE)

    def _compare_or_stop(self) -> None:
        if self.comparison is not None and not self.comparison.done:
            self.comparison.stop()
            return
        with self._conductor.refusal.explaining("the comparison"):
            self.compare()

    def _show_row(self, row: int) -> None:
        """Show the run of a row of the comparison, if it has one, unless that is on the page."""
        session = self.comparison.session_of(row) if self.comparison is not None else None
        if session is not None and session is not self.session:
            self._conductor.show(session)

    # Showing it

    def _still(self) -> dict[str, str]:
        threshold = self.view.threshold if self.controls.has_threshold else 0.4
        still = still_bundle(self.trace, threshold=threshold, asked="question", button="Answer")
        return {**still, "text/html": still["text/html"] + beside_html(self._rows(self.session))}
