"""What a row of raw logits says, before anything touches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.engine.ordering import top_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Inspection", "inspect_row", "token_logprobs"]


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """The raw distribution of one step, summarised.

    Attributes:
        logits: float32 [vocab], the row itself.
        log_normaliser: log of the sum of exponentials; a logit minus this is a logprob.
        entropy: nats.
        varentropy: variance of the surprisal, nats².
        top: int64 [k], the likeliest ids in order.
    """

    logits: np.ndarray
    log_normaliser: float
    entropy: float
    varentropy: float
    top: np.ndarray

    def logprobs(self, ids: np.ndarray) -> np.ndarray:
        """Raw natural-log probabilities, float64 [len(ids)]."""
        return self.logits[ids].astype(np.float64) - self.log_normaliser

    def rank(self, token_id: int) -> int:
        """Place of a token in the raw order, 1 is likeliest; ties go by token id."""
        value = self.logits[token_id]
        above = np.count_nonzero(self.logits > value)
        return int(above + np.count_nonzero(self.logits[:token_id] == value)) + 1

    @property
    def max_prob(self) -> float:
        """Raw probability of the likeliest token."""
        return float(np.exp(self.logprobs(self.top[:1])[0]))

    @property
    def margin(self) -> float:
        """Raw probability of the likeliest token less that of the second."""
        probs = np.exp(self.logprobs(self.top[:2]))
        return float(probs[0] - (probs[1] if len(probs) > 1 else 0.0))


def token_logprobs(rows: np.ndarray, ids: Sequence[int]) -> np.ndarray:
    """Raw logprob of one token a row.

    rows: float32 [n, vocab] logits; ids: int [n]. Returns float64 [n], natural log.

    >>> token_logprobs(np.log(np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)), [1, 0]).round(4)
    array([-0.2877, -0.6931])
    """
    top = rows.max(axis=1, keepdims=True)
    totals = np.exp(rows - top).sum(axis=1, dtype=np.float64)
    chosen = rows[np.arange(len(rows)), np.asarray(ids, np.int64)]
    return chosen.astype(np.float64) - top[:, 0] - np.log(totals)


def inspect_row(logits: np.ndarray, k: int) -> Inspection:
    """Summarise one row: one exponential a token, no sort of the row.

    Sums run in float64 and the variance is taken around the mean: over a vocabulary, float32 sums
    lose the third digit.

    logits: float32 [vocab], finite somewhere, no NaN; k ≥ 1 candidates wanted.

    >>> row = inspect_row(np.log(np.array([0.25, 0.5, 0.25], np.float32)), 2)
    >>> row.top, round(row.entropy, 4), round(row.varentropy, 4)
    (array([1, 0]), 1.0397, 0.1201)
    """
    with np.errstate(over="ignore"):
        # A token that cannot occur adds nothing, but -inf times its probability would be NaN.
        shifted = np.maximum(logits - logits.max(), np.float32(-1e6))
    weights = np.exp(shifted).astype(np.float64)
    surprisal = -shifted.astype(np.float64)
    total = float(weights.sum())
    mean = _dot(weights, surprisal) / total
    surprisal -= mean
    variance = _dot(weights, surprisal * surprisal) / total
    return Inspection(
        logits,
        log_normaliser=float(logits.max()) + float(np.log(total)),
        entropy=mean + float(np.log(total)),
        varentropy=variance,
        top=top_ids(logits, max(k, 2)),
    )


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    # Not BLAS, whose threads would stand in the way of the engine's.
    return float(np.einsum("i,i->", a, b))
