"""A branch: an answer that begins like another one and goes on otherwise from a chosen token."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from cartoolkit.engine.loop import Beginning
from cartoolkit.errors import InvalidRequest
from cartoolkit.requests import GenerateParams
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.trace import ModelInfo, Trace

__all__ = ["Branch", "Forced", "plan_branch", "token_ids"]

Forced = int | str | Sequence[int]


@dataclass(frozen=True, slots=True)
class Branch:
    """What a branch begins with, how it goes on, and what is said of it in the trace."""

    beginning: Beginning
    params: GenerateParams
    event: Event


def plan_branch(
    trace: Trace, decoder: Decoder, *, at: int, token: Forced | None, settings: dict[str, Any]
) -> Branch:
    """Take the kept steps before `at` over, put `token` after them, and change some settings.

    Args:
        trace: the run to branch off.
        decoder: of the same model.
        at: index of the first step that is not taken over; negative counts from the end.
        token: an id, several, or a text, to stand there instead; None draws anew.
        settings: fields of `GenerateParams` that differ from the trace's.

    Raises:
        InvalidRequest: no such step or token, an unknown setting, or a trace of another model.
    """
    _require_same_model(trace.header.model, decoder.info)
    params = _params(trace, settings)
    taken = tuple(step for step in trace[: _place(trace, at)] if step.kept)
    forced = () if token is None else tuple(token_ids(token, decoder, name="token"))
    if forced and len(taken) >= params.max_tokens:
        raise InvalidRequest(
            f"max_tokens={params.max_tokens:,} leaves no room after the {len(taken):,} tokens taken over.",
            hint="Pass a larger max_tokens to branch().",
        )
    origin = trace.header.model
    event = Event(
        kind="branch",
        text=f"Branched off {_origin(origin, decoder.info)} {_after(len(taken))}"
        f"{_replaced(forced, decoder)}.",
        at=len(taken),
        data={
            "taken": len(taken),
            "forced": list(forced),
            "origin": {"engine": origin.engine, "dtype": origin.dtype, "params": trace.header.params},
        },
    )
    return Branch(Beginning(taken, forced), params, event)


def _require_same_model(traced: ModelInfo, loaded: ModelInfo) -> None:
    if not _has_same_tokens(traced, loaded):
        raise InvalidRequest(
            f"the trace was made by {traced.name} ({traced.vocab_size:,} tokens) and cannot be continued by "
            f"{loaded.name} ({loaded.vocab_size:,} tokens): token ids mean something else there.",
            hint="Load the model that made the trace, or send its text as a prompt.",
        )


def _has_same_tokens(a: ModelInfo, b: ModelInfo) -> bool:
    """Whether ids mean the same, by the weights or the tokenizer where they are known, else by name."""
    if a.vocab_size != b.vocab_size:
        return False
    pairs = ((a.weights_hash, b.weights_hash), (a.tokenizer_hash, b.tokenizer_hash))
    if any(one and one == other for one, other in pairs):
        return True
    tokenizers_differ = a.tokenizer_hash and b.tokenizer_hash
    return a.name == b.name and not tokenizers_differ


def _origin(traced: ModelInfo, loaded: ModelInfo) -> str:
    if (traced.engine, traced.dtype) == (loaded.engine, loaded.dtype):
        return "another run"
    return f"a run of {traced.engine} in {traced.dtype}"


def _place(trace: Trace, at: object) -> int:
    place = _whole(at)
    if place is None or not -len(trace) <= place <= len(trace):
        raise InvalidRequest(
            f"at must be the index of a step, from {-len(trace)} to {len(trace)}; got {at!r}."
        )
    return place + len(trace) if place < 0 else place


def _whole(value: object) -> int | None:
    """A whole number, numpy's included; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(cast("SupportsIndex", value))
    except TypeError:
        return None


def token_ids(received: object, decoder: Decoder, *, name: str) -> list[int]:
    """The ids that are meant by an id, several of them, or a text that continues another one.

    Raises:
        InvalidRequest: none at all, or one that the model does not have; it says `name` and what came.
    """
    size = decoder.info.vocab_size
    ids = _ids(received, decoder)
    if not ids or any(i is None or not 0 <= i < size for i in ids):
        shown = repr(received) if len(repr(received)) <= 80 else f"{repr(received)[:77]}..."
        raise InvalidRequest(
            f"{name} must be token ids from 0 to {size - 1:,}, or a text of at least one token; got {shown}."
        )
    return cast("list[int]", ids)


def _ids(received: object, decoder: Decoder) -> list[int | None]:
    if isinstance(received, str):
        return [*decoder.encode_continuation(received)]
    if (single := _whole(received)) is not None:
        return [single]
    return [_whole(item) for item in received] if isinstance(received, Iterable) else []


def _after(count: int) -> str:
    """How many tokens were taken over, in words."""
    return {0: "at its beginning", 1: "after 1 token"}.get(count, f"after {count:,} tokens")


def _replaced(forced: Sequence[int], decoder: Decoder) -> str:
    if not forced:
        return ""
    text = b"".join(decoder.token_bytes(i) for i in forced).decode(errors="replace")
    return f", with {text!r} put there"


def _params(trace: Trace, settings: dict[str, Any]) -> GenerateParams:
    known = GenerateParams.model_fields
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise InvalidRequest(
            f"{unknown[0]!r} is not a setting of a branch, which keeps its prompt. "
            f"Settings are: {', '.join(sorted(known))}."
        )
    params = {name: value for name, value in trace.header.params.items() if name in known}
    # JSON, through which a saved trace goes, has no keys but strings.
    params["logit_bias"] = {int(i): bias for i, bias in params.get("logit_bias", {}).items()}
    return GenerateParams(**params | settings)
