"""Whether routing is worth it: the router's choices on questions it did not choose by, beside simpler ones.

A probe asks every model the same questions, in two splits. Choices are made by what came of the one split,
`choice`, and judged here by what came of the other one, `held_out`:

- *router*: the model that the workload's table puts first;
- *router by kind*: for each kind of question the model of the highest score, where the share that was right
  of that kind takes the place of the probe's figure;
- *best constant model*: the one that was right most often on the `choice` questions;
- *random at equal cost*: a random mix of the models whose mean cost is the router's, see `mixing`;
- *oracle*: right wherever any of the models is, and then the cheapest of them that is.

Only models that may answer and were probed take part. Costs are those of the workload's table: the price of a
call where every price is known and somebody bills, else the milliseconds that are expected, with loading. The
intervals of shares are Wilson's; those of mixes and of differences are paired bootstraps that draw questions
within each kind. One choice is called better than another if that interval and, where single answers are
compared, McNemar's exact test at 5 % say so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.evaluation.statistics import bootstrap_means, mcnemar
from cartoolkit.routing.choice.decision import weigh
from cartoolkit.routing.choice.intent import Plan, profile
from cartoolkit.routing.choice.scores import quality_term
from cartoolkit.routing.choice.situation import Machine
from cartoolkit.routing.outcomes.scoreboard import wilson_interval
from cartoolkit.routing.rows.figures import Figure
from cartoolkit.routing.simulation.mixing import equal_cost_mix

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from cartoolkit.intents import Task
    from cartoolkit.routing.choice.decision import Candidate, Decision
    from cartoolkit.routing.choice.situation import Demand, Evidence
    from cartoolkit.routing.probing.measurements import ItemResult, Probe, Split
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["BASELINES", "COLUMNS", "baselines", "held_out_baselines"]

ROUTER, BY_KIND, CONSTANT = "router", "router by kind", "best constant model"
RANDOM, ORACLE = "random at equal cost", "oracle"
BASELINES = (ROUTER, BY_KIND, CONSTANT, RANDOM, ORACLE)

COLUMNS = (
    "models", "right", "low", "high", "items", "ms", "usd",
    "difference", "difference_low", "difference_high", "verdict", "note",
)  # fmt: skip
"""What a row of the table holds.

``models`` are the ids that answer, with their shares or kinds if they are several. ``right`` is the share of
the ``items`` held-out questions that is right, with its 95 % interval; ``ms`` and ``usd`` are expected means
of a call. ``difference`` is ``right`` less that of the best constant model, with its interval, and
``verdict`` says it in words. What is not known is NaN.
"""

_RESAMPLES = 4000  # a reader who drags a weight waits for them
_CHANCE = 0.05

_NO_PROBES = "No model has been probed with questions, so there is nothing to compare: router.probe()."
_ONE_MODEL = "Only {} has been probed with questions, so there is no choice to compare."
_NO_QUESTIONS = "The models that were probed share no questions; probe them again."


def held_out_baselines(
    probes: Iterable[Probe],
    winners: Mapping[str, str],
    models: Iterable[ModelSchema],
    demand: Demand | None = None,
    *,
    machine: Machine | None = None,
    evidence: Mapping[str, Evidence] | None = None,
    task: Task = "chat",
) -> pd.DataFrame:
    """As `baselines`, with the choices given by name.

    Args:
        probes: at most one a model.
        winners: the model that the router chooses, by workload.
        models: the rows.
        demand: lengths and bounds.
        machine: what is loaded; None for all models.
        evidence: what came of earlier calls, by model id.
        task: the kind of answer.

    Raises:
        InvalidRequest: there is no such workload.
    """
    rows = list(models)
    machine = machine or Machine(loaded=frozenset(row.id for row in rows))
    decisions = {
        name: weigh(rows, Plan(profile(name), task), demand, machine=machine, evidence=evidence)
        for name in winners
    }
    return baselines(probes, decisions, winners)


def baselines(
    probes: Iterable[Probe], decisions: Mapping[str, Decision], winners: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """The router's choices and simpler ones on the held-out questions of the probes.

    Args:
        probes: at most one a model; those without questions are left out.
        decisions: the table's column of each workload.
        winners: the model that the router chooses, by workload; None for the one of the highest mean worth.

    Returns:
        One row a workload and baseline, indexed by both; see `COLUMNS`. Empty where there is nothing to
        compare, with the reason in ``.attrs["note"]``.
    """
    asked = {probe.model_id: probe for probe in probes if probe.items}
    known = {c.model.id for decision in decisions.values() for c in decision.candidates}
    asked = {model_id: probe for model_id, probe in asked.items() if model_id in known}
    if len(asked) < 2:
        return _frame([], [], _ONE_MODEL.format(*asked) if asked else _NO_PROBES)
    answers = {split: _Answers.of(list(asked.values()), split) for split in ("choice", "held_out")}
    if not all(len(each.kinds) for each in answers.values()):
        return _frame([], [], _NO_QUESTIONS)
    lines: list[_Line] = []
    for workload, decision in decisions.items():
        able = [each for each in decision.eligible if each.model.id in asked]
        first = max(decision.eligible, key=lambda each: each.worth or 0.0, default=None)
        winner = (winners or {}).get(workload, first.model.id if first else "")
        lines += _lines(_Case(workload, decision, able, winner), answers["choice"], answers["held_out"])
    return _frame(lines, answers["held_out"].kinds)


# What was answered


@dataclass(frozen=True, eq=False, slots=True)
class _Answers:
    """Questions that all models were asked. right: bool [questions, models]."""

    models: tuple[str, ...]
    kinds: tuple[str, ...]
    right: NDArray[np.bool_]

    @classmethod
    def of(cls, probes: Sequence[Probe], split: Split) -> _Answers:
        asked: list[dict[str, ItemResult]] = [
            {item.id: item for item in probe.items if item.split == split} for probe in probes
        ]
        shared = [name for name in asked[0] if all(name in each for each in asked)]
        right = np.array([[each[name].right for each in asked] for name in shared], bool)
        kinds = tuple(asked[0][name].kind for name in shared)
        return cls(tuple(probe.model_id for probe in probes), kinds, right.reshape(len(shared), len(asked)))

    def of_model(self, model_id: str) -> NDArray[np.bool_]:
        return self.right[:, self.models.index(model_id)]

    def among(self, kind: str) -> NDArray[np.bool_]:
        return np.array([each == kind for each in self.kinds])


# The choices


@dataclass(frozen=True, eq=False, slots=True)
class _Case:
    """One workload: who may answer, and whom the router takes."""

    workload: str
    decision: Decision
    able: list[Candidate]
    winner: str

    def figure(self, name: str) -> NDArray[np.float64]:
        """`latency_ms` or `usd` of each model that may answer, NaN where it is not known."""
        return np.array([_figure(each, name) for each in self.able])

    def winners_figure(self, name: str) -> float:
        first = [each for each in self.decision.eligible if each.model.id == self.winner]
        return _figure(first[0], name) if first else math.nan

    @property
    def cost(self) -> str:
        """What a choice costs: dollars if all prices are known and one is above 0, else milliseconds."""
        usd = self.figure("usd")
        return "usd" if np.isfinite(usd).all() and usd.any() else "latency_ms"


def _figure(candidate: Candidate, name: str) -> float:
    assert candidate.score is not None
    value = getattr(candidate.score, name)
    if value is None:
        local = name == "usd" and candidate.model.is_local and not candidate.model.cost.is_priced
        return 0.0 if local else math.nan
    return float(value)


@dataclass(frozen=True, eq=False, slots=True)
class _Line:
    """One baseline of one workload. right: float [questions], the chance to be right; None is not known."""

    workload: str
    name: str
    models: str
    right: NDArray[np.float64] | None
    ms: float = math.nan
    usd: float = math.nan
    note: str = ""
    # What the best constant model has on the same questions.
    constant: NDArray[np.float64] | None = field(default=None, repr=False)


def _lines(case: _Case, choice: _Answers, held_out: _Answers) -> list[_Line]:
    if not case.able:
        note = "none of the models that were probed may answer"
        return [_Line(case.workload, name, "", None, note=note) for name in BASELINES]
    constant, tied = _best_constant(case, choice)
    right = held_out.of_model(constant.model.id).astype(float)
    note = f"chosen on {len(choice.kinds)} other items"
    note += f"; {', '.join(tied)} as good there, and slower" if tied else ""
    lines = [
        _router(case, held_out),
        _by_kind(case, choice, held_out),
        _of_one(case, CONSTANT, constant, held_out, note),
        _random(case, held_out),
        _oracle(case, held_out),
    ]
    return [
        _Line(each.workload, each.name, each.models, each.right, each.ms, each.usd, each.note, right)
        for each in lines
    ]


def _of_one(case: _Case, name: str, candidate: Candidate, held_out: _Answers, note: str = "") -> _Line:
    right = held_out.of_model(candidate.model.id).astype(float)
    ms, usd = (_figure(candidate, each) for each in ("latency_ms", "usd"))
    return _Line(case.workload, name, candidate.model.id, right, ms, usd, note)


def _router(case: _Case, held_out: _Answers) -> _Line:
    for candidate in case.able:
        if candidate.model.id == case.winner:
            return _of_one(case, ROUTER, candidate, held_out)
    note = "it has not been probed with questions" if case.winner else "no model may answer"
    ms, usd = (case.winners_figure(name) for name in ("latency_ms", "usd"))
    return _Line(case.workload, ROUTER, case.winner, None, ms, usd, note)


def _best_constant(case: _Case, choice: _Answers) -> tuple[Candidate, list[str]]:
    """The model that was right most often, the sooner one of several; and who was right as often."""
    shares = [choice.of_model(each.model.id).mean() for each in case.able]
    best = [each for each, share in zip(case.able, shares, strict=True) if share == max(shares)]
    best.sort(key=lambda each: (_figure(each, "latency_ms"), each.model.id))
    return best[0], [each.model.id for each in best[1:]]


def _by_kind(case: _Case, choice: _Answers, held_out: _Answers) -> _Line:
    right, ms, usd = np.zeros(len(held_out.kinds)), 0.0, 0.0
    chosen: dict[str, str] = {}
    for kind in dict.fromkeys(held_out.kinds):
        best = min(case.able, key=lambda each: (-_score_of_kind(each, case, choice, kind), each.model.id))
        among = held_out.among(kind)
        right[among] = held_out.of_model(best.model.id)[among]
        ms += among.mean() * _figure(best, "latency_ms")
        usd += among.mean() * _figure(best, "usd")
        chosen[kind] = best.model.id
    if len(set(chosen.values())) == 1:
        (only,) = set(chosen.values())
        return _Line(case.workload, BY_KIND, only, right, ms, usd, "the same model for every kind")
    models = ", ".join(f"{kind}: {model_id}" for kind, model_id in chosen.items())
    return _Line(case.workload, BY_KIND, models, right, ms, usd)


def _score_of_kind(candidate: Candidate, case: _Case, choice: _Answers, kind: str) -> float:
    """The score, with the share right of one kind of choice question in the place of the probe's figure."""
    assert candidate.score is not None
    right = choice.of_model(candidate.model.id)[choice.among(kind)]
    if not right.size:
        return candidate.score.total
    probed = Figure(value=float(right.mean()), basis="measured", n=len(right))
    model = candidate.model.model_copy(update={"quality": probed})
    weight = case.decision.profile.quality
    quality = quality_term(model, weight, case.decision.task, candidate.evidence)
    return candidate.score.total - candidate.score.quality.points + quality.points


def _random(case: _Case, held_out: _Answers) -> _Line:
    cost = case.cost
    costs, spent = case.figure(cost), case.winners_figure(cost)
    what = "price" if cost == "usd" else "time"
    if not math.isfinite(spent):
        return _Line(case.workload, RANDOM, "", None, note=f"the router's mean {what} is not known")
    shares = equal_cost_mix(costs, spent)
    if shares is None:
        return _Line(case.workload, RANDOM, "", None, note=f"no mix of the probed models has the same {what}")
    ids = [each.model.id for each in case.able]
    right = sum(
        share * held_out.of_model(model_id).astype(float) for share, model_id in zip(shares, ids, strict=True)
    )
    parts = sorted(zip(shares, ids, strict=True), key=lambda part: (-round(part[0], 2), part[1]))
    shown = ", ".join(f"{share:.0%} {model_id}" for share, model_id in parts if share >= 0.005)
    usd = float(shares @ case.figure("usd"))
    note = f"the same mean {what} as the router"
    if shares.max() > 1 - 1e-9:
        note = f"only this model has the router's {what}, so there is nothing to draw"
    return _Line(
        case.workload, RANDOM, shown, np.asarray(right), float(shares @ case.figure("latency_ms")), usd, note
    )


def _oracle(case: _Case, held_out: _Answers) -> _Line:
    right = np.stack([held_out.of_model(each.model.id) for each in case.able], axis=1)
    costs = np.where(np.isfinite(case.figure(case.cost)), case.figure(case.cost), np.inf)
    # The cheapest that is right; where none is, the cheapest.
    anyone = np.any(right, axis=1, keepdims=True)
    place: NDArray[np.intp] = np.argmin(np.where(right | ~anyone, costs, np.inf), axis=1)
    ms, usd = (float(np.mean(case.figure(name)[place])) for name in ("latency_ms", "usd"))
    return _Line(case.workload, ORACLE, "", anyone.ravel().astype(float), ms, usd, "right where any model is")


# The table


def _frame(lines: Sequence[_Line], kinds: Sequence[str], note: str = "") -> pd.DataFrame:
    import pandas as pd

    rows = [_row(line, drawn) for line, drawn in zip(lines, _drawn(lines, kinds), strict=True)]
    index = pd.MultiIndex.from_tuples(
        [(line.workload, line.name) for line in lines], names=["workload", "baseline"]
    )
    frame = pd.DataFrame(rows, index=index, columns=list(COLUMNS))
    frame.attrs["note"] = note
    return frame


_Ends = tuple[float, float]


def _drawn(lines: Sequence[_Line], kinds: Sequence[str]) -> list[tuple[_Ends, _Ends]]:
    """Ends of the intervals of each line's share and of its difference, from one bootstrap of all."""
    nothing = np.full(len(kinds), np.nan)
    columns: dict[bytes, NDArray[np.float64]] = {}  # most lines are alike under other workloads
    wanted = []
    for line in lines:
        share = nothing if line.right is None else line.right
        gap = nothing if line.constant is None else share - line.constant
        wanted.append((share.tobytes(), gap.tobytes()))
        columns |= {share.tobytes(): share, gap.tobytes(): gap}
    if not columns:
        return []
    table = np.stack(list(columns.values()), axis=1)
    drawn = bootstrap_means(table, strata=kinds, resamples=_RESAMPLES)
    ends = {key: (each.low, each.high) for key, each in zip(columns, drawn, strict=True)}
    return [(ends[share], ends[gap]) for share, gap in wanted]


def _row(line: _Line, drawn: tuple[_Ends, _Ends]) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(COLUMNS, math.nan)
    row |= {"models": line.models, "ms": line.ms, "usd": line.usd, "verdict": "", "note": line.note}
    if line.right is None:
        return row | {"items": 0}
    count = len(line.right)
    certain = bool(np.isin(line.right, (0, 1)).all())
    low, high = wilson_interval(int(line.right.sum()), count) if certain else drawn[0]
    row |= {"right": float(line.right.mean()), "low": low, "high": high, "items": count}
    if line.name == CONSTANT or line.constant is None:
        return row
    difference = float((line.right - line.constant).mean())
    row |= {"difference": difference, "difference_low": drawn[1][0], "difference_high": drawn[1][1]}
    return row | {"verdict": _verdict(line, drawn[1])}


def _verdict(line: _Line, ends: _Ends) -> str:
    """In words; of single answers the exact test must agree, since an interval of few is too narrow."""
    assert line.right is not None
    assert line.constant is not None
    if np.array_equal(line.right, line.constant):
        return "right where the best constant model is"
    is_mix = line.name == RANDOM
    told = is_mix or mcnemar(line.right == 1, line.constant == 1).p < _CHANCE
    if told and ends[0] > 0:
        return "better than the best constant model"
    if told and ends[1] < 0:
        return "worse than the best constant model"
    return f"not told from the best constant model by {len(line.right)} items"
