"""Two runs beside each other: where their tokens part, and how far their distributions differ until then.

Steps can be compared as long as both models have read the same tokens. Two runs that were decoded freely
are compared up to and including the first step at which they chose differently; two that scored the same
text (`Engine.score`) are compared to its end.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd

from cartoolkit.errors import TraceError
from cartoolkit.trace.glyphs import visible_line
from cartoolkit.trace.summary import why_uninspected
from cartoolkit.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COMPARISON_FRAME", "Comparison", "compare"]

COMPARISON_FRAME = {
    "label": "the token of the first run, as a name",
    "label_b": "the token of the second run; another one only in the row where they part",
    "logprob_a": "raw log-probability of the first run's token in the first run, natural log",
    "logprob_b": "raw log-probability of that token in the second run, natural log; NaN if unknown there",
    "rank_a": "its place in the raw distribution of the first run",
    "rank_b": "its place in that of the second run; 0 if unknown there",
    "entropy_a": "of the raw distribution of the first run, nats",
    "entropy_b": "of that of the second run, nats",
    "same_top": "whether both find the same token likeliest",
    "kl": "Kullback-Leibler divergence of the second from the first, nats: at least this much",
    "total_variation": "largest difference of the probability of any set of tokens: at least this much",
}
"""Columns of `Comparison.to_frame` and what they hold."""


class HasTrace(Protocol):
    """A result or a session."""

    @property
    def trace(self) -> Trace:
        """The record of the run."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What two runs have in common; made by `compare`.

    Divergences are lower bounds: each run records its likeliest tokens only, so the tokens that both
    recorded are compared one by one and all others as one. With 20 candidates little escapes that.

    Attributes:
        a: the first run.
        b: the second run.
        steps: how many steps can be compared.
        parted: index of the first step with different tokens; None if there is none.
        frame: one row a step; see `COMPARISON_FRAME`.
    """

    a: Trace
    b: Trace
    steps: int
    parted: int | None
    frame: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row a step that can be compared; ``frame.attrs`` says what each column is."""
        return self.frame.copy()

    @property
    def same_top(self) -> float:
        """Share of the steps at which both find the same token likeliest; NaN without a step."""
        return float(self.frame["same_top"].to_numpy().mean()) if self.steps else float("nan")

    @property
    def mean_kl(self) -> float:
        """Mean of the lower bounds of the divergence, nats; NaN without a step."""
        return float(self.frame["kl"].to_numpy().mean()) if self.steps else float("nan")

    @property
    def max_kl_step(self) -> int | None:
        """The step at which the distributions differ most."""
        return int(self.frame["kl"].to_numpy().argmax()) if self.steps else None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Probability of each token in both runs, and where their distributions differ."""
        from cartoolkit.trace.figures import plot_comparison

        return plot_comparison(self, ax)

    def __str__(self) -> str:
        both = " and ".join(_names(self.a, self.b))
        if not self.steps:
            return f"{both}: no step to compare."
        end = "the same tokens to the end" if len(self.a) == len(self.b) else "the same tokens until one ends"
        if self.parted is not None:
            row = self.frame.iloc[self.parted]
            end = f"they part at step {self.parted}: {row['label']!r} and {row['label_b']!r}"
        return (
            f"{both}: {self.steps:,} steps, {end}. "
            f"The likeliest token is the same in {self.same_top:.0%} of them; mean divergence ≥ "
            f"{self.mean_kl:.2g} nats, largest ≥ {self.frame['kl'].max():.2g} at step {self.max_kl_step}."
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(visible_line(str(self)))}</div>{self.frame._repr_html_()}"


def compare(a: Trace | HasTrace, b: Trace | HasTrace) -> Comparison:
    """Set two runs of the same prompt beside each other.

    Args:
        a: the first run, as a trace, a result or a session; divergences are of the second from this one.
        b: the second run, of the same model or of another one with the same tokenizer.

    Raises:
        TraceError: they did not read the same prompt, token by token, or one was not inspected.
    """
    a, b = (run if isinstance(run, Trace) else run.trace for run in (a, b))
    if a.prompt_ids.tolist() != b.prompt_ids.tolist():
        raise TraceError(
            f"the runs cannot be compared: they read different prompts ({len(a.prompt_ids):,} and "
            f"{len(b.prompt_ids):,} tokens), or the same text in tokens of different vocabularies.",
            hint="Score the same text with both models: engine.score(prompt, continuation=...).",
        )
    for trace, name in ((a, "first"), (b, "second")):
        if len(trace) and np.isnan(trace.columns["entropy"]).any():
            raise TraceError(
                f"the {name} run was {why_uninspected(trace.header)}, so there is nothing to compare."
            )
    parted = _parting(a, b)
    steps = min(len(a), len(b)) if parted is None else parted + 1
    return Comparison(a, b, steps, parted, _frame(a, b, steps))


def _names(a: Trace, b: Trace) -> tuple[str, str]:
    """Engine and precision of both, with the model where it is another one."""
    one, other = a.header.model, b.header.model
    before = (f"{one.name} ", f"{other.name} ") if one.name != other.name else ("", "")
    return f"{before[0]}{one.engine} {one.dtype}", f"{before[1]}{other.engine} {other.dtype}"


def _parting(a: Trace, b: Trace) -> int | None:
    n = min(len(a), len(b))
    different = np.flatnonzero(a.columns["token_id"][:n] != b.columns["token_id"][:n])
    return int(different[0]) if len(different) else None


def _frame(a: Trace, b: Trace, steps: int) -> pd.DataFrame:
    rows = [_row(a, b, i) for i in range(steps)]
    frame = pd.DataFrame(rows, columns=list(COMPARISON_FRAME))
    frame.index.name = "step"
    frame.attrs.update(COMPARISON_FRAME)
    return frame


def _row(a: Trace, b: Trace, i: int) -> tuple[object, ...]:
    token = a.columns["token_id"][i]
    ids_b = b.columns["candidate_id"][i]
    at = np.flatnonzero(ids_b == token)
    same_choice = bool(token == b.columns["token_id"][i])
    known = len(at) > 0
    kl, variation = _divergences(a, b, i)
    return (
        a[i].label,
        b[i].label,
        float(a.columns["logprob"][i]),
        float(b.columns["candidate_logprob"][i][at[0]]) if known else float("nan"),
        int(a.columns["rank"][i]),
        _rank(b, i, at, is_choice=same_choice),
        float(a.columns["entropy"][i]),
        float(b.columns["entropy"][i]),
        bool(a.columns["candidate_id"][i][0] == ids_b[0]),
        kl,
        variation,
    )


def _rank(trace: Trace, i: int, at: np.ndarray, *, is_choice: bool) -> int:
    """Place of a candidate: they stand in order, but for the chosen one, whose rank is recorded."""
    if is_choice:
        return int(trace.columns["rank"][i])
    return int(at[0]) + 1 if len(at) else 0


def _divergences(a: Trace, b: Trace, i: int) -> tuple[float, float]:
    """KL and total variation over the tokens that both recorded, and all others as one.

    Lumping tokens together never raises a divergence (data-processing inequality), hence the lower bound.
    """
    shared, in_a, in_b = np.intersect1d(
        a.columns["candidate_id"][i], b.columns["candidate_id"][i], return_indices=True
    )
    is_token = shared >= 0
    p = np.exp(a.columns["candidate_logprob"][i][in_a[is_token]].astype(np.float64))
    q = np.exp(b.columns["candidate_logprob"][i][in_b[is_token]].astype(np.float64))
    p, q = (np.append(part, max(1 - part.sum(), 0.0)) for part in (p, q))
    both = (p > 0) & (q > 0)
    kl = float((p[both] * np.log(p[both] / q[both])).sum())
    return max(kl, 0.0), float(np.abs(p - q).sum() / 2)
