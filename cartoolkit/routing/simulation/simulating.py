"""Ways of choosing a model compared on what was recorded, or on made-up traffic; what `Router.simulate` does.

The router's own rule is among them, with the scores that its rows have, and so is a random choice that costs
as much as the router on average: what costs more should also be better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import TASKS, unknown
from cartoolkit.notices import say
from cartoolkit.routing.checks import require_kind, require_number, several
from cartoolkit.routing.choice.intent import Profile, profile
from cartoolkit.routing.choice.scores import HALF_ANSWER_MS, HALF_USD, UNKNOWN_QUALITY, score
from cartoolkit.routing.choice.selection import PRIOR_STRENGTH
from cartoolkit.routing.choice.situation import Demand, Machine
from cartoolkit.routing.simulation.bandits import (
    Constant,
    EpsilonGreedy,
    Mixed,
    Oracle,
    Random,
    RouterRule,
    Thompson,
)
from cartoolkit.routing.simulation.comparison import TrafficSimulation, simulate_traffic
from cartoolkit.routing.simulation.mixing import equal_cost_mix
from cartoolkit.routing.simulation.traffic import (
    Traffic,
    synthetic_traffic,
    traffic_from_outcomes,
    traffic_from_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from cartoolkit.intents import Task, Workload
    from cartoolkit.routing.outcomes.records import Completion, Verdict
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.routing.simulation.bandits import TrafficPolicy

__all__ = ["AT_EQUAL_COST", "default_policies", "random_at_equal_cost", "scores_for", "simulate"]

AT_EQUAL_COST = "random at equal cost"


def simulate(
    traffic: Traffic | Iterable[Completion | Verdict] | pd.DataFrame | None = None,
    policies: Sequence[TrafficPolicy] | None = None,
    *,
    rows: Iterable[ModelSchema] = (),
    workload: Workload | Profile = "interactive",
    demand: Demand | None = None,
    task: Task = "chat",
    prior_strength: float = PRIOR_STRENGTH,
    requests: int | None = None,
    min_calls: int = 10,
    runs: int = 8,
    seed: int = 0,
    batch: int | None = None,
    windows: int = 50,
    usd_worth: float = 0.0,
    second_worth: float = 0.0,
) -> TrafficSimulation:
    """Let policies choose a model for each request, and add up regret, cost, time and shares.

    Args:
        traffic: a `Traffic`; the rows of a ledger, which are averaged by model and task; a table of items
            with every model's answer, see `traffic_from_table`; or None for `synthetic_traffic`.
        policies: None for `default_policies` and, if their costs are known, `random_at_equal_cost`.
        rows: the models' rows, for the router's scores; see `scores_for`.
        workload: its name, or weights of one's own, for the same.
        demand: lengths, for the same.
        task: the kind of answer, for the same.
        prior_strength: observations that a score is worth to the router and to Thompson.
        requests: how many; None for as many as `traffic` holds, or 100,000 made up.
        min_calls: calls that a ledger must hold of every model and task.
        runs: how often the whole traffic is gone through; intervals need at least two.
        seed: of everything that is drawn.
        batch: requests between which nothing is learnt; None lets it grow, see `simulate_traffic`.
        windows: stretches of time that the tables over time tell apart.
        usd_worth: right answers that a dollar is worth.
        second_worth: right answers that a second is worth.

    Raises:
        InvalidRequest: the traffic cannot be used, or a setting is out of range; see `simulate_traffic`.
    """
    _require_numbers(1, requests=requests, runs=runs, windows=windows, batch=batch)
    _require_numbers(0, min_calls=min_calls, seed=seed)
    _require_numbers(0, whole=False, usd_worth=usd_worth, second_worth=second_worth)
    _require_what_scores_go_by(demand, task)
    world = _traffic(traffic, requests, min_calls)
    chosen = policies if policies is None else _checked(policies)
    if chosen is None:
        scores = scores_for(world, rows, workload, demand, task=task)
        chosen = default_policies(scores, prior_strength)

    def run(some: Sequence[TrafficPolicy]) -> TrafficSimulation:
        return simulate_traffic(
            world, some, runs=runs, seed=seed, batch=batch, windows=windows,
            usd_worth=usd_worth, second_worth=second_worth,
        )  # fmt: skip

    done = run(chosen)
    if policies is not None:
        return done
    try:
        mix = random_at_equal_cost(done, "router")
    except InvalidRequest as refused:
        say(f"Left out: {AT_EQUAL_COST}. {refused}")
        return done
    return done.joined(run([mix]))


def _require_numbers(least: float, *, whole: bool = True, **numbers: object) -> None:
    """Refuse what is out of range; None leaves a number to its default."""
    for name, value in numbers.items():
        if value is not None:
            require_number(name, value, least=least, whole=whole)


def _require_what_scores_go_by(demand: object, task: object) -> None:
    if demand is not None:
        require_kind("demand", demand, Demand)
    if task not in TASKS:
        raise InvalidRequest(unknown("task", task, TASKS))


def _checked(policies: Sequence[TrafficPolicy]) -> list[TrafficPolicy]:
    listed = several("policies", policies, example="[RouterRule(scores), Oracle()]")
    if wrong := [each for each in listed if not hasattr(each, "name") or isinstance(each, type)]:
        raise InvalidRequest(
            f"a policy is one of cartoolkit.routing.simulation.bandits; got {wrong[0]!r}.",
            hint="None takes the usual ones.",
        )
    return listed


def default_policies(
    scores: dict[str, float], prior_strength: float = PRIOR_STRENGTH
) -> tuple[TrafficPolicy, ...]:
    """The router's rule, the bandits of the textbook, and what they are measured by.

    Args:
        scores: of every model by id, as from `scores_for`.
        prior_strength: observations that a score is worth to the router; Thompson has the same of one half.
    """
    return (
        RouterRule(scores, prior_strength),
        Thompson(prior_strength),
        EpsilonGreedy(),
        Constant(),
        Random(),
        Oracle(),
    )


def random_at_equal_cost(
    simulation: TrafficSimulation, policy: str, *, cost: Literal["usd", "latency_ms"] | None = None
) -> Mixed:
    """A random choice that costs as much as a policy did, see `mixing`: it tells whether dear is also good.

    Args:
        simulation: one in which `policy` took part.
        policy: its name.
        cost: which cost is equal; None for dollars if all prices are known and some are above 0, else for
            milliseconds.

    Raises:
        InvalidRequest: no such policy took part, costs are not known, or no mix costs as much.
    """
    if policy not in simulation.policies:
        raise InvalidRequest(
            f"no policy {policy!r} was simulated; there are: {', '.join(simulation.policies)}."
        )
    traffic = simulation.traffic
    counts = np.bincount(traffic.sequence, minlength=len(traffic.kinds))
    asked = counts > 0
    tables = {"usd": traffic.usd, "latency_ms": traffic.latency_ms}
    means = {name: counts[asked] @ table[asked] / counts.sum() for name, table in tables.items()}
    chosen = cost or ("usd" if np.isfinite(means["usd"]).all() and means["usd"].any() else "latency_ms")
    if not np.isfinite(means[chosen]).all():
        unknown = ", ".join(np.array(traffic.models)[~np.isfinite(means[chosen])])
        raise InvalidRequest(f"The {chosen} of {unknown} is not known, so no mix is known to cost as much.")
    spent = simulation.sums[chosen][simulation.policies.index(policy)].sum(axis=1).mean() / len(traffic)
    shares = equal_cost_mix(means[chosen], spent)
    if shares is None:
        raise InvalidRequest(
            f"No mix of the models costs {spent:g} {chosen} a request as {policy!r} does: one model for all"
            f" costs {means[chosen].min():g} to {means[chosen].max():g}."
        )
    return Mixed(dict(zip(traffic.models, map(float, shares), strict=True)), AT_EQUAL_COST)


def scores_for(
    traffic: Traffic,
    rows: Iterable[ModelSchema] = (),
    workload: Workload | Profile = "interactive",
    demand: Demand | None = None,
    *,
    task: Task = "chat",
) -> dict[str, float]:
    """The router's score of every model of the traffic, before it has seen any answer.

    A model with a row has the row's score, as if it were loaded. Of one without, such as a made-up one, the
    router knows what the traffic says of its time and price, and nothing of its quality; what the traffic
    does not know either counts as one half.

    Args:
        traffic: whose models these are.
        rows: by whose ids they are found.
        workload: its name, or weights.
        demand: lengths.
        task: the kind of answer.
    """
    weights = workload if isinstance(workload, Profile) else profile(workload)
    known = {row.id: row for row in rows}
    machine = Machine(loaded=frozenset(known))
    counts = np.bincount(traffic.sequence, minlength=len(traffic.kinds))
    asked = counts > 0
    usd, ms = (counts[asked] @ table[asked] / counts.sum() for table in (traffic.usd, traffic.latency_ms))
    terms = np.array([HALF_ANSWER_MS / (HALF_ANSWER_MS + ms), HALF_USD / (HALF_USD + usd)])
    latency, cost = np.where(np.isnan(terms), 0.5, terms)
    without_row = weights.quality * UNKNOWN_QUALITY + weights.latency * latency + weights.cost * cost
    return {
        model: score(known[model], weights, demand or Demand(), machine, task=task).total
        if model in known
        else float(without_row[place])
        for place, model in enumerate(traffic.models)
    }


def _traffic(
    given: Traffic | Iterable[Completion | Verdict] | pd.DataFrame | None,
    requests: int | None,
    min_calls: int,
) -> Traffic:
    if given is None:
        return synthetic_traffic() if requests is None else synthetic_traffic(requests)
    if isinstance(given, Traffic):
        if requests not in {None, len(given)}:
            raise InvalidRequest(
                f"this traffic has {len(given):,} requests; got requests={requests!r} as well."
            )
        return given
    if hasattr(given, "columns"):
        return traffic_from_table(given, requests=requests)  # pyright: ignore[reportArgumentType]
    rows = several("traffic", given, example="router.history.ledger.read().rows")
    if wrong := [row for row in rows if getattr(row, "kind", None) not in {"completion", "verdict"}]:
        raise InvalidRequest(
            f"the rows of a log are those of a ledger; got {wrong[0]!r:.80}.",
            hint="Give a Traffic, a table of items, or router.history.ledger.read().rows.",
        )
    return traffic_from_outcomes(rows, requests=requests, min_calls=min_calls)  # pyright: ignore[reportArgumentType]
