"""The RouterTable: which model should answer, what would change that, and the answers beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import TASKS, WORKLOADS, unknown
from cartoolkit.requests import GenerateParams, make_request
from cartoolkit.routing.checks import require_kind, several
from cartoolkit.routing.choice.intent import Profile, profile
from cartoolkit.routing.choice.situation import Demand
from cartoolkit.ui import _router_protocol as protocol
from cartoolkit.ui.conductor import row_layout
from cartoolkit.ui.controls import Buttons, text_button
from cartoolkit.ui.refusal import Refusal
from cartoolkit.ui.router_answers import Answers
from cartoolkit.ui.router_detail import column_title
from cartoolkit.ui.router_html import state_html, state_text
from cartoolkit.ui.router_jobs import Asked, Jobs
from cartoolkit.ui.router_scorer import Scorer
from cartoolkit.ui.router_state import Around, Settings
from cartoolkit.ui.router_view import RouterView
from cartoolkit.ui.twin import Twin
from cartoolkit.ui.twinned import Twinned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartoolkit.intents import Task, Workload
    from cartoolkit.routing import Router
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.ui._router_protocol import RouterMessage, RouterState
    from cartoolkit.ui.jobs import Job
    from cartoolkit.ui.router_answers import Answer
    from cartoolkit.ui.run_view import RunView

__all__ = ["RouterTable"]

_EXAMPLE = "Why is the sky blue? Answer in two sentences."
_EXPECTED_ANSWER = 128
_BUSY = "Something is going on already; wait for its end, or press Stop."


class RouterTable(Twinned):
    """A table of models and workloads that is scored anew while its sliders are moved, and a prompt to route.

    A click on a cell chooses the workload that Route uses. The prompt's length follows the prompt box; it may
    be set to something else afterwards, to see what that would change: Route goes by the prompt itself, and
    by the weights, limits and task of the table. What comes of the answers, and thumbs for them, are learnt
    by the router.

    Attributes:
        router: what routes.
        prompt: the text box.
        workload: which workload Route uses, a dropdown.
        buttons: Ask all and Route; Pause, Step and Stop while something runs.
        view: the table (`RouterView`).
    """

    def __init__(
        self,
        router: Router,
        prompt: str = _EXAMPLE,
        *,
        workloads: Iterable[Workload | Profile] = WORKLOADS,
        demand: Demand | None = None,
        task: Task = "chat",
        **settings: Any,  # noqa: ANN401
    ) -> None:
        """Build the widget; no model is loaded yet.

        Args:
            router: the models and what is known of them.
            prompt: what stands in the prompt box at first.
            workloads: the columns: names, or weights of one's own.
            demand: lengths and bounds at first; the prompt's own length and an answer of 128 tokens if None.
            task: the kind of answer.
            settings: fields of `GenerateParams` for the answers; `max_tokens` is the length of the answer.

        Raises:
            InvalidRequest: a workload, task or setting is unknown or out of range.
        """
        is_class = isinstance(router, type)
        if is_class or not callable(getattr(router, "generate", None)) or not hasattr(router, "models"):
            raise InvalidRequest(
                f"the RouterTable takes a router; got {router!r:.80}.",
                hint="Make one first: router = ct.Router()",
            )
        self.router = router
        self._generation = _checked_generation(prompt, settings)
        columns = several("workloads", workloads, example="['interactive', 'batch']")
        first = _first_settings(
            router, prompt, workloads=tuple(columns), demand=demand, task=task, settings=settings
        )
        self._last: RouterState | None = None
        self._make_parts(prompt, first)
        self._twin = Twin(self, self._still)  # pyright: ignore[reportArgumentType]
        style = W.HTML(self._twin.hiding_style, layout=W.Layout(display="none"))
        # The width that the buttons ask for in a row would be their height in a column.
        self.buttons.layout.flex = "0 0 auto"
        side = W.VBox([self.workload, self.buttons], layout=W.Layout(align_items="stretch", flex="0 1 292px"))
        super().__init__(
            [
                style,
                W.HBox([self.prompt, side], layout=row_layout("flex-start")),
                self._refusal,
                self.view,
                self._answers,
            ],
            layout=W.Layout(width="100%"),
        )
        self._scorer.score()
        self._connect()

    def _make_parts(self, prompt: str, first: Settings) -> None:
        self.prompt = W.Textarea(
            prompt,
            placeholder="Ask something",
            continuous_update=False,
            layout=W.Layout(flex="1 1 320px", width="auto", min_height="76px", align_self="stretch"),
        )
        self.prompt.add_class("cartoolkit-prompt")
        names = [(column_title(each.name), each.name) for each in first.profiles]
        self.workload = W.Dropdown(
            options=names,
            value=names[0][1],
            description="workload",
            tooltip="Whose weights Route goes by; a click on a cell of the table sets it too.",
            layout=W.Layout(width="auto"),
        )
        self._ask_button = text_button(
            "Ask all", "list", "Ask every model that may answer here, one after another"
        )
        self.buttons = Buttons(
            "Route", "Choose a model for the prompt and let it answer", beside=[self._ask_button]
        )
        self._refusal = Refusal()
        self._answers = Answers()
        self.view = RouterView(self._follow)
        self._jobs = Jobs(self.router, self._answers, self._refusal, self._on_change)
        self._scorer = Scorer(
            self.router,
            first,
            self.view,
            self._refusal,
            beside=lambda: Around(runs=tuple(self._answers.rows()), busy=self._jobs.busy),
            on_settled=self._settle,
        )

    def _connect(self) -> None:
        self.buttons.generate.on_click(lambda _: self._explained(self.route))
        self._ask_button.on_click(lambda _: self._explained(self.ask_all))
        self.buttons.pause.on_click(lambda _: self._pause_or_resume())
        self.buttons.step.on_click(lambda _: self._step())
        self.buttons.stop.on_click(lambda _: self.stop())
        self.prompt.observe(lambda _: self._explained(self._measure_prompt), "value")
        self.workload.observe(lambda change: self._select_first(change["new"]), "value")

    # What is shown

    @property
    def settings(self) -> Settings:
        """Lengths, bounds and weights as they stand."""
        return self._scorer.settings

    @property
    def state(self) -> RouterState:
        """What the table shows, as plain data."""
        assert self.view.state is not None
        return self.view.state

    @property
    def decision(self) -> Decision:
        """Every model under the workload chosen, with the weights as they stand, by the mean worth."""
        return self._scorer.decisions[str(self.workload.value)]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers to the latest prompt, in the order in which the models were asked."""
        return self._answers.answers

    @property
    def run_views(self) -> tuple[RunView, ...]:
        """The token views of the answers."""
        return self._answers.views

    def refresh(self) -> None:
        """Look again at the models, the machine and what came of earlier calls; returns at once."""
        self._scorer.ask(learn=True)

    # What is asked

    def route(self, prompt: str | None = None) -> Job:
        """Do what the Route button does: choose a model, let it answer, fall back if it fails.

        Args:
            prompt: put into the prompt box first; None takes what stands there.

        Returns:
            The work in the background; ``await`` it, or `wait`, for the answer in `answers`.

        Raises:
            InvalidRequest: there is no prompt, or something is going on already.
        """
        return self._jobs.route(self._asked(prompt))

    def ask_all(self, prompt: str | None = None) -> Job:
        """Ask every model that may answer, runs on this machine and needs no download, in order of rank.

        Args:
            prompt: put into the prompt box first; None takes what stands there.

        Raises:
            InvalidRequest: as for `route`, or there is no such model.
        """
        asked = self._asked(prompt)
        ready = [c.model for c in self.decision.eligible if c.model.is_local and c.model.weights_ready]
        if not ready:
            raise InvalidRequest(
                "No model of this machine may answer; the table says why for each.",
                hint="router.probe(id) fetches a model, router.add(engine) adds one that is loaded.",
            )
        return self._jobs.ask_all(asked, [model.id for model in ready])

    def probe(self, *models: str) -> Job:
        """Measure models on this machine, and score anew.

        Args:
            models: ids; none for every one that is ready.

        Raises:
            InvalidRequest: something is going on already.
        """
        self._refuse_if_busy()
        return self._jobs.probe(models)

    def stop(self) -> None:
        """End the answer that is being written, and begin no other."""
        if (job := self._jobs.current) is not None:
            job.stop()

    def feedback(self, trace_id: str, *, accepted: bool) -> None:
        """Say of an answer whether it was good, as its thumbs do; the router learns from it."""
        booking = self.router.feedback(trace_id, accepted=accepted)
        if booking == "booked":
            self._answers.judge(trace_id, accepted=accepted)
        self._on_change(learnt=True)

    def _asked(self, prompt: str | None) -> Asked:
        self._refuse_if_busy()
        if prompt is not None:
            self.prompt.value = prompt
        if not self.prompt.value.strip():
            raise InvalidRequest("There is no prompt yet; write one into the box first.")
        demand = self.settings.demand
        bounds = {"max_cost_usd": demand.max_cost_usd, "max_latency_ms": demand.max_latency_ms}
        generation = {**self._generation, "max_tokens": demand.output_tokens}
        weights = self.settings.profile(str(self.workload.value))
        return Asked(
            self.prompt.value, weights, bounds, {**generation, "intent": {"task": self.settings.task}}
        )

    def _refuse_if_busy(self) -> None:
        if self._jobs.running:
            raise InvalidRequest(_BUSY)

    # What the reader does

    def _follow(self, message: RouterMessage) -> None:
        """Do what a message from the browser asks for."""
        self._refusal.clear()
        with self._refusal.explaining("a message from the browser"):
            match message:
                case protocol.WeightMoved(workload=workload, name=name, value=value):
                    self._scorer.change(lambda now: now.moved(workload, name, value))
                case protocol.QuestionAsked(name=name, value=value):
                    # For another task other calls count.
                    self._scorer.change(lambda now: now.asked(name, value), learn=name == "task")
                case protocol.Reset():
                    self._scorer.change(Settings.reset)
                case protocol.Select():
                    self._select(message.workload, message.model)
                case protocol.ProbeAsked():
                    self.probe(*([] if message.model is None else [message.model]))
                case protocol.VerdictGiven():
                    self.feedback(message.trace_id, accepted=message.accepted)

    def _select(self, workload: str, model: str) -> None:
        self._scorer.change(lambda now: now.selecting(workload, model))
        self.workload.value = workload

    def _select_first(self, workload: str) -> None:
        """Tell the first cell of a workload that was chosen by its name."""
        selected = self.settings.selected
        if selected is None or selected[0] != workload:
            candidates = self._scorer.decisions[workload].candidates
            self._select(workload, candidates[0].model.id if candidates else "")

    def _measure_prompt(self) -> None:
        if text := self.prompt.value.strip():
            tokens = self.router.demand(text).prompt_tokens
            self._scorer.change(lambda now: now.asked("prompt_tokens", tokens))

    def _explained(self, work: Any) -> None:  # noqa: ANN401 - a method of this widget
        with self._refusal.explaining("a button"):
            work()

    def _pause_or_resume(self) -> None:
        if (job := self._jobs.current) is not None and (session := job.session) is not None:
            session.resume() if session.state == "paused" else session.pause()
            self._show_buttons()

    def _step(self) -> None:
        if (job := self._jobs.current) is not None and job.session is not None:
            job.session.step()

    def _on_change(self, learnt: bool) -> None:  # noqa: FBT001 - as the jobs call it
        """Answers, or what is going on, have changed; the scores only if the router has learnt."""
        self._show_buttons()
        self._scorer.tell()
        if learnt:
            self.refresh()

    def _show_buttons(self) -> None:
        job = self._jobs.current
        session = job.session if job is not None else None
        state = "finished" if self._jobs.busy is None else "running"
        if state == "running" and session is not None and session.state == "paused":
            state = "paused"
        self.buttons.show_state(state)

    # Showing it

    def _settle(self) -> None:
        if self.view.state is not None:
            self._last = self.view.state
        self._twin.refresh()

    def _still(self) -> dict[str, str]:
        if (state := self._last) is None:
            return {"text/html": "<p>The table could not be made.</p>", "text/plain": "no table"}
        return {"text/html": state_html(state), "text/plain": state_text(state)}


def _checked_generation(prompt: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the answers, only those that the caller wrote: a server may not take a default."""
    require_kind("prompt", prompt, str)
    params = make_request(prompt or _EXAMPLE, **settings).params
    if beside := [name for name in settings if name not in {*GenerateParams.model_fields, "params"}]:
        raise InvalidRequest(
            f"{beside[0]} is no setting of the answers of a RouterTable.",
            hint="router.generate(…) takes it; the table has its own workloads, task and limits.",
        )
    return params.model_dump(exclude_unset=True)


def _first_settings(
    router: Router,
    prompt: str,
    *,
    workloads: tuple[Workload | Profile, ...],
    demand: Demand | None,
    task: Task,
    settings: dict[str, Any],
) -> Settings:
    """What the table shows at first, checked."""
    if not workloads:
        raise InvalidRequest("a RouterTable needs at least one workload.", hint=f"There are: {WORKLOADS}.")
    if task not in TASKS:
        raise InvalidRequest(unknown("task", task, TASKS))
    profiles = tuple(each if isinstance(each, Profile) else profile(each) for each in workloads)
    names = [each.name for each in profiles]
    if len(set(names)) < len(names):
        raise InvalidRequest(f"two workloads have the same name: {', '.join(names)}.")
    if demand is not None:
        require_kind("demand", demand, Demand, hint="Demand(prompt_tokens=500, output_tokens=100)")
    else:
        length = settings.get("max_tokens", _EXPECTED_ANSWER)
        tokens = router.demand(prompt).prompt_tokens if prompt.strip() else 0
        demand = Demand(prompt_tokens=tokens, output_tokens=length)
    return Settings(profiles, profiles, demand, task)
