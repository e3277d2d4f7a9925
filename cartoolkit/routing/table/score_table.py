"""Every model under every workload, as a frame to compute with that shows itself as a table to read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import WORKLOADS
from cartoolkit.routing.checks import several
from cartoolkit.routing.choice.intent import Profile, profile
from cartoolkit.routing.choice.situation import counted
from cartoolkit.routing.choice.weights import WEIGHTS, shown_weight
from cartoolkit.routing.rows.figures import weakest
from cartoolkit.routing.table.table_html import (
    COLOURS,
    ShownCell,
    ShownColumn,
    ShownRow,
    legend_html,
    paper_html,
    scale_of,
    table_html,
    wins_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from pandas.io.formats.style import Styler

    from cartoolkit.intents import Task, Workload
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.routing.choice.situation import Demand
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["ScoreTable", "score_table_of"]

_PALE = "#d9dee3"
_LEFT_OUT = "color:#5b6570;background:#f5f7f9;font-style:italic"


class ScoreTable(pd.DataFrame):
    """Rows are models, columns are pairs of workload and figure; shows itself with a bar for each score.

    The figures of one workload, ``table["batch"]``, are those of `Decision.to_frame`. What is cut out of it
    is a plain frame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    @classmethod
    def of(cls, decisions: Mapping[str, Decision], models: Iterable[str] | None = None) -> ScoreTable:
        """The table of some decisions, one a workload, over the same models.

        Args:
            decisions: by the name of the workload.
            models: ids, in the order of the rows; None takes that of the first decision.
        """
        if not decisions:
            raise InvalidRequest("a score table needs at least one workload.")
        first = next(iter(decisions.values()))
        ids = [each.model.id for each in first.candidates] if models is None else list(models)
        frames = {name: decision.to_frame().reindex(ids) for name, decision in decisions.items()}
        table = cls(pd.concat(frames, axis=1, names=["workload", "figure"]))
        table.attrs["question"] = _question(first)
        table.attrs["weights"] = {name: _weights(each.profile) for name, each in decisions.items()}
        return table

    @property
    def workloads(self) -> list[str]:
        """Names of the workloads, in order."""
        return list(dict.fromkeys(self.columns.get_level_values(0)))

    @property
    def style(self) -> Styler:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A Styler of one column a workload: score, rank and wins as text, with the terms as a bar behind.

        Its look is that of a style sheet, which a notebook keeps only if it is trusted; the table's own view
        has its look inline.
        """
        texts = pd.DataFrame(
            {name: [_in_words(self.cell(m, name)) for m in self.index] for name in self.workloads},
            index=self.index,
        )
        scale = scale_of(self.rows())
        return texts.style.apply(
            lambda column: [_behind(self.cell(m, column.name), scale) for m in self.index], axis=0
        )

    def cell(self, model_id: str, workload: str) -> ShownCell:
        """One model under one workload, as it is shown."""
        row: dict[str, Any] = self.loc[model_id][workload].to_dict()
        if not isinstance(row["score"], float) or math.isnan(row["score"]):
            return ShownCell(reason=str(row["filtered"]))
        parts = tuple((name, float(row[f"{name}_weight"]) * float(row[name])) for name in WEIGHTS)
        return ShownCell(
            row["score"], int(row["rank"]), float(row["wins"]), (*parts, ("local bonus", row["local_bonus"]))
        )

    def rows(self) -> list[ShownRow]:
        """All models, as they are shown."""
        return [
            ShownRow(str(m), self._note(m), tuple(self.cell(m, name) for name in self.workloads))
            for m in self.index
        ]

    def _note(self, model_id: str) -> str:
        """How sure the less sure of quality and latency is, in the first workload that has them."""
        for name in self.workloads:
            row = self.loc[model_id][name]
            if row["quality_basis"]:
                return weakest(row["quality_basis"], row["latency_basis"])
        return ""

    def plot_scores(self, ax: Axes | None = None) -> Axes:
        """A heat map; see `score_figures.plot_scores`."""
        from cartoolkit.routing.table.score_figures import plot_scores

        return plot_scores(self, ax)

    def __repr__(self) -> str:
        lines = [str(self.attrs.get("question", ""))]
        for model_id in self.index:
            lines.append(str(model_id))
            lines += [f"  {name}: {_in_words(self.cell(model_id, name))}" for name in self.workloads]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        weights: Mapping[str, str] = self.attrs.get("weights", {})
        columns = [ShownColumn(name, weights.get(name, "")) for name in self.workloads]
        head = f"<p><b>Which model answers?</b> {self.attrs.get('question', '')}</p>"
        return paper_html(head, legend_html(), table_html(columns, self.rows()))


class _Weighs(Protocol):
    """What can weigh its models, as a `Router` does."""

    @property
    def registry(self) -> Any: ...  # noqa: ANN401 - a `Registry`

    def weigh(
        self, *, workload: Workload | Profile = ..., demand: Demand | None = ..., task: Task = ...
    ) -> Decision: ...


def score_table_of(
    router: _Weighs,
    workloads: Iterable[Workload | Profile] = WORKLOADS,
    models: Iterable[str] | None = None,
    *,
    demand: Demand | None = None,
    task: Task = "chat",
) -> ScoreTable:
    """Every model of a router under every workload.

    Args:
        router: what knows the models.
        workloads: names, or weights of the caller's own.
        models: ids or names of the rows to show; None for all. Ranks and wins are always among all of them.
        demand: lengths and bounds.
        task: the kind of answer.

    Raises:
        InvalidRequest: there is no such workload, or two have one name.
        ModelNotFound: there is no such model.
    """
    rows: list[ModelSchema] = list(router.registry)
    if models is not None:
        named = several("models", models, example="['gguf/smollm2-135m-instruct:Q8_0']")
        rows = [router.registry.get(name) for name in named]
    columns = several("workloads", workloads, example="['interactive', 'batch']")
    profiles = [each if isinstance(each, Profile) else profile(each) for each in columns]
    names = [each.name for each in profiles]
    if len(set(names)) < len(names):
        raise InvalidRequest(f"two workloads have the same name: {', '.join(names)}.")
    decisions = {each.name: router.weigh(workload=each, demand=demand, task=task) for each in profiles}
    return ScoreTable.of(decisions, dict.fromkeys(row.id for row in rows))


def _question(decision: Decision) -> str:
    demand = decision.demand
    bounds = "".join((
        "" if demand.max_cost_usd is None else f", at most ${demand.max_cost_usd:g} a call",
        "" if demand.max_latency_ms is None else f", at most {demand.max_latency_ms:,.0f} ms",
    ))  # fmt: skip
    return (
        f"Task {decision.task}: {counted(demand.prompt_tokens)} in, {demand.output_tokens:,} out{bounds}. "
        "Ranks are those of the expected worth."
    )


def _weights(weights: Profile) -> str:
    return f"{' / '.join(map(shown_weight, weights.weights))} + {shown_weight(weights.local_bonus)}"


def _in_words(cell: ShownCell) -> str:
    if cell.score is None:
        return f"left out: {cell.reason}"
    wins = "" if cell.wins is None else f", wins {wins_text(cell.wins)}"
    return f"{cell.score:.3f} #{cell.rank}{wins}"


def _behind(cell: ShownCell, scale: float) -> str:
    """CSS for a cell: its terms as a strip at its lower edge."""
    if cell.score is None:
        return _LEFT_OUT
    stops, at = [], 0.0
    for name, points in cell.parts:
        end = at + 100 * max(points, 0) / scale
        stops.append(f"{COLOURS[name]} {at:.1f}% {end:.1f}%")
        at = end
    stops.append(f"{_PALE} {at:.1f}% 100%")
    weight = ";font-weight:bold" if cell.rank == 1 else ""
    return (
        f"background:linear-gradient(90deg,{','.join(stops)}) 0 100%/100% 5px no-repeat;padding-bottom:9px"
        f"{weight}"
    )
