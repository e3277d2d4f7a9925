"""What would change a choice: how far a weight, a length or a bound must go before another model comes first.

Only the mean order is looked at, that of `Deterministic`: a draw of Thompson's may choose otherwise at any
time. Weights and the bonus are tried in steps of `STEP`, each over its whole range; lengths on a scale of
`LENGTHS` with every threshold of a row among them, then halved to the exact token; bounds at the prices and
times of the models, where alone they can change anything. So a change that is named has been tried, and so
has the value just before it. A second one that comes and goes within a step of the scale may be missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from cartoolkit.routing.choice.filters import refusals
from cartoolkit.routing.choice.latency import expected_latency
from cartoolkit.routing.choice.scores import score
from cartoolkit.routing.choice.selection import Deterministic, posterior, select
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Evidence
from cartoolkit.routing.choice.weights import WEIGHTS, moved, shown_weight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from cartoolkit.routing.choice.intent import Plan
    from cartoolkit.routing.choice.situation import Demand, Machine
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["STEP", "Change", "Situation", "changes", "first_choice"]

STEP = 0.001
"""How finely weights and the bonus are tried."""

LENGTHS = tuple(dict.fromkeys(round(10 ** (power / 4)) for power in range(25)))
"""Prompt and answer lengths that are tried: 1 to 1,000,000 tokens, four to a power of ten."""

MOST_FAILURES = 1000

What = Literal[
    "quality", "latency", "cost", "local_bonus", "prompt_tokens", "output_tokens",
    "max_cost_usd", "max_latency_ms", "local", "capability", "failures",
]  # fmt: skip
_SAID = {
    "quality": "Quality weight",
    "latency": "Latency weight",
    "cost": "Cost weight",
    "local_bonus": "Local bonus",
    "prompt_tokens": "A prompt",
    "output_tokens": "An answer",
}
_BOUNDS: dict[What, str] = {"max_cost_usd": "price", "max_latency_ms": "time"}


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a choice depends on.

    Attributes:
        models: the rows.
        wanted: weights, task and requirements.
        demand: lengths and bounds.
        machine: what is loaded, and what is free.
        evidence: what came of earlier calls, by model id.
        prior_strength: K of `selection`.
    """

    models: tuple[ModelSchema, ...]
    wanted: Plan
    demand: Demand
    machine: Machine
    evidence: Mapping[str, Evidence]
    prior_strength: float = Deterministic().prior_strength

    @property
    def task(self) -> str:
        """The kind of answer; `chat` where nobody said it."""
        return self.wanted.task or "chat"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that would let another model come first.

    Attributes:
        what: is changed.
        value: the nearest value that was found to do it; None where a bound is taken away, or for `local`.
        now: its present value; None where there is none.
        model_id: which model comes first then; None if none may answer.
        text: all this in a sentence.
    """

    what: What
    value: float | str | None
    now: float | None
    model_id: str | None
    text: str


def first_choice(situation: Situation) -> str | None:
    """The id of the model with the best expected worth; None if none may answer."""
    able = _able(situation)
    if not able:
        return None
    weights, task = situation.wanted.profile, situation.wanted.task or "chat"
    seen = [situation.evidence.get(model.id, NO_EVIDENCE) for model in able]
    totals = [
        score(model, weights, situation.demand, situation.machine, task=task, evidence=known).total
        for model, known in zip(able, seen, strict=True)
    ]
    order = select([m.id for m in able], totals, seen, Deterministic(situation.prior_strength)).order
    return able[order[0]].id


def changes(situation: Situation, *, name: Callable[[str], str] = str) -> tuple[Change, ...]:
    """The nearest change of each kind that lets another model come first; kinds that never do are left out.

    Args:
        situation: as it is.
        name: what a model's id is called in the sentences.
    """
    chosen = first_choice(situation)
    found = (
        *_of_weights(situation, chosen, name),
        *_of_lengths(situation, chosen, name),
        *_of_bounds(situation, chosen, name),
        *_of_requirements(situation, chosen, name),
        *_of_failures(situation, chosen, name),
    )
    return tuple(found)


def _able(situation: Situation) -> list[ModelSchema]:
    demand, machine, wanted = situation.demand, situation.machine, situation.wanted
    seen = situation.evidence
    return [
        model
        for model in situation.models
        if not refusals(model, wanted, demand, machine, seen.get(model.id, NO_EVIDENCE))
    ]


def _arrow(model_id: str | None, name: Callable[[str], str]) -> str:
    return "no model may answer" if model_id is None else name(model_id)


# Weights and the bonus: scores are straight lines in them, so all steps are computed at once.


def _of_weights(situation: Situation, chosen: str | None, name: Callable[[str], str]) -> Iterator[Change]:
    able = _able(situation)
    if len(able) < 2:
        return
    profile = situation.wanted.profile
    whats: tuple[What, ...] = (*WEIGHTS, "local_bonus")
    for what in whats:
        now = getattr(profile, what)
        steps = np.round(np.arange(0, 1 + STEP / 2, STEP), 6)
        winners = _winners(situation, able, what, steps)
        for value in _by_distance(steps[[able[w].id != chosen for w in winners]], now):
            nearer = replace(situation.wanted, profile=moved(profile, what, value))
            # Where two are as good as equal, the last bit of a sum decides; so it is decided once more.
            if (then := first_choice(replace(situation, wanted=nearer))) not in (chosen, None):
                done = "raised" if value > now else "lowered"
                text = (
                    f"{_SAID[what]} {done} to {value:.3f} (now {shown_weight(now)}) → {_arrow(then, name)}."
                )
                yield Change(what, value, now, then, text)
                break


def _winners(
    situation: Situation, able: Sequence[ModelSchema], what: str, steps: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Place of the model that comes first at each value of a weight: int [steps]."""
    ordered = sorted(range(len(able)), key=lambda i: able[i].id)  # ids break ties
    models = [able[i] for i in ordered]
    ends = [_totals(situation, models, what, end) for end in (0.0, 1.0)]
    totals = ends[0] + steps[:, None] * (ends[1] - ends[0])
    seen = [situation.evidence.get(model.id, NO_EVIDENCE) for model in models]
    counts = [e.successes for e in seen], [e.failures for e in seen]
    alpha, beta = posterior(totals, *counts, situation.prior_strength)
    return np.array(ordered)[(totals * alpha / (alpha + beta)).argmax(axis=1)]


def _totals(
    situation: Situation, models: Sequence[ModelSchema], what: str, value: float
) -> NDArray[np.float64]:
    weights, task = moved(situation.wanted.profile, what, value), situation.wanted.task or "chat"
    demand, machine, evidence = situation.demand, situation.machine, situation.evidence
    return np.array([
        score(m, weights, demand, machine, task=task, evidence=evidence.get(m.id, NO_EVIDENCE)).total
        for m in models
    ])  # fmt: skip


def _by_distance(values: NDArray[np.float64], now: float) -> list[float]:
    """The values, the nearest to the present one first."""
    return sorted(map(float, values), key=lambda value: (abs(value - now), value))


# Lengths: by a scale, then by halving.


def _of_lengths(situation: Situation, chosen: str | None, name: Callable[[str], str]) -> Iterator[Change]:
    whats: tuple[What, ...] = ("prompt_tokens", "output_tokens")
    for what in whats:
        now = getattr(situation.demand, what)

        def winner(length: int, what: str = what) -> str | None:
            return first_choice(_asked(situation, **{what: length}))

        tried = sorted({*LENGTHS, *_thresholds(situation, what)})
        above = _turning_point(winner, chosen, now, [each for each in tried if each > now])
        below = _turning_point(winner, chosen, now, [each for each in reversed(tried) if each < now])
        for length in (above, below):
            if length is not None:
                then = winner(length)
                text = f"{_SAID[what]} of {length:,} tokens (now {now:,}) → {_arrow(then, name)}."
                yield Change(what, length, now, then, text)


def _asked(situation: Situation, **lengths: float | None) -> Situation:
    return replace(situation, demand=replace(situation.demand, **lengths))


def _thresholds(situation: Situation, what: str) -> Iterator[int]:
    """Lengths at which a row changes abruptly: where it is full, and where other rates begin."""
    if what != "prompt_tokens":
        return
    for model in situation.models:
        if model.context_length is not None:
            full = model.context_length - min(situation.demand.output_tokens, model.context_length // 4)
            yield from (full, full + 1)
        yield from (tier.min_prompt_tokens for tier in model.cost.pricing_tiers)


def _turning_point(
    winner: Callable[[int], str | None], chosen: str | None, now: int, tried: Sequence[int]
) -> int | None:
    """The first length, seen from the present one, at which another model comes first."""
    last = now
    for length in tried:
        if winner(length) != chosen:
            while abs(length - last) > 1:
                middle = (length + last) // 2
                last, length = (last, middle) if winner(middle) != chosen else (middle, length)  # noqa: PLW2901
            return length
        last = length
    return None


# Bounds: they matter only at what a model costs, or takes.


def _of_bounds(situation: Situation, chosen: str | None, name: Callable[[str], str]) -> Iterator[Change]:
    prices = {price for model in situation.models if (price := _price(situation, model)) is not None}
    times = {_time(situation, model) for model in situation.models}
    bounds: tuple[tuple[What, set[float]], ...] = (("max_cost_usd", prices), ("max_latency_ms", times))
    for what, costs in bounds:
        now = getattr(situation.demand, what)
        for bound, said in (*_looser(what, sorted(costs), now), *_tighter(what, sorted(costs), now)):
            then = first_choice(_asked(situation, **{what: bound}))
            if then != chosen:
                yield Change(what, bound, now, then, f"{said} → {_arrow(then, name)}.")
                break


def _looser(what: What, costs: Sequence[float], now: float | None) -> Iterator[tuple[float | None, str]]:
    """Bounds above the present one, the nearest first: what a model costs, then none at all."""
    if now is None:
        return
    for cost in costs:
        if cost > now:
            yield cost, f"A {_BOUNDS[what]} limit of {_amount(what, cost)}"
    yield None, f"No {_BOUNDS[what]} limit"


def _tighter(what: What, costs: Sequence[float], now: float | None) -> Iterator[tuple[float, str]]:
    """Bounds below the present one, the nearest first: a hair below what a model costs."""
    if now is None and what == "max_cost_usd":
        yield max(costs, default=0.0), f"Any {_BOUNDS[what]} limit"  # shuts out what has no known price
    for cost in reversed(costs):
        bound = math.nextafter(cost, -math.inf)
        if bound >= 0 and (now is None or bound < now):
            yield bound, f"A {_BOUNDS[what]} limit below {_amount(what, cost)}"


def _amount(what: What, cost: float) -> str:
    return f"${cost:.6g} a call" if what == "max_cost_usd" else f"{cost:,.0f} ms"


def _price(situation: Situation, model: ModelSchema) -> float | None:
    asked = situation.demand
    return model.cost.usd(asked.prompt_tokens, asked.output_tokens, cached=asked.cached_tokens)


def _time(situation: Situation, model: ModelSchema) -> float:
    first_token = situation.wanted.profile.first_token
    seen = situation.evidence.get(model.id, NO_EVIDENCE)
    return expected_latency(
        model, situation.demand, situation.machine, first_token=first_token, evidence=seen
    ).ms


# Requirements and failures.


def _of_requirements(
    situation: Situation, chosen: str | None, name: Callable[[str], str]
) -> Iterator[Change]:
    here = tuple(model for model in situation.models if model.is_local)
    then = first_choice(replace(situation, models=here))
    if then != chosen:
        yield Change("local", None, None, then, f"Only models on this machine → {_arrow(then, name)}.")
    offered = {each: None for model in _able(situation) for each in model.capabilities}
    for capability in offered:
        wanted = replace(situation.wanted, require=(*situation.wanted.require, capability))
        then = first_choice(replace(situation, wanted=wanted))
        if then != chosen:
            text = f"Require {capability} → {_arrow(then, name)}."
            yield Change("capability", capability, None, then, text)


def _of_failures(situation: Situation, chosen: str | None, name: Callable[[str], str]) -> Iterator[Change]:
    """The fewest calls that must fail, or be rejected, before another model comes first."""
    if chosen is None or len(_able(situation)) < 2:
        return
    known = situation.evidence.get(chosen, NO_EVIDENCE)

    def after(count: int) -> str | None:
        worse = replace(known, failures=known.failures + count)
        return first_choice(replace(situation, evidence={**situation.evidence, chosen: worse}))

    if after(MOST_FAILURES) == chosen:
        return
    few, many = 0, MOST_FAILURES
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if after(middle) != chosen else (middle, many)
    calls = (
        "1 more call that fails or is rejected"
        if many == 1
        else f"{many:,} more calls that fail or are rejected"
    )
    then = after(many)
    yield Change("failures", many, known.failures, then, f"{calls} → {_arrow(then, name)}.")
