"""What a finished generation returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit.trace import Trace

__all__ = ["Result", "Usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were really read and written; None where a server elsewhere does not tell.

    Attributes:
        prompt_tokens: length of the prompt as the model saw it.
        prefill_tokens: tokens that had to be read before the first one could be decoded: of the prompt and,
            in a branch, of the steps taken over.
        reused_tokens: tokens of these that were in the cache from an earlier run and were not read again.
        completion_tokens: kept tokens of the answer, without the control token that ended it. A server's own
            number, which its bill is made of, holds those of a thought as well.
    """

    prompt_tokens: int | None
    prefill_tokens: int | None
    reused_tokens: int | None
    completion_tokens: int | None

    @classmethod
    def of(cls, trace: Trace) -> Usage:
        """Read the numbers off a trace."""
        header, told = trace.header, trace.header.provider
        if told is None:
            prompt, counted = len(trace.prompt_ids), trace.completion_tokens
            return cls(prompt, header.prefill_tokens, header.reused_tokens, counted)
        prompt, cached = told.prompt_tokens, told.cached_tokens
        read = None if prompt is None or cached is None else prompt - cached
        # Of a run that brought no token, nobody knows how many were written for it.
        counted = trace.completion_tokens or None if told.unit == "token" else None
        written = counted if told.completion_tokens is None else told.completion_tokens
        return cls(prompt, read, cached, written)


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
            usage=Usage.of(trace),
            ttft_ms=trace.ttft_ms,
            tokens_per_second=trace.tokens_per_second,
            trace=trace,
        )

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.trace.to_html()
