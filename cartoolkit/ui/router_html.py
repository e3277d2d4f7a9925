"""The still copy of a `RouterTable`: the same state without sliders, as a page fragment and as text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from cartoolkit.routing.choice.weights import shown_weight
from cartoolkit.routing.table.table_html import (
    ShownCell,
    ShownColumn,
    ShownRow,
    legend_html,
    paper_html,
    table_html,
    wins_text,
)
from cartoolkit.trace.glyphs import clip, printable
from cartoolkit.trace.html_style import BOX, CHIP, DIM, LINE, PROSE, SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartoolkit.ui._router_protocol import Cell, Detail, ModelRow, RouterState, RunRow, WorkloadColumn

__all__ = ["state_html", "state_text"]

_NO_MODELS = "There is no model to choose from."
_LONGEST = 600
_VERDICTS = {True: "found right", False: "found wrong", None: ""}


def state_html(state: RouterState) -> str:
    """The whole state on paper of its own."""
    columns = [ShownColumn(each["title"], _weights(each)) for each in state["workloads"]]
    rows = [
        ShownRow(model["title"], _facts(model), tuple(map(_cell, cells)))
        for model, cells in zip(state["models"], state["cells"], strict=True)
    ]
    plain = [(b["name"], b["note"], [cell["text"] for cell in b["cells"]]) for b in state["baselines"]]
    table = table_html(columns, rows, plain) if rows else f"<p>{_NO_MODELS}</p>"
    notices = "".join(f'<p style="{SMALL};margin:4px 0">{_text(each)}</p>' for each in state["notices"])
    return paper_html(
        _head(state), legend_html(), table, notices, _detail(state["detail"]), _runs(state["runs"])
    )


def state_text(state: RouterState) -> str:
    """The same for a terminal: what was asked, a line a model, the chosen cell."""
    return "\n".join(_lines(state))


def _head(state: RouterState) -> str:
    chips = "".join(f'<span style="{CHIP};margin-left:6px">{_text(chip)}</span>' for chip in _chips(state))
    return f'<div style="margin:0 0 8px"><b>Which model answers?</b>{chips}</div>'


def _chips(state: RouterState) -> list[str]:
    question, strategy = state["question"], state["strategy"]
    chips = [
        f"prompt {question['prompt_tokens']:,} tokens",
        f"answer {question['output_tokens']:,} tokens",
        f"task {question['task']}",
        f"{strategy['text']}, prior strength {strategy['prior_strength']:g}",
    ]
    if (usd := question["max_cost_usd"]) is not None:
        chips.append(f"at most ${usd:g} a call")
    if (ms := question["max_latency_ms"]) is not None:
        chips.append(f"at most {ms:,.0f} ms")
    return chips


def _weights(column: WorkloadColumn) -> str:
    weights = " / ".join(shown_weight(column[name]) for name in ("quality", "latency", "cost"))
    changed = " (changed)" if column["changed"] else ""
    return f"{weights} + {shown_weight(column['local_bonus'])}{changed}"


def _facts(model: ModelRow) -> str:
    calls = f"{model['calls']:,} call{'s' * (model['calls'] != 1)}" if model["calls"] else ""
    facts = (model["where"], model["basis"], model["note"], calls)
    return " · ".join(fact for fact in facts if fact)


def _cell(cell: Cell) -> ShownCell:
    if cell["kind"] == "filtered":
        return ShownCell(reason="; ".join(cell["reasons"]))
    parts = (*((term["name"], term["points"]) for term in cell["terms"]), ("local bonus", cell["bonus"]))
    return ShownCell(cell["score"], cell["rank"], cell["wins"], parts)


def _text(text: str, limit: int = _LONGEST) -> str:
    return escape(printable(clip(text, limit)))


def _detail(detail: Detail | None) -> str:
    if detail is None:
        return ""
    lines = "".join(
        f"<li><b>{_text(line['name'])}</b> {_text(line['arithmetic'])}{_basis(line['basis'])}</li>"
        for line in detail["lines"]
    )
    chain = (
        f"<div>If it fails: {_text(' → '.join(detail['fallbacks']))}.</div>" if detail["fallbacks"] else ""
    )
    changes = "".join(f"<li>{_text(change['text'])}</li>" for change in detail["changes"])
    what = f"<div><b>What would change it</b><ul>{changes}</ul></div>" if changes else ""
    told = f"<div>{_text(detail['sum'])}</div><div>{_text(detail['worth'])}</div>"
    style = f"{BOX};{SMALL};padding:8px 10px;margin:10px 0 0"
    return f'<div style="{style}"><b>{_text(detail["title"])}</b><ul>{lines}</ul>{told}{chain}{what}</div>'


def _basis(basis: str) -> str:
    return f" ({_text(basis)})" if basis else ""


def _runs(runs: list[RunRow]) -> str:
    return "".join(
        f'<div style="border-top:1px solid {LINE};margin:8px 0 0;padding:6px 0 0">'
        f"<b>{_text(run['model'])}</b> "
        f'<span style="color:{DIM}">{_text(_ending(run))}</span>'
        f'<div style="{SMALL}">{_text(run["story"])}</div>'
        f'<div style="{PROSE}">{_text(run["text"])}</div></div>'
        for run in runs
    )


def _ending(run: RunRow) -> str:
    ms = "" if run["ms"] is None else f"{run['ms']:,.0f} ms"
    parts = (
        run["outcome"],
        ms,
        f"{run['tokens']:,} token{'s' * (run['tokens'] != 1)}",
        _VERDICTS[run["verdict"]],
    )
    return ", ".join(part for part in parts if part)


def _lines(state: RouterState) -> Iterator[str]:
    yield f"Which model answers? {'; '.join(_chips(state))}."
    if not state["models"]:
        yield _NO_MODELS
    for i, column in enumerate(state["workloads"] if state["models"] else ()):
        yield ""
        yield f"{column['title']} ({_weights(column)})"
        for model, cells in zip(state["models"], state["cells"], strict=True):
            yield f"  {model['title']}: {_in_words(cells[i])}"
    if (detail := state["detail"]) is not None:
        yield ""
        yield detail["title"]
        yield from (f"  {line['name']}: {line['arithmetic']}" for line in detail["lines"])
        yield from (f"  {line}" for line in (detail["sum"], detail["worth"]) if line)
        yield from (f"  {change['text']}" for change in detail["changes"])
    yield from (f"{run['model']}, {_ending(run)}: {clip(run['text'], _LONGEST)}" for run in state["runs"])


def _in_words(cell: Cell) -> str:
    if cell["kind"] == "filtered":
        return f"left out: {'; '.join(cell['reasons'])}"
    return f"{cell['score']:.3f} #{cell['rank']}, wins {wins_text(cell['wins'])}"
