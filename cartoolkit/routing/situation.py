"""What a choice depends on besides the models: the request's size and bounds, the machine, past outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cartoolkit.routing.schema import Capability

__all__ = ["NO_EVIDENCE", "Demand", "Evidence", "Machine", "estimate_tokens"]

CHARACTERS_A_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """How many tokens a text is about, before a tokenizer is chosen: one for four characters, rounded up.

    >>> estimate_tokens("Hello")
    2
    """
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def _require(name: str, value: float | None, least: float, *, whole: bool = False) -> None:
    if value is None:
        return
    right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not right or value < least or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise InvalidRequest(f"{name} must be {kind} of at least {least:g}; got {value!r}.")


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request asks of whichever model answers it.

    Attributes:
        prompt_tokens: length of the prompt.
        output_tokens: expected length of the answer; prices and latencies are computed with it.
        cached_tokens: prompt tokens that a provider is expected to find in its cache.
        require: capabilities that a model must have.
        max_cost_usd: a call may cost at most this; None sets no bound.
        max_latency_ms: it may be expected to take at most this; None sets no bound.
    """

    prompt_tokens: int = 256
    output_tokens: int = 256
    cached_tokens: int = 0
    require: tuple[Capability, ...] = ("generate",)
    max_cost_usd: float | None = None
    max_latency_ms: float | None = None

    def __post_init__(self) -> None:
        _require("prompt_tokens", self.prompt_tokens, 0, whole=True)
        _require("output_tokens", self.output_tokens, 1, whole=True)
        _require("cached_tokens", self.cached_tokens, 0, whole=True)
        _require("max_cost_usd", self.max_cost_usd, 0)
        _require("max_latency_ms", self.max_latency_ms, 0)


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has at the moment.

    Attributes:
        free_memory_mb: memory that can still be taken, in millions of bytes; None is not known.
        loaded: ids of the models that are in memory already; they need no more of it, and no time to load.
        resting: ids of models that are left out for now, such as by a circuit breaker, each with a clause
            that says why.
    """

    free_memory_mb: float | None = None
    loaded: frozenset[str] = frozenset()
    resting: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came of earlier calls of one model.

    Attributes:
        successes: calls that were right, or at least went through.
        failures: calls that failed or whose answer was rejected.
        quality: moving average of the verdicts, 0 to 1; None before the first one.
        graded: how many verdicts it comes from.
    """

    successes: int = 0
    failures: int = 0
    quality: float | None = None
    graded: int = 0

    def __post_init__(self) -> None:
        _require("successes", self.successes, 0, whole=True)
        _require("failures", self.failures, 0, whole=True)
        _require("graded", self.graded, 0, whole=True)
        if self.quality is not None and not 0 <= self.quality <= 1:
            raise InvalidRequest(f"quality must be a number from 0 to 1; got {self.quality!r}.")


NO_EVIDENCE = Evidence()
