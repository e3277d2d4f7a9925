"""An answer in the making, token by token, with its words and sentences, which can be cut back."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from cartoolkit.retrieval.sentences import SentenceStream
from cartoolkit.retrieval.thinking import Speech, ThinkingTags
from cartoolkit.retrieval.words import FUNCTION_WORDS, has_word_character, starts_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cartoolkit.trace import Step

__all__ = ["Answer", "Token", "spoken_text"]


class Token(NamedTuple):
    """A step and its place in the answer.

    Attributes:
        position: among the tokens that stand, from 0.
        step: what the engine recorded.
        text: what it adds to what a reader reads; empty for thinking and control tokens.
        spoken: part of what a reader reads.
        word: position of the first token of its word.
        sentence: position of the first token of its sentence.
        initial: its word is the first one of its sentence.
        wordless: it holds no letter or digit, nor a part of a character that is not known yet.
    """

    position: int
    step: Step
    text: str
    spoken: bool
    word: int
    sentence: int
    initial: bool
    wordless: bool

    @property
    def watched(self) -> bool:
        """Whether a trigger may see it: thinking, control tokens and what the caller wrote are none."""
        return self.spoken and not self.step.forced

    @property
    def function_word(self) -> bool:
        """Whether it is a whole word as in `FUNCTION_WORDS`, as far as one can know before the next."""
        return self.word == self.position and self.text.strip().lower() in FUNCTION_WORDS


def spoken_text(tokens: Sequence[Token]) -> str:
    """What a reader reads of `tokens`: without thinking and control tokens."""
    return "".join(token.text for token in tokens)


class Answer:
    """The tokens that stand, as they come.

    Args:
        thinking: the answer begins inside a ``<think>`` block that the prompt opened.

    Attributes:
        tokens: what stands.
    """

    def __init__(self, *, thinking: bool = False) -> None:
        self.tokens: list[Token] = []
        self._begins_inside = thinking
        self._inside: list[bool] = []
        self._read_again(())

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def forced(self) -> int:
        """How many tokens at the beginning were put there by the caller."""
        return next((t.position for t in self.tokens if not t.step.forced), len(self.tokens))

    def add(self, step: Step) -> list[list[Token]]:
        """Take a step.

        Returns:
            The sentences that are now known to have ended, spoken tokens only; mostly none, and if one,
            then mostly the one before this token.
        """
        speech = self._tags.feed(_piece(step))
        if speech is Speech.UNDECIDED:
            self._undecided += 1
        elif speech is Speech.ANSWER and self._undecided:
            return self._release(step)
        else:
            self._undecided = 0
            if speech is Speech.ALL_THINKING:
                self._retract()
        return self._append(step, spoken=speech is Speech.ANSWER and not step.special)

    def close(self) -> list[list[Token]]:
        """The sentence at the end that nothing has ended yet; none if no word is in it."""
        return [list(self._open)] if self._first_word is not None else []

    def truncate(self, keep: int) -> None:
        """Drop all but the first `keep` tokens. A sentence that ended before them stays ended."""
        if keep >= len(self.tokens):
            return
        sentence = self.tokens[keep].sentence
        del self.tokens[keep:], self._inside[keep:]
        self._read_again(t for t in self.tokens[sentence:] if t.spoken)

    def _read_again(self, sentence: Iterable[Token]) -> None:
        """Set everything that follows from the tokens, of which `sentence` are those not ended yet."""
        self._tags = ThinkingTags(inside=self._inside[-1] if self._inside else self._begins_inside)
        self._undecided = 0
        self._before = next((t.text[-1] for t in reversed(self.tokens) if t.text), "")
        self._stream, self._fed = SentenceStream(), 0
        self._open: list[Token] = []
        self._ends: list[int] = []
        self._first_word: int | None = None
        for token in sentence:
            self._stream.feed(token.text)
            self._extend(token)

    def _release(self, step: Step) -> list[list[Token]]:
        """What looked like the beginning of a tag was none: it is part of the answer."""
        first = len(self.tokens) - self._undecided
        held = [token.step for token in self.tokens[first:]]
        self.truncate(first)
        sentences = [self._append(each, spoken=not each.special) for each in (*held, step)]
        return [sentence for ended in sentences for sentence in ended]

    def _retract(self) -> None:
        """A block of thinking ended that nobody saw begin."""
        self.tokens = [t._replace(spoken=False, text="") for t in self.tokens]
        self._begins_inside = True
        self._inside = [True] * len(self.tokens)
        self._read_again(())
        self._tags = ThinkingTags()

    def _append(self, step: Step, *, spoken: bool) -> list[list[Token]]:
        self._inside.append(self._tags.inside)
        token = self._token(step, spoken=spoken)
        self.tokens.append(token)
        if not spoken:
            return []
        ends = self._stream.feed(token.text) if token.text else ()
        self._extend(token)
        self._before = token.text[-1:] or self._before
        return [self._end_sentence(end) for end in ends]

    def _token(self, step: Step, *, spoken: bool) -> Token:
        position = len(self.tokens)
        sentence = self._open[0].position if self._open else position
        if not spoken:
            return Token(position, step, "", False, position, sentence, False, True)
        word, text = self._word(step, position), step.text
        initial = self._first_word is None or self._first_word == word
        wordless = not (step.incomplete or has_word_character(text))
        return Token(position, step, text, True, word, sentence, initial, wordless)

    def _word(self, step: Step, position: int) -> int:
        """Position of the first token of the word that `step` belongs to."""
        last = self.tokens[-1] if self.tokens else None
        if last is None or not last.spoken:
            return position
        inside_character = last.step.incomplete
        return position if not inside_character and starts_word(step.text, self._before) else last.word

    def _extend(self, token: Token) -> None:
        """Put a token at the end of the open sentence."""
        self._fed += len(token.text)
        self._open.append(token)
        self._ends.append(self._fed)
        if self._first_word is None and not token.wordless:
            self._first_word = token.word

    def _end_sentence(self, end: int) -> list[Token]:
        """Split the open sentence behind the token that holds the character before offset `end`."""
        count = bisect_left(self._ends, end) + 1
        sentence, rest = self._open[:count], self._open[count:]
        self._open, self._ends, self._first_word = [], self._ends[count:], None
        for token in rest:
            initial = self._first_word is None or self._first_word == token.word
            moved = token._replace(sentence=rest[0].position, initial=initial)
            self.tokens[token.position] = moved
            self._open.append(moved)
            if self._first_word is None and not token.wordless:
                self._first_word = token.word
        return sentence


def _piece(step: Step) -> str:
    """What may be part of a tag: some models have a control token for it, which adds no text."""
    return step.bytes.decode(errors="ignore") if step.special else step.text
