"""What a conversation is made of: messages, content blocks, tool calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = ["ContentBlock", "MediaBlock", "Message", "Text", "TextBlock", "ToolCall"]


def _encodable(text: str) -> str:
    """Refuse what no tokenizer takes and no file holds; UnicodeEncodeError is a ValueError."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""A string without lone surrogates, which half a JSON escape or a file name of unknown encoding leaves."""


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextBlock(_Value):
    """A piece of plain text."""

    type: Literal["text"] = "text"
    text: Text


class MediaBlock(_Value):
    """An image, a sound or a video, by URL or inline base64; engines for text refuse it by name."""

    type: Literal["image", "audio", "video"]
    url: str | None = None
    data: str | None = None
    media_type: str | None = None


ContentBlock = Annotated[TextBlock | MediaBlock, Field(discriminator="type")]


class ToolCall(_Value):
    """A call that the assistant asked for."""

    id: Text | None = None
    name: Text
    arguments: dict[str, Any] = Field(default_factory=dict)


class Message(_Value):
    """One turn of a conversation.

    `content` is text or a list of blocks. `tool_call_id` belongs to role `tool` and names the call
    that is answered.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: Text | list[ContentBlock] = ""
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: Text | None = None

    def media(self) -> list[MediaBlock]:
        """The blocks that are not text, in order."""
        return [] if isinstance(self.content, str) else [b for b in self.content if isinstance(b, MediaBlock)]

    def text(self) -> str:
        """The text blocks, joined without a separator."""
        if isinstance(self.content, str):
            return self.content
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))
