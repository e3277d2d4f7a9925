"""Token ids of a text that continues another, from a tokenizer that knows only whole texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["encoded_behind_text"]

# Several, since a text can merge with any one of them.
_ANCHORS = ("\n", "a", ".", "0")


def encoded_behind_text(
    text: str, encode: Callable[[str], list[int]], token_bytes: Callable[[int], bytes]
) -> list[int]:
    """The ids of `text` as it stands behind other text.

    SentencePiece-like tokenizers write a space before a text. Whether one does so here is seen by the bytes;
    then `text` is encoded behind an anchor, whose ids are cut off again where they have stayed as they were.

    Args:
        text: the continuation, with its own space at the beginning if it has one.
        encode: a whole text to ids, without tokens around it.
        token_bytes: the bytes of a token.

    Returns:
        Ids whose bytes are those of `text`; the ids of a whole text where no anchor gives such, as for a
        tokenizer that changes or loses characters.
    """
    whole, wanted = encode(text), text.encode()
    if _joined(whole, token_bytes) == wanted:
        return whole
    for anchor in _ANCHORS:
        before, both = encode(anchor), encode(anchor + text)
        behind = both[len(before) :]
        if both[: len(before)] == before and _joined(behind, token_bytes) == wanted:
            return behind
    return whole


def _joined(ids: Sequence[int], token_bytes: Callable[[int], bytes]) -> bytes:
    return b"".join(map(token_bytes, ids))
