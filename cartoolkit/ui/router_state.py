"""The state of a `RouterTable` as plain data: what its reader has set, and what follows from it.

Nothing here is kept: the same settings and the same knowledge give the same state. Ranks are those of the
mean worth, as in `Router.weigh`; a draw of Thompson's may choose otherwise, and `wins` says how often.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import TASKS, unknown
from cartoolkit.routing.choice.changes import Situation, changes
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import Plan, Profile
from cartoolkit.routing.choice.scores import score
from cartoolkit.routing.choice.selection import Deterministic, Thompson
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Demand, Evidence, Machine
from cartoolkit.routing.choice.weights import moved
from cartoolkit.routing.rows.figures import weakest
from cartoolkit.ui._router_protocol import (
    PROTOCOL_VERSION,
    FilteredCell,
    ModelRow,
    Question,
    RouterState,
    ScoredCell,
    Selected,
    StrategyInfo,
    TermPart,
    WorkloadColumn,
)
from cartoolkit.ui.router_detail import column_title, detail_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cartoolkit.intents import Task
    from cartoolkit.routing.choice.decision import Candidate, Decision
    from cartoolkit.routing.choice.selection import Strategy
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.ui._router_protocol import BaselineRow, Busy, Cell, RunRow

__all__ = ["DRAWS", "Around", "Known", "Settings", "decisions_of", "router_state", "titles_of"]

DRAWS = 4000
"""How many draws the shares of `win_shares` come from."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the reader of a table has set.

    Attributes:
        profiles: the workloads with their weights as they are now.
        first: the same as they were at first.
        demand: lengths and bounds.
        task: the kind of answer.
        selected: names of the workload and the model whose cell is told in full; None for none.
    """

    profiles: tuple[Profile, ...]
    first: tuple[Profile, ...]
    demand: Demand = field(default_factory=Demand)
    task: Task = "chat"
    selected: tuple[str, str] | None = None

    def profile(self, name: str) -> Profile:
        """A workload as it is now.

        Raises:
            InvalidRequest: the table has none of that name.
        """
        found = {profile.name: profile for profile in self.profiles}
        if name not in found:
            raise InvalidRequest(unknown("workload of this table", name, found))
        return found[name]

    def moved(self, workload: str, name: str, value: float) -> Settings:
        """With a weight or the bonus of a workload at `value`; the other weights make room.

        Raises:
            InvalidRequest: there is no such workload or weight, or the value is out of range.
        """
        changed = moved(self.profile(workload), name, value)
        profiles = tuple(changed if each.name == workload else each for each in self.profiles)
        return dataclasses.replace(self, profiles=profiles)

    def asked(self, name: str, value: float | str | None) -> Settings:
        """With another length, bound or task; None takes a bound away.

        Raises:
            InvalidRequest: the value does not fit.
        """
        if name == "task":
            if value not in TASKS:
                raise InvalidRequest(unknown("task", value, TASKS))
            return dataclasses.replace(self, task=value)
        changes: dict[str, Any] = {name: value}
        if name in ("prompt_tokens", "output_tokens") and isinstance(value, float) and value == int(value):
            changes[name] = int(value)  # all numbers of a browser are alike
        return dataclasses.replace(self, demand=dataclasses.replace(self.demand, **changes))

    def selecting(self, workload: str, model: str) -> Settings:
        """With another cell told in full.

        Raises:
            InvalidRequest: there is no such workload.
        """
        return dataclasses.replace(self, selected=(self.profile(workload).name, model))

    def reset(self) -> Settings:
        """With all weights as they were at first."""
        return dataclasses.replace(self, profiles=self.first)


@dataclass(frozen=True, slots=True)
class Known:
    """What a table knows of the models, apart from what its reader has set.

    Attributes:
        models: the rows.
        machine: what is loaded, and what is free.
        evidence: what came of earlier calls, by model id.
        strategy: how one is chosen.
        notes: what is to be said of a model besides its size, by id.
    """

    models: tuple[ModelSchema, ...] = ()
    machine: Machine = field(default_factory=Machine)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    strategy: Strategy = field(default_factory=Deterministic)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around the table: baselines, answers, what goes on, remarks."""

    baselines: tuple[BaselineRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    busy: Busy | None = None
    notices: tuple[str, ...] = ()


def decisions_of(settings: Settings, known: Known) -> dict[str, Decision]:
    """A decision by the mean worth for each workload, by its name."""
    return {
        profile.name: weigh(
            known.models,
            Plan(profile, settings.task),
            settings.demand,
            machine=known.machine,
            evidence=known.evidence,
            strategy=Deterministic(known.strategy.prior_strength),
        )
        for profile in settings.profiles
    }


def router_state(
    settings: Settings,
    known: Known,
    decisions: Mapping[str, Decision],
    *,
    seq: int,
    beside: Around | None = None,
    with_changes: bool = True,
) -> RouterState:
    """Everything that the table shows.

    Args:
        settings: what the reader has set.
        known: what is known of the models.
        decisions: from `decisions_of` these two.
        seq: counts the states.
        beside: what stands around the table.
        with_changes: work out what would change the choice, which takes much longer than all the rest.
    """
    beside = beside or Around()
    ids = [model.id for model in known.models]
    titles = titles_of(known.models)
    columns = [{c.model.id: _cell(c) for c in decisions[p.name].candidates} for p in settings.profiles]
    selected = settings.selected
    if selected is not None and (selected[0] not in decisions or selected[1] not in ids):
        selected = None
    found = ()
    if selected is not None and with_changes:
        found = changes(_situation(settings, known, selected[0]), name=lambda model_id: titles[model_id])
    return RouterState(
        v=PROTOCOL_VERSION,
        seq=seq,
        question=_question(settings),
        strategy=_strategy(known.strategy),
        workloads=[_column(now, first) for now, first in zip(settings.profiles, settings.first, strict=True)],
        models=[_model(model, titles[model.id], settings, known) for model in known.models],
        cells=[[column[model_id] for column in columns] for model_id in ids],
        baselines=list(beside.baselines),
        selected=Selected(workload=selected[0], model=selected[1]) if selected else None,
        detail=detail_of(decisions[selected[0]], selected[1], titles, found, known.strategy.prior_strength)
        if selected
        else None,
        runs=list(beside.runs),
        busy=beside.busy,
        notices=list(beside.notices),
    )


def _situation(settings: Settings, known: Known, workload: str) -> Situation:
    wanted = Plan(settings.profile(workload), settings.task)
    return Situation(
        known.models, wanted, settings.demand, known.machine, known.evidence, known.strategy.prior_strength
    )


def titles_of(models: tuple[ModelSchema, ...]) -> dict[str, str]:
    """A short name for each id: name and variant, or the whole id where two would be the same.

    >>> from cartoolkit.routing.rows.schema import ModelSchema
    >>> row = ModelSchema(id="acme/large:q8", capabilities=["generate"], source={"kind": "remote_api"})
    >>> titles_of((row,))
    {'acme/large:q8': 'large · q8'}
    """
    short = {model.id: _short(model) for model in models}
    taken = list(short.values())
    return {model_id: text if taken.count(text) == 1 else model_id for model_id, text in short.items()}


def _short(model: ModelSchema) -> str:
    _, _, variant = model.id.partition(":")
    return f"{model.name} · {variant}" if variant else model.name


def _question(settings: Settings) -> Question:
    demand = settings.demand
    return Question(
        prompt_tokens=demand.prompt_tokens,
        output_tokens=demand.output_tokens,
        max_cost_usd=demand.max_cost_usd,
        max_latency_ms=demand.max_latency_ms,
        task=settings.task,
        tasks=list(TASKS),
    )


def _strategy(strategy: Strategy) -> StrategyInfo:
    drawn = isinstance(strategy, Thompson)
    seed = f", seed {strategy.seed}" if drawn and isinstance(strategy.seed, int) else ""
    text = f"Thompson{seed}" if drawn else "best mean worth"
    return StrategyInfo(text=text, prior_strength=strategy.prior_strength, draws=DRAWS)


def _column(now: Profile, first: Profile) -> WorkloadColumn:
    return WorkloadColumn(
        name=now.name,
        title=column_title(now.name),
        quality=now.quality,
        latency=now.latency,
        cost=now.cost,
        local_bonus=now.local_bonus,
        changed=now != first,
        first_token=now.first_token,
    )


def _model(model: ModelSchema, title: str, settings: Settings, known: Known) -> ModelRow:
    seen = known.evidence.get(model.id, NO_EVIDENCE)
    profile = settings.profiles[0]
    scored = score(model, profile, settings.demand, known.machine, task=settings.task, evidence=seen)
    facts = (model.size_label, model.quantization or "", known.notes.get(model.id, ""))
    return ModelRow(
        id=model.id,
        title=title,
        where="local" if model.is_local else "remote",
        basis=weakest(scored.quality.basis, scored.latency.basis),
        note=" · ".join(fact for fact in facts if fact),
        calls=seen.successes + seen.failures,
        successes=seen.successes,
        failures=seen.failures,
        loaded=model.id in known.machine.loaded,
    )


def _cell(candidate: Candidate) -> Cell:
    scored = candidate.score
    if scored is None:
        return FilteredCell(
            kind="filtered",
            reasons=[refusal.reason for refusal in candidate.refused],
            filters=[refusal.filter for refusal in candidate.refused],
        )
    rank, wins, worth, reliability = (
        getattr(candidate, name) for name in ("rank", "wins", "worth", "reliability")
    )
    nobody_bills = candidate.model.is_local and not candidate.model.cost.is_priced
    return ScoredCell(
        kind="scored",
        score=scored.total,
        rank=rank,
        wins=wins,
        worth=worth,
        reliability=reliability,
        bonus=scored.local_bonus,
        latency_ms=scored.latency_ms,
        usd=0.0 if nobody_bills else scored.usd,
        terms=[
            TermPart(name=t.name, value=t.value, weight=t.weight, points=t.points, basis=t.basis)
            for t in scored.terms
        ],
    )
