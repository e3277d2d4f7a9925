"""What a finished generation returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit.trace import Trace

__all__ = ["Result", "Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were really read and written.

    Attributes:
        prompt_tokens: length of the prompt as the model saw it.
        prefill_tokens: tokens that had to be read before the first one could be decoded: of the prompt and,
            in a branch, of the steps taken over.
        reused_tokens: tokens of these that were in the cache from an earlier run and were not read again.
        completion_tokens: kept tokens of the answer, without the control token that ended it.
    """

    prompt_tokens: int
    prefill_tokens: int
    reused_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Result:
    """An answer and the record of how it came about.

    Attributes:
        text: the answer, stop strings and control tokens cut out.
        stop_reason: ``stop``, ``length``, ``stopped`` or ``local_decode_timeout`` (see `TraceHeader`).
        stop_detail: which token, string or limit.
        usage: tokens read and written.
        ttft_ms: milliseconds from the request to the first token; None if there was none.
        tokens_per_second: decoding speed without the prefill; None for fewer than two tokens.
        trace: one record a token.
    """

    text: str
    stop_reason: str
    stop_detail: str
    usage: Usage
    ttft_ms: float | None
    tokens_per_second: float | None
    trace: Trace

    @classmethod
    def of(cls, trace: Trace) -> Result:
        """Read the answer off a trace."""
        return cls(
            text=trace.text,
            stop_reason=trace.header.stop_reason,
            stop_detail=trace.header.stop_detail,
            usage=Usage(
                len(trace.prompt_ids),
                trace.header.prefill_tokens,
                trace.header.reused_tokens,
                trace.completion_tokens,
            ),
            ttft_ms=trace.ttft_ms,
            tokens_per_second=trace.tokens_per_second,
            trace=trace,
        )

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.trace.to_html()
