"""What a row of raw logits says, before anything touches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.engine.ordering import top_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Inspection", "Scratch", "inspect_row", "token_logprobs"]


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


class Scratch:
    """Room for the arithmetic over one row; whoever inspects many rows keeps one, as fresh memory is slow."""

    def __init__(self, size: int) -> None:
        self.shifted = np.empty(size, np.float32)
        self.single = np.empty(size, np.float32)
        self.weights = np.empty(size)
        self.surprisal = np.empty(size)


def inspect_row(logits: np.ndarray, k: int, scratch: Scratch | None = None) -> Inspection:
    """Summarise one row: one exponential a token, no sort of the row.

    Sums run in float64: over a vocabulary, float32 sums lose the third digit. In float64 the variance can be
    taken as the mean square less the squared mean, which saves two passes over the row.

    logits: float32 [vocab], finite somewhere, no NaN; k ≥ 1 candidates wanted.

    >>> row = inspect_row(np.log(np.array([0.25, 0.5, 0.25], np.float32)), 2)
    >>> row.top, round(row.entropy, 4), round(row.varentropy, 4)
    (array([1, 0]), 1.0397, 0.1201)
    """
    room = Scratch(len(logits)) if scratch is None else scratch
    top = logits.max()
    with np.errstate(over="ignore"):
        shifted = np.subtract(logits, top, out=room.shifted)
    if shifted.min() < -1e6:
        # A token that cannot occur adds nothing, but -inf times its probability would be NaN.
        np.maximum(shifted, np.float32(-1e6), out=shifted)
    weights, surprisal = room.weights, room.surprisal
    np.copyto(weights, np.exp(shifted, out=room.single))
    total = float(weights.sum())
    np.negative(shifted, out=surprisal)
    # Products and sums, not BLAS, whose threads would stand in the way of the engine's.
    weights *= surprisal
    mean = float(weights.sum()) / total
    weights *= surprisal
    variance = max(float(weights.sum()) / total - mean * mean, 0.0)
    return Inspection(
        logits,
        log_normaliser=float(top) + float(np.log(total)),
        entropy=mean + float(np.log(total)),
        varentropy=variance,
        top=top_ids(logits, max(k, 2)),
    )
