"""From raw logits to a token: penalty, bias, temperature, top-k, top-p, min-p, draw.

A stage is a pure function over one row, float64 [vocab]; -inf marks a removed token. Ties always go to
the lower token id, so engines with equal logits pick equal tokens. Everything is computed in float64:
the stages cost a fraction of a forward, and the result can be compared with any reference.

As in numpy, `out` is where a stage writes its row and `scratch` is room for its arithmetic. Both are made
when they are missing; the sampler brings its own, since fresh memory for every row of every token costs
more than the arithmetic does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.engine.ordering import descending_prefixes, top_ids
from cartoolkit.errors import InvalidRequest
from cartoolkit.trace import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cartoolkit.requests import GenerateParams

__all__ = [
    "Processed",
    "Sampler",
    "apply_bias",
    "apply_greedy",
    "apply_min_p",
    "apply_repeat_penalty",
    "apply_temperature",
    "apply_top_k",
    "apply_top_p",
    "draw_token",
]


def apply_repeat_penalty(
    logits: np.ndarray, seen: np.ndarray, penalty: float, *, out: np.ndarray | None = None
) -> np.ndarray:
    """Make tokens that have occurred less likely (Keskar et al. 2019, CTRL, eq. 8, for either sign).

    logits: float [vocab]; seen: int [m], each id once; penalty > 0.

    >>> apply_repeat_penalty(np.array([2.0, -2.0, 1.0]), np.array([0, 1]), 2.0)
    array([ 1., -4.,  1.])
    """
    penalised = _copy(logits, out)
    values = logits[seen]
    penalised[seen] = np.where(values > 0, values / penalty, values * penalty)
    return penalised


def apply_bias(logits: np.ndarray, bias: Mapping[int, float], *, out: np.ndarray | None = None) -> np.ndarray:
    """Add to the logits of some tokens; -inf removes a token.

    logits: float [vocab].

    >>> apply_bias(np.array([1.0, 2.0]), {0: 0.5, 1: -np.inf})
    array([ 1.5, -inf])
    """
    biased = _copy(logits, out)
    for token_id, value in bias.items():
        biased[token_id] += value
    return biased


def apply_temperature(logits: np.ndarray, temperature: float, *, out: np.ndarray | None = None) -> np.ndarray:
    """Divide the logits: above 1 flattens the distribution, below 1 sharpens it.

    logits: float [vocab]; temperature > 0.

    >>> apply_temperature(np.array([1.0, 3.0]), 0.5)
    array([2., 6.])
    """
    if temperature >= 0.01:
        return np.divide(logits, temperature, out=out)
    # Near zero the quotient overflows; that must neither mix up the order nor remove a token.
    with np.errstate(over="ignore"):
        scaled = np.maximum((logits - logits.max()) / temperature, np.finfo(np.float64).min)
    return np.where(logits > -np.inf, scaled, -np.inf)


def apply_greedy(logits: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """Keep the likeliest token only: the limit of the temperature at 0.

    logits: float [vocab].

    >>> apply_greedy(np.array([1.0, 3.0, 3.0]))
    array([-inf,   3., -inf])
    """
    return _keep(logits, np.array([logits.argmax()]), out)


def apply_top_k(logits: np.ndarray, k: int, *, out: np.ndarray | None = None) -> np.ndarray:
    """Keep exactly the k likeliest tokens (Fan et al. 2018); fewer only if fewer are left.

    logits: float [vocab]; k ≥ 1.

    >>> apply_top_k(np.array([1.0, 3.0, 3.0, 3.0]), 2)
    array([-inf,   3.,   3., -inf])
    """
    return _keep(logits, top_ids(logits, k), out)


def apply_top_p(
    logits: np.ndarray, p: float, *, out: np.ndarray | None = None, scratch: np.ndarray | None = None
) -> np.ndarray:
    """Keep the nucleus, the smallest set of likeliest tokens that reaches p (Holtzman et al. 2020).

    logits: float [vocab]; 0 < p ≤ 1. The token that crosses p is kept.

    >>> apply_top_p(np.log([0.5, 0.3, 0.2]), 0.6).round(3)
    array([-0.693, -1.204,   -inf])
    """
    order, cumulative = _likeliest(logits, p, scratch)
    return _keep(logits, order[: int(np.searchsorted(cumulative, p)) + 1], out)


def apply_min_p(logits: np.ndarray, min_p: float, *, out: np.ndarray | None = None) -> np.ndarray:
    """Drop tokens less likely than `min_p` times the likeliest (Nguyen et al. 2024).

    logits: float [vocab]; 0 < min_p ≤ 1.

    >>> apply_min_p(np.log([0.5, 0.3, 0.2]), 0.5).round(3)
    array([-0.693, -1.204,   -inf])
    """
    return _keep(logits, np.flatnonzero(logits >= logits.max() + np.log(min_p)), out)


def draw_token(logits: np.ndarray, u: float, *, scratch: np.ndarray | None = None) -> int:
    """The token into whose stretch of the cumulative distribution u falls, likeliest token first.

    logits: float [vocab], finite for at least one token; 0 ≤ u < 1.

    >>> draw_token(np.log([0.2, 0.5, 0.3]), 0.49), draw_token(np.log([0.2, 0.5, 0.3]), 0.51)
    (1, 2)
    """
    order, cumulative = _likeliest(logits, u, scratch)
    # The running sum may end a rounding error below u; tokens that add nothing to it are never drawn.
    last = np.searchsorted(cumulative, cumulative[-1])
    return int(order[min(np.searchsorted(cumulative, u, side="right"), last)])


def _likeliest(logits: np.ndarray, mass: float, scratch: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Likeliest tokens in order, enough of them to pass `mass`, and their running sum."""
    if logits.min() == -np.inf:
        # Of a row that most was removed from, only the rest is worth the arithmetic.
        left = np.flatnonzero(logits > -np.inf)
        order, cumulative = _likeliest(logits[left], mass, None)
        return left[order], cumulative
    weights = np.subtract(logits, logits.max(), out=scratch)
    np.exp(weights, out=weights)
    total = weights.sum()
    order = np.empty(0, np.int64)
    for order in descending_prefixes(logits):
        if weights[order].sum() > mass * total:
            break
    return order, (weights[order] / total).cumsum()


def _keep(logits: np.ndarray, ids: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    kept = np.empty_like(logits) if out is None else out
    kept.fill(-np.inf)
    kept[ids] = logits[ids]
    return kept


def _copy(logits: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    copy = np.empty_like(logits) if out is None else out
    np.copyto(copy, logits)
    return copy


@dataclass(frozen=True, slots=True, eq=False)
class Processed:
    """What a row of logits became, and what each stage took away; good until the sampler's next row.

    Attributes:
        logits: float64 [vocab], -inf where removed.
        removals: for each stage that may remove, its index in `STAGES` and the row after it.
        scratch: room for arithmetic, float64 [vocab]; made when it is missing.
        left: ids of the tokens that can be drawn, ascending.
    """

    logits: np.ndarray
    removals: tuple[tuple[int, np.ndarray], ...]
    scratch: np.ndarray | None = field(default=None, repr=False)
    left: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "left", np.flatnonzero(self.logits > -np.inf))

    def logprobs(self, ids: np.ndarray) -> np.ndarray:
        """Log of the probability that each of `ids` is drawn with, float64 [len(ids)]; -inf if removed.

        What was not removed stays within the range of float32, in which it is recorded.
        """
        is_whole = len(self.left) == len(self.logits)
        left, room = (self.logits, self.scratch) if is_whole else (self.logits[self.left], None)
        top = left.max()
        values = self.logits[ids]
        # The top is subtracted before the rest, which would vanish beside a large bias.
        with np.errstate(over="ignore"):
            weights = np.subtract(left, top, out=room)
            logprobs = (values - top) - np.log(np.exp(weights, out=weights).sum())
        return np.where(values > -np.inf, np.maximum(logprobs, np.finfo(np.float32).min), -np.inf)

    def removed_by(self, ids: np.ndarray) -> np.ndarray:
        """Index into `STAGES` of the stage that removed each of `ids`, uint8 [len(ids)]; 0 if none did."""
        codes = np.zeros(len(ids), np.uint8)
        for code, after in self.removals:
            codes[(codes == 0) & (after[ids] == -np.inf)] = code
        return codes


class Sampler:
    """The stages that a request asks for, bound to its numbers, and one seeded stream of draws.

    The n-th token uses the n-th draw whatever the settings, greedy included, so two runs with the same
    seed share their draws.
    """

    def __init__(self, params: GenerateParams, *, seed: int, vocab_size: int) -> None:
        outside = [i for i in params.logit_bias if i >= vocab_size]
        if outside:
            raise InvalidRequest(
                f"logit_bias names token {outside[0]}; this model's tokens go from 0 to {vocab_size - 1}."
            )
        self._penalty = params.repeat_penalty
        self._stages = _stages(params)
        self._rows: list[np.ndarray] = []
        self._scratch: np.ndarray | None = None
        self._uniform = np.random.Generator(np.random.PCG64(seed))

    def process(self, logits: np.ndarray, seen: Sequence[int]) -> Processed:
        """Run the stages over raw logits.

        logits: float [vocab]; seen: the ids of prompt and answer so far.

        Raises:
            InvalidRequest: the bias forbids every token.
        """
        rows = iter(self._reserved(len(logits)))
        row = _copy(logits, next(rows))
        if self._penalty != 1:
            ids = np.unique(np.asarray(seen, np.int64))
            row = apply_repeat_penalty(row, ids, self._penalty, out=next(rows))
        removals = []
        for code, stage in self._stages:
            row = stage(row, next(rows), self._scratch)
            if code:
                removals.append((code, row))
            if code == _BIAS and row.max() == -np.inf:
                raise InvalidRequest("logit_bias forbids every token; leave at least one above -inf.")
        return Processed(row, tuple(removals), self._scratch)

    def skip(self) -> None:
        """Pass over the draw of a token that another run has chosen."""
        self._uniform.random()

    def draw(self, processed: Processed) -> tuple[int, float]:
        """Take the next number of the stream and the token it falls on."""
        u = float(self._uniform.random())
        left = processed.left
        if len(left) == len(processed.logits):
            return draw_token(processed.logits, u, scratch=self._scratch), u
        # What was removed cannot be drawn, so only the rest is looked at; its order is that of the ids.
        return int(left[draw_token(processed.logits[left], u)]), u

    def _reserved(self, size: int) -> list[np.ndarray]:
        """A row for every stage, used again for every token."""
        if not self._rows or len(self._rows[0]) != size:
            self._rows = [np.empty(size) for _ in range(len(self._stages) + 2)]
            self._scratch = np.empty(size)
        return self._rows


_BIAS, _GREEDY, _TOP_K, _TOP_P, _MIN_P = (
    STAGES.index(name) for name in ("bias", "greedy", "top_k", "top_p", "min_p")
)


# Row in, where to write the row out, room for arithmetic.
_Stage = Callable[["np.ndarray", "np.ndarray", "np.ndarray | None"], "np.ndarray"]


def _stages(params: GenerateParams) -> list[tuple[int, _Stage]]:
    """The active stages in order, each with its index in `STAGES` (0: it never removes)."""
    stages: list[tuple[int, _Stage]] = []
    if params.logit_bias:
        stages.append((_BIAS, lambda row, out, _: apply_bias(row, params.logit_bias, out=out)))
    if params.temperature == 0:
        # One token is left, so the stages after it have nothing to remove.
        return [*stages, (_GREEDY, lambda row, out, _: apply_greedy(row, out=out))]
    if params.temperature != 1:
        stages.append((0, lambda row, out, _: apply_temperature(row, params.temperature, out=out)))
    if params.top_k:
        stages.append((_TOP_K, lambda row, out, _: apply_top_k(row, params.top_k, out=out)))
    if params.top_p < 1:
        stages.append((_TOP_P, lambda row, out, room: apply_top_p(row, params.top_p, out=out, scratch=room)))
    if params.min_p:
        stages.append((_MIN_P, lambda row, out, _: apply_min_p(row, params.min_p, out=out)))
    return stages
