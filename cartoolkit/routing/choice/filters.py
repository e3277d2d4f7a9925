"""Hard filters: what a model must fulfil before it is scored at all, each refusal in words.

A filter is a function of the row and the situation that answers None, or a clause that says why not. What is
not known passes, except a price under a budget: nobody can promise to stay below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cartoolkit.routing.choice.latency import expected_latency
from cartoolkit.routing.choice.situation import NO_EVIDENCE, Evidence, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.routing.choice.intent import Plan
    from cartoolkit.routing.choice.situation import Demand, Machine
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["FILTERS", "Asked", "FilterName", "Refusal", "memory_needed_mb", "refusals"]

FilterName = Literal[
    "excluded", "availability", "resting", "capability", "context", "memory", "budget", "latency"
]

ROOM_BESIDE_WEIGHTS = 1.2
"""Memory over size on disk, where memory is not known: a fifth more, for the cache and what is computed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a model is left out.

    Attributes:
        filter: which filter refused it.
        reason: one clause with the numbers compared.
    """

    filter: FilterName
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a filter holds a model against.

    Attributes:
        plan: what the caller wants.
        demand: lengths and bounds.
        machine: what is loaded, and how much memory is free.
        evidence: what came of the model's earlier calls.
    """

    plan: Plan
    demand: Demand
    machine: Machine
    evidence: Evidence = NO_EVIDENCE


def refuse_excluded(model: ModelSchema, asked: Asked) -> str | None:
    """The caller excluded it."""
    return "excluded by the request" if model.id in asked.plan.excluded else None


def refuse_unavailable(model: ModelSchema, asked: Asked) -> str | None:  # noqa: ARG001
    """It cannot be used here, or its weights are missing and nobody fetches them."""
    if not model.available:
        return f"not available here: {model.unavailable_because or 'no reason given'}".removesuffix(".")
    if not model.weights_ready and not model.downloads_weights:
        return f"its weights are not at {model.source.location or 'their place'}"
    return None


def refuse_resting(model: ModelSchema, asked: Asked) -> str | None:
    """It is left out for now, such as after failures."""
    return asked.machine.resting.get(model.id)


def refuse_incapable(model: ModelSchema, asked: Asked) -> str | None:
    """It lacks a capability that is required."""
    needed = dict.fromkeys((*asked.demand.require, *asked.plan.require))
    missing = [name for name in needed if name not in model.capabilities]
    return f"cannot {' or '.join(missing)}" if missing else None


def refuse_small_context(model: ModelSchema, asked: Asked) -> str | None:
    """Prompt and answer do not fit; of the context a quarter at most is kept free for the answer."""
    if model.context_length is None:
        return None
    prompt = asked.demand.prompt_tokens
    kept_free = min(asked.demand.output_tokens, model.context_length // 4)
    if prompt + kept_free <= model.context_length:
        return None
    return (
        f"the prompt of {counted(prompt)} and {kept_free:,} for the answer exceed its context "
        f"of {model.context_length:,}"
    )


def refuse_large(model: ModelSchema, asked: Asked) -> str | None:
    """It does not fit into the memory that is free."""
    needed = memory_needed_mb(model)
    if asked.machine.free_memory_mb is None or needed is None or model.id in asked.machine.loaded:
        return None
    if needed <= asked.machine.free_memory_mb:
        return None
    how = "" if model.cost.ram_mb is not None else " (assumed from its size)"
    return f"needs {needed:,.0f} MB of memory{how}, and {asked.machine.free_memory_mb:,.0f} MB are free"


def refuse_dear(model: ModelSchema, asked: Asked) -> str | None:
    """It costs more than the budget, or nobody knows what it costs."""
    demand = asked.demand
    if demand.max_cost_usd is None or (model.is_local and not model.cost.is_priced):
        return None
    usd = model.cost.usd(demand.prompt_tokens, demand.output_tokens, cached=demand.cached_tokens)
    if usd is None:
        return f"its price is not known, so it cannot be kept below ${demand.max_cost_usd:g}"
    return (
        f"about ${usd:.3g} a call, and at most ${demand.max_cost_usd:g} is allowed"
        if usd > demand.max_cost_usd
        else None
    )


def refuse_slow(model: ModelSchema, asked: Asked) -> str | None:
    """It is expected to take longer than allowed."""
    demand, first_token = asked.demand, asked.plan.profile.first_token
    if demand.max_latency_ms is None:
        return None
    expected = expected_latency(
        model, demand, asked.machine, first_token=first_token, evidence=asked.evidence
    )
    if expected.ms <= demand.max_latency_ms:
        return None
    return f"expected to take {expected}, and at most {demand.max_latency_ms:,.0f} ms are allowed"


FILTERS: dict[FilterName, Callable[[ModelSchema, Asked], str | None]] = {
    "excluded": refuse_excluded,
    "availability": refuse_unavailable,
    "resting": refuse_resting,
    "capability": refuse_incapable,
    "context": refuse_small_context,
    "memory": refuse_large,
    "budget": refuse_dear,
    "latency": refuse_slow,
}
"""In the order in which their reasons are given."""


def memory_needed_mb(model: ModelSchema) -> float | None:
    """Memory that a model takes on this machine, in MB: as known, else its size on disk and a fifth.

    None where it takes none of ours (it is remote, or in another program), or nothing is known.
    """
    if not model.is_local or model.source.kind == "local_server":
        return None
    if model.cost.ram_mb is not None:
        return model.cost.ram_mb.value
    return None if model.cost.size_mb is None else ROOM_BESIDE_WEIGHTS * model.cost.size_mb.value


def refusals(
    model: ModelSchema, plan: Plan, demand: Demand, machine: Machine, evidence: Evidence = NO_EVIDENCE
) -> tuple[Refusal, ...]:
    """Every reason why a model must not answer, not only the first; none means that it may."""
    asked = Asked(plan, demand, machine, evidence)
    found: list[Refusal] = []
    for name, refuse in FILTERS.items():
        if reason := refuse(model, asked):
            found.append(Refusal(name, reason))
    return tuple(found)
