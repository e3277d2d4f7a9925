"""Which model answers, and why: every model with its score term by term, or the reasons why it may not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.errors import NoEligibleModel
from cartoolkit.intents import WORKLOADS
from cartoolkit.routing.choice import decision_tables as tables
from cartoolkit.routing.choice.complexity import Assessment, assess, task_for
from cartoolkit.routing.choice.filters import Refusal, refusals
from cartoolkit.routing.choice.intent import Plan, Profile, profile
from cartoolkit.routing.choice.scores import Score, score
from cartoolkit.routing.choice.selection import Deterministic, Selection, Strategy, select, win_shares
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Demand, Evidence, Machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from cartoolkit.intents import Task, Workload
    from cartoolkit.routing.rows.registry import Registry
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["Candidate", "Decision", "decide", "score_table", "weigh"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model in a decision.

    Attributes:
        model: its row.
        refused: why it may not answer; none means that it may.
        score: its score; None for one that was refused.
        evidence: what came of its earlier calls.
        rank: 1 for the chosen one, then the fallbacks in order; None for one that was refused.
        reliability: mean share of calls expected to succeed, see `selection`.
        worth: reliability times score, the mean that the order is made by.
        drawn: its worth in this choice's draw; the mean where nothing was drawn.
        wins: share of many draws that it would win.
    """

    model: ModelSchema
    refused: tuple[Refusal, ...] = ()
    score: Score | None = None
    evidence: Evidence = NO_EVIDENCE
    rank: int | None = None
    reliability: float | None = None
    worth: float | None = None
    drawn: float | None = None
    wins: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Decision:
    """A choice that explains itself; prints as a small table.

    Attributes:
        candidates: every model: first those that may answer, by rank, then the others.
        profile: the weights.
        demand: what was asked of the models.
        task: the kind of answer.
        assessment: how the prompt was judged; None without one.
        strategy: how the first one was chosen, in words.
        pinned: one model was named, so that filters and fallbacks do not apply.
        set_aside: what a hint asked for in vain, one clause each.
    """

    candidates: tuple[Candidate, ...]
    profile: Profile
    demand: Demand
    task: Task
    assessment: Assessment | None
    strategy: str
    pinned: bool = False
    set_aside: tuple[str, ...] = ()

    @property
    def eligible(self) -> tuple[Candidate, ...]:
        """Those that may answer, the chosen one first."""
        return tuple(each for each in self.candidates if each.rank is not None)

    @property
    def model_id(self) -> str:
        """The id of the chosen model.

        Raises:
            NoEligibleModel: every model was refused; the message says why.
        """
        if not self.eligible:
            raise _nobody(self.candidates)
        return self.eligible[0].model.id

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Ids of the models to try next, in order; none where the model was named."""
        return tuple(each.model.id for each in self.eligible[1:])

    @property
    def predicted_quality(self) -> float | None:
        """The quality term of the chosen model, 0 to 1."""
        first = self.eligible[0].score if self.eligible else None
        return first.quality.value if first else None

    @property
    def reason(self) -> str:
        """Which model, and by what: its worth, and the score that this is made of."""
        if not self.eligible:
            return "No model may answer."
        first = self.eligible[0]
        if self.pinned:
            return f"{first.model.id} was named."
        assert first.score
        assert first.drawn is not None
        total = first.score.total
        reliability = first.drawn / total if total else 0.0
        worth = f"{reliability:.3f} × {total:.3f} = {first.drawn:.3f}"
        return (
            f"{first.model.id} has {self.strategy}, {worth}. "
            f"Its score as {self.profile.name}: {first.score.arithmetic}."
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a model, indexed by id: every term with weight, value and basis, or the reasons."""
        return tables.frame_of(self.candidates)

    def __str__(self) -> str:
        """The table as text."""
        return tables.text_of(self)

    def __repr__(self) -> str:
        chosen = self.eligible[0].model.id if self.eligible else None
        return f"<Decision {chosen} as {self.profile.name}, {len(self.fallbacks)} fallbacks>"

    def _repr_html_(self) -> str:
        return tables.html_of(self)


def decide(
    registry: Registry,
    wanted: Plan,
    demand: Demand | None = None,
    *,
    prompt: str | None = None,
    machine: Machine | None = None,
    evidence: Mapping[str, Evidence] | None = None,
    strategy: Strategy | None = None,
) -> Decision:
    """Choose the model that answers, and the order in which others are tried if it fails.

    Args:
        registry: the models there are.
        wanted: what the caller wants, from `intent.plan`.
        demand: lengths and bounds; by default 256 tokens each way without bounds.
        prompt: is judged for its complexity, which sets the task where nobody said it.
        machine: what is loaded, and how much memory is free.
        evidence: what came of earlier calls, by model id.
        strategy: `Deterministic()` by default; a profile that does not explore is always decided by it.

    Returns:
        The decision, with at least one model that may answer.

    Raises:
        NoEligibleModel: every model was refused; the message says why, for each.

    >>> from cartoolkit.routing.choice.intent import plan
    >>> from cartoolkit.routing.rows.registry import Registry
    >>> from cartoolkit.routing.rows.schema import ModelSchema
    >>> row = ModelSchema(id="acme/large", capabilities=["generate"], source={"kind": "remote_api"})
    >>> registry = Registry([row])
    >>> decide(registry, plan(registry)).model_id
    'acme/large'
    """
    decision = weigh(
        registry, wanted, demand, prompt=prompt, machine=machine, evidence=evidence, strategy=strategy
    )
    if not decision.eligible:
        raise _nobody(decision.candidates)
    return decision


def weigh(
    models: Iterable[ModelSchema],
    wanted: Plan,
    demand: Demand | None = None,
    *,
    prompt: str | None = None,
    machine: Machine | None = None,
    evidence: Mapping[str, Evidence] | None = None,
    strategy: Strategy | None = None,
) -> Decision:
    """As `decide`, and without an error where no model may answer: the table still shows why."""
    demand, machine, known = demand or Demand(), machine or Machine(), evidence or {}
    strategy = _allowed(strategy or Deterministic(), wanted.profile)
    assessment = None if prompt is None else assess(prompt)
    task = wanted.task or (task_for(assessment.complexity) if assessment else "chat")
    rows = [model for model in models if wanted.pinned in (None, model.id)]
    candidates = []
    for model in rows:
        seen = known.get(model.id, NO_EVIDENCE)
        refused = () if wanted.pinned else refusals(model, wanted, demand, machine, seen)
        scored = score(model, wanted.profile, demand, machine, task=task, evidence=seen)
        candidates.append(Candidate(model, refused, None if refused else scored, seen))
    return Decision(
        candidates=_ranked(candidates, strategy),
        profile=wanted.profile,
        demand=demand,
        task=task,
        assessment=assessment,
        strategy=str(strategy),
        pinned=wanted.pinned is not None,
        set_aside=wanted.set_aside,
    )


def _allowed(strategy: Strategy, weights: Profile) -> Strategy:
    return strategy if weights.explores else Deterministic(strategy.prior_strength)


def _ranked(candidates: Sequence[Candidate], strategy: Strategy) -> tuple[Candidate, ...]:
    """The models that may answer in the order of the choice, then the others as they came."""
    rest = tuple(each for each in candidates if each.score is None)
    able = [each for each in candidates if each.score is not None]
    if not able:
        return rest
    totals = [each.score.total for each in able if each.score]
    seen = [each.evidence for each in able]
    selection = select([each.model.id for each in able], totals, seen, strategy)
    wins = win_shares(totals, seen, prior_strength=strategy.prior_strength)
    ranked = (
        _placed(able[place], rank, place, selection, float(wins[place]))
        for rank, place in enumerate(selection.order, start=1)
    )
    return (*ranked, *rest)


def _placed(candidate: Candidate, rank: int, place: int, selection: Selection, wins: float) -> Candidate:
    return Candidate(
        model=candidate.model,
        score=candidate.score,
        evidence=candidate.evidence,
        rank=rank,
        reliability=selection.reliability(place),
        worth=selection.expected[place],
        drawn=selection.drawn[place],
        wins=wins,
    )


def _nobody(candidates: Sequence[Candidate]) -> NoEligibleModel:
    if not candidates:
        return NoEligibleModel("There is no model to choose from.", hint="Add rows to the registry.")
    lines = (f"  {c.model.id}: {'; '.join(r.reason for r in c.refused)}" for c in candidates)
    return NoEligibleModel("No model may answer:\n" + "\n".join(lines))


def score_table(
    registry: Registry,
    *,
    workloads: Iterable[Workload | Profile] = WORKLOADS,
    models: Iterable[str] | None = None,
    demand: Demand | None = None,
    task: Task = "chat",
    machine: Machine | None = None,
    evidence: Mapping[str, Evidence] | None = None,
    prior_strength: float = Deterministic().prior_strength,
) -> pd.DataFrame:
    """Every model under every workload: rows are models, columns are pairs of workload and figure.

    The figures of one workload, ``table["batch"]``, are those of `Decision.to_frame`: the terms with their
    weights and where they come from, the score, rank and share of draws won; or the reason why a model is
    left out, with NaN in the place of its figures.

    Args:
        registry: the models there are.
        workloads: names, or weights of the caller's own.
        models: ids or names; None for all.
        demand: lengths and bounds.
        task: the kind of answer.
        machine: what is loaded, and how much memory is free.
        evidence: what came of earlier calls, by model id.
        prior_strength: K of `selection`.

    Raises:
        InvalidRequest: there is no such workload.
        ModelNotFound: there is no such model.
    """
    import pandas as pd

    rows = list(registry) if models is None else [registry.get(name) for name in models]
    profiles = [each if isinstance(each, Profile) else profile(each) for each in workloads]
    ids = [model.id for model in rows]
    frames = {}
    for weights in profiles:
        wanted = Plan(weights, task)
        strategy = Deterministic(prior_strength)
        decision = weigh(rows, wanted, demand, machine=machine, evidence=evidence, strategy=strategy)
        frames[weights.name] = decision.to_frame().reindex(ids)
    return pd.concat(frames, axis=1, names=["workload", "figure"])
