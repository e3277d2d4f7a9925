"""Matplotlib figures of evaluations and calibrations, in the colours of a trace's; they change no style."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from cartoolkit.evaluation.scores import CONTROL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cartoolkit.evaluation.calibration import Calibration
    from cartoolkit.evaluation.summary import Line

__all__ = ["plot_calibration", "plot_summary"]

_CURVE, _LOW, _CUT, _RAW, _DIM, _GRID = "#0b5cad", "#d97706", "#b42318", "#8a97a5", "#5b6570", "#d9dee3"


def plot_summary(lines: Sequence[Line], baseline: str) -> Figure:
    """A row of axes a group: answers that are right on the left, tokens they cost on the right.

    On the left a point with its 95 % interval, and a dashed line at the baseline. Where a group has no
    answers in the corpus, the share of invented answers stands there instead. On the right one bar a
    policy: tokens read, tokens decoded that stand, and tokens decoded that were rolled back.

    Args:
        lines: at least one; see `cartoolkit.evaluation.summary`.
        baseline: policy that the others are compared with.
    """
    groups = [list(members) for _, members in itertools.groupby(lines, key=lambda line: line.group)]
    heights = [1.0 + 0.32 * len(members) for members in groups]
    figure, rows = plt.subplots(
        len(groups) or 1,
        2,
        figsize=(10, sum(heights) or 2),
        layout="constrained",
        squeeze=False,
        height_ratios=heights or [1],
    )
    if not groups:
        _say(rows[0][0], "no runs yet")
        rows[0][1].set_axis_off()
    for members, (left, right) in zip(groups, rows, strict=False):
        _draw_quality(left, members, baseline)
        _draw_cost(right, members)
    return figure


def _draw_quality(ax: Axes, lines: Sequence[Line], baseline: str) -> None:
    name = "match" if any(line.is_answerable for line in lines) else "made_up"
    what = "right answers" if name == "match" else "invented answers, of questions without one"
    shares = [line.means[name] for line in lines]
    values = np.array([each.value for each in shares])
    ends = np.array([[each.value - each.low, each.high - each.value] for each in shares]).T
    places = np.arange(len(lines))
    colours = [_RAW if line.policy == "oracle" else _CURVE for line in lines]
    for place, value, end, colour in zip(places, values, ends.T, colours, strict=True):
        ax.errorbar(value, place, xerr=end[:, None], fmt="o", color=colour, capsize=3, linewidth=1.4)
        ax.annotate(
            f"{value:.0%}",
            (value, place),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            bbox={"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.5},
        )
    reference = [line.means[name].value for line in lines if line.policy == baseline]
    if reference:
        ax.axvline(reference[0], color=_CUT, linestyle="--", linewidth=1, label=baseline, zorder=1)
        _legend(ax, 1)
    title = ", ".join(lines[0].group) or "all questions"
    ax.set_title(f"{title} ({max(line.questions for line in lines)})", loc="left", fontsize=10)
    ax.set_xlim(-0.03, 1.03)
    ax.set_xlabel(f"share of {what}, 95 % interval", fontsize=9)
    _name_policies(ax, lines)


def _draw_cost(ax: Axes, lines: Sequence[Line]) -> None:
    means = [line.means for line in lines]
    kept = np.array([each["kept"].value for each in means])
    parts = {
        "read": (np.array([each["prefilled"].value for each in means]), _RAW),
        "decoded, kept": (kept, _CURVE),
        "decoded, rolled back": (np.array([each["decoded"].value for each in means]) - kept, _LOW),
    }
    start = np.zeros(len(lines))
    for label, (tokens, colour) in parts.items():
        ax.barh(np.arange(len(lines)), np.nan_to_num(tokens), 0.62, left=start, color=colour, label=label)
        start = start + np.nan_to_num(tokens)
    ax.set_xlabel("tokens a question", fontsize=9)
    _legend(ax, 3)
    _name_policies(ax, lines)


def _name_policies(ax: Axes, lines: Sequence[Line]) -> None:
    ax.set_yticks(range(len(lines)), [line.policy for line in lines], fontsize=9)
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.set_ylim(len(lines) - 0.4, -0.7)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=_GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)


def plot_calibration(calibration: Calibration) -> Figure:
    """Three axes: the trigger over its thresholds, the scores with their control, the reliability curve."""
    figure, (sweep, scores, curve) = plt.subplots(
        1, 3, figsize=(13, 3.6), layout="constrained", width_ratios=(1.2, 1, 0.9)
    )
    _draw_sweep(sweep, calibration)
    _draw_scores(scores, calibration)
    _draw_reliability(curve, calibration)
    return figure


def _draw_sweep(ax: Axes, calibration: Calibration) -> None:
    thresholds = [line.threshold for line in calibration.sweep]
    curves = (
        ("recall", "recall: wrong answers found", _CURVE, "-"),
        ("false_alarms", "false alarms: right answers", _LOW, "-"),
        ("precision", "precision", _DIM, ":"),
    )
    for name, label, colour, style in curves:
        values = [getattr(line, name) for line in calibration.sweep]
        ax.plot(thresholds, values, style, color=colour, linewidth=1.4, marker=".", markersize=4, label=label)
    if not math.isnan(calibration.threshold):
        label = f"chosen: {calibration.threshold:g}"
        ax.axvline(calibration.threshold, color=_CUT, linestyle="--", linewidth=1, label=label)
    name = f"{calibration.policy['name']}: {calibration.policy['trigger']['kind']}"
    _frame(ax, name, "threshold")
    ax.legend(frameon=False, fontsize=8, loc="best")


def _draw_scores(ax: Axes, calibration: Calibration) -> None:
    places = np.arange(len(calibration.scores))
    for place, line in zip(places, calibration.scores, strict=True):
        colour = _RAW if line.name == CONTROL else _CURVE
        ends = [[line.auroc - line.low], [line.high - line.auroc]]
        ax.errorbar(line.auroc, place, xerr=ends, fmt="o", color=colour, capsize=3, linewidth=1.4)
    within = [line.within_length for line in calibration.scores]
    ax.plot(within, places, "D", color=_LOW, markersize=4, label="among answers equally long")
    ax.axvline(0.5, color=_CUT, linestyle="--", linewidth=1, label="a coin")
    _frame(ax, "wrong answers against right ones", "AUROC, 95 % interval")
    ax.set_yticks(places, [line.name for line in calibration.scores], fontsize=8)
    ax.set_ylim(len(places) - 0.4, -0.9)
    ax.set_xlim(0.3, 1.03)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=2, borderaxespad=0)


def _draw_reliability(ax: Axes, calibration: Calibration) -> None:
    claimed = [each.probability for each in calibration.reliability]
    true = [each.right for each in calibration.reliability]
    ax.plot([0, 1], [0, 1], "--", color=_CUT, linewidth=1, label="as claimed")
    label = f"{calibration.count} answers, ECE {calibration.calibration_error:.2f}"
    ax.plot(claimed, true, color=_CURVE, linewidth=1.4, marker="o", markersize=4, label=label)
    _frame(ax, "what the model claims", "mean raw probability of the answer")
    ax.set_ylabel("share that is right", fontsize=9)
    ax.set_xlim(-0.03, 1.03)
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def _frame(ax: Axes, title: str, label: str) -> None:
    ax.set_title(title, loc="left", fontsize=10).set_parse_math(False)
    ax.set_xlabel(label, fontsize=9)
    ax.set_ylim(-0.03, 1.03)
    ax.grid(color=_GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _legend(ax: Axes, columns: int) -> None:
    ax.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=columns,
        frameon=False,
        fontsize=8,
        borderaxespad=0.2,
        handlelength=1.2,
    )


def _say(ax: Axes, sentence: str) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, ha="center", va="center", color=_DIM)
