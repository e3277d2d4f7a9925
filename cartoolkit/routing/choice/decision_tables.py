"""A decision as a table: for computing with (pandas), for a terminal (text), for a notebook (HTML)."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from cartoolkit.routing.choice.situation import counted
from cartoolkit.routing.choice.weights import shown_weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from cartoolkit.routing.choice.decision import Candidate, Decision
    from cartoolkit.routing.choice.scores import Score, Term
    from cartoolkit.routing.rows.schema import Basis

__all__ = ["COLUMNS", "frame_of", "html_of", "text_of"]

_TERMS = ("quality", "latency", "cost")
COLUMNS = (
    "rank", "score",
    *(f"{name}{part}" for name in _TERMS for part in ("_weight", "", "_basis", "_from")),
    "local_bonus", "latency_ms", "usd",
    "successes", "failures", "reliability", "worth", "drawn", "wins", "filtered",
)  # fmt: skip
"""What a row of the frame holds.

``score`` is the sum of the three terms times their weights, and ``local_bonus``; ``quality_from`` and the
like say where a term comes from; ``worth`` is ``reliability`` times ``score``, and ``reliability`` comes from
the score, ``successes`` and ``failures`` as `selection` says. ``usd`` is the price of the call: 0 where
nobody bills, NaN where it is not known. A filtered model has NaN for all of them, and its reasons in
``filtered``, which is empty for the others.
"""

_TEXTS = frozenset(name for name in COLUMNS if name.endswith(("_basis", "_from")) or name == "filtered")
_MARKS: dict[Basis, str] = {"measured": "m", "declared": "d", "assumed": "a"}
_LEGEND = "m measured, d declared, a assumed; worth = reliability × score; wins: share of Thompson's draws."


def frame_of(candidates: Sequence[Candidate]) -> pd.DataFrame:
    """One row a model, indexed by id; see `COLUMNS`."""
    import pandas as pd

    rows = [_row(candidate) for candidate in candidates]
    index = pd.Index([candidate.model.id for candidate in candidates], name="model", dtype=object)
    frame = pd.DataFrame(rows, index=index, columns=list(COLUMNS))
    # A column of which nothing is known would else be of objects.
    return frame.astype({name: object if name in _TEXTS else float for name in COLUMNS})


def _row(candidate: Candidate) -> dict[str, object]:
    counts: dict[str, object] = {
        "successes": candidate.evidence.successes,
        "failures": candidate.evidence.failures,
    }
    if candidate.score is None:
        reasons = "; ".join(refusal.reason for refusal in candidate.refused)
        return dict.fromkeys(_TEXTS, "") | counts | {"filtered": reasons}
    scored = candidate.score
    own = {name: getattr(candidate, name) for name in ("rank", "reliability", "worth", "drawn", "wins")}
    terms = {key: value for term in scored.terms for key, value in _term(term).items()}
    return (
        counts | own | terms | {
            "score": scored.total,
            "local_bonus": scored.local_bonus,
            "latency_ms": scored.latency_ms,
            "usd": _usd(candidate, scored),
            "filtered": "",
        }
    )  # fmt: skip


def _usd(candidate: Candidate, scored: Score) -> float:
    if candidate.model.is_local and not candidate.model.cost.is_priced:
        return 0.0
    return math.nan if scored.usd is None else scored.usd


def _term(term: Term) -> dict[str, float | str]:
    return {
        f"{term.name}_weight": term.weight,
        term.name: term.value,
        f"{term.name}_basis": term.basis,
        f"{term.name}_from": term.arithmetic,
    }


def text_of(decision: Decision) -> str:
    """The decision for a terminal: what was decided, a line a model, and how to read it."""
    head, *rows = _grid(decision)
    whole = [row for row in (head, *rows) if len(row) > 2]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    widths[0] = max(len(row[0]) for row in (head, *rows))
    lines = (
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=False)).rstrip()
        for row in (head, *rows)
    )
    return "\n".join([*_story(decision), "", *lines, "", _LEGEND])


def html_of(decision: Decision) -> str:
    """The same for a notebook: no style of its own, nothing that runs."""
    head, *rows = _grid(decision)
    story = "<br>".join(html.escape(line) for line in _story(decision))
    body = "".join(f"<tr>{_cells(row, len(head))}</tr>" for row in rows)
    heading = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    return f"<p>{story}</p><table><tr>{heading}</tr>{body}</table><p>{html.escape(_LEGEND)}</p>"


def _cells(row: Sequence[str], columns: int) -> str:
    """A row of a table; a filtered model's reasons take the place of all its figures."""
    if len(row) == 2:
        name, reason = map(html.escape, row)
        return f'<td>{name}</td><td colspan="{columns - 1}"><i>{reason}</i></td>'
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in row)


def _story(decision: Decision) -> list[str]:
    """What was asked, what was decided, what comes next, and what was not followed."""
    demand = decision.demand
    asked = f"{decision.profile.name}, {decision.task}: {counted(demand.prompt_tokens)} in, "
    asked += f"{demand.output_tokens:,} out."
    if decision.assessment:
        asked += f" The prompt is {decision.assessment.complexity}: {decision.assessment.because}."
    lines = [asked, decision.reason]
    if decision.fallbacks:
        lines.append(f"If it fails: {', '.join(decision.fallbacks)}.")
    return lines + [f"Not followed: {clause}." for clause in decision.set_aside]


def _grid(decision: Decision) -> list[list[str]]:
    """Headings, then a row a model: all its figures, or its name and the reasons alone."""
    head = ["model", "rank", "score", *_TERMS, "bonus", "reliability", "worth", "wins"]
    return [head, *(_line(candidate) for candidate in decision.candidates)]


def _line(candidate: Candidate) -> list[str]:
    if candidate.score is None:
        return [candidate.model.id, "; ".join(refusal.reason for refusal in candidate.refused)]
    scored: Score = candidate.score
    terms = (f"{shown_weight(t.weight)} × {t.value:.3f} {_MARKS[t.basis]}" for t in scored.terms)
    means = (f"{number:.3f}" for number in (candidate.reliability, candidate.worth) if number is not None)
    wins = "" if candidate.wins is None else f"{candidate.wins:.0%}"
    return [
        candidate.model.id,
        str(candidate.rank),
        f"{scored.total:.3f}",
        *terms,
        shown_weight(scored.local_bonus),
        *means,
        wins,
    ]
