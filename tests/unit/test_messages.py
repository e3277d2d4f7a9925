"""Messages: text and blocks, and what does not belong into them."""

import pytest
from pydantic import ValidationError

from cartoolkit.messages import MediaBlock, Message, TextBlock, ToolCall


def blocks(*given):
    return Message(role="user", content=list(given))


def test_text_is_the_content_or_the_text_blocks_joined():
    assert Message(role="user", content="a b").text() == "a b"
    picture = {"type": "image", "url": "x.png"}
    assert blocks({"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}).text() == "ab"
    assert Message(role="assistant").text() == ""


def test_media_are_the_other_blocks_in_order():
    message = blocks({"type": "video", "url": "v"}, TextBlock(text="a"), {"type": "audio", "data": "aGk="})
    assert message.media() == [MediaBlock(type="video", url="v"), MediaBlock(type="audio", data="aGk=")]
    assert Message(role="user", content="a").media() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "developer"},
        {"role": "User"},
        {},
        {"role": "user", "content": None},
        {"role": "user", "content": 3},
        {"role": "user", "name": "Ann"},
        {"role": "user", "content": "\udc80"},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": "a", "more": 1}]},
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "user", "content": [{"type": "text", "text": "\ud800"}]},
        {"role": "assistant", "tool_calls": [{"arguments": {}}]},
        {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{}"}]},
        {"role": "assistant", "tool_calls": [{"name": "\ud800"}]},
    ],
)
def test_what_is_no_message_is_refused(wrong):
    with pytest.raises(ValidationError):
        Message.model_validate(wrong)


def test_messages_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        Message(role="user").content = "other"


def test_a_message_survives_json():
    message = Message(
        role="assistant",
        content=[TextBlock(text="🙂 \u0301"), MediaBlock(type="image", url="x", media_type="image/png")],
        tool_calls=[ToolCall(id="1", name="look", arguments={"at": ["sky", 1, None]})],
    )
    assert Message.model_validate_json(message.model_dump_json()) == message
