"""The router: which model should answer, the answer itself, and what is learnt from it.

Data goes one way: request → plan → demand → rows as they are now, machine, evidence → decision → attempts →
answer. What became of each attempt is written down, and is evidence for the next decision.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from cartoolkit.engine.result import Result
from cartoolkit.errors import EngineClosed, InvalidRequest
from cartoolkit.notices import say
from cartoolkit.routing.calls.attempts import Routed, routed_trace_id, story, with_result
from cartoolkit.routing.calls.calling import Call, make_attempt
from cartoolkit.routing.calls.dispatch import dispatch
from cartoolkit.routing.comparing import Comparer
from cartoolkit.routing.rows.current import Rows, row_of_engine, rows_at
from cartoolkit.routing.rows.registry import Registry
from cartoolkit.routing.rows.schema import ModelSchema
from cartoolkit.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.requests import GenerateRequest, Prompt
    from cartoolkit.routing.calls.calling import OnStart
    from cartoolkit.routing.calls.serving import Answerer
    from cartoolkit.routing.choice.selection import Strategy
    from cartoolkit.routing.outcomes.breaker import BreakerRules
    from cartoolkit.routing.outcomes.records import Booking
    from cartoolkit.routing.outcomes.spending import SpendLimits

__all__ = ["Router"]

_RUNS_KEPT = 20
_VERDICTS: dict[Booking, str] = {
    "unknown trace": "No attempt of this id is known, so nothing was judged.",
    "judged before": "This answer was judged before; the first verdict counts.",
    "no answer to judge": "This attempt brought no answer, and counts as failed or as nothing already.",
    "too late": "This answer is more than a week old; its verdict no longer counts.",
    "known already": "This verdict is known already.",
}


class Router(Comparer):
    """Chooses a model for each request, lets it answer, falls back, and learns.

    May be used from several threads; two requests to one engine wait for each other. Several routers and
    processes may share a folder, and learn from each other's outcomes.

    Attributes:
        registry: the rows as they were declared.
        strategy: how the first model is chosen.
        fetch: a model that has to be downloaded first may be chosen although others are here.
        breakers: which models are left alone for now.
        spending: what was spent, and the limits.
        measurements: what was measured on this machine.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        strategy: Strategy | None = None,
        folder: Path | str | None = None,
        fetch: bool = False,
        limits: SpendLimits | None = None,
        rules: BreakerRules | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Read what is known; no model is loaded.

        Args:
            registry: the models; None for those of the catalog on every engine at hand.
            strategy: `Thompson` by default, from a generator that goes on from choice to choice: a seed makes
                the sequence of choices repeatable. `Deterministic` takes the best expected worth.
            folder: where outcomes and measurements are kept; None for the user's own folder.
            fetch: whether a model may be chosen that has to be downloaded first. False leaves it to requests
                that name it, as long as there are others.
            limits: of spending; none by default.
            rules: when a model that fails is left alone, and for how long.
            clock: seconds since 1970, for tests.

        Raises:
            LedgerError: the folder holds outcomes that cannot be read.
        """
        super().__init__(
            registry, strategy=strategy, folder=folder, fetch=fetch, limits=limits, rules=rules, clock=clock
        )
        self._runs: deque[Routed] = deque(maxlen=_RUNS_KEPT)

    # What there is

    @overload
    def add(self, model: ModelSchema | Answerer, *, replace: bool = False) -> ModelSchema: ...
    @overload
    def add(self, model: str | Path, *, replace: bool = False) -> Rows: ...
    def add(self, model: ModelSchema | Answerer | str | Path, *, replace: bool = False) -> ModelSchema | Rows:
        """Add models to choose from.

        Args:
            model: a row; an engine that is loaded, which answers for the row of its model or a new one; a
                JSON or TOML file of rows; a folder with weights, a GGUF file or a name of the catalog, which
                give a row for each engine.
            replace: in the place of rows of the same ids.

        Returns:
            The row, or the rows of a file or folder.

        Raises:
            InvalidRequest: an id is taken, or `model` is of another kind.
            InvalidRegistry, ModelNotFound, InvalidCheckpoint: the file or folder cannot be used.
            EngineClosed: the engine was closed.
        """
        if isinstance(model, ModelSchema):
            self.registry.add(model, replace=replace)
            return model
        if isinstance(model, str | Path):
            return self._add_from(model, replace=replace)
        if isinstance(model, type) or not (hasattr(model, "start") and hasattr(model, "info")):
            raise InvalidRequest(
                f"a router takes rows, engines, files and folders; got {type(model).__name__}.",
                hint="A model of your own becomes one by: Engine(lambda: TorchDecoder(model, tokenizer))",
            )
        return self._add_engine(model)

    def _add_from(self, place: str | Path, *, replace: bool) -> Rows:
        if str(place).lower().endswith((".toml", ".json")):
            return Rows(map(self.registry.get, self.registry.load(place, replace=replace)))
        grown = Registry(self.registry)
        rows = rows_at(place)
        for row in rows:
            grown.add(row, replace=replace)
        for row in rows:
            self.registry.add(row, replace=replace)
        return Rows(rows)

    def _add_engine(self, engine: Answerer) -> ModelSchema:
        if engine.closed:
            raise EngineClosed(f"the engine of {engine.info.name} was closed; load the model again.")
        for model_id in self._shelf.loaded:
            if self._shelf.get(model_id) is engine and model_id in self.registry:
                return self.registry.get(model_id)
        row = row_of_engine(engine, self.registry, taken=self._shelf.loaded)
        if row.id not in self.registry:
            self.registry.add(row)
        self._shelf.put(row, engine)
        return row

    @property
    def runs(self) -> tuple[Routed, ...]:
        """The latest 20 answers, the newest last."""
        return tuple(self._runs)

    # Answering

    def generate(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        max_cost_usd: float | None = None,
        max_latency_ms: float | None = None,
        on_start: OnStart | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Routed:
        """Choose a model and let it answer; if it fails, the next one is asked, and no model twice.

        An interrupt ends the answer early and returns what there is. A model that runs out of time hands over
        to the next one; what it had written is returned only if nobody else answers.

        Args:
            request: a prompt, a list of messages, or a `GenerateRequest`.
            max_cost_usd: a model may cost at most this, by its prices.
            max_latency_ms: it may be expected to take at most this.
            on_start: called with the row and the session of each attempt as it begins, to watch it live.
            settings: fields of `GenerateRequest` or `GenerateParams`, which override the request's own:
                `workload` a name or a `Profile`, `intent` an `IntentHint` or its fields as a dict. `model`
                names the one that must answer, without a fallback: its error is raised. `time_limit` holds
                for each attempt.

        Raises:
            InvalidRequest, ModelNotFound, NoEligibleModel: as for `decide`; nothing has run.
            AllModelsFailed: every model that may answer was asked.
            ContentRefused: a provider refused the content; no other model is asked.
        """
        bounds = {"max_cost_usd": max_cost_usd, "max_latency_ms": max_latency_ms}
        asked, wanted, demand = self._asked(request, settings, bounds)
        decision = self._decide(asked, wanted, demand)
        bare = asked.model_copy(update={"model": None, "workload": None, "intent": None})
        call = Call(bare, decision.task, demand.prompt_tokens, decision.pinned, on_start)
        rows = {candidate.model.id: candidate.model for candidate in decision.eligible}
        ended = dispatch(
            rows, lambda model_id: make_attempt(rows[model_id], call, self._shelf, self._books),
            pinned=decision.pinned,
        )  # fmt: skip
        assert ended.answer.trace is not None
        events = story(decision, ended.attempts, ended.answer)
        routed = Routed(decision, ended.attempts, with_result(Result.of(ended.answer.trace), events))
        self._runs.append(routed)
        return routed

    def feedback(
        self, answer: Routed | Result | Trace | str, *, accepted: bool, confidence: float = 1.0
    ) -> Booking:
        """Say whether an answer was good; a rejection turns its success into a failure. Once an answer.

        Args:
            answer: what `generate` returned, its result or trace, also one from a file; or the trace id of an
                attempt.
            accepted: whether it was.
            confidence: how sure that is, 0 to 1; it moves the average of quality, never the counts.

        Returns:
            "booked", or why the verdict changed nothing, which is said as well.

        Raises:
            InvalidRequest: no router gave this answer, or an argument is out of range.
        """
        booking = self._books.judge(_trace_id(answer), accepted=accepted, confidence=confidence)
        if booking != "booked":
            say(_VERDICTS[booking])
        return booking

    # Ending

    def close(self) -> None:
        """Let go of the engines; those that were handed over stay open."""
        self._shelf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _in_words(self) -> str:
        rows, loaded = self.models, self._shelf.loaded
        usable = [row for row in rows if row.available]
        ready = [row for row in usable if row.weights_ready]
        calls = sum(p.total.calls for p in self.history.tracker.profiles.values())
        return (
            f"{len(rows)} model{'s' * (len(rows) != 1)}, of which {len(usable)} can be used here and "
            f"{len(ready)} need no download; {len(loaded)} loaded; {calls:,} calls so far; "
            f"takes {self.strategy}"
        )

    def __repr__(self) -> str:
        return f"<Router: {self._in_words()}>"

    def _repr_html_(self) -> str:
        return f"<p><b>Router</b> — {self._in_words()}</p>{self.models._repr_html_()}"


def _trace_id(answer: Routed | Result | Trace | str) -> str:
    if isinstance(answer, str):
        return answer
    if not isinstance(answer, Routed | Result | Trace):
        raise InvalidRequest(
            f"an answer, a result, a trace or a trace id can be judged; got {type(answer).__name__}."
        )
    found = routed_trace_id(answer if isinstance(answer, Trace) else answer.trace)
    if found is None:
        raise InvalidRequest(
            "no router gave this answer, so there is no choice to judge: its trace has no event 'routed'.",
            hint="Judge what router.generate() returned, or its trace.",
        )
    return found
