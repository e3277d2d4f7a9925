"""What a `RouterTable` does in the background: route a prompt, ask every model, measure the models."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import AllModelsFailed, CartoolkitError
from cartoolkit.ui._router_protocol import Busy
from cartoolkit.ui.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartoolkit.engine import Session
    from cartoolkit.routing import Router
    from cartoolkit.routing.choice.intent import Profile
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.ui.refusal import Refusal
    from cartoolkit.ui.router_answers import Answers

__all__ = ["Asked", "Jobs"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt with all that goes with it.

    Attributes:
        prompt: what is asked.
        workload: the weights.
        bounds: `max_cost_usd` and `max_latency_ms`, None where there is none.
        settings: fields of `GenerateParams`, and `intent`.
    """

    prompt: str
    workload: Profile
    bounds: dict[str, float | None]
    settings: dict[str, Any]


class Jobs:
    """Does one thing at a time, and says how far it is.

    Args:
        router: what routes.
        answers: where answers are kept.
        refusal: where errors are explained.
        on_change: called when answers or `busy` have changed; `learnt` says that the router knows more.
    """

    def __init__(
        self, router: Router, answers: Answers, refusal: Refusal, on_change: Callable[[bool], object]
    ) -> None:
        self._router = router
        self._answers = answers
        self._refusal = refusal
        self._on_change = on_change
        self.busy: Busy | None = None
        self.current: Job | None = None

    @property
    def running(self) -> bool:
        """Whether something is being done."""
        return self.current is not None and not self.current.done

    def route(self, asked: Asked) -> Job:
        """Let the router choose, and fall back."""
        return self._begin("Routing", "the Route button", lambda job: self._route(job, asked))

    def ask_all(self, asked: Asked, model_ids: Sequence[str]) -> Job:
        """Ask these models one after the other, each by name."""

        def work(job: Job) -> None:
            for place, model_id in enumerate(model_ids):
                if job.stopped:
                    return
                self._say(f"Asking {model_id}", place, len(model_ids))
                self._ask(job, asked, model_id)

        return self._begin("Asking", "the Ask all button", work)

    def probe(self, model_ids: Sequence[str]) -> Job:
        """Measure these models; none: every one that is ready."""

        def work(job: Job) -> None:  # noqa: ARG001 - a measurement cannot be stopped half-way
            measured = self._router.probe(*model_ids, progress=self._say)
            if left_out := measured.attrs.get("not_measured"):
                lines = (f"{model_id} was not measured: {why}" for model_id, why in left_out.items())
                self._refusal.explain("\n".join(lines))

        return self._begin("Probing", "the probe", work, forget=False)

    def _begin(self, what: str, by: str, work: Callable[[Job], None], *, forget: bool = True) -> Job:
        if forget:
            self._answers.clear()
        self._refusal.clear()
        self.busy = Busy(what=what, done=0, total=0)

        def run(job: Job) -> None:
            try:
                with self._refusal.explaining(by):
                    work(job)
            finally:
                self._answers.drop_running("It was not brought to an end.")
                self.busy = None
                self._on_change(True)

        self._on_change(False)
        self.current = Job(run, "cartoolkit-router")
        return self.current

    def _say(self, what: str, done: int, total: int) -> None:
        self.busy = Busy(what=what, done=int(done), total=int(total))
        self._on_change(False)

    def _started(self, job: Job) -> Callable[[ModelSchema, Session], None]:
        def started(row: ModelSchema, session: Session) -> None:
            job.follow(session)
            self._answers.begin(row.id, session)
            self._on_change(False)

        return started

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Where every model failed, the attempts are answers too."""
        try:
            yield
        except AllModelsFailed as error:
            self._answers.fail(error.attempts)
            raise

    def _route(self, job: Job, asked: Asked) -> None:
        with self._telling():
            routed = self._router.generate(
                asked.prompt,
                workload=asked.workload,
                on_start=self._started(job),
                **asked.bounds,
                **asked.settings,
            )
        self._answers.end(routed)

    def _ask(self, job: Job, asked: Asked, model_id: str) -> None:
        try:
            routed = self._router.generate(
                asked.prompt, model=model_id, on_start=self._started(job), **asked.settings
            )
        except CartoolkitError as error:
            self._answers.give_up(model_id, f"{model_id}: {error}")
        else:
            self._answers.end(routed, story=f"{model_id} was asked beside the others.")
        self._on_change(True)
