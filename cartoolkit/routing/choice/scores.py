"""What a model is worth for a request: quality, latency and cost, each from 0 to 1, weighted by the workload.

::

    score = w_quality · quality + w_latency · latency + w_cost · cost + local_bonus if it runs here

    prior   = 0.3 + 0.6 · mean benchmark score, or 0.5 without a benchmark
    quality = (5 · prior + n · probe + m · verdicts) / (5 + n + m)       × 0.8 without the task's capability
    latency = half / (half + ms)         half: 500 ms to the first token, 5,000 ms to the whole answer
    cost    = 0.01 / (0.01 + usd)        0.5 where the price is not known; 1 where nobody bills

The weights and the bonus are the workload's (`intent.PROFILES`). The formulas are ours: how car-inference
computes its three terms is not public. A score lies between 0 and 1 + local_bonus. Each term says how sure it
is, and shows the arithmetic that it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cartoolkit.routing.choice.complexity import capability_for
from cartoolkit.routing.choice.latency import Expected, expected_latency, shown_ms
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Demand, Evidence, Machine
from cartoolkit.routing.choice.weights import shown_weight
from cartoolkit.routing.rows.figures import Basis, weakest

if TYPE_CHECKING:
    from cartoolkit.intents import Task
    from cartoolkit.routing.choice.intent import Profile
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["Score", "Term", "TermName", "cost_term", "latency_term", "quality_term", "score"]

TermName = Literal["quality", "latency", "cost"]

PRIOR_OBSERVATIONS = 5
"""How many observations the prior of quality is worth."""

UNKNOWN_QUALITY = 0.5
BENCHMARK_FLOOR, BENCHMARK_RANGE = 0.3, 0.6
"""A published score is somebody else's task: it is drawn towards the middle."""

WITHOUT_CAPABILITY = 0.8
"""What quality is multiplied by if a model does not declare the capability that the task asks for."""

HALF_FIRST_TOKEN_MS = 500.0
HALF_ANSWER_MS = 5000.0
"""The latency that is worth one half."""

HALF_USD = 0.01
"""The price of a call that is worth one half; a call of unknown price counts as one of this price."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a score.

    Attributes:
        name: `quality`, `latency` or `cost`.
        value: 0 to 1, more is better.
        weight: 0 to 1, the workload's.
        basis: how sure its least sure part is.
        arithmetic: where the value comes from, as a line that can be computed by hand.
    """

    name: TermName
    value: float
    weight: float
    basis: Basis
    arithmetic: str

    @property
    def points(self) -> float:
        """What it adds to the score."""
        return self.weight * self.value


@dataclass(frozen=True, slots=True)
class Score:
    """A model's score, term by term.

    Attributes:
        quality: see the module.
        latency: likewise.
        cost: likewise.
        local_bonus: what is added because it runs here; 0 for a remote model.
        latency_ms: the expected latency behind the term.
        usd: the price of the call; None where it is not known or nobody bills.
    """

    quality: Term
    latency: Term
    cost: Term
    local_bonus: float
    latency_ms: float
    usd: float | None

    @property
    def terms(self) -> tuple[Term, Term, Term]:
        """Quality, latency and cost."""
        return self.quality, self.latency, self.cost

    @property
    def total(self) -> float:
        """The score, 0 to 1 + local_bonus."""
        return sum(term.points for term in self.terms) + self.local_bonus

    @property
    def arithmetic(self) -> str:
        """The score as one line, such as `0.45 × 0.500 + 0.40 × 0.333 + 0.15 × 1.000 + 0.00 = 0.508`."""
        terms = " + ".join(f"{shown_weight(term.weight)} × {term.value:.3f}" for term in self.terms)
        return f"{terms} + {shown_weight(self.local_bonus)} = {self.total:.3f}"


def score(
    model: ModelSchema,
    profile: Profile,
    demand: Demand,
    machine: Machine | None = None,
    *,
    task: Task = "chat",
    evidence: Evidence = NO_EVIDENCE,
) -> Score:
    """Score a model; whether it may answer at all is another question, see `filters`.

    Args:
        model: the row.
        profile: the weights.
        demand: lengths of prompt and answer.
        machine: what is loaded already; nothing by default.
        task: the kind of answer.
        evidence: what came of earlier calls.
    """
    machine = machine or Machine()
    expected = expected_latency(model, demand, machine, first_token=profile.first_token, evidence=evidence)
    half = HALF_FIRST_TOKEN_MS if profile.first_token else HALF_ANSWER_MS
    return Score(
        quality=quality_term(model, profile.quality, task, evidence),
        latency=latency_term(expected, half, profile.latency),
        cost=cost_term(model, demand, profile.cost),
        local_bonus=profile.local_bonus if model.is_local else 0.0,
        latency_ms=expected.ms,
        usd=_price(model, demand),
    )


def quality_term(model: ModelSchema, weight: float, task: Task, evidence: Evidence = NO_EVIDENCE) -> Term:
    """Quality: a prior, then what a probe and the verdicts on earlier answers say, by their numbers.

    A probe without a number of items counts as `PRIOR_OBSERVATIONS` of them.
    """
    prior, basis, said = _prior(model)
    parts: list[tuple[int, float, Basis, str]] = [(PRIOR_OBSERVATIONS, prior, basis, said)]
    if (probe := model.quality) is not None:
        parts.append((probe.n or PRIOR_OBSERVATIONS, probe.value, probe.basis, "probe"))
    if evidence.quality is not None and evidence.graded:
        parts.append((evidence.graded, evidence.quality, "measured", "verdicts"))
    number = sum(n for n, *_ in parts)
    value = sum(n * share for n, share, *_ in parts) / number
    shown = " + ".join(f"{n} × {share:.3f} {name}" for n, share, _, name in parts)
    arithmetic = f"({shown}) / {number}" if len(parts) > 1 else f"{value:.3f} {said}"
    needed = capability_for(task)
    if needed not in model.capabilities:
        value *= WITHOUT_CAPABILITY
        arithmetic = f"{arithmetic} × {WITHOUT_CAPABILITY:g} without {needed}"
    return Term("quality", value, weight, _basis_of_most(parts), arithmetic)


def _prior(model: ModelSchema) -> tuple[float, Basis, str]:
    if not model.benchmarks:
        return UNKNOWN_QUALITY, "assumed", "prior [nothing is known]"
    mean = sum(benchmark.score for benchmark in model.benchmarks) / len(model.benchmarks)
    names = ", ".join(benchmark.name for benchmark in model.benchmarks)
    said = f"prior [{BENCHMARK_FLOOR:g} + {BENCHMARK_RANGE:g} × {mean:.3f} in {names}]"
    return BENCHMARK_FLOOR + BENCHMARK_RANGE * mean, "declared", said


def _basis_of_most(parts: list[tuple[int, float, Basis, str]]) -> Basis:
    """The basis of the observations that are more than half of all; else that of the least sure part."""
    number = sum(n for n, *_ in parts)
    for basis in ("measured", "declared"):
        if 2 * sum(n for n, _, each, _ in parts if each == basis) > number:
            return basis
    bases: list[Basis] = [basis for _, _, basis, _ in parts]
    return weakest(*bases)


def latency_term(expected: Expected, half: float, weight: float) -> Term:
    """Latency: one half at `half` milliseconds, and 1 at none at all.

    >>> from cartoolkit.routing.choice.latency import Part
    >>> latency_term(Expected((Part("first token", 500, "measured"),)), 500, 0.85).value
    0.5
    """
    arithmetic = f"{half:,.0f} / ({half:,.0f} + {shown_ms(expected.ms)}) [{expected.shown}]"
    return Term("latency", half / (half + expected.ms), weight, expected.basis, arithmetic)


def cost_term(model: ModelSchema, demand: Demand, weight: float) -> Term:
    """Cost: one half for a call of one US cent or of unknown price, and 1 for one that costs nothing.

    A model that runs here and has no rates is not billed by anybody; electricity is not counted.

    >>> from cartoolkit.routing.rows.schema import ModelSchema
    >>> model = ModelSchema(id="acme/large", capabilities=["generate"], source={"kind": "remote_api"},
    ...                     cost={"input_per_mtok": 10, "output_per_mtok": 20})
    >>> cost_term(model, Demand(prompt_tokens=1_000, output_tokens=1_000), 0.25).value
    0.25
    """
    if model.is_local and not model.cost.is_priced:
        return Term("cost", 1.0, weight, "assumed", "1 [runs here, nobody bills]")
    usd = _price(model, demand)
    if usd is None:
        arithmetic = f"{HALF_USD:g} / ({HALF_USD:g} + ${HALF_USD:g}) [price not known]"
        return Term("cost", 0.5, weight, "assumed", arithmetic)
    items = model.cost.bill(demand.prompt_tokens, demand.output_tokens, cached=demand.cached_tokens)
    shown = " + ".join(f"{tokens:,} {name} × {rate:g}" for name, tokens, rate in items)
    arithmetic = f"{HALF_USD:g} / ({HALF_USD:g} + ${usd:.6g}) [{shown}, per million]"
    return Term("cost", HALF_USD / (HALF_USD + usd), weight, "declared", arithmetic)


def _price(model: ModelSchema, demand: Demand) -> float | None:
    return model.cost.usd(demand.prompt_tokens, demand.output_tokens, cached=demand.cached_tokens)
