"""The heat map of a score table. It draws on the axes given or on new ones, and changes no style."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from cartoolkit.trace.glyphs import clip, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cartoolkit.routing.table.score_table import ScoreTable
    from cartoolkit.routing.table.table_html import ShownCell

__all__ = ["plot_scores"]

_DIM = "#5b6570"
_MAP = "cividis"  # even steps of lightness, and the same to colour-blind readers
_CELL = (1.5, 0.62)
"""Inches."""

_LONGEST_NAME = 40
_REASON = (25, 3)
"""Characters a line, and lines, that a reason may have in its cell."""


def plot_scores(table: ScoreTable, ax: Axes | None = None) -> Axes:
    """Models down, workloads across: each cell's colour and number are the score, #1 is the first choice.

    Numbers, ranks and the frame around each first choice say the same without colour; a cell whose model is
    left out is hatched and says why in short.

    Args:
        table: with no models, the axes say so.
        ax: where to draw; a new figure that fits the table if None.
    """
    ax = ax or _new_axes(table)
    names, rows = table.workloads, table.rows()
    ax.set_title("score by model and workload; # is the rank by expected worth", fontsize=9, loc="left")
    if not rows:
        ax.set_axis_off()
        ax.text(0.5, 0.5, "no models", ha="center", va="center", transform=ax.transAxes)
        return ax
    scores = np.array([[np.nan if c.score is None else c.score for c in row.cells] for row in rows])
    top = max(1.0, float(np.nanmax(scores))) if np.isfinite(scores).any() else 1.0
    image = ax.imshow(np.ma.masked_invalid(scores), cmap=_MAP, vmin=0, vmax=top, aspect="auto")
    for y, row in enumerate(rows):
        for x, cell in enumerate(row.cells):
            _draw_cell(ax, x, y, cell, top)
    ax.set_xticks(range(len(names)), [_wrapped(name, 18, 2) for name in names])
    ax.set_yticks(range(len(rows)), [_text(row.title, _LONGEST_NAME) for row in rows])
    ax.tick_params(length=0, labelsize=8)
    ax.xaxis.tick_top()
    bar = ax.figure.colorbar(image, ax=ax, pad=0.02, fraction=0.05)
    bar.set_label("score (0 to 1, plus the local bonus)", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    return ax


def _new_axes(table: ScoreTable) -> Axes:
    width = 3.6 + _CELL[0] * max(1, len(table.workloads))
    height = 1.1 + _CELL[1] * max(1, len(table.index))
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _draw_cell(ax: Axes, x: int, y: int, cell: ShownCell, top: float) -> None:
    if cell.score is None:
        box = Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#c3cad1", linewidth=0)
        ax.add_patch(box)
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        reason = _wrapped(cell.reason, *_REASON)
        ax.text(x, y, reason, ha="center", va="center", fontsize=6, color=_DIM, bbox=paper)
        return
    ink = _ink(cell.score / top)
    weight = "bold" if cell.rank == 1 else "normal"
    text = f"{cell.score:.3f}  #{cell.rank}"
    ax.text(x, y, text, ha="center", va="center", fontsize=9, color=ink, fontweight=weight)
    if cell.rank == 1:
        frame = Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False, edgecolor=ink, linewidth=1.4)
        ax.add_patch(frame)


def _ink(share: float) -> str:
    """Black or white, whichever stands out more against that place of the colour map."""
    red, green, blue, _ = mpl.colormaps[_MAP](share)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def _text(text: str, limit: int) -> str:
    # A dollar sign would start a formula.
    return printable(clip(text, limit)).replace("$", r"\$")


def _wrapped(text: str, width: int, lines: int) -> str:
    wrapped = textwrap.wrap(printable(text), width, max_lines=lines, placeholder=" …", break_on_hyphens=False)
    return "\n".join(wrapped).replace("$", r"\$")
