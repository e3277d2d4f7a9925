"""A branch: an answer that begins like another one and goes on otherwise from a chosen token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.loop import Beginning
from cartoolkit.errors import InvalidRequest
from cartoolkit.requests import GenerateParams
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.trace import ModelInfo, Trace

__all__ = ["Branch", "Forced", "check_ids", "plan_branch"]

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
    place = _place(trace, at)
    taken = tuple(step for step in trace[:place] if step.kept)
    forced = tuple(_token_ids(token, decoder))
    event = Event(
        kind="branch",
        text=f"Branched off another run {_after(len(taken))}{_replaced(forced, decoder)}.",
        at=len(taken),
        data={"taken": len(taken), "forced": list(forced)},
    )
    return Branch(Beginning(taken, forced), _params(trace, settings), event)


def _require_same_model(traced: ModelInfo, loaded: ModelInfo) -> None:
    if (traced.name, traced.vocab_size) != (loaded.name, loaded.vocab_size):
        raise InvalidRequest(
            f"the trace was made by {traced.name} ({traced.vocab_size:,} tokens) and cannot be continued by "
            f"{loaded.name} ({loaded.vocab_size:,} tokens): token ids mean something else there.",
            hint="Load the model that made the trace, or send its text as a prompt.",
        )


def _place(trace: Trace, at: object) -> int:
    if isinstance(at, bool) or not isinstance(at, int) or not -len(trace) <= at <= len(trace):
        raise InvalidRequest(
            f"at must be the index of a step, from {-len(trace)} to {len(trace)}; got {at!r}."
        )
    return at + len(trace) if at < 0 else at


def _token_ids(token: Forced | None, decoder: Decoder) -> list[int]:
    if token is None:
        return []
    ids = decoder.encode(token) if isinstance(token, str) else [token] if isinstance(token, int) else token
    check_ids(ids, decoder.info, name="token", received=token)
    return list(ids)


def check_ids(ids: Sequence[object], info: ModelInfo, *, name: str, received: object) -> None:
    """Refuse what are no token ids of a model.

    Raises:
        InvalidRequest: none at all, or one out of range; it says `name` and what was `received`.
    """
    size = info.vocab_size
    if not ids or any(type(i) is not int or not 0 <= i < size for i in ids):
        shown = repr(received) if len(repr(received)) <= 80 else f"{repr(received)[:77]}..."
        raise InvalidRequest(
            f"{name} must be token ids from 0 to {size - 1:,}, or a text of at least one token; got {shown}."
        )


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
