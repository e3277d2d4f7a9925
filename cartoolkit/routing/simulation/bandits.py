"""Policies for simulated traffic: given what was seen so far, which model answers each of the next requests.

Each is a pure function of what it saw and of a random generator. A policy that learns sees, by task, how
often each model was right; it knows the prices, which stand in a list. The oracle and the best constant look
into the tables and are there to be compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.choice.selection import PRIOR_STRENGTH, draw_worths, posterior

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from cartoolkit.routing.simulation.traffic import Traffic

__all__ = [
    "Constant",
    "EpsilonGreedy",
    "Mixed",
    "Oracle",
    "Random",
    "RouterRule",
    "Seen",
    "Thompson",
    "TrafficPolicy",
    "World",
]

_CELLS = 2_000_000  # draws in memory at a time
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, slots=True)
class World:
    """What is the same for all requests.

    price, value: float [kinds, models].

    Attributes:
        traffic: whose requests these are.
        price: money and time of each call, in right answers.
        value: chance to be right less price; what regret is measured in.
        task_of_kind: int [kinds].
    """

    traffic: Traffic
    price: NDArray[np.float64]
    value: NDArray[np.float64]
    task_of_kind: NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Seen:
    """What each run has seen so far; int [runs, tasks, models] both.

    Attributes:
        right: right answers.
        wrong: wrong ones.
    """

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]


class TrafficPolicy(Protocol):
    """Chooses models for simulated requests."""

    learns: ClassVar[bool]

    @property
    def name(self) -> str:
        """What tables call it; the generator is seeded by it as well."""
        ...

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Index of the model for each request, int [runs, requests].

        kinds: int [requests], the same for every run.
        """
        ...


def _everywhere(choice: NDArray, runs: int) -> NDArray:
    return np.broadcast_to(choice, (runs, len(choice)))


@dataclass(frozen=True)
class Constant:
    """Always the same model; without a name the one that is best over the whole traffic, in hindsight.

    Raises:
        InvalidRequest: on use, if the traffic has no such model.
    """

    model: str | None = None
    learns: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"constant {self.model}" if self.model else "best constant"

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        del rng
        return np.full((len(seen.right), len(kinds)), self._index(world))

    def _index(self, world: World) -> int:
        models = world.traffic.models
        if self.model is None:
            counts = np.bincount(world.traffic.sequence, minlength=len(world.value))
            return int((counts @ world.value).argmax())
        if self.model not in models:
            raise InvalidRequest(f"the traffic has no model {self.model!r}; it has {', '.join(models)}.")
        return models.index(self.model)


@dataclass(frozen=True)
class Random:
    """Every model equally often."""

    learns: ClassVar[bool] = False
    name: str = "random"

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        return rng.integers(0, len(world.traffic.models), (len(seen.right), len(kinds)))


@dataclass(frozen=True)
class Mixed:
    """Each model with a share of its own, whatever is asked and whatever was seen.

    Attributes:
        shares: of models by id, 0 to 1, with sum 1; 0 for all others.
        name: what tables call it.

    Raises:
        InvalidRequest: the shares are none; on use, if the traffic lacks a model that has a share.
    """

    shares: Mapping[str, float]
    name: str = "mix"
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        values = list(self.shares.values())
        if not all(0 <= share <= 1 for share in values) or abs(sum(values) - 1) > _TOLERANCE:
            raise InvalidRequest(f"shares must be numbers from 0 to 1 with sum 1; got {dict(self.shares)}.")

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        models = world.traffic.models
        if missing := [model for model, share in self.shares.items() if share and model not in models]:
            raise InvalidRequest(f"the traffic has no model {missing[0]!r}; it has {', '.join(models)}.")
        ends = np.cumsum([self.shares.get(model, 0.0) for model in models])
        drawn = rng.random((len(seen.right), len(kinds))) * ends[-1]
        return np.searchsorted(ends, drawn, side="right")


@dataclass(frozen=True)
class Oracle:
    """The model of highest value for each kind, which nobody knows beforehand; its regret is 0."""

    learns: ClassVar[bool] = False
    name: str = "oracle"

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        del rng
        return _everywhere(world.value.argmax(axis=1)[kinds], len(seen.right))


@dataclass(frozen=True)
class EpsilonGreedy:
    """A random model with chance epsilon, else the one that looks best; one never tried looks perfect.

    Raises:
        InvalidRequest: epsilon is no chance.
    """

    epsilon: float = 0.1
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise InvalidRequest(f"epsilon must be a number from 0 to 1; got {self.epsilon!r}.")

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"epsilon-greedy {self.epsilon:g}"

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        shape = len(seen.right), len(kinds)
        trials = seen.right + seen.wrong
        rates = np.where(trials > 0, seen.right / np.maximum(trials, 1), 1.0)
        distinct, places = np.unique(kinds, return_inverse=True)
        values = rates[:, world.task_of_kind[distinct]] - world.price[distinct]
        greedy = values.argmax(axis=2)[:, places]
        explores = rng.random(shape) < self.epsilon
        return np.where(explores, rng.integers(0, len(world.traffic.models), shape), greedy)


@dataclass(frozen=True)
class Thompson:
    """Draws a chance to be right for each model from what was seen of it, and takes the best draw.

    The draw is from Beta(K S + right, K (1 - S) + wrong), both at least 0.01, with K = `prior_strength`: what
    is believed of a model before it was tried, its score S, weighs as much as K calls (Thompson 1933).

    Attributes:
        prior_strength: K, above 0.
        prior: S of models by id, 0 to 1; 0.5 for all others.

    Raises:
        InvalidRequest: a figure is out of range.
    """

    prior_strength: float = PRIOR_STRENGTH
    prior: Mapping[str, float] = field(default_factory=dict)
    learns: ClassVar[bool] = True
    name: str = "Thompson"

    def __post_init__(self) -> None:
        _check_prior_strength(self.prior_strength)
        for model, score in self.prior.items():
            if not 0 <= score <= 1:
                raise InvalidRequest(f"the prior of {model!r} must be a number from 0 to 1; got {score!r}.")

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        scores = [self.prior.get(model, 0.5) for model in world.traffic.models]
        alpha, beta = posterior(scores, seen.right, seen.wrong, self.prior_strength)
        parts = []
        for part in _parts(kinds, alpha):
            tasks = world.task_of_kind[part]
            drawn = rng.beta(alpha[:, tasks], beta[:, tasks])
            parts.append((drawn - world.price[part]).argmax(axis=2))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class RouterRule:
    """What the router itself does (`routing.choice.selection`): the largest reliability times score.

    The score is the router's opinion of a model and holds quality, latency and cost; what is learnt is how
    reliable it is. So regret need not level off here: where scores and the value of an answer disagree, it
    goes on growing.

    Attributes:
        scores: of every model by id, 0 or above.
        prior_strength: K of the reliability's prior.
        explores: whether the reliability is drawn, or its mean is taken.

    Raises:
        InvalidRequest: a figure is out of range; on use, if a model has no score.
    """

    scores: Mapping[str, float]
    prior_strength: float = PRIOR_STRENGTH
    explores: bool = True
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_prior_strength(self.prior_strength)
        for model, score in self.scores.items():
            if not 0 <= score < np.inf:
                raise InvalidRequest(f"the score of {model!r} must be a number ≥ 0; got {score!r}.")

    @property
    def name(self) -> str:
        """What tables call it."""
        return "router" if self.explores else "router without draws"

    def choose(
        self, world: World, kinds: NDArray[np.int64], seen: Seen, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """See `TrafficPolicy.choose`."""
        models = world.traffic.models
        if missing := [model for model in models if model not in self.scores]:
            raise InvalidRequest(
                f"scores must hold every model of the traffic; {', '.join(missing)} has none."
            )
        scores = np.array([self.scores[model] for model in models])
        alpha, beta = posterior(scores, seen.right, seen.wrong, self.prior_strength)
        if not self.explores:
            best = (scores * alpha / (alpha + beta)).argmax(axis=2)
            return best[:, world.task_of_kind[kinds]]
        parts = []
        for part in _parts(kinds, alpha):
            tasks = world.task_of_kind[part]
            parts.append(draw_worths(scores, alpha[:, tasks], beta[:, tasks], rng).argmax(axis=2))
        return np.concatenate(parts, axis=1)


def _parts(kinds: NDArray[np.int64], alpha: NDArray) -> Iterator[NDArray[np.int64]]:
    """The requests in pieces of which all draws fit into memory; `alpha` is [runs, tasks, models]."""
    step = max(1, _CELLS // (alpha.shape[0] * alpha.shape[2]))
    for start in range(0, len(kinds), step):
        yield kinds[start : start + step]


def _check_prior_strength(value: float) -> None:
    if not 0 < value < np.inf:
        raise InvalidRequest(f"prior_strength must be a number above 0; got {value!r}.")
