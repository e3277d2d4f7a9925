"""Bytes of tokens to text: the stream, and the label of a single token.

A token is bytes; text is a view of them. One character may be spread over several tokens, so a
stream releases a character with the token that completes it, and a candidate is shown as it would
read *after the tokens chosen so far*, never after its siblings.
"""

from __future__ import annotations

import codecs

__all__ = ["TextStream", "token_label"]


class TextStream:
    r"""Decodes UTF-8 piece by piece; the joined pieces equal one decode of all bytes.

    Bytes that can never become a character turn into U+FFFD with the piece that made this certain.

    >>> stream = TextStream()
    >>> stream.feed(b"\xf0\x9f"), stream.pending, stream.feed(b"\x99\x82!")
    ('', b'\xf0\x9f', '🙂!')
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def pending(self) -> bytes:
        """The bytes of a character that is not complete yet."""
        return self._decoder.getstate()[0]

    def feed(self, data: bytes) -> str:
        """The text that `data` completes."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """End the text: U+FFFD if it stopped inside a character, else nothing."""
        return self._decoder.decode(b"", final=True)


def token_label(token: bytes, pending: bytes = b"") -> str:
    r"""A token as it would read after `pending` bytes; what is no text shows as ``\xNN``.

    >>> token_label(b"\x99\x82", b"\xf0\x9f"), token_label(b"a\xf0\x9f")
    ('🙂', 'a\\xF0\\x9F')
    """
    label = _decode_visibly(pending + token)
    # Pending bytes that the token does not complete belong to the earlier tokens' labels.
    unfinished = _decode_visibly(pending)
    return label.removeprefix(unfinished) if pending and label.startswith(unfinished) else label


def _decode_visibly(data: bytes) -> str:
    return data.decode("utf-8", errors="cartoolkit.visible_bytes")


def _visible_bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return "".join(f"\\x{byte:02X}" for byte in bad), error.end


codecs.register_error("cartoolkit.visible_bytes", _visible_bytes)
