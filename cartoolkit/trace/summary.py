"""A run in sentences: where it ran, how it was sampled, how it went, how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartoolkit.trace.glyphs import clip, nats, visible, visible_line
from cartoolkit.trace.metrics import low_runs, perplexity

if TYPE_CHECKING:
    from cartoolkit.trace.header import TraceHeader
    from cartoolkit.trace.trace import Trace

__all__ = ["ending", "figures", "least_sure", "settings", "where", "why_uninspected"]

_ENDINGS = {
    "": "not ended yet",
    "stop": "ended by {}",
    "length": "ended at the limit of tokens",
    "stopped": "stopped by the user",
    "local_decode_timeout": "ended at the time limit",
    "error": "ended by an error: {}",
}
# What changes nothing is not worth a reader's time.
_SILENT = {
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
    "repeat_penalty": 1,
    "repeatable": True,
    "ignore_eos": False,
    "inspect": True,
    "prompt_logprobs": False,
    "truncate": True,
}
_UNSHOWN = ("candidates", "time_limit")
_SPEAKING = object()
_TEXT = 200


def where(header: TraceHeader) -> list[str]:
    """Engine, device with precision, and context length; the model's name is not among them."""
    model = header.model
    parts = [model.engine, " · ".join(p for p in (model.device, model.dtype) if p)]
    parts.append(f"{model.context_length} ctx" if model.context_length else "")
    return [clip(visible_line(part), _TEXT) for part in parts if part]


def settings(header: TraceHeader) -> list[str]:
    """The sampling parameters that had an effect, such as ``top-k 40``."""
    shown = [
        f"{visible_line(str(name)).replace('_', '-')} {_setting(value)}"
        for name, value in header.params.items()
        if name not in _UNSHOWN and value not in (None, {}, []) and value != _SILENT.get(name, _SPEAKING)
    ]
    return [clip(text, _TEXT) for text in shown[:24]]


def _setting(value: Any) -> str:  # noqa: ANN401 - a header keeps what it was given
    if isinstance(value, dict):
        return f"for {_count(len(value), 'token')}"
    if isinstance(value, list | tuple):
        return ", ".join(f"“{visible(str(item)[:_TEXT])}”" for item in value[:10])
    return f"{value:g}" if isinstance(value, float) else visible_line(str(value)[:_TEXT])


def figures(trace: Trace, threshold: float) -> list[str]:
    """How it went: counts, speed, surprise; a figure that is not known is left out."""
    kept = trace.flag("kept")
    below = trace.columns["max_prob"][kept]
    parts = [_count(trace.completion_tokens, _unit(trace)), *_rolled_back(trace), *_pace(trace)]
    if not np.isnan(trace.perplexity):
        parts.append(f"perplexity {trace.perplexity:.2f}")
    if not np.isnan(trace.mean_entropy):
        parts.append(f"mean entropy {nats(trace.mean_entropy)} nats")
        runs = len(low_runs(below, threshold))
        few = _count(int((below < threshold).sum()), "token")
        parts.append(f"below {threshold:g}: {few}, {_count(runs, 'run')} of 3 or more")
    return [*parts, *_prompt_figures(trace)]


def why_uninspected(header: TraceHeader) -> str:
    """Why a run holds no distributions, or only a part of each."""
    asked = header.params.get("inspect", True)
    return "told by a server" if header.provider is not None and asked else "decoded with inspect=False"


def _unit(trace: Trace) -> str:
    """What is counted: chunks where a server elsewhere tells neither tokens nor their number."""
    provider = trace.header.provider
    return "token" if provider is None or provider.answer_tokens is not None else provider.unit


def _rolled_back(trace: Trace) -> list[str]:
    gone = int((~trace.flag("kept")).sum())
    return [f"{gone:,} more rolled back"] if gone else []


def _prompt_figures(trace: Trace) -> list[str]:
    if not len(trace.prompt_ids):
        return []
    reused = trace.header.reused_tokens
    parts = [f"prompt {_count(len(trace.prompt_ids), 'token')}" + (f", {reused:,} re-used" if reused else "")]
    surprise = perplexity(trace.prompt_logprobs)
    return parts if np.isnan(surprise) else [*parts, f"prompt perplexity {surprise:.2f}"]


def _pace(trace: Trace) -> list[str]:
    parts = [] if trace.tokens_per_second is None else [f"{trace.tokens_per_second:.1f} tok/s"]
    return parts if trace.ttft_ms is None else [*parts, f"first after {trace.ttft_ms / 1000:.2f} s"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ending(header: TraceHeader) -> str:
    """Why there is no more text."""
    if header.stop_reason not in _ENDINGS:
        return f"ended by {clip(visible_line(header.stop_reason), 40)}"
    detail = clip(visible_line(header.stop_detail or "the model"), 2 * _TEXT)
    return _ENDINGS[header.stop_reason].format(detail)


def least_sure(trace: Trace, count: int) -> list[int]:
    """Indices of the inspected steps with the lowest raw max probability, lowest first."""
    values = trace.columns["max_prob"]
    order = np.argsort(values, kind="stable")  # NaN goes last
    return [int(i) for i in order[:count] if not np.isnan(values[i])]
