"""Traffic to simulate: requests of several kinds, and what each model makes of each kind.

A kind is a row of three tables: how likely each model's answer is right, what it costs, how long it takes.
Requests are a sequence of kinds. So a made-up world, a log that knows every model's answer to every item, and
the averages of a ledger are all the same thing to a simulation.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.outcomes.records import Completion, OutcomeTracker, Tally, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["Traffic", "synthetic_traffic", "traffic_from_outcomes", "traffic_from_table"]

_LENGTHS = {"short": 0.5, "medium": 1.0, "long": 2.0}


@dataclass(frozen=True, eq=False)
class Traffic:
    """Requests, and what each model would make of them.

    right, usd, latency_ms: float [kinds, models]; sequence: int [requests], indices of kinds.

    Attributes:
        models: ids.
        kinds: names of the rows of the tables.
        tasks: the task of each kind; a policy learns by task, as a router does.
        right: chance that the model's answer is right, 0 to 1; 0 or 1 if it is recorded.
        usd: price of the call; NaN if nobody knows.
        latency_ms: time of the answer; NaN if nobody knows.
        sequence: kind of each request, in order.
        about: where the figures come from, in words.

    Raises:
        InvalidRequest: the tables do not fit together, or a figure is out of range.
    """

    models: tuple[str, ...]
    kinds: tuple[str, ...]
    tasks: tuple[str, ...]
    right: NDArray[np.float64]
    usd: NDArray[np.float64]
    latency_ms: NDArray[np.float64]
    sequence: NDArray[np.int64]
    about: str = ""

    def __post_init__(self) -> None:
        shape = len(self.kinds), len(self.models)
        if not all(shape) or len(self.tasks) != len(self.kinds) or not len(self.sequence):
            raise InvalidRequest(
                "traffic needs a model, a kind with its task, and a request; got"
                f" {len(self.models)} models, {len(self.kinds)} kinds, {len(self.tasks)} tasks of kinds and"
                f" {len(self.sequence)} requests."
            )
        for name in ("right", "usd", "latency_ms"):
            table = np.asarray(getattr(self, name), np.float64)
            if table.shape != shape:
                raise InvalidRequest(
                    f"{name} must be a table of {shape} kinds and models; got {table.shape}."
                )
            if (table < 0).any() or np.isinf(table).any():
                raise InvalidRequest(f"{name} holds a figure below 0 or an infinite one.")
            object.__setattr__(self, name, table)
        if not (self.right <= 1).all():
            raise InvalidRequest("right must hold chances from 0 to 1 and no NaN.")
        if self.sequence.min() < 0 or self.sequence.max() >= len(self.kinds):
            raise InvalidRequest(f"sequence must hold kinds from 0 to {len(self.kinds) - 1}.")

    def __len__(self) -> int:
        return len(self.sequence)

    def __repr__(self) -> str:
        return f"<Traffic: {len(self):,} requests of {len(self.kinds)} kinds, {len(self.models)} models>"

    @property
    def task_names(self) -> tuple[str, ...]:
        """Each task once, in the order of the kinds."""
        return tuple(dict.fromkeys(self.tasks))

    @property
    def task_of_kind(self) -> NDArray[np.int64]:
        """Index of each kind's task in `task_names`; int [kinds]."""
        places = {name: place for place, name in enumerate(self.task_names)}
        return np.array([places[task] for task in self.tasks])

    def then(self, later: Traffic) -> Traffic:
        """This traffic, then `later`, as when a model gets worse or dies; what was learnt by task stays.

        Raises:
            InvalidRequest: the models are not the same.
        """
        if self.models != later.models:
            raise InvalidRequest(
                "traffic can only be followed by traffic of the same models in the same order."
            )
        return Traffic(
            self.models,
            (*self.kinds, *later.kinds),
            (*self.tasks, *later.tasks),
            np.concatenate([self.right, later.right]),
            np.concatenate([self.usd, later.usd]),
            np.concatenate([self.latency_ms, later.latency_ms]),
            np.concatenate([self.sequence, later.sequence + len(self.kinds)]),
            f"{self.about}; then {later.about}",
        )


def synthetic_traffic(requests: int = 100_000, models: int = 20, tasks: int = 5, seed: int = 0) -> Traffic:
    """A made-up world in which a better model costs more and is slower, more or less.

    A model has a skill s, evenly spread over 0 to 1; a task has a difficulty d, likewise over 0.2 to 0.8. An
    answer is right with chance 1 / (1 + exp(-4 (s - d) + e)), where e is normal with deviation 0.7, drawn
    once for each model and task, so that no model is the best everywhere. A call costs 0.0002 * 100^s dollars
    and takes 200 * 10^s ms, each times exp(0.3 e'), with e' standard normal, drawn once for each model. Tasks
    are equally frequent; a third of their requests each is short, medium or long, which multiplies price and
    time by 0.5, 1 or 2.

    Args:
        requests: how many.
        models: how many.
        tasks: how many.
        seed: of everything that is drawn.

    Raises:
        InvalidRequest: a number is below 1.
    """
    if min(requests, models, tasks) < 1:
        raise InvalidRequest(
            f"requests, models and tasks must be ≥ 1; got {requests!r}, {models!r}, {tasks!r}."
        )
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.permutation(np.linspace(0, 1, models)), np.linspace(0.2, 0.8, tasks)
    logits = 4 * (skill - difficulty[:, None]) - rng.normal(0, 0.7, (tasks, models))
    usd = 0.0002 * 100**skill * np.exp(rng.normal(0, 0.3, models))
    latency = 200 * 10**skill * np.exp(rng.normal(0, 0.3, models))
    names = [f"task-{number}" for number in range(1, tasks + 1)]
    lengths = np.tile(list(_LENGTHS.values()), tasks)[:, None]
    return Traffic(
        tuple(f"synthetic/m{number:02d}" for number in range(1, models + 1)),
        tuple(f"{name} {length}" for name, length in itertools.product(names, _LENGTHS)),
        tuple(itertools.chain.from_iterable([name] * len(_LENGTHS) for name in names)),
        np.repeat(1 / (1 + np.exp(-logits)), len(_LENGTHS), axis=0),
        usd * lengths,
        latency * lengths,
        rng.integers(0, tasks * len(_LENGTHS), requests),
        f"made up from seed {seed}",
    )


def traffic_from_outcomes(
    rows: Iterable[Completion | Verdict], *, requests: int | None = None, min_calls: int = 10
) -> Traffic:
    """A world in which each model answers each task as it did in a ledger, on average.

    A log of a router knows the answer of the model that was asked, never of the others. So this is a model of
    the log: it cannot say what sets one request of a task apart from another, and if a model was given the
    easy ones, it will look better here than it is.

    Args:
        rows: such as ``Ledger.read().rows``. The tasks come in the order of the completions.
        requests: how many, going round the log again and again; None for as many as it holds.
        min_calls: every model needs so many calls of every task that succeeded or failed.

    Raises:
        InvalidRequest: there are no completions, or too few calls of some model and task; all are named.
    """
    rows = list(rows)
    profiles = OutcomeTracker.replay(rows).profiles
    order = [row.task for row in rows if isinstance(row, Completion)]
    tasks = list(dict.fromkeys(order))
    few = [
        f"{model_id} on {task} ({calls})"
        for model_id, profile in profiles.items()
        for task in tasks
        if (calls := _resolved(profile.task_stats(task))) < max(1, min_calls)
    ]
    if few or not order:
        raise InvalidRequest(
            f"the log has too few calls, {min_calls} are needed: {', '.join(few) or 'there are none'}.",
            hint="Leave those models or tasks out, or give a smaller min_calls.",
        )

    def table(figure: Callable[[Tally], float | None]) -> NDArray[np.float64]:
        cells = [[figure(each.task_stats(task)) for each in profiles.values()] for task in tasks]
        return np.array(cells, np.float64)  # None becomes NaN

    codes = np.array([tasks.index(task) for task in order])
    names = tuple(tasks)
    return Traffic(
        tuple(profiles),
        names,
        names,
        table(lambda tally: tally.success_rate),
        table(lambda tally: tally.usd / tally.calls if tally.priced == tally.calls else None),
        table(lambda tally: tally.mean_latency_ms),
        np.resize(codes, requests or len(codes)),
        f"averages of {len(order):,} recorded calls",
    )


def _resolved(tally: Tally) -> int:
    return tally.success_count + tally.fail_count


def traffic_from_table(table: pd.DataFrame, *, requests: int | None = None) -> Traffic:
    """Items of which every model's answer is recorded, as from a benchmark; nothing is supposed here.

    Args:
        table: one row an item and model, with columns ``item``, ``model``, ``right`` (0 to 1) and, if known,
            ``task``, ``usd`` and ``latency_ms``.
        requests: how many, going round the items again and again; None for each item once.

    Raises:
        InvalidRequest: a column is missing, or some model's answer to some item is missing or there twice.
    """
    if missing := sorted({"item", "model", "right"} - set(table.columns)):
        raise InvalidRequest(f"the table has no column {', '.join(map(repr, missing))}.")
    counts = Counter(zip(table["item"], table["model"], strict=True))
    items, models = list(dict.fromkeys(table["item"])), list(dict.fromkeys(table["model"]))
    for cell in itertools.product(items, models):
        if counts[cell] != 1:
            raise InvalidRequest(
                f"every item needs one row a model; item {cell[0]!r} has {counts[cell]} of model {cell[1]!r}."
            )
    task = dict(zip(table["item"], table["task"], strict=True)) if "task" in table else {}

    def cells(name: str) -> NDArray[np.float64]:
        if name not in table:
            return np.full((len(items), len(models)), np.nan)
        wide = table.pivot(index="item", columns="model", values=name)  # noqa: PD010 - it must not average
        return wide.loc[items, models].to_numpy(np.float64)

    return Traffic(
        tuple(map(str, models)),
        tuple(map(str, items)),
        tuple(str(task.get(item, "all")) for item in items),
        cells("right"),
        cells("usd"),
        cells("latency_ms"),
        np.resize(np.arange(len(items)), requests or len(items)),
        f"{len(items):,} recorded items",
    )
