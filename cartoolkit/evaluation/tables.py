"""An evaluation as tables: for computing with (pandas), for a document (Markdown), for a notebook (HTML)."""

from __future__ import annotations

import html
import itertools
import math
from typing import TYPE_CHECKING

import pandas as pd

from cartoolkit.evaluation.summary import METRICS, Line, columns_of, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cartoolkit.evaluation.evaluation import Evaluation
    from cartoolkit.evaluation.statistics import Interval

__all__ = ["frame_of", "grid", "html_of", "markdown_of"]

_PARTS = ("value", "low", "high")
_COLUMNS = [
    ("questions", ""), ("errors", ""),
    *((name, part) for name in (*METRICS, "difference") for part in _PARTS),
    ("better", ""), ("worse", ""), ("p", ""),
]  # fmt: skip


def frame_of(lines: Sequence[Line], by: str | Sequence[str] | None) -> pd.DataFrame:
    """One row a line, indexed by group and policy.

    Columns are pairs: a mean with ``value``, ``low`` and ``high``, so that ``frame["match"]`` is a table of
    its own; ``difference`` to the baseline likewise; and ``questions``, ``errors``, ``better`` and ``worse``
    (pairs that differ) and ``p`` with an empty second name.
    """
    names = [*columns_of(by), "policy"]
    keys = [(*line.group, line.policy) for line in lines]
    index = pd.MultiIndex.from_arrays(list(zip(*keys, strict=True)) or [[] for _ in names], names=names)
    columns = pd.MultiIndex.from_tuples(_COLUMNS)
    rows = [_row(line) for line in lines]
    frame = pd.DataFrame(rows, index=index, columns=columns)
    return frame if len(names) > 1 else frame.set_axis(index.get_level_values(0), axis=0)


def _row(line: Line) -> list[float]:
    """The figures of a line, as `_COLUMNS` names them."""
    unknown = (math.nan,) * 3
    intervals = [*(line.means[name] for name in METRICS), line.difference or unknown]
    ends = [end for interval in intervals for end in interval]
    return [line.questions, line.errors, *ends, *(line.test or unknown)]


def markdown_of(evaluation: Evaluation, lines: Sequence[Line], baseline: str) -> str:
    """A table a group, what they were measured on, and how to read them."""
    parts = [_measured_on(evaluation)]
    for group, members in _groups(lines):
        title = f"**{', '.join(group)}**, " if group else ""
        head, *rows = grid(members, baseline)
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
        parts += [
            f"{title}{max(line.questions for line in members)} questions",
            table,
            verdict(members, baseline),
        ]
    parts.append(
        "In brackets: 95 % bootstrap intervals, questions drawn within kind and relation; where all answers "
        "are alike they have no width, and up to 3 / n may still be otherwise. p: exact McNemar test of the "
        f"answers against {baseline}, not corrected for the number of policies. Tokens and seconds are means "
        "a question; decoded includes what was rolled back."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def html_of(lines: Sequence[Line], baseline: str) -> str:
    """The same tables for a notebook: no style of their own, nothing that runs."""
    return "".join(_table_html(group, grid(members, baseline)) for group, members in _groups(lines))


def _table_html(group: tuple[str, ...], rows: list[list[str]]) -> str:
    head, *body = [[html.escape(cell) for cell in row] for row in rows]
    cells = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in body)
    title = f"<p><b>{html.escape(', '.join(group))}</b></p>" if group else ""
    return f"{title}<table><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>{cells}</table>"


def _groups(lines: Sequence[Line]) -> Iterator[tuple[tuple[str, ...], list[Line]]]:
    for group, members in itertools.groupby(lines, key=lambda line: line.group):
        yield group, list(members)


def grid(lines: Sequence[Line], baseline: str) -> list[list[str]]:
    """The lines of one group as cells, headings first."""
    answerable = any(line.is_answerable for line in lines)
    quality = ["match", f"p against {baseline}", "exact"] if answerable else ["made up"]
    costs = ["fired", "look-ups", "decoded", "prefilled", "re-used", "seconds"]
    return [["policy", *quality, *costs], *(_cells(line, answerable=answerable) for line in lines)]


def _cells(line: Line, *, answerable: bool) -> list[str]:
    means = line.means
    name = f"{line.policy} ({line.errors} failed)" if line.errors else line.policy
    if answerable:
        p = "" if line.test is None else "< 0.001" if line.test.p < 0.001 else f"{line.test.p:.3f}"
        quality = [_share(means["match"]), p, _number(means["exact"], ".0%")]
    else:
        quality = [_share(means["made_up"])]
    return [
        name,
        *quality,
        _number(means["fired"], ".0%"),
        _number(means["look_ups"], ".2f"),
        _number(means["decoded"], ".1f"),
        _number(means["prefilled"], ".0f"),
        _number(means["reused"], ".0f"),
        _number(means["seconds"], ".2f"),
    ]


def _share(interval: Interval) -> str:
    if math.isnan(interval.value):
        return ""
    return f"{interval.value:.0%} [{100 * interval.low:.0f}, {100 * interval.high:.0f}]"


def _number(interval: Interval, form: str) -> str:
    return "" if math.isnan(interval.value) else f"{interval.value:{form}}"


def _measured_on(evaluation: Evaluation) -> str:
    about = evaluation.about
    model, params = about.get("model", {}), about.get("request", {}).get("params", {})
    said = (
        f"{model.get('name')} on {model.get('engine')} ({model.get('device')}, {model.get('dtype')}), "
        f"retriever {about.get('retriever')}, temperature {params.get('temperature')}, "
        f"at most {params.get('max_tokens')} tokens."
    )
    return f"{said} {evaluation.missing} runs are still missing." if evaluation.missing else said
