"""Where a model thinks aloud before it answers."""

from __future__ import annotations

from enum import Enum

__all__ = ["Speech", "ThinkingTags"]

_OPEN, _CLOSE = "<think>", "</think>"


class Speech(Enum):
    """What a piece of text is part of."""

    ANSWER = "answer"
    THINKING = "thinking"
    UNDECIDED = "undecided"
    """It may be the beginning of a tag; the next piece tells."""
    ALL_THINKING = "all thinking"
    """It ends a block that nobody saw begin: everything before it was thinking too."""


class ThinkingTags:
    """Follows ``<think>`` and ``</think>`` through pieces of text, however they are cut into tokens.

    Args:
        inside: the text begins inside a block, since the prompt opened it.

    >>> tags = ThinkingTags()
    >>> [tags.feed(piece).value for piece in ("<", "think>", "Hm", "</think>", "Paris")]
    ['undecided', 'thinking', 'thinking', 'thinking', 'answer']
    """

    def __init__(self, *, inside: bool = False) -> None:
        self.inside = inside
        self._tail = ""

    def feed(self, piece: str) -> Speech:
        """Say what the next piece is part of; a tag counts as thinking."""
        tail = self._tail + piece
        if self.inside:
            self.inside = _CLOSE not in tail
            self._tail = _beginning(tail, _CLOSE) if self.inside else ""
            return Speech.THINKING
        if "<" not in tail:
            self._tail = ""
            return Speech.ANSWER
        return self._outside(tail)

    def _outside(self, tail: str) -> Speech:
        self._tail = ""
        if _CLOSE in tail:
            return Speech.ALL_THINKING
        if _OPEN in tail:
            self.inside = _CLOSE not in tail.partition(_OPEN)[2]
            return Speech.THINKING
        self._tail = max(_beginning(tail, _OPEN), _beginning(tail, _CLOSE), key=len)
        return Speech.UNDECIDED if self._tail else Speech.ANSWER


def _beginning(text: str, tag: str) -> str:
    """The longest end of `text` that begins `tag` without completing it."""
    sizes = range(min(len(tag) - 1, len(text)), 0, -1)
    return next((text[-n:] for n in sizes if tag.startswith(text[-n:])), "")
