"""Matplotlib figures of a trace. They draw on the axes given or on new ones, and change no style."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.ticker import MaxNLocator

from cartoolkit.trace.glyphs import clip, probability, visible, visible_line
from cartoolkit.trace.look_ups import look_ups_of
from cartoolkit.trace.metrics import low_runs
from cartoolkit.trace.summary import why_uninspected
from cartoolkit.trace.text import token_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from cartoolkit.trace.comparison import Comparison
    from cartoolkit.trace.header import TraceHeader
    from cartoolkit.trace.step import Candidate, Step
    from cartoolkit.trace.trace import Trace

__all__ = ["plot_candidates", "plot_comparison", "plot_confidence"]

_CURVE, _LOW, _CUT, _RAW, _DIM = "#0b5cad", "#d97706", "#b42318", "#8a97a5", "#5b6570"
_FOUND = "#0b6b3a"
_NAMED_STEPS = 60
# Families that hold Chinese, Japanese, Korean or emoji, tried after the reader's own and before boxes.
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
    "Noto Emoji",
    "DejaVu Sans",
)


def plot_confidence(trace: Trace, ax: Axes | None = None, *, threshold: float, window: int) -> Axes:
    """The raw max probability of each step along the text.

    Steps below `threshold` are amber, runs of at least `window` of them are shaded. A thin line hangs
    down to the raw probability of the chosen token where that is not the likeliest one. The line joins the
    steps that stand; stretches that were rolled back are dashed, and ▲n stands where look-up n was made,
    green if it found something new. Up to 60 steps are named on the axis, more are numbered.

    Args:
        trace: with nothing recorded, the axes say so.
        ax: where to draw; a new figure of 9 by 3 inches if None.
        threshold: probability.
        window: steps.
    """
    ax = ax or plt.subplots(figsize=(9, 3), layout="constrained")[1]
    values = trace.columns["max_prob"].astype(np.float64)
    _frame(ax, trace)
    if not _has_something_to_show(ax, values, trace.header):
        return ax
    for i, (first, end) in enumerate(low_runs(values, threshold, window)):
        label = f"≥ {window} in a row" if i == 0 else None
        ax.axvspan(first - 0.5, end - 0.5, color=_LOW, alpha=0.18, linewidth=0, label=label)
    ax.axhline(threshold, color=_CUT, linestyle="--", linewidth=1, label=f"threshold {threshold:g}")
    _draw_chosen(ax, trace)
    steps, kept = np.arange(len(values)), trace.flag("kept")
    ax.plot(steps[kept], values[kept], color=_CURVE, linewidth=1.4, marker=".", markersize=4, zorder=3)
    low = values < threshold
    ax.plot(steps[low], values[low], "o", color=_LOW, markersize=4.5, zorder=4)
    _draw_dropped(ax, values, ~kept)
    _mark_look_ups(ax, trace)
    _name_steps(ax, trace)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=8, borderaxespad=0.2)
    return ax


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """The raw probability of each token in both runs, and a bar for how far their distributions differ.

    Args:
        comparison: with no step to compare, the axes say so.
        ax: where to draw; a new figure of 9 by 3 inches if None.
    """
    ax = ax or plt.subplots(figsize=(9, 3), layout="constrained")[1]
    frame, a, b = comparison.frame, comparison.a, comparison.b
    title = clip(visible_line(a.header.model.name), 40)
    _plain(ax.set_title(_drawable(title), loc="left", fontsize=10))
    ax.set_ylabel("raw probability")
    ax.set_ylim(-0.03, 1.03)
    ax.spines[["top", "right"]].set_visible(False)
    if not _has_something_to_show(ax, frame["logprob_a"].to_numpy(np.float64), a.header):
        return ax
    ax.bar(frame.index, frame["total_variation"], color=_LOW, alpha=0.45, label="total variation (at least)")
    curves = (("logprob_a", "first", a, _CURVE, "-"), ("logprob_b", "second", b, _CUT, "--"))
    for column, place, trace, colour, line in curves:
        label = f"{place}: {trace.header.model.engine} {trace.header.model.dtype}"
        ax.plot(frame.index, np.exp(frame[column]), color=colour, linestyle=line, marker=".", label=label)
    if comparison.parted is not None:
        ax.axvline(comparison.parted, color=_DIM, linewidth=1, linestyle=":", label="they part")
    _name_steps(ax, a, comparison.steps)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize=8, borderaxespad=0.2)
    return ax


def _frame(ax: Axes, trace: Trace) -> None:
    title = clip(visible_line(trace.header.model.name), 40)
    if not np.isnan(trace.perplexity):
        title += f", perplexity {trace.perplexity:.2f}"
    _plain(ax.set_title(_drawable(title), loc="left", fontsize=10))
    ax.set_ylabel("raw max probability")
    ax.set_ylim(-0.03, 1.03)
    ax.spines[["top", "right"]].set_visible(False)


def _has_something_to_show(ax: Axes, values: np.ndarray, header: TraceHeader) -> bool:
    if len(values) and not np.isnan(values).all():
        ax.grid(axis="y", color="#d9dee3", linewidth=0.7)
        ax.set_axisbelow(True)
        return True
    reason = f"{why_uninspected(header)}: no probabilities were recorded"
    _say(ax, reason if len(values) else "no tokens yet")
    return False


def _say(ax: Axes, sentence: str) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, ha="center", va="center", color=_DIM)


def _draw_chosen(ax: Axes, trace: Trace) -> None:
    other = np.flatnonzero(trace.columns["rank"] > 1)
    if other.size:
        prob = np.exp(trace.columns["logprob"][other].astype(np.float64))
        ax.vlines(other, prob, trace.columns["max_prob"][other], color=_RAW, linewidth=0.8, zorder=2)
        ax.plot(other, prob, "_", color=_RAW, markersize=5, zorder=2, label="chosen, if rank > 1")


def _draw_dropped(ax: Axes, values: np.ndarray, gone: np.ndarray) -> None:
    """Each stretch that was rolled back, from the step before it; values: float [n], gone: bool [n]."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], gone, [False]))))
    style = {"color": _DIM, "linestyle": "--", "linewidth": 1, "marker": "x", "markersize": 5, "zorder": 5}
    for i, (first, end) in enumerate(zip(edges[::2], edges[1::2], strict=True)):
        begin = max(first - 1, 0)
        marked = list(range(first - begin, end - begin))
        label = "rolled back" if i == 0 else None
        ax.plot(np.arange(begin, end), values[begin:end], markevery=marked, label=label, **style)


def _mark_look_ups(ax: Axes, trace: Trace) -> None:
    """▲n below the curve, before the step with which the text goes on."""
    for look_up in look_ups_of(trace.events):
        at = min(look_up.resumes_at, len(trace)) - 0.5
        color = _FOUND if look_up.outcome == "found" else _DIM
        ax.axvline(at, color=color, linewidth=0.8, linestyle=":", zorder=1)
        ax.annotate(
            f"▲{look_up.number}",
            (at, 0),
            (1, 1),
            textcoords="offset points",
            fontsize=8,
            color=color,
            zorder=6,
        )


def _name_steps(ax: Axes, trace: Trace, count: int | None = None) -> None:
    count = len(trace) if count is None else count
    ax.set_xlim(-0.6, count - 0.4)
    if count > _NAMED_STEPS:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("token")
        return
    names = [_step_name(trace, i) for i in range(count)]
    ax.set_xticks(range(count), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    for text in ax.get_xticklabels():
        _plain(text)


def _step_name(trace: Trace, i: int) -> str:
    own = trace.token_bytes[int(trace.columns["token_id"][i])]
    return _drawable(clip(visible(trace.texts[i] or token_label(own)), 16))


def plot_candidates(trace: Trace, i: int, ax: Axes | None = None, *, most: int = 12) -> Axes:
    """The candidates of step i: raw probability (grey) over the one it could be drawn with (blue).

    A removed candidate is struck out and names the stage that removed it; the chosen one is marked; the
    last row is the rest of the vocabulary.

    Args:
        trace: with nothing recorded at this step, the axes say so.
        i: index of the step; negative from the end.
        ax: where to draw; a new figure if None.
        most: candidates to show, likeliest first; the chosen one is always there.

    Raises:
        IndexError: there is no such step.
    """
    step = trace[i]
    shown = [c for j, c in enumerate(step.candidates) if j < most or c.token_id == step.token_id]
    ax = ax or plt.subplots(figsize=(7, 1.1 + 0.3 * (len(shown) + 1)), layout="constrained")[1]
    title = f"step {step.index}: {_drawable(clip(visible(step.label), 40))}"
    _plain(ax.set_title(title, loc="left", fontsize=10))
    ax.spines[["top", "right", "left"]].set_visible(False)
    if not shown:
        _say(ax, "no candidates were recorded at this step")
        return ax
    raw, drawn = _with_rest([c.prob for c in shown]), _with_rest([c.processed_prob for c in shown])
    rows = np.arange(len(raw))
    ax.barh(rows - 0.19, raw, 0.34, color=_RAW, label="raw")
    ax.barh(rows + 0.19, drawn, 0.34, color=_CURVE, label="drawn from (processed)")
    _name_candidates(ax, step, shown, trace.header.model.vocab_size)
    for row, candidate in enumerate(shown):
        _note_candidate(ax, row, candidate, step)
    ax.invert_yaxis()
    ax.set_xlim(0, min(1.0, max(*raw, *drawn)) * 1.25)  # room for the notes
    ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick <= min(1, ax.get_xlim()[1])])
    ax.set_xlabel("probability")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=8, borderaxespad=0.2)
    return ax


def _with_rest(probs: list[float]) -> list[float]:
    return [*probs, max(0.0, 1 - sum(probs))]


def _name_candidates(ax: Axes, step: Step, shown: list[Candidate], vocab_size: int) -> None:
    names = [_candidate_name(c) for c in shown]
    # Where a server has the vocabulary, nobody knows how many they are.
    count = f"{max(0, vocab_size - len(shown)):,} " if vocab_size else ""
    ax.set_yticks(range(len(names) + 1), [*names, f"{count}others"], fontsize=9)
    ax.tick_params(axis="y", length=0)
    for text, candidate in zip(ax.get_yticklabels(), shown, strict=False):
        _plain(text)
        if candidate.removed_by:
            text.set_color(_DIM)
        text.set_fontweight("bold" if candidate.token_id == step.token_id else "normal")


def _candidate_name(candidate: Candidate) -> str:
    name = _drawable(clip(visible(candidate.text), 24))
    # Matplotlib cannot strike text; the combining stroke of its own font can.
    return "".join(character + "\u0336" for character in name) if candidate.removed_by else name


def _note_candidate(ax: Axes, row: int, candidate: Candidate, step: Step) -> None:
    end = max(candidate.prob, candidate.processed_prob)
    if candidate.removed_by:
        note, color = (
            f"{probability(candidate.prob)}, removed by {candidate.removed_by.replace('_', '-')}",
            _CUT,
        )
    else:
        note, color = f"{probability(candidate.prob)} → {probability(candidate.processed_prob)}", _DIM
    if candidate.token_id == step.token_id:
        note += "  chosen"
    ax.annotate(note, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=8, color=color)


# Names of tokens may hold anything, also what matplotlib takes for mathematics or has no glyph for


def _drawable(name: str) -> str:
    families = _families(tuple(mpl.rcParams["font.family"]))
    return "".join(c if _has_glyph(families, c) else "▯" for c in name)


def _plain(text: Text) -> None:
    text.set_usetex(False)
    text.set_parse_math(False)
    text.set_fontfamily(_families(tuple(mpl.rcParams["font.family"])))


@cache
def _families(own: tuple[str, ...]) -> tuple[str, ...]:
    """The reader's own fonts, then those fallbacks that are installed and are other files."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    by_path: dict[str, str] = {}
    for name in (*own, *(name for name in _FALLBACKS if name in installed)):
        by_path.setdefault(_path(name), name)
    return tuple(by_path.values())


def _path(family: str) -> str:
    return str(font_manager.findfont(font_manager.FontProperties(family=[family])))


@cache
def _has_glyph(families: tuple[str, ...], character: str) -> bool:
    return any(font_manager.get_font(_path(name)).get_char_index(ord(character)) for name in families)
