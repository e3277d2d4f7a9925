"""A request as the token ids to read, cut to the context window if it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.chat import with_context
from cartoolkit.errors import InvalidRequest, PromptTooLong, UnsupportedMode
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.messages import Message
    from cartoolkit.requests import GenerateRequest

__all__ = ["PreparedPrompt", "prepare_prompt"]


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


def prepare_prompt(request: GenerateRequest, decoder: Decoder) -> PreparedPrompt:
    """Render, encode and, if it is too long, cut the prompt.

    Raises:
        UnsupportedMode: the conversation holds an image, a sound or a video.
        PromptTooLong: it does not fit and the request says `truncate=False`.
        InvalidRequest: the chat template refuses it, or it holds no token at all.
    """
    conversation = request.conversation()
    _refuse_media(conversation, decoder)
    ids = _encode(request, with_context(conversation, request.context), decoder)
    if not ids:
        raise InvalidRequest(f"the prompt holds no token of this model; got {conversation[-1].text()!r}.")
    ids, events = _fit(ids, request, decoder.info.context_length)
    return PreparedPrompt(ids, conversation[-1].text(), events)


def _refuse_media(conversation: list[Message], decoder: Decoder) -> None:
    for place, message in enumerate(conversation):
        for block in message.media():
            raise UnsupportedMode(
                f"{decoder.info.name} reads text only; message {place} holds a block of type {block.type!r}.",
                hint="Describe it in text, or leave the block out.",
            )


def _encode(request: GenerateRequest, conversation: list[Message], decoder: Decoder) -> list[int]:
    template = decoder.chat_template
    text = "\n\n".join(message.text() for message in conversation)
    # Only a plain prompt can be written in the template's form; messages and a context may talk about it.
    written = request.messages is None and template is not None and template.is_formatted(request.prompt)
    if template is None or not request.chat_template or written:
        # Marks written by the caller bring their own beginning; plain text gets the model's.
        return decoder.encode(text, add_special_tokens=not written)
    return decoder.encode(template.render(conversation))


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
