"""A request as the token ids to read, cut to the context window if it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.chat import render_grounded, with_context
from cartoolkit.errors import InvalidRequest, PromptTooLong, UnsupportedMode
from cartoolkit.requests import make_request
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.messages import Message
    from cartoolkit.requests import GenerateRequest, Prompt
    from cartoolkit.trace import ModelInfo

__all__ = ["PROMPT_EVENTS", "PreparedPrompt", "engine_request", "prepare_prompt"]

PROMPT_EVENTS = frozenset({"truncated", "unwritable"})
"""Kinds of the events that tell what was done to a prompt."""


@dataclass(frozen=True, slots=True)
class PreparedPrompt:
    """What to read, what the caller wrote, and what had to be done to it.

    Attributes:
        ids: token ids, at least one.
        shown: the last message as the caller wrote it.
        events: a cut, if one was made.
    """

    ids: list[int]
    shown: str
    events: list[Event]


def engine_request(
    request: Prompt | GenerateRequest | None, settings: dict[str, Any], model: ModelInfo
) -> GenerateRequest:
    """What one engine is asked, checked.

    Raises:
        InvalidRequest: a setting is unknown or out of range, or says which model to choose: only a router
            heeds that.
    """
    asked = make_request(request, **settings)
    for name in ("model", "workload", "intent"):
        if (given := getattr(asked, name)) is not None:
            raise InvalidRequest(
                f"{name}={given!r} says which model to choose, and this engine is one already, {model.name}.",
                hint="Ask a router instead: cartoolkit.routing.Router().generate(…); or leave it out.",
            )
    return asked


def prepare_prompt(request: GenerateRequest, decoder: Decoder) -> PreparedPrompt:
    """Render, encode and, if it is too long, cut the prompt.

    Raises:
        UnsupportedMode: the conversation holds an image, a sound or a video.
        PromptTooLong: it does not fit and the request says `truncate=False`.
        InvalidRequest: the chat template refuses it, or it holds no token at all.
    """
    conversation = request.conversation()
    _refuse_media(conversation, decoder)
    text, is_marked = _render(request, conversation, decoder)
    ids = decoder.encode(text, add_special_tokens=not is_marked)
    if not ids:
        raise InvalidRequest(f"the prompt holds no token of this model; got {conversation[-1].text()!r}.")
    lost = _lost_characters(text, ids, decoder)
    ids, cut = _fit(ids, request, decoder.info.context_length)
    return PreparedPrompt(ids, conversation[-1].text(), [*lost, *cut])


def _refuse_media(conversation: list[Message], decoder: Decoder) -> None:
    for place, message in enumerate(conversation):
        for block in message.media():
            raise UnsupportedMode(
                f"{decoder.info.name} reads text only; message {place} holds a block of type {block.type!r}.",
                hint="Describe it in text, or leave the block out.",
            )


def _render(request: GenerateRequest, conversation: list[Message], decoder: Decoder) -> tuple[str, bool]:
    """The text to encode, and whether it brings the marks of its own beginning."""
    template = decoder.chat_template
    # Only a plain prompt can be written in the template's form; messages and a context may talk about it.
    written = request.messages is None and template is not None and template.is_formatted(request.prompt)
    if template is None or not request.chat_template or written:
        text = "\n\n".join(message.text() for message in with_context(conversation, request.context))
        beginning = template.special_tokens.get("bos_token") if template else None
        return text, written and (not beginning or text.startswith(beginning))
    return render_grounded(template, conversation, request.context), True


def _lost_characters(text: str, ids: list[int], decoder: Decoder) -> list[Event]:
    """Some vocabularies lack bytes; what they cannot write is left out by the tokenizer without a word."""
    read = b"".join(decoder.token_bytes(i) for i in ids).decode(errors="replace")
    # A character may be missing because it was normalised into another, which is no loss.
    lost = [character for character in sorted(set(text) - set(read)) if _is_unwritable(character, decoder)]
    if not lost:
        return []
    count = sum(text.count(character) for character in lost)
    names = ", ".join(repr(character) for character in lost[:5]) + (", …" if len(lost) > 5 else "")
    said = (
        f"The model's tokenizer cannot write {count:,} characters of the prompt ({names}); it left them out."
    )
    return [Event(kind="unwritable", text=said, data={"characters": count})]


def _is_unwritable(character: str, decoder: Decoder) -> bool:
    """Whether a character alone becomes no token, or the one that stands for the unknown."""
    return set(decoder.encode(character)) <= decoder.special_ids


def _fit(ids: list[int], request: GenerateRequest, window: int) -> tuple[list[int], list[Event]]:
    """Keep the end of a prompt, so that max_tokens fit after it (a quarter of the window at most)."""
    room = window - min(request.params.max_tokens, window // 4)
    if len(ids) <= room:
        return ids, []
    if not request.params.truncate:
        raise PromptTooLong(
            f"the prompt has {len(ids):,} tokens; {room:,} fit, since the context window holds {window:,} "
            f"and {window - room:,} are kept for the answer.",
            hint="Shorten the prompt, lower max_tokens, or pass truncate=True to cut its beginning.",
        )
    text = (
        f"The prompt was too long: its first {len(ids) - room:,} of {len(ids):,} tokens were cut, so that "
        f"prompt and answer fit the context window of {window:,} tokens."
    )
    data = {"from": len(ids), "to": room, "context_length": window}
    event = Event(kind="truncated", text=text, data=data)
    return ids[-room:], [event]
