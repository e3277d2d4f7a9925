"""What to ask when something is looked up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from cartoolkit.retrieval.answer import spoken_text
from cartoolkit.retrieval.checks import require_at_least, require_probability
from cartoolkit.retrieval.triggers import recorded
from cartoolkit.retrieval.words import content_words, limit_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.retrieval.answer import Token
    from cartoolkit.retrieval.triggers import Fire

__all__ = [
    "ContentWords",
    "MaskedLookahead",
    "Partial",
    "Query",
    "Question",
    "QuestionAndAccepted",
    "Situation",
]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known when a trigger has fired.

    Attributes:
        question: what the user asked.
        tokens: all of the answer that stands.
        fire: what fired.
    """

    question: str
    tokens: Sequence[Token]
    fire: Fire

    @property
    def written(self) -> str:
        """What had been written before the token that the trigger fired at."""
        return spoken_text(self.tokens[: self.fire.at])

    @property
    def accepted(self) -> str:
        """What stands before the word in doubt."""
        first = self.fire.first
        end = self.tokens[first].word if first < len(self.tokens) else len(self.tokens)
        return spoken_text(self.tokens[:end])

    @property
    def lookahead(self) -> Sequence[Token]:
        """The sentence in doubt as far as it is written, up to the token that the trigger fired at.

        The last sentence for a trigger that knows no doubt.
        """
        anchor = self.fire.first if self.fire.positions else self.fire.at - 1
        if not 0 <= anchor < len(self.tokens):
            return ()
        return [token for token in self.tokens[self.tokens[anchor].sentence : self.fire.at] if token.spoken]


@dataclass(frozen=True)
class Query:
    """The base of all queries.

    Attributes:
        reads_numbers: it looks at what inspection records.
        reads_attention: it looks at where the model looked, which not every engine says.
    """

    reads_numbers: ClassVar[bool] = False
    reads_attention: ClassVar[bool] = False

    def build(self, situation: Situation) -> str:
        """The words to look up; an empty text asks for the question instead."""
        raise NotImplementedError


@dataclass(frozen=True)
class Question(Query):
    """The user's question as it is."""

    def build(self, situation: Situation) -> str:
        """The question."""
        return situation.question


@dataclass(frozen=True)
class Partial(Query):
    """What has been written so far, without the question: it follows the model wherever it errs.

    Attributes:
        max_words: at most so many, the last ones.
    """

    max_words: int = 64

    def __post_init__(self) -> None:
        require_at_least("max_words", self.max_words, 1)

    def build(self, situation: Situation) -> str:
        """The end of the text before the token that the trigger fired at."""
        return limit_words(situation.written, self.max_words)


@dataclass(frozen=True)
class QuestionAndAccepted(Query):
    """The question, and what was written before the word in doubt.

    Attributes:
        max_words: at most so many of the answer, the last ones; the question is never cut.
    """

    max_words: int = 64

    def __post_init__(self) -> None:
        require_at_least("max_words", self.max_words, 1)

    def build(self, situation: Situation) -> str:
        """Question and accepted text, with a blank between."""
        return _join(situation.question, limit_words(situation.accepted, self.max_words))


@dataclass(frozen=True)
class MaskedLookahead(Query):
    """The sentence in doubt without its doubtful words (FLARE's implicit query), after the question.

    A word is left out if any token of it is in doubt, since a search finds nothing by half a word.

    Attributes:
        mask_below: raw probability of the taken token, 0 to 1.
        ask_question: put the question before it. FLARE does not; measured, it finds more with it.
        max_words: at most so many of the sentence, the last ones.
    """

    reads_numbers: ClassVar[bool] = True

    mask_below: float = 0.4
    ask_question: bool = True
    max_words: int = 64

    def __post_init__(self) -> None:
        require_probability("mask_below", self.mask_below)
        require_at_least("max_words", self.max_words, 1)

    def build(self, situation: Situation) -> str:
        """The words of the look-ahead that are not in doubt, the question before them."""
        words = groupby(situation.lookahead, key=lambda token: token.word)
        sure = [word for _, tokens in words if not self._doubtful(word := list(tokens))]
        text = limit_words(" ".join(spoken_text(word).strip() for word in sure), self.max_words)
        return _join(situation.question if self.ask_question else "", text)

    def _doubtful(self, word: Sequence[Token]) -> bool:
        return any(math.exp(recorded(token, "logprob")) < self.mask_below for token in word if token.watched)


@dataclass(frozen=True)
class ContentWords(Query):
    """The content words of the question, and the last ones of what was written before the word in doubt.

    What DRAGIN and ETC choose by attention is chosen by nearness here, which every engine can do.

    Attributes:
        max_words: at most so many in all.
    """

    max_words: int = 25

    def __post_init__(self) -> None:
        require_at_least("max_words", self.max_words, 1)

    def build(self, situation: Situation) -> str:
        """The words in the order of the text, each once."""
        asked = content_words(situation.question)[: self.max_words]
        known = {word.casefold() for word in asked}
        written = [word for word in content_words(situation.accepted) if word.casefold() not in known]
        room = self.max_words - len(asked)
        return " ".join(asked + (written[-room:] if room else []))


def _join(*parts: str) -> str:
    return " ".join(part.strip() for part in parts if part.strip())
