"""Numbers for tokens that a server names only by their bytes."""

from __future__ import annotations

__all__ = ["Vocabulary"]


class Vocabulary:
    """Token ids of one run, numbered as the tokens came.

    >>> vocabulary = Vocabulary()
    >>> vocabulary.id_of(b" sky"), vocabulary.id_of(b" sea"), vocabulary.id_of(b" sky")
    (0, 1, 0)
    >>> vocabulary.token_bytes(1)
    b' sea'
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[bytes, int], int] = {}
        self._tokens: list[bytes] = []

    def id_of(self, token: bytes, copy: int = 0) -> int:
        """The number of a token, a new one if it has not come yet.

        Args:
            token: its bytes.
            copy: tells tokens apart that are written alike and stand beside each other.
        """
        number = self._ids.setdefault((token, copy), len(self._tokens))
        if number == len(self._tokens):
            self._tokens.append(token)
        return number

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token that has come."""
        return self._tokens[token_id]
