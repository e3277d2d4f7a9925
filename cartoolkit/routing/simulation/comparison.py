"""What ways of choosing a model are worth: policies on the same traffic, with regret, cost, time and shares.

Several runs go side by side as one more axis of the arrays. They share the sequence of requests and differ in
which answers happen to be right and in what the policies draw, so intervals say how much of a difference is
luck. All policies meet the same luck: request i of run r has one uniform number, and the chosen model is
right if that lies below its chance. Adding a policy does not change what the others do.
"""

from __future__ import annotations

import html
import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.simulation.bandits import (
    Constant,
    EpsilonGreedy,
    Oracle,
    Random,
    Seen,
    Thompson,
    World,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from cartoolkit.routing.simulation.bandits import TrafficPolicy
    from cartoolkit.routing.simulation.traffic import Traffic

__all__ = ["METRICS", "TrafficSimulation", "batches", "mean_interval", "simulate_traffic"]

METRICS = ("regret", "right", "usd", "latency_ms")
"""Per request: value lost against the oracle, share of right answers, US dollars, milliseconds."""

GROWTH = 0.02

# Student's t, two-sided 95 %, for 1 to 30 degrees of freedom, as in any table; beyond it the normal 1.96
# is at most 4 % too small.
_T95 = """12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131
2.120 2.110 2.101 2.093 2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042"""


def mean_interval(values: NDArray[np.float64]) -> tuple[NDArray, NDArray, NDArray]:
    """Mean over the first axis with the ends of its 95 % interval (Student's t); NaN ends for one run.

    values: float [runs, ...].

    >>> [round(float(each), 3) for each in mean_interval(np.array([1.0, 2.0, 3.0]))]  # 2 ± 4.303 / √3
    [2.0, -0.484, 4.484]
    """
    runs, mean = len(values), values.mean(axis=0)
    if runs < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    quantiles = [float(each) for each in _T95.split()]
    t = quantiles[runs - 2] if runs - 2 < len(quantiles) else 1.96
    reach = t * values.std(axis=0, ddof=1) / math.sqrt(runs)
    return mean, mean - reach, mean + reach


def batches(requests: int, batch: int | None) -> Iterator[tuple[int, int]]:
    """Begin and end of the stretches between which a policy learns; None: growing by 2 % of what was seen.

    >>> list(batches(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    start = 0
    while start < requests:
        size = batch or max(1, int(GROWTH * start))
        yield start, min(start + size, requests)
        start += size


@dataclass(frozen=True, eq=False)
class TrafficSimulation:
    """Policies on the same traffic; made by `simulate_traffic`.

    Attributes:
        traffic: what was asked.
        policies: their names, in order.
        runs: how many there were.
        ends: int [windows]: requests up to the end of each window of time.
        sums: by name of `METRICS`: float [policies, runs, windows], sums over the window's requests. NaN
            where a figure of a chosen model is not known.
        chosen: int [policies, runs, windows, models]: requests of the window that each model was given.
    """

    traffic: Traffic
    policies: tuple[str, ...]
    runs: int
    ends: NDArray[np.int64]
    sums: dict[str, NDArray[np.float64]]
    chosen: NDArray[np.int64]

    def __repr__(self) -> str:
        """What was simulated, not its arrays; `summary` has the figures."""
        names = ", ".join(self.policies)
        times = f"{self.runs} run{'s' * (self.runs != 1)}"
        return f"<TrafficSimulation: {len(self.traffic):,} requests, {times}; policies {names}>"

    def _repr_html_(self) -> str:
        """The summary, under what was simulated."""
        table = self.summary().to_html(index=False, float_format="{:.4g}".format, na_rep="", border=0)
        return f"<p>{html.escape(repr(self.traffic)[1:-1])}, {self.runs} runs.</p>{table}"

    def joined(self, other: TrafficSimulation) -> TrafficSimulation:
        """This one with the policies of another one over the same traffic after its own.

        Raises:
            InvalidRequest: the other one had other traffic, runs or windows, or a policy of the same name.
        """
        alike = other.traffic is self.traffic and other.runs == self.runs
        if not alike or not np.array_equal(other.ends, self.ends):
            raise InvalidRequest("only simulations of the same traffic, runs and windows can be joined.")
        names = (*self.policies, *other.policies)
        _check(names, {})
        return TrafficSimulation(
            self.traffic,
            names,
            self.runs,
            self.ends,
            {name: np.concatenate([self.sums[name], other.sums[name]]) for name in METRICS},
            np.concatenate([self.chosen, other.chosen]),
        )

    def summary(self) -> pd.DataFrame:
        """One row a policy: total regret, then means a request, each with the ends of its 95 % interval.

        ``most_used`` is the model with most requests, and ``most_used_share`` its share of them.
        """
        import pandas as pd

        rows = []
        for index, policy in enumerate(self.policies):
            row: dict[str, object] = {"policy": policy}
            for name in METRICS:
                totals = self.sums[name][index].sum(axis=1)
                column, scale = ("total_regret", 1) if name == "regret" else (name, len(self.traffic))
                row |= _with_ends(column, *(float(each) for each in mean_interval(totals / scale)))
            counts = self.chosen[index].sum(axis=(0, 1))
            row["most_used"] = self.traffic.models[counts.argmax()]
            row["most_used_share"] = counts.max() / counts.sum()
            rows.append(row)
        return pd.DataFrame(rows)

    def over_time(self) -> pd.DataFrame:
        """One row a policy, window and metric: its mean a request within the window, with its 95 % interval.

        Columns ``policy``, ``requests`` (up to the window's end), ``metric`` (one of `METRICS`, or
        ``total_regret`` from the first request on), ``value``, ``low``, ``high``.
        """
        import pandas as pd

        sizes = np.diff(self.ends, prepend=0)
        series = {name: self.sums[name] / sizes for name in METRICS}
        series["total_regret"] = self.sums["regret"].cumsum(axis=2)
        parts = []
        for index, policy in enumerate(self.policies):
            for name, values in series.items():
                value, low, high = mean_interval(values[index])
                columns = {"policy": policy, "requests": self.ends, "metric": name}
                parts.append(pd.DataFrame({**columns, "value": value, "low": low, "high": high}))
        return pd.concat(parts, ignore_index=True)

    def shares(self) -> pd.DataFrame:
        """One row a policy, window and model: its share of the window's requests, with its 95 % interval.

        Columns ``policy``, ``requests``, ``model``, ``share``, ``low``, ``high``; ends are within 0 to 1.
        """
        import pandas as pd

        share = self.chosen / np.diff(self.ends, prepend=0)[:, None]
        mean, low, high = (np.array(part) for part in zip(*map(mean_interval, share), strict=True))
        levels = [self.policies, self.ends, self.traffic.models]
        index = pd.MultiIndex.from_product(levels, names=["policy", "requests", "model"])
        columns = {"share": mean, "low": low.clip(0, 1), "high": high.clip(0, 1)}
        table = pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=index)
        return table.reset_index()

    def plot_regret(self, ax: Axes | None = None) -> Axes:
        """Total regret over time, a line a policy, with its interval as a band."""
        ax = ax or _axes()
        totals = self.sums["regret"].cumsum(axis=2)
        for index, (policy, values) in enumerate(zip(self.policies, totals, strict=True)):
            mean, low, high = mean_interval(values)
            # Lines that lie on one another still show, and are told apart without colour.
            style = _STYLES[index % len(_STYLES)]
            (line,) = ax.plot(self.ends, mean, linestyle=style, label=f"{policy} ({mean[-1]:,.0f})")
            ax.fill_between(self.ends, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="requests", ylabel="total regret (right answers)")
        ax.legend()
        return ax

    def plot_shares(self, policy: str, ax: Axes | None = None, *, models: int = 8) -> Axes:
        """Share of the requests that each model was given over time, mean of the runs, stacked.

        Args:
            policy: name of one of the policies.
            ax: where to draw; None makes a figure.
            models: so many with most requests are drawn apart, the others as one.

        Raises:
            InvalidRequest: there is no such policy.
        """
        if policy not in self.policies:
            raise InvalidRequest(
                f"no policy {policy!r} was simulated; there are: {', '.join(self.policies)}."
            )
        ax = ax or _axes()
        counts = self.chosen[self.policies.index(policy)].sum(axis=0)
        shares = (counts / counts.sum(axis=1, keepdims=True)).T
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        rows, names = list(shares[order[:models]]), [self.traffic.models[place] for place in order[:models]]
        if len(order) > models:
            rows.append(shares[order[models:]].sum(axis=0))
            names.append(f"{len(order) - models} others")
        ax.stackplot(self.ends, rows, labels=names, edgecolor="white", linewidth=0.5)
        ax.set(xlabel="requests", ylabel=f"share under {policy}", ylim=(0, 1), xlim=self.ends[[0, -1]])
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return ax


_STYLES = ("-", "--", "-.", ":", (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 4)))


def _axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 4), layout="constrained")[1]


def _with_ends(name: str, value: float, low: float, high: float) -> dict[str, float]:
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def simulate_traffic(
    traffic: Traffic,
    policies: Sequence[TrafficPolicy] | None = None,
    *,
    runs: int = 8,
    seed: int = 0,
    batch: int | None = None,
    windows: int = 50,
    usd_worth: float = 0.0,
    second_worth: float = 0.0,
) -> TrafficSimulation:
    """Let policies choose a model for each request, and add up what came of it.

    The value of an answer is its chance to be right, less what it costs: ``usd_worth * usd + second_worth *
    latency_ms / 1000``. Regret is the value of the best model for the kind of request less that of the chosen
    one; it is computed from the chances, so it is free of the luck of single answers.

    A policy that learns does so between batches, and is blind within one, as a router whose outcomes come in
    late. A batch of 1 is the textbook's bandit. A batch of B chooses blindly for the first B requests, and
    notices up to B requests late that a model got worse; apart from that it does not change what is learnt.
    By default batches grow by 2 % of what was seen, from one request on. Thompson's regret over 50,000
    requests to 20 models, as ``benchmarks/router_simulation.py`` measures it with 20 runs: 498 ± 51 with
    batches of 1, 478 ± 24 of 100, 703 ± 29 of 1,000, 4,274 ± 28 of 10,000, and 496 ± 43 with growing ones.

    Args:
        traffic: requests and models.
        policies: None for the best constant, random, epsilon-greedy 0.1, Thompson and the oracle.
        runs: how often the whole traffic is gone through; intervals need at least two.
        seed: of everything that is drawn.
        batch: requests between which nothing is learnt; None lets it grow.
        windows: stretches of time that the tables over time tell apart.
        usd_worth: right answers that a dollar is worth.
        second_worth: right answers that a second is worth.

    Raises:
        InvalidRequest: a number is out of range, two policies have one name, or a dollar or a second is worth
            something and a model's price or time is not known.
    """
    policies = policies if policies is not None else DEFAULT_POLICIES
    names = tuple(policy.name for policy in policies)
    _check(names, {"runs": runs, "windows": windows, "batch": 1 if batch is None else batch})
    world = _world(traffic, usd_worth, second_worth)
    luck = np.random.default_rng([seed, 0]).random((runs, len(traffic)))
    starts = np.unique(np.arange(windows) * len(traffic) // windows)
    done = [_account(world, *_play(world, policy, luck, seed, batch), starts) for policy in policies]
    sums, chosen = zip(*done, strict=True)
    return TrafficSimulation(
        traffic,
        names,
        runs,
        np.append(starts[1:], len(traffic)),
        {name: np.array([each[name] for each in sums]) for name in METRICS},
        np.array(chosen),
    )


DEFAULT_POLICIES = (Constant(), Random(), EpsilonGreedy(), Thompson(), Oracle())


def _check(names: Sequence[str], numbers: dict[str, int]) -> None:
    if not names or len(set(names)) < len(names):
        raise InvalidRequest(f"policies must be at least one, of different names; got {list(names)}.")
    for name, value in numbers.items():
        if value < 1:
            raise InvalidRequest(f"{name} must be a whole number ≥ 1; got {value!r}.")


def _world(traffic: Traffic, usd_worth: float, second_worth: float) -> World:
    price = np.zeros_like(traffic.right)
    for name, worth, table in (
        ("usd_worth", usd_worth, traffic.usd),
        ("second_worth", second_worth, traffic.latency_ms / 1000),
    ):
        if not 0 <= worth < math.inf:
            raise InvalidRequest(f"{name} must be right answers ≥ 0; got {worth!r}.")
        if not worth:
            continue
        unknown = np.isnan(table).any(axis=0)
        if unknown.any():
            models = ", ".join(np.array(traffic.models)[unknown])
            raise InvalidRequest(
                f"{name} is {worth:g}, and the figure is not known of {models}; unknown is not 0.",
                hint=f"Leave these models out, or set {name} to 0.",
            )
        price += worth * table
    return World(traffic, price, traffic.right - price, traffic.task_of_kind)


def _play(
    world: World, policy: TrafficPolicy, luck: NDArray[np.float64], seed: int, batch: int | None
) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """Which model each request was given, and whether its answer was right; both [runs, requests]."""
    rng = np.random.default_rng([seed, 1, zlib.crc32(policy.name.encode())])
    kinds, right = world.traffic.sequence, world.traffic.right
    runs, requests = luck.shape
    shape = runs, len(world.traffic.task_names), len(world.traffic.models)
    seen = Seen(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    chosen, won = np.empty(luck.shape, np.uint16), np.empty(luck.shape, np.bool_)
    for start, end in batches(requests, batch if policy.learns else requests):
        part = kinds[start:end]
        choice = policy.choose(world, part, seen, rng)
        is_right = luck[:, start:end] < right[part, choice]
        chosen[:, start:end], won[:, start:end] = choice, is_right
        if policy.learns:
            _learn(seen, world.task_of_kind[part], choice, is_right)
    return chosen, won


def _learn(seen: Seen, tasks: NDArray, choice: NDArray, is_right: NDArray[np.bool_]) -> None:
    runs, tasks_known, models = seen.right.shape
    cells = (np.arange(runs)[:, None] * tasks_known + tasks) * models + choice
    for counts, among in ((seen.right.reshape(-1), is_right), (seen.wrong.reshape(-1), ~is_right)):
        np.add.at(counts, cells[among], 1)


def _account(
    world: World, chosen: NDArray[np.uint16], won: NDArray[np.bool_], starts: NDArray[np.int64]
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.int64]]:
    """Sums of each metric, float [runs, windows], and requests of each model, int [runs, windows, models]."""
    traffic, models = world.traffic, len(world.traffic.models)
    lost = world.value.max(axis=1, keepdims=True) - world.value
    tables = {"regret": lost, "usd": traffic.usd, "latency_ms": traffic.latency_ms}
    sizes = np.diff(starts, append=len(traffic))
    window = np.repeat(np.arange(len(starts)), sizes) * models
    sums: dict[str, list[NDArray]] = {name: [] for name in METRICS}
    counts = []
    for choice, is_right in zip(chosen, won, strict=True):
        cells = traffic.sequence * models + choice
        for name, table in tables.items():
            sums[name].append(np.add.reduceat(table.ravel()[cells], starts))
        sums["right"].append(np.add.reduceat(is_right.astype(np.float64), starts))
        counts.append(np.bincount(window + choice, minlength=len(starts) * models))
    shape = len(chosen), len(starts), models
    return {name: np.array(each) for name, each in sums.items()}, np.array(counts).reshape(shape)
