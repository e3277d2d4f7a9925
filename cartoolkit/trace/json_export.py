"""A trace as strict JSON, for tools that know nothing of cartoolkit.

The document is one object::

    format      "cartoolkit.trace.json"
    version     1; raised when a reader of the older form could go wrong
    header      as `TraceHeader`: model, prompt, params, created, versions, stop_reason, events, …
    text        the answer
    figures     perplexity, mean_entropy (nats), ttft_ms, tokens_per_second, completion_tokens
    prompt      token_ids [p], logprobs [p] (raw), bytes [p]
    steps       one object a token: every field of `Step` but attention, numbers as recorded, and `label`;
                bytes as a list of numbers from 0 to 255; candidates as a list of
                {token_id, text, logprob, processed_logprob, removed_by}, likeliest (raw) first

Logarithms are natural, entropies in nats, `elapsed` in seconds. JSON has no NaN and no infinity: a number
that is not there is null, and so is the `processed_logprob` of a removed candidate, which is -inf.
Names that are numbers, such as the token ids of `logit_bias`, become text.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cartoolkit.trace.step import Step

if TYPE_CHECKING:
    from cartoolkit.trace.trace import Trace

__all__ = ["JSON_VERSION", "to_json"]

JSON_VERSION = 1
"""Raised when a reader of the older form could go wrong."""

_PLAIN = [f.name for f in fields(Step) if f.name not in ("bytes", "candidates", "attention")]


def to_json(trace: Trace, **options: Any) -> str:  # noqa: ANN401 - handed on to json.dumps
    """The trace as strict JSON in the form that the module describes.

    Args:
        trace: any trace.
        options: as for `json.dumps`, such as ``indent=1``.

    Raises:
        TypeError: an option that `json.dumps` does not have, or `allow_nan`, which is always False.
    """
    document = {
        "format": "cartoolkit.trace.json",
        "version": JSON_VERSION,
        "header": trace.header.model_dump(),
        "text": trace.text,
        "figures": _figures(trace),
        "prompt": {
            "token_ids": trace.prompt_ids.tolist(),
            "logprobs": trace.prompt_logprobs.tolist(),
            "bytes": [list(trace.token_bytes[i]) for i in trace.prompt_ids.tolist()],
        },
        "steps": [_step(step) for step in trace],
    }
    return json.dumps(_strict(document), allow_nan=False, **options)


def _figures(trace: Trace) -> dict[str, float | None]:
    names = ("perplexity", "mean_entropy", "ttft_ms", "tokens_per_second", "completion_tokens")
    return {name: getattr(trace, name) for name in names}


def _step(step: Step) -> dict[str, Any]:
    return {
        **{name: getattr(step, name) for name in _PLAIN},
        "label": step.label,
        "bytes": list(step.bytes),
        "candidates": [
            {
                "token_id": c.token_id,
                "text": c.text,
                "logprob": c.logprob,
                "processed_logprob": c.processed_logprob,
                "removed_by": c.removed_by,
            }
            for c in step.candidates
        ],
    }


def _strict(value: object) -> object:
    """The value with what JSON lacks replaced: non-finite numbers by null, foreign objects by their text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value if value is None or isinstance(value, str | int) else str(value)
