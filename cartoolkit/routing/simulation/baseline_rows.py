"""The baselines as rows under the router's table: a short text a workload, and sentences that explain it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

from cartoolkit.routing.simulation.baselines import BASELINES, BY_KIND, CONSTANT, ORACLE, RANDOM, ROUTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

__all__ = ["BaselineCell", "BaselineLine", "baseline_rows"]


class BaselineCell(TypedDict):
    """What stands in a cell, and what explains it."""

    text: str
    hint: str


class BaselineLine(TypedDict):
    """One baseline: a cell for each workload."""

    name: str
    note: str
    cells: list[BaselineCell]


_NOTES = {
    ROUTER: "the first of this table, on {} questions that it did not choose by",
    BY_KIND: "the highest score for each kind of question",
    CONSTANT: "the one that was best on other questions",
    RANDOM: "a random mix with the router's mean cost",
    ORACLE: "right where any model is",
}
_NOTHING = "held-out questions"


def baseline_rows(
    table: pd.DataFrame, workloads: Sequence[str], *, name: Callable[[str], str] = str
) -> list[BaselineLine]:
    """The table of `baselines` in short, for showing.

    Args:
        table: from `baselines.baselines`; an empty one gives one row that says why.
        workloads: names, in the order of the columns.
        name: what a model is called, by its id.
    """
    if table.empty:
        note = str(table.attrs.get("note", ""))
        return [{"name": _NOTHING, "note": note, "cells": [{"text": "", "hint": note} for _ in workloads]}]
    rows: dict[Any, dict[str, Any]] = table.to_dict("index")
    items = max(row["items"] for row in rows.values())
    shown = [each for each in BASELINES if each != BY_KIND or _differs(rows, workloads)]
    return [
        {
            "name": each,
            "note": _NOTES[each].format(items),
            "cells": [_cell(rows[workload, each], each, name) for workload in workloads],
        }
        for each in shown
    ]


def _differs(rows: dict[Any, dict[str, Any]], workloads: Sequence[str]) -> bool:
    """Whether the choice by kind is another one than the router's anywhere."""
    return any(rows[each, BY_KIND]["models"] != rows[each, ROUTER]["models"] for each in workloads)


def _cell(row: dict[str, Any], baseline: str, name: Callable[[str], str]) -> BaselineCell:
    is_one = baseline in {ROUTER, CONSTANT} and bool(row["models"])
    who = name(row["models"]) if is_one else ""
    if math.isnan(row["right"]):
        return {"text": who or "not known", "hint": _sentence(row["note"])}
    text = f"{who} · {row['right']:.0%} right" if who else f"{row['right']:.0%} right"
    said = (_right(row, baseline, name), _cost(row), _difference(row), _sentence(row["note"]))
    return {"text": text, "hint": " ".join(filter(None, said))}


def _right(row: dict[str, Any], baseline: str, name: Callable[[str], str]) -> str:
    models = name(row["models"]) if baseline in {ROUTER, CONSTANT} else row["models"]
    who = {
        ORACLE: "At least one model",
        BY_KIND: f"The choice by kind ({models})",
        RANDOM: f"The mix ({models})",
    }
    count, whole = row["right"] * row["items"], int(row["items"])
    number = f"{count:.1f}" if baseline == RANDOM else f"{count:.0f}"
    ends = f"95% interval {row['low']:.0%} to {row['high']:.0%}"
    return f"{who.get(baseline, models)} is right on {number} of {whole} held-out questions, {ends}."


def _cost(row: dict[str, Any]) -> str:
    price = (
        "an unknown price" if math.isnan(row["usd"]) else f"${row['usd']:.3g}" if row["usd"] else "no bill"
    )
    return f"Expected: {row['ms']:,.0f} ms and {price} a call."


def _difference(row: dict[str, Any]) -> str:
    if math.isnan(row["difference"]):
        return ""
    points, low, high = (f"{round(100 * row[f'difference{end}']):+d}" for end in ("", "_low", "_high"))
    return f"{points} points against the best constant model ({low} to {high}): {row['verdict']}."


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}." if note else ""
