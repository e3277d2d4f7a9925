"""How unsure a model was of an answer, as one number: what a trigger could go by.

All are made of *raw* numbers of the tokens that a reader reads: control tokens, a given start and what was
rolled back are left out. Higher means less sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from cartoolkit.trace import Trace

__all__ = ["CONTROL", "SCORES", "doubt_scores", "mean_probability"]

CONTROL = "answer length"
"""No confidence at all, but wrong answers ramble: a score that does not beat this one says nothing."""

SCORES = (
    "1 - lowest probability",
    "1 - surest window of 3",
    "highest entropy",
    "-mean log probability",
    CONTROL,
)
"""Names of the scores: of the least sure token; of the three tokens running whose surest one is least sure;
nats; nats; tokens. "Probability" is that of the likeliest token."""

_WINDOW = 3


def doubt_scores(trace: Trace) -> dict[str, float]:
    """Every score of `SCORES` for one answer; an answer without a token scores 0.

    Raises:
        InvalidRequest: it was decoded without inspection.
    """
    spoken = _spoken(trace)
    top = trace.columns["max_prob"][spoken].astype(np.float64)
    entropy = trace.columns["entropy"][spoken].astype(np.float64)
    if np.isnan(top).any() or np.isnan(entropy).any():
        raise InvalidRequest(
            "the answer was decoded with inspect=False, so nothing can be said about its doubt.",
            hint="Generate with inspect=True.",
        )
    if not top.size:
        return dict.fromkeys(SCORES, 0.0)
    values = (
        1 - top.min(),
        1 - _surest_window(top),
        entropy.max(),
        -np.log(np.maximum(top, 1e-12)).mean(),
        top.size,
    )
    return {name: float(value) for name, value in zip(SCORES, values, strict=True)}


def mean_probability(trace: Trace) -> float:
    """Mean raw probability of the tokens of an answer; 1 for an answer without any."""
    logprobs = trace.columns["logprob"][_spoken(trace)].astype(np.float64)
    return float(np.exp(logprobs).mean()) if logprobs.size else 1.0


def _spoken(trace: Trace) -> np.ndarray:
    return trace.flag("kept") & ~trace.flag("special") & ~trace.flag("forced")


def _surest_window(top: np.ndarray) -> float:
    """The lowest that the highest of `_WINDOW` values running is; of all values if there are fewer.

    >>> _surest_window(np.array([0.9, 0.2, 0.3, 0.4, 0.8]))
    0.4
    """
    windows = np.lib.stride_tricks.sliding_window_view(top, min(_WINDOW, top.size))
    return float(windows.max(axis=1).min())
