"""What a choice depends on besides the models: the request's size and bounds, the machine, past outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import CAPABILITIES
from cartoolkit.routing.checks import require_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cartoolkit.intents import Capability
    from cartoolkit.routing.outcomes.records import Tally

__all__ = ["NO_EVIDENCE", "Demand", "Evidence", "Machine", "counted", "estimate_tokens"]

CHARACTERS_A_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """How many tokens a text is about, before a tokenizer is chosen: one for four characters, rounded up.

    >>> estimate_tokens("Hello")
    2
    """
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def counted(tokens: int) -> str:
    """A number of tokens in words.

    >>> counted(1), counted(1200)
    ('1 token', '1,200 tokens')
    """
    return f"{tokens:,} token{'s' * (tokens != 1)}"


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
        require_number("prompt_tokens", self.prompt_tokens, least=0, whole=True)
        require_number("output_tokens", self.output_tokens, least=1, whole=True)
        require_number("cached_tokens", self.cached_tokens, least=0, whole=True)
        for name in ("max_cost_usd", "max_latency_ms"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), least=0)
        is_list = isinstance(self.require, tuple | list | set | frozenset)
        if not is_list or any(each not in CAPABILITIES for each in self.require):
            raise InvalidRequest(
                f"require must be a list of capabilities; got {self.require!r}.",
                hint=f"There are: {', '.join(CAPABILITIES)}.",
            )


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
        ttft_ms: mean time to the first token of recent answers, once the model is in memory; None if none
            was timed.
        started: how many answers that comes from.
        prompt_tokens: mean number of prompt tokens that were read for it; None is not known.
        ms_per_token: time that a token after the first took in recent answers; None if none was timed.
        paced: how many answers that comes from.
    """

    successes: int = 0
    failures: int = 0
    quality: float | None = None
    graded: int = 0
    ttft_ms: float | None = None
    started: int = 0
    prompt_tokens: float | None = None
    ms_per_token: float | None = None
    paced: int = 0

    def __post_init__(self) -> None:
        for name in ("successes", "failures", "graded", "started", "paced"):
            require_number(name, getattr(self, name), least=0, whole=True)
        if self.quality is not None:
            require_number("quality", self.quality, least=0, most=1)
        for name in ("ttft_ms", "prompt_tokens", "ms_per_token"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), least=0)

    @classmethod
    def of(cls, tally: Tally) -> Evidence:
        """What a tally of `outcomes` says: of all calls of a model, or of those of one task."""
        started, paced = tally.started, tally.paced
        return cls(
            successes=tally.success_count,
            failures=tally.fail_count,
            quality=tally.ema_quality,
            graded=tally.judged,
            ttft_ms=_ratio(sum(each.ttft_ms for each in started), len(started)),
            started=len(started),
            prompt_tokens=_ratio(sum(each.read_tokens or 0 for each in started), len(started)),
            ms_per_token=_ratio(
                sum(each.later_ms for each in paced), sum(each.later_tokens for each in paced)
            ),
            paced=len(paced),
        )


def _ratio(whole: float, parts: int) -> float | None:
    return whole / parts if parts else None


NO_EVIDENCE = Evidence()
