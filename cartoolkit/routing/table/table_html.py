"""A table of scores as a still page fragment: models down, workloads across, a number and its terms a cell.

As in `trace.static_html` there are only inline styles and ``#hex`` colours, which is all that survives in a
notebook that nobody trusts. Nothing is said by colour alone: each bar stands under its numbers, whose title
spells the terms out, and a model that is left out has the reason in its cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from cartoolkit.trace.glyphs import clip, printable
from cartoolkit.trace.html_style import DIM, INK, LINE, MONO, OTHER, PAPER, SMALL, SOFT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "BAR_WIDTH",
    "COLOURS",
    "ShownCell",
    "ShownColumn",
    "ShownRow",
    "legend_html",
    "paper_html",
    "scale_of",
    "table_html",
    "wins_text",
]

COLOURS = {"quality": "#0b5cad", "latency": "#1a936f", "cost": "#8a6fd1", "local bonus": "#d98a06"}
BAR_WIDTH = 136
"""Pixels of the longest bar; all bars of a table have one scale."""

_LONGEST_REASON = 160


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A workload: its name, and its weights in words."""

    title: str
    weights: str


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A model under a workload.

    Attributes:
        score: None where the model is left out.
        rank: 1 for the first.
        wins: share of draws, 0 to 1; None where it is not known.
        parts: what each term and the bonus add, by name.
        reason: why it is left out.
    """

    score: float | None = None
    rank: int | None = None
    wins: float | None = None
    parts: tuple[tuple[str, float], ...] = ()
    reason: str = ""

    @property
    def spelt_out(self) -> str:
        """The terms in words, such as `quality 0.347 + latency 0.299 = 0.646`."""
        if self.score is None:
            return self.reason
        return " + ".join(f"{name} {points:.3f}" for name, points in self.parts) + f" = {self.score:.3f}"


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A model: its name, what else is to be said of it, and its cells."""

    title: str
    note: str
    cells: tuple[ShownCell, ...]


def wins_text(share: float) -> str:
    """A share of draws as people read it: none and all are said only where it is none or all.

    >>> wins_text(0.004), wins_text(0.66), wins_text(0.9999), wins_text(0)
    ('<1%', '66%', '>99%', '0%')
    """
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def scale_of(rows: Iterable[ShownRow]) -> float:
    """The score that fills a bar: 1, or the largest one that is above it."""
    scores = (cell.score for row in rows for cell in row.cells if cell.score is not None)
    return max(1.0, *scores, 1.0)


def table_html(
    columns: Sequence[ShownColumn],
    rows: Sequence[ShownRow],
    plain: Sequence[tuple[str, str, Sequence[str]]] = (),
) -> str:
    """The table alone.

    Args:
        columns: the workloads.
        rows: the models.
        plain: rows of text below them, each a name, a note and a text for each workload.
    """
    scale = scale_of(rows)
    head = _cell("model", "th", ink=DIM) + "".join(
        _cell(f"{_text(c.title)}<br>{_small(c.weights)}", "th", ink=DIM) for c in columns
    )
    body = "".join(f"<tr>{_name(r.title, r.note)}{_cells(r, scale)}</tr>" for r in rows)
    more = "".join(
        f"<tr>{_name(name, note)}{''.join(_cell(_text(text), 'td', ink=DIM) for text in texts)}</tr>"
        for name, note, texts in plain
    )
    # A notebook gives tables stripes and alignments of its own; what is not said here is theirs.
    style = f"border-collapse:collapse;background:{PAPER};color:{INK};font-size:13px;margin:0"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>'


def legend_html() -> str:
    """The colours by name, and the formula."""
    keys = "".join(
        f'<span style="margin-right:14px">{_block(colour, 10, 10)} {name}</span>'
        for name, colour in COLOURS.items()
    )
    formula = "score = wq·quality + wl·latency + wc·cost + local bonus; wins: share of Thompson's draws"
    return f'<div style="{SMALL};margin:0 0 6px">{keys}{formula}</div>'


def paper_html(*parts: str) -> str:
    """Parts on paper of their own, so that they read the same on a light and on a dark page."""
    style = (
        f"background:{PAPER};color:{INK};border:1px solid {LINE};border-radius:6px;padding:10px 12px;"
        "overflow-x:auto;font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;text-align:left"
    )
    return f'<div style="{style}">{"".join(parts)}</div>'


def _text(text: str, limit: int = _LONGEST_REASON) -> str:
    return escape(printable(clip(text, limit)))


def _small(text: str) -> str:
    return f'<span style="{SMALL}">{_text(text)}</span>'


def _cell(content: str, tag: str, *, ink: str = INK, paper: str = PAPER) -> str:
    style = (
        f"background:{paper};color:{ink};border-top:1px solid {LINE};padding:5px 9px;vertical-align:top;"
        "text-align:left;font-weight:normal;max-width:220px;overflow-wrap:anywhere"
    )
    return f'<{tag} style="{style}">{content}</{tag}>'


def _name(title: str, note: str) -> str:
    name = f'<span style="display:inline-block;min-width:150px"><b>{_text(title)}</b></span>'
    return _cell(f"{name}<br>{_small(note)}", "td")


def _cells(row: ShownRow, scale: float) -> str:
    return "".join(_shown(cell, scale) for cell in row.cells)


def _shown(cell: ShownCell, scale: float) -> str:
    if cell.score is None:
        reason = f'<span style="color:{OTHER}">left out</span><br>{_small(cell.reason)}'
        return _cell(reason, "td", ink=DIM, paper=SOFT)
    number = f"<b>{cell.score:.3f}</b>" if cell.rank == 1 else f"{cell.score:.3f}"
    wins = "" if cell.wins is None else f" · wins {wins_text(cell.wins)}"
    rank = f'<span style="color:{DIM}">#{cell.rank}{wins}</span>'
    line = f'<span style="{MONO};font-size:12px">{number} {rank}</span>'
    bars = "".join(
        _block(COLOURS[name], round(BAR_WIDTH * points / scale), 9)
        for name, points in cell.parts
        if points > 0
    )
    left = BAR_WIDTH - sum(round(BAR_WIDTH * points / scale) for _, points in cell.parts if points > 0)
    bars += _block(LINE, max(0, left), 9)
    title = escape(cell.spelt_out, quote=True)
    return _cell(
        f'<span title="{title}">{line}<br><span style="white-space:nowrap">{bars}</span></span>', "td"
    )


def _block(colour: str, width: int, height: int) -> str:
    return f'<span style="display:inline-block;background:{colour};width:{width}px;height:{height}px"></span>'
