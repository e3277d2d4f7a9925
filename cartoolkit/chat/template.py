"""A conversation as the text that the model was trained to continue.

Templates come with the model as Jinja source. They are files from others, so they run in Jinja's
immutable sandbox, with the few helpers that templates in the wild expect.
"""

from __future__ import annotations

import contextlib
import json
import re
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Template
    from jinja2.ext import Extension
    from jinja2.parser import Parser

    from cartoolkit.messages import Message

__all__ = ["ChatTemplate", "render_grounded", "with_context"]

_MARK = re.compile(r"<[|｜][^|｜<>\s]+[|｜]>|<(?:start|end)_of_turn>|\[/?INST\]")
_CONTEXT_INTRODUCTION = "Answer with the help of the following text."


def with_context(messages: Sequence[Message], context: str | None) -> list[Message]:
    """Put a text to ground the answer on into the system message, after what that says already."""
    if not context:
        return list(messages)
    first = messages[0] if messages and messages[0].role == "system" else None
    system = f"{first.text()}\n\n" if first else ""
    grounded = f"{system}{_CONTEXT_INTRODUCTION}\n\n{context}"
    from cartoolkit.messages import Message

    return [Message(role="system", content=grounded), *messages[1 if first else 0 :]]


def render_grounded(template: ChatTemplate, messages: Sequence[Message], context: str | None) -> str:
    """Render a conversation with a text to ground it on, in a user turn where there is no system turn.

    Some templates refuse a system message and some leave it out without a word.

    Raises:
        InvalidRequest: the template refuses the conversation.
    """
    if not context:
        return template.render(messages)
    with contextlib.suppress(InvalidRequest):
        text = template.render(with_context(messages, context))
        if context.strip() in text:
            return text
    return template.render(_with_context_in_user_turn(messages, context))


def _with_context_in_user_turn(messages: Sequence[Message], context: str) -> list[Message]:
    place = next((i for i, message in enumerate(messages) if message.role == "user"), 0)
    grounded = f"{_CONTEXT_INTRODUCTION}\n\n{context}\n\n{messages[place].text()}"
    turn = messages[place].model_copy(update={"content": grounded})
    return [*messages[:place], turn, *messages[place + 1 :]]


class ChatTemplate:
    """A model's own template.

    Attributes:
        source: Jinja source.
        special_tokens: names such as ``bos_token`` that the source may use.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        self.source = source
        self.special_tokens = dict(special_tokens or {})

    @cached_property
    def marks(self) -> frozenset[str]:
        """The control-token names that the source writes, such as ``<|im_start|>``."""
        return frozenset(_MARK.findall(self.source))

    def is_formatted(self, prompt: str) -> bool:
        """Whether the caller has written the template's form already, so that it must be left alone.

        Such a prompt begins with a mark, perhaps after the beginning token. One that only mentions a
        mark, as in a question about it, is an ordinary message.
        """
        beginning = self.special_tokens.get("bos_token", "")
        start = prompt.lstrip().removeprefix(beginning).lstrip()
        return start.startswith(tuple(self.marks))

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """The text to continue.

        Raises:
            InvalidRequest: the template refuses the conversation, for instance two user turns in a row.
        """
        turns = [_as_dict(message) for message in messages]
        # transformers always defines the first two, and templates compare them with none.
        names = {"tools": None, "documents": None, **self.special_tokens}
        try:
            return self._compiled.render(messages=turns, add_generation_prompt=add_generation_prompt, **names)
        except Exception as error:
            # A template is somebody else's program: it may also fail by a TypeError or an OverflowError.
            raise InvalidRequest(
                f"the model's chat template refuses this conversation: {error}",
                hint="Change the roles or their order, or pass chat_template=False to send the text alone.",
            ) from error

    @cached_property
    def _compiled(self) -> Template:
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _generation_tag()]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
        return environment.from_string(self.source)


def _as_dict(message: Message) -> dict[str, Any]:
    """Templates test for the presence of keys, so empty ones are left out."""
    turn: dict[str, Any] = {"role": message.role, "content": message.text()}
    if message.tool_calls:
        turn["tool_calls"] = [
            {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        turn["tool_call_id"] = message.tool_call_id
    return turn


def _generation_tag() -> type[Extension]:
    """``{% generation %}`` marks the assistant's words for training; here its body is rendered as it is."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class GenerationTag(Extension):
        tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    return GenerationTag


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - the order of arguments that transformers gives it
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    # Jinja's own filter escapes for HTML, which a prompt is not.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)
