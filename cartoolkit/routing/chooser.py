"""Choosing a model, without asking it: rows as they are now, machine, evidence, decision."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cartoolkit.errors import InvalidRequest, UnsupportedMode
from cartoolkit.intents import TASKS, unknown
from cartoolkit.models.memory import free_memory
from cartoolkit.requests import GenerateRequest, make_request
from cartoolkit.routing.calls.calling import may_cost
from cartoolkit.routing.calls.serving import Shelf, answers_elsewhere, open_answerer
from cartoolkit.routing.checks import require_kind
from cartoolkit.routing.choice import decision as decisions
from cartoolkit.routing.choice.complexity import assess, task_for
from cartoolkit.routing.choice.intent import Plan, Profile, needs_of, plan, profile
from cartoolkit.routing.choice.selection import Deterministic, Strategy, Thompson
from cartoolkit.routing.choice.situation import Demand, Evidence, Machine, estimate_tokens
from cartoolkit.routing.outcomes.books import Books, evidence_of
from cartoolkit.routing.outcomes.breaker import BreakerRules
from cartoolkit.routing.outcomes.spending import SpendLimits
from cartoolkit.routing.probing.machine import machine_now
from cartoolkit.routing.probing.measurements import MeasurementStore
from cartoolkit.routing.rows.current import Rows, rows_now
from cartoolkit.routing.rows.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.intents import Task, Workload
    from cartoolkit.requests import Prompt
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.routing.outcomes.breaker import CircuitBreakers
    from cartoolkit.routing.outcomes.ledger import OutcomeHistory
    from cartoolkit.routing.outcomes.spending import SpendControl

__all__ = ["EXPECTED_OUTPUT", "Chooser"]

_MAKE_A_DEMAND = "Demand(prompt_tokens=500, output_tokens=100), or router.demand(prompt)"

EXPECTED_OUTPUT = Demand().output_tokens
"""Tokens that an answer is expected to have, unless `max_tokens` allows fewer."""


class Chooser:
    """Everything of a router but the asking.

    Attributes:
        registry: the rows as they were declared.
        strategy: how the first model is chosen.
        fetch: a model that has to be downloaded first may be chosen although others are here.
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
        """See `Router`."""
        _require_parts(registry, strategy, folder, limits, rules)
        self.registry = Registry.at_hand() if registry is None else registry
        self.fetch = fetch
        self.strategy = _going_on(strategy or Thompson())
        self.measurements = MeasurementStore(
            None if folder is None else Path(folder).expanduser() / "measurements"
        )
        self._books = Books(folder, rules=rules, limits=limits, clock=clock)
        self._shelf = Shelf(open_answerer, lambda: free_memory() / 1e6)

    @property
    def models(self) -> Rows:
        """The rows as decisions see them: with what was measured here, and which can be used just now."""
        return rows_now(self.registry, self.measurements, self._shelf.shelved)

    @property
    def history(self) -> OutcomeHistory:
        """What became of earlier calls."""
        return self._books.history

    @property
    def breakers(self) -> CircuitBreakers:
        """Which models are left alone for now."""
        return self._books.breakers

    @property
    def spending(self) -> SpendControl:
        """What was spent, and the limits."""
        return self._books.spending

    def evidence(self, task: Task | None = None) -> dict[str, Evidence]:
        """What came of earlier calls, by model id; see `books.evidence_of` for what a task changes.

        Raises:
            InvalidRequest: there is no such task.
        """
        if task is not None:
            _require_task(task)
        self.history.refresh()
        return evidence_of(self.history.tracker.profiles.values(), task)

    def machine(self, demand: Demand | None = None) -> Machine:
        """What this machine has; the memory of idle engines that would be let go of counts as free.

        Args:
            demand: the lengths that spend limits are held against; by default 256 tokens each way.
        """
        return self._machine(self.models, demand or Demand())

    def _machine(self, rows: Rows, demand: Demand, output_tokens: int | None = None) -> Machine:
        self._shelf.forget_all_but(self.registry)
        most = output_tokens or demand.output_tokens
        estimates = {row.id: may_cost(row, demand.prompt_tokens, most) for row in rows}
        resting = ({} if self.fetch else _not_here(rows)) | self._books.resting(estimates)
        now = machine_now(loaded=self._shelf.loaded, resting=resting)
        if now.free_memory_mb is None:
            return now
        return dataclasses.replace(now, free_memory_mb=now.free_memory_mb + self._shelf.reclaimable_mb)

    # Choosing

    def demand(self, request: Prompt | GenerateRequest, **bounds: Any) -> Demand:  # noqa: ANN401
        """What a request asks of whichever model answers it.

        The prompt's tokens are estimated from its letters; the answer is taken to have `EXPECTED_OUTPUT`
        tokens, or `max_tokens` if they are fewer.

        Args:
            request: a prompt, a list of messages or a `GenerateRequest`.
            bounds: fields of `Demand` that are to differ, such as `max_cost_usd`.

        Raises:
            InvalidRequest: the request or a bound is wrong.
        """
        asked = make_request(request)
        texts = [message.text() for message in asked.conversation()]
        found = {
            "prompt_tokens": sum(map(estimate_tokens, [*texts, asked.context or "", asked.answer_start])),
            "output_tokens": min(asked.params.max_tokens, EXPECTED_OUTPUT),
            "require": needs_of(asked),
        }
        known = [each.name for each in dataclasses.fields(Demand)]
        if wrong := [name for name in bounds if name not in known]:
            raise InvalidRequest(unknown("field of a demand", wrong[0], known))
        return Demand(**found | bounds)

    def decide(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        max_cost_usd: float | None = None,
        max_latency_ms: float | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Decision:
        """Choose the model that would answer, without asking it.

        With `Thompson` each call draws anew. Arguments are those of `generate`.

        Raises:
            InvalidRequest: a setting, workload, task or capability is unknown or out of range.
            ModelNotFound: a model that is named, or is to be excluded, is not there.
            NoEligibleModel: every model was filtered out; the message says why, for each.
        """
        bounds = {"max_cost_usd": max_cost_usd, "max_latency_ms": max_latency_ms}
        return self._decide(*self._asked(request, settings, bounds))

    def _asked(
        self,
        request: Prompt | GenerateRequest | None,
        settings: dict[str, Any],
        bounds: dict[str, float | None],
    ) -> tuple[GenerateRequest, Plan, Demand]:
        """The request, what it wants and what it asks of a model, checked: every name is known."""
        weights = settings.get("workload")
        if isinstance(weights, Profile):
            settings = settings | {"workload": None}
        asked = make_request(request, **settings)
        workload = weights if isinstance(weights, Profile) else asked.workload or "interactive"
        wanted = plan(self.registry, workload=workload, intent=asked.intent, model=asked.model)
        return asked, _without_bounds(wanted, bounds), self.demand(asked, **bounds)

    def _decide(self, asked: GenerateRequest, wanted: Plan, demand: Demand) -> Decision:
        prompt = asked.conversation()[-1].text()
        rows = self.models
        machine = self._machine(rows, demand, asked.params.max_tokens)
        unfit = _what_servers_cannot_heed(asked, rows)
        return decisions.decide(
            Registry(rows),
            wanted,
            demand,
            prompt=prompt,
            machine=dataclasses.replace(machine, resting={**unfit, **machine.resting}),
            evidence=self.evidence(wanted.task or task_for(assess(prompt).complexity)),
            strategy=self.strategy,
        )

    def weigh(
        self,
        *,
        workload: Workload | Profile = "interactive",
        demand: Demand | None = None,
        task: Task = "chat",
    ) -> Decision:
        """Every model for a request of that kind, without a prompt, a draw, or an error if nobody may answer.

        Args:
            workload: its name, or weights of one's own.
            demand: lengths and bounds; by default 256 tokens each way.
            task: the kind of answer.

        Raises:
            InvalidRequest: there is no such workload or task, or `demand` is none.
        """
        _require_task(task)
        if demand is not None:
            require_kind("demand", demand, Demand, hint=_MAKE_A_DEMAND)
        rows, demand = self.models, demand or Demand()
        return decisions.weigh(
            rows,
            Plan(workload if isinstance(workload, Profile) else profile(workload), task),
            demand,
            machine=self._machine(rows, demand),
            evidence=self.evidence(task),
            strategy=Deterministic(self.strategy.prior_strength),
        )


def _require_parts(registry: object, strategy: object, folder: object, limits: object, rules: object) -> None:
    """Refuse what a router cannot be made of; None is the default of each."""
    parts = {
        "registry": (registry, (Registry,), "Registry([…rows…]); router.add(…) takes files and folders."),
        "strategy": (strategy, (Thompson, Deterministic), "Thompson(seed=1), or Deterministic()"),
        "folder": (folder, (str, Path), None),
        "limits": (limits, (SpendLimits,), "SpendLimits(per_day=1.0)"),
        "rules": (rules, (BreakerRules,), "BreakerRules(failures=3)"),
    }
    for name, (given, kinds, hint) in parts.items():
        if given is not None:
            require_kind(name, given, *kinds, hint=hint)


def _require_task(task: object) -> None:
    if task not in TASKS:
        raise InvalidRequest(unknown("task", task, TASKS))


def _what_servers_cannot_heed(asked: GenerateRequest, rows: Rows) -> dict[str, str]:
    """Models on servers that a request does not go with, each with the reason."""
    elsewhere = [row for row in rows if answers_elsewhere(row)]
    if not elsewhere:
        return {}
    from cartoolkit.remote.chat_request import refuse_what_changes_the_answer

    found: dict[str, str] = {}
    for row in elsewhere:
        try:
            refuse_what_changes_the_answer(asked, row.name)
        except (InvalidRequest, UnsupportedMode) as error:
            found[row.id] = str(error).removesuffix(".")
    return found


def _not_here(rows: Rows) -> dict[str, str]:
    """Models that would have to be downloaded first, each with a clause; none while there are only such."""
    usable = [row for row in rows if row.available]
    if not any(row.weights_ready for row in usable):
        return {}
    sizes = {row.id: row.cost.size_mb for row in usable if not row.weights_ready and row.downloads_weights}
    return {
        model_id: "not downloaded yet" + (f", {size.value:,.0f} MB" if size else "")
        for model_id, size in sizes.items()
    }


def _going_on(strategy: Strategy) -> Strategy:
    """With a generator of its own, so that the next choice does not repeat the draw of this one."""
    if isinstance(strategy, Deterministic) or isinstance(strategy.seed, np.random.Generator):
        return strategy
    return dataclasses.replace(strategy, seed=np.random.default_rng(strategy.seed))


def _without_bounds(wanted: Plan, bounds: dict[str, float | None]) -> Plan:
    """A model that is named is not filtered, and the decision says which bound was not followed."""
    if wanted.pinned is None:
        return wanted
    aside = (f"{name}, since a model is named" for name, bound in bounds.items() if bound is not None)
    return dataclasses.replace(wanted, set_aside=(*wanted.set_aside, *aside))
