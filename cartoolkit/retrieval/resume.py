"""How to go on when something new was found: how much of the answer survives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.retrieval.answer import Token
    from cartoolkit.retrieval.triggers import Fire

__all__ = ["Continue", "RegenerateSentence", "Restart", "Resume", "RollbackToWord"]


@dataclass(frozen=True)
class Resume:
    """The base of all ways to go on.

    Attributes:
        accepts_next_sentence: the sentence written after it stands without being looked at again.
    """

    accepts_next_sentence: ClassVar[bool] = False

    def keep(self, tokens: Sequence[Token], fire: Fire) -> int:
        """How many of `tokens` survive, 0 to all of them."""
        raise NotImplementedError


@dataclass(frozen=True)
class Restart(Resume):
    """The whole answer is written anew."""

    def keep(self, tokens: Sequence[Token], fire: Fire) -> int:  # noqa: ARG002
        """None."""
        return 0


@dataclass(frozen=True)
class RollbackToWord(Resume):
    """Back to the beginning of the word in doubt, so that no half word has to be completed."""

    def keep(self, tokens: Sequence[Token], fire: Fire) -> int:
        """All before the word of the first token in doubt."""
        return tokens[fire.first].word if fire.first < len(tokens) else len(tokens)


@dataclass(frozen=True)
class RegenerateSentence(Resume):
    """Back to the beginning of the sentence in doubt; what is written in its place stands (FLARE)."""

    accepts_next_sentence: ClassVar[bool] = True

    def keep(self, tokens: Sequence[Token], fire: Fire) -> int:
        """All before the sentence of the first token in doubt."""
        return tokens[fire.first].sentence if fire.first < len(tokens) else len(tokens)


@dataclass(frozen=True)
class Continue(Resume):
    """Nothing is dropped; only what follows is written with what was found."""

    def keep(self, tokens: Sequence[Token], fire: Fire) -> int:  # noqa: ARG002
        """All."""
        return len(tokens)
