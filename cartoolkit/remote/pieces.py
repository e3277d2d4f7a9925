"""What a server sends, piece by piece, read with suspicion: the openai library checks nothing in a stream."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NotAnAnswer", "Piece", "Told", "read_piece"]

# OpenAI and vLLM write this where a token is too unlikely to be told.
_TOO_UNLIKELY = -9999.0
# No tokens are so many; JSON's own numbers end here.
_BEYOND_COUNTING = 2**53


class NotAnAnswer(ValueError):
    """Something came that is no chunk of a chat completion."""


@dataclass(frozen=True, slots=True)
class Told:
    """One token as a server tells it.

    Attributes:
        name: how the server writes it.
        data: its bytes, if it tells them.
        logprob: raw, natural log; NaN if it is not told, or too unlikely to be.
        others: the likeliest tokens at its place, as they came; itself among them as a rule.
    """

    name: str
    data: bytes | None
    logprob: float
    others: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk of an answer.

    Attributes:
        text: what it adds to the answer.
        tokens: of what it adds, if the server tells tokens.
        thought: characters of a thought that is not part of the answer.
        refusal: what the model says instead of answering.
        finish: why no more text will come, as the server calls it; empty before the end.
        report: fields of `ProviderReport` that it tells.
    """

    text: str = ""
    tokens: tuple[Told, ...] = ()
    thought: int = 0
    refusal: str = ""
    finish: str = ""
    report: dict[str, Any] = field(default_factory=dict)


def read_piece(chunk: object) -> Piece:
    """Read a chunk of the openai library, or the mapping that it was made of.

    Raises:
        NotAnAnswer: it is something else.
    """
    choices = _get(chunk, "choices")
    usage = _get(chunk, "usage")
    if not isinstance(choices, list | tuple) and usage is None:
        raise NotAnAnswer(f"it holds no choices: {_shown(chunk)}")
    report = _report(chunk, usage)
    if not choices:
        return Piece(report=report)
    choice = choices[0]
    delta = _get(choice, "delta")
    thought = _text(delta, "reasoning_content") or _text(delta, "reasoning")
    return Piece(
        text=_text(delta, "content"),
        tokens=_tokens(_get(_get(choice, "logprobs"), "content")),
        thought=len(thought),
        refusal=_text(delta, "refusal"),
        finish=_text(choice, "finish_reason"),
        report=report,
    )


def _get(thing: object, name: str) -> Any:  # noqa: ANN401 - whatever the server sent
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _text(thing: object, name: str) -> str:
    value = _get(thing, name)
    if value is not None and not isinstance(value, str):
        raise NotAnAnswer(f"its {name} is no text: {_shown(value)}")
    return value or ""


def _shown(value: object) -> str:
    dump = getattr(value, "model_extra", None)
    shown = " ".join(repr(dump or value).split())
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _tokens(content: object) -> tuple[Told, ...]:
    entries = content if isinstance(content, list | tuple) else ()
    return tuple(told for entry in entries if (told := _told(entry)) is not None)


def _told(entry: object, *, inner: bool = False) -> Told | None:
    """A token, or None where it has no name, as some servers tell a number of their own instead."""
    name, written = _get(entry, "token"), _get(entry, "bytes")
    if not isinstance(name, str):
        return None
    others = () if inner else _get(entry, "top_logprobs")
    listed = others if isinstance(others, list | tuple) else ()
    return Told(
        name,
        _bytes(written),
        _logprob(_get(entry, "logprob")),
        tuple(told for other in listed if (told := _told(other, inner=True)) is not None),
    )


def _bytes(written: object) -> bytes | None:
    if not isinstance(written, list | tuple) or not written:
        return None
    try:
        return bytes(written)
    except (TypeError, ValueError):
        raise NotAnAnswer(f"the bytes of a token are no bytes: {_shown(written)}") from None


def _logprob(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    # Rounding may carry a certain token a hair above 1.
    return min(float(value), 0.0) if value > _TOO_UNLIKELY else math.nan


def _report(chunk: object, usage: object) -> dict[str, Any]:
    told = {
        "model": _name(_get(chunk, "model")),
        "fingerprint": _name(_get(chunk, "system_fingerprint")),
        # No prompt has no token: a server that writes 0 does not count.
        "prompt_tokens": _count(usage, "prompt_tokens") or None,
        "cached_tokens": _count(_get(usage, "prompt_tokens_details"), "cached_tokens"),
        "completion_tokens": _count(usage, "completion_tokens"),
        "thought_tokens": _count(_get(usage, "completion_tokens_details"), "reasoning_tokens"),
    }
    return {name: value for name, value in told.items() if value not in (None, "")}


def _name(value: object) -> str:
    return value[:200] if isinstance(value, str) else ""


def _count(thing: object, name: str) -> int | None:
    value = _get(thing, name)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _BEYOND_COUNTING
    return value if is_count else None
