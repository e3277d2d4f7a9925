"""Where a trace comes from: model, settings, versions, timing, and what happened on the way."""

from __future__ import annotations

import html
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Event", "ModelInfo", "ProviderReport", "TraceHeader"]


class _Record(BaseModel):
    # A trace keeps what a library reported, NaN and infinity included.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class ModelInfo(_Record):
    """Which weights ran, where and in which precision.

    Attributes:
        name: as people know it.
        engine: the library that ran it, such as ``torch``.
        device: such as ``cpu`` or ``cuda:0``.
        dtype: of the weights while running; empty where a server does not tell.
        context_length: tokens of prompt and answer together; 0 where a server does not tell.
        vocab_size: length of a row of logits; 0 where a server has it.
        weights_hash: identifies the checkpoint; its prefix says how it was made.
        tokenizer_hash: identifies the tokenizer's files.
        attention: how it was computed, such as ``eager``, where that was asked for; else empty. A model that
            has one was made to say where it looks, see `Step.attention`.
    """

    name: str
    engine: str
    device: str
    dtype: str
    context_length: int
    vocab_size: int
    weights_hash: str = ""
    tokenizer_hash: str = ""
    attention: str = ""

    def _repr_html_(self) -> str:
        rows = {
            "engine": self.engine,
            "device": self.device,
            "dtype": self.dtype,
            "context": f"{self.context_length:,} tokens" if self.context_length else "",
            "vocabulary": f"{self.vocab_size:,} tokens" if self.vocab_size else "",
            "weights": self.weights_hash[:23],
        }
        facts = " · ".join(f"{name} <b>{html.escape(value)}</b>" for name, value in rows.items() if value)
        return f"<div><b>{html.escape(self.name)}</b> — {facts}</div>"


class Event(_Record):
    """Something worth knowing that is not a token: a cut prompt, a re-read cache, a retrieval.

    Attributes:
        kind: a short name, such as ``truncated``.
        text: the sentence shown to people.
        at: index of the step before which it happened.
        data: its figures.
    """

    kind: str
    text: str
    at: int = 0
    data: dict[str, Any] = Field(default_factory=dict)


class ProviderReport(_Record):
    """What a server elsewhere tells of a run; None is not told, never 0.

    Token ids of such a run are numbered as the tokens came. They name nothing outside of it, and its prompt
    has none.

    Attributes:
        unit: what a step is: one token, or a chunk of text as the server sent it, of one token or several.
        model: what answered, as the server calls it.
        fingerprint: of the server's configuration, as it calls it.
        prompt_tokens: of the whole prompt.
        cached_tokens: of these, how many it found in its cache.
        completion_tokens: written, with those of a thought that is not part of the answer.
        thought_tokens: of these, how many were such a thought.
    """

    unit: Literal["token", "chunk"] = "token"
    model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    thought_tokens: int | None = None

    @property
    def answer_tokens(self) -> int | None:
        """Tokens of the answer itself."""
        if self.completion_tokens is None:
            return None
        return max(self.completion_tokens - (self.thought_tokens or 0), 0)


class TraceHeader(_Record):
    """Everything about a run that is not an array.

    Attributes:
        model: see `ModelInfo`.
        prompt: what the caller wrote, without the chat template around it.
        params: the settings it was generated with, `seed` filled in.
        created: start of the run, ISO 8601 with zone.
        versions: of Python and the libraries that took part.
        stop_reason: ``stop`` (end token or stop string), ``length``, ``stopped`` (by the user),
            ``local_decode_timeout``, ``error``, or empty while it runs.
        stop_detail: which token or string, or the error's sentence.
        prefill_tokens: tokens that had to be read before the first one could be decoded: of the prompt and,
            in a branch, of the steps taken over.
        reused_tokens: tokens of these that were in the cache already and were not read again.
        prefill_seconds: from the request until they were read.
        retrieval: policy and retriever, if the run could look something up; see `Policy.describe`.
        provider: what a server elsewhere tells of the run; None where the model ran here.
        events: see `Event`.
    """

    model: ModelInfo
    prompt: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    created: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    stop_reason: str = ""
    stop_detail: str = ""
    prefill_tokens: int = 0
    reused_tokens: int = 0
    prefill_seconds: float = 0.0
    retrieval: dict[str, Any] | None = None
    provider: ProviderReport | None = None
    events: list[Event] = Field(default_factory=list)
