"""The policy of a run in words, from its header; empty where the run looked nothing up.

The header may come from a file, so what is missing or of another kind is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cartoolkit.trace.header import TraceHeader

__all__ = ["policy_name", "policy_part", "retriever_name", "threshold_of", "trigger_in_words"]

_TRIGGERS = {
    "Never": "",
    "EveryTokens": "every {n} tokens",
    "EverySentence": "after every sentence",
    "WindowMaxProb": "at {window} tokens running below {threshold}",
    "ContentTokenBelow": "at a token below {threshold}",
    "AnyTokenInSentence": "at a sentence with a token below {threshold}",
    "EntropyAbove": "at a token above {threshold} nats of entropy",
    "EntropyAttention": "at a content word above {threshold} nats of entropy, weighed by attention",
    "EntropyTrend": "where the entropy accelerates by more than {threshold} nats",
}


def policy_part(header: TraceHeader, name: str) -> Mapping[str, Any]:
    """A part of the run's policy, such as ``trigger`` or ``budget``, as `Policy.describe` wrote it."""
    return _mapping(_policy(header).get(name))


def policy_name(header: TraceHeader) -> str:
    """The name of the run's policy."""
    return str(_policy(header).get("name", ""))


def retriever_name(header: TraceHeader) -> str:
    """What the run could ask, such as ``FTSRetriever, 1,205 passages``."""
    known = header.retrieval or {}
    name, size = str(known.get("retriever") or ""), known.get("passages")
    return f"{name}, {size:,} passages" if name and isinstance(size, int) else name


def threshold_of(header: TraceHeader) -> float | None:
    """The raw probability below which the trigger doubts; None where it doubts by none."""
    trigger = policy_part(header, "trigger")
    value = trigger.get("threshold") if "signal" in trigger else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def trigger_in_words(header: TraceHeader) -> str:
    """When the policy looks something up, such as ``at a content word below 0.6``."""
    if not _policy(header):
        return ""
    while_writing = _while_writing(policy_part(header, "trigger"))
    if _policy(header).get("pre_retrieve") is True:
        return f"before the answer, and {while_writing}" if while_writing else "before the answer"
    return while_writing or "never"


def _while_writing(trigger: Mapping[str, Any]) -> str:
    kind = str(trigger.get("kind", ""))
    text = _TRIGGERS.get(kind, "where {kind} fires")
    if kind == "ContentTokenBelow" and trigger.get("skip_function_words") is True:
        text = text.replace("token", "content word")
    return text.format_map(_Numbers(trigger))


class _Numbers(dict[str, Any]):
    """Settings as they are written in a sentence; one that is missing is a question mark."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__({name: _plain(value) for name, value in settings.items()})

    def __missing__(self, name: str) -> str:
        return "?"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _policy(header: TraceHeader) -> Mapping[str, Any]:
    return _mapping((header.retrieval or {}).get("policy"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
