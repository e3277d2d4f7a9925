"""From scores to a choice: the best expected worth, or a draw that also tries what little is known about.

How reliably a model succeeds is a Beta distribution. Its prior is the score itself, worth K virtual
observations; successes s and failures f of earlier calls are added::

    reliability ~ Beta(K · S' + s, K · (1 - S') + f)        S' = the score, at most 1; both at least 0.01
    worth       = reliability · S

With `Deterministic` the mean of the reliability is taken, with `Thompson` a draw from it (Thompson 1933).
A call that fails is worth nothing, one that succeeds its score: so the workload's weights keep their say
however many outcomes there are, and with none yet the order is that of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.routing.checks import require_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from cartoolkit.routing.choice.situation import Evidence

__all__ = [
    "Deterministic",
    "Selection",
    "Strategy",
    "Thompson",
    "draw_worths",
    "posterior",
    "select",
    "win_shares",
]

PRIOR_STRENGTH = 4.0
"""K: how many observations a score is worth."""

FLOOR = 0.01
"""The least alpha and beta: a Beta distribution needs both above zero."""

WEAKEST_PRIOR = 0.01


@dataclass(frozen=True, slots=True)
class Deterministic:
    """Take the largest expected worth; equal ones by the order of the ids.

    Attributes:
        prior_strength: K, 0.01 or more.
    """

    prior_strength: float = PRIOR_STRENGTH

    def __post_init__(self) -> None:
        require_number("prior_strength", self.prior_strength, least=WEAKEST_PRIOR)

    def __str__(self) -> str:
        return "the best expected worth"


@dataclass(frozen=True, slots=True)
class Thompson:
    """Draw a reliability for each model, and take the largest worth.

    Attributes:
        seed: makes one choice repeatable; or a generator, which goes on from choice to choice.
        prior_strength: K, 0.01 or more; the larger it is, the longer the score alone decides.
    """

    seed: int | np.random.Generator | None = None
    prior_strength: float = PRIOR_STRENGTH

    def __post_init__(self) -> None:
        require_number("prior_strength", self.prior_strength, least=WEAKEST_PRIOR)
        if self.seed is not None and not isinstance(self.seed, np.random.Generator):
            require_number("seed", self.seed, least=0, whole=True)

    def __str__(self) -> str:
        return "the largest worth of one draw each (Thompson)"


Strategy = Deterministic | Thompson


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice among models that were scored.

    Attributes:
        order: places of the models in what was given: the chosen one, then the fallbacks by expected worth.
        expected: mean worth of each, in the order given.
        drawn: worth of each as it was drawn; the mean where nothing was drawn.
        alpha: of each model's Beta distribution.
        beta: likewise.
    """

    order: tuple[int, ...]
    expected: tuple[float, ...]
    drawn: tuple[float, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]

    def reliability(self, place: int) -> float:
        """The mean of a model's Beta distribution."""
        return self.alpha[place] / (self.alpha[place] + self.beta[place])


def posterior(
    scores: ArrayLike, successes: ArrayLike, failures: ArrayLike, prior_strength: float = PRIOR_STRENGTH
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alpha and beta of the reliabilities.

    Args:
        scores: float [..., models], 0 or above; what lies above 1 counts as 1.
        successes: [..., models].
        failures: [..., models].
        prior_strength: K.

    Returns:
        Two arrays, float64 [..., models].

    >>> alpha, beta = posterior([0.75], [3], [1], prior_strength=4)
    >>> float(alpha[0]), float(beta[0])
    (6.0, 2.0)
    """
    prior = np.clip(np.asarray(scores, dtype=np.float64), 0, 1)
    alpha = prior_strength * prior + np.asarray(successes)
    beta = prior_strength * (1 - prior) + np.asarray(failures)
    return np.maximum(alpha, FLOOR), np.maximum(beta, FLOOR)


def draw_worths(
    scores: ArrayLike,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    generator: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.float64]:
    """One draw of each model's worth: float64 [..., models], or [*size, models] for many draws.

    Args:
        scores: float [..., models].
        alpha: as from `posterior`.
        beta: likewise.
        generator: where the randomness comes from.
        size: leading shape of the draws; None draws once for each.
    """
    shape = alpha.shape if size is None else (*size, *alpha.shape)
    return np.asarray(scores, dtype=np.float64) * generator.beta(alpha, beta, size=shape)


def select(
    ids: Sequence[str], scores: Sequence[float], evidence: Sequence[Evidence], strategy: Strategy
) -> Selection:
    """Choose one of several models and put the others in order.

    Args:
        ids: of the models, at least one; they break ties.
        scores: of each, 0 or above.
        evidence: of each.
        strategy: how to choose.
    """
    totals = np.array(scores, dtype=np.float64)
    counts = [e.successes for e in evidence], [e.failures for e in evidence]
    alpha, beta = posterior(totals, *counts, strategy.prior_strength)
    expected = totals * alpha / (alpha + beta)
    drawn = expected
    if isinstance(strategy, Thompson):
        drawn = draw_worths(totals, alpha, beta, np.random.default_rng(strategy.seed))
    first = min(range(len(ids)), key=lambda i: (-drawn[i], ids[i]))
    rest = sorted(set(range(len(ids))) - {first}, key=lambda i: (-expected[i], ids[i]))
    columns = (tuple(map(float, column)) for column in (expected, drawn, alpha, beta))
    return Selection((first, *rest), *columns)


def win_shares(
    scores: Sequence[float],
    evidence: Sequence[Evidence],
    *,
    prior_strength: float = PRIOR_STRENGTH,
    draws: int = 4000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """How often each model would be chosen by `Thompson`, as a share of many draws: float64 [models].

    With 4,000 draws a share of one half is known to about 0.016 (two standard errors).

    Args:
        scores: of each model.
        evidence: of each.
        prior_strength: K.
        draws: how many.
        seed: makes it repeatable; it is not that of any choice.
    """
    if not scores:
        return np.zeros(0)
    counts = [e.successes for e in evidence], [e.failures for e in evidence]
    alpha, beta = posterior(scores, *counts, prior_strength)
    worths = draw_worths(scores, alpha, beta, np.random.default_rng(seed), size=(draws,))
    return np.bincount(worths.argmax(axis=1), minlength=len(scores)) / draws
