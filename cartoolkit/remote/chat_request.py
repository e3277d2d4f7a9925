"""A request as the fields of a chat completion; what a server cannot do is refused or named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cartoolkit.chat import with_context
from cartoolkit.errors import InvalidRequest, UnsupportedMode
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.messages import Message
    from cartoolkit.requests import GenerateParams, GenerateRequest

__all__ = ["MOST_CANDIDATES", "chat_fields", "not_heeded", "refuse_what_changes_the_answer"]

MOST_CANDIDATES = 20
"""Alternatives a token that the interface can ask for."""

# OpenAI takes no more stop strings than these; what it is not given is found here.
_MOST_STOPS = 4


def refuse_what_changes_the_answer(request: GenerateRequest, name: str) -> None:
    """Refuse what would give another answer if it were left out.

    Raises:
        InvalidRequest: the request begins the answer itself, biases token ids, writes the prompt without a
            template, scores the prompt, goes on after the end, or is too long and must not be cut.
        UnsupportedMode: a message holds an image, a sound or a video.
    """
    params = request.params
    faults = {
        "answer_start": (bool(request.answer_start), "a server begins the answer itself"),
        "logit_bias": (bool(params.logit_bias), "token ids of this side name nothing there"),
        "chat_template=False": (not request.chat_template, "a server writes the conversation its own way"),
        "prompt_logprobs": (params.prompt_logprobs, "a server does not score the prompt"),
        "ignore_eos": (params.ignore_eos, "a server ends where its model does"),
    }
    for setting, (is_asked, why) in faults.items():
        if is_asked:
            raise InvalidRequest(
                f"{setting} does not go with {name}, which answers on a server: {why}.",
                hint="Leave it out, or load the model here: cartoolkit.load(…).",
            )
    for place, message in enumerate(request.conversation()):
        for block in message.media():
            raise UnsupportedMode(
                f"{name} is sent text only; message {place} holds a block of type {block.type!r}.",
                hint="Describe it in text, or leave the block out.",
            )


def not_heeded(params: GenerateParams) -> tuple[Event, ...]:
    """What a server is not told, in one event; none if all is heeded.

    Settings that only shape the draw are left out: an answer without them is an answer still.
    """
    names = [
        *([f"top_k={params.top_k}"] if params.top_k else []),
        *([f"min_p={params.min_p:g}"] if params.min_p else []),
        *([f"repeat_penalty={params.repeat_penalty:g}"] if params.repeat_penalty != 1 else []),
        *([f"candidates={params.candidates}"] if _asks_for_too_many(params) else []),
        # True is the default, so only who asks for it is told.
        *(["repeatable=True"] if params.repeatable and "repeatable" in params.model_fields_set else []),
    ]
    if not names:
        return ()
    most = f"; it tells {MOST_CANDIDATES} candidates at most" if names[-1].startswith("candidates") else ""
    text = f"Not heeded, as a chat completion has no such setting: {', '.join(names)}{most}."
    return (Event(kind="not_heeded", text=text, data={"settings": names}),)


def _asks_for_too_many(params: GenerateParams) -> bool:
    return params.inspect and params.candidates > MOST_CANDIDATES


def chat_fields(request: GenerateRequest, model: str) -> dict[str, Any]:
    """The fields of `POST /chat/completions`.

    The names are those that every server knows; see `offers` for those that one of them does not take.
    """
    params = request.params
    messages = with_context(request.conversation(), request.context)
    fields: dict[str, Any] = {
        "model": model,
        "messages": [_message(message, place) for place, message in enumerate(messages)],
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_tokens": params.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if params.stop:
        fields["stop"] = params.stop[:_MOST_STOPS]
    if params.seed is not None:
        fields["seed"] = params.seed
    if params.inspect:
        fields |= {"logprobs": True, "top_logprobs": min(params.candidates, MOST_CANDIDATES)}
    return fields


def _message(message: Message, place: int) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.text()}
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id or f"call_{place}_{i}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for i, call in enumerate(message.tool_calls)
        ]
    return written
