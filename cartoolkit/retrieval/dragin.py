"""DRAGIN: when to look something up and what, by where the model looked (Su et al. 2024, ACL).

Its trigger (RIND) asks whether a word was uncertain *and* mattered to what was written after it; its query
(QFS) is made of the words that the model looked at when it chose the uncertain one. Both read
`Step.attention`, which only the torch engine records, loaded with ``attention="eager"``.

DRAGIN gets its attentions by reading the generated text again, alone and without the prompt. Here they are
those of the decoding itself, so nothing is read twice and the first token of the answer draws no attention
merely for being the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.checks import require_at_least
from cartoolkit.retrieval.queries import Query
from cartoolkit.retrieval.triggers import Fire, Trigger, recorded
from cartoolkit.retrieval.words import content_word_spans, content_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cartoolkit.retrieval.answer import Token
    from cartoolkit.retrieval.queries import Situation
    from cartoolkit.trace import Attention

__all__ = ["AttendedWords", "EntropyAttention"]


class _Scored(NamedTuple):
    """A word of a sentence: its tokens, and entropy × attention."""

    tokens: list[Token]
    score: float

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens).strip()


@dataclass(frozen=True)
class EntropyAttention(Trigger):
    """A word that was uncertain and that the rest of its sentence leans on (RIND).

    For each word i of the n words of a sentence, as soon as the sentence has ended::

        score_i = entropy_i · n · received_i / (received_1 + … + received_n)

    entropy_i is the mean entropy of its tokens' raw distributions, nats; received_i the sum over its tokens
    of the most attention that a token gets from any token of the sentence, itself included. So a word that
    gets its fair share of the attention scores its entropy. It fires where a content word scores more than
    the threshold.

    As in DRAGIN's program, the last layer counts, and so does a token's attention to itself. Otherwise than
    there, the heads are averaged before the most is taken, what the caller wrote is no word of the sentence,
    only tokens of the sentence give attention, and a content word is one that is none of `FUNCTION_WORDS`
    (DRAGIN asks spaCy for nouns, adjectives, verbs, names and numbers). A last token that was never read,
    because the answer was cut there, gives none and gets none.

    Attributes:
        threshold: nats; DRAGIN uses 1.0 to 1.3.
    """

    reads_attention: ClassVar[bool] = True

    threshold: float = 1.2

    def __post_init__(self) -> None:
        require_at_least("threshold", self.threshold, 0, whole=False)

    def on_sentence(self, sentence: Sequence[Token], following: Sequence[Token] = ()) -> Fire | None:
        """Fire when a content word of the sentence scores more than the threshold."""
        words = _scored(sentence, following)
        high = [word for word in words if word.score > self.threshold and content_words(word.text)]
        if not high:
            return None
        positions = tuple(token.position for word in high for token in word.tokens)
        top = max(high, key=lambda word: word.score)
        number = f"{len(high)} word{'s' if len(high) > 1 else ''}"
        reason = (
            f"entropy × attention of {number} of the sentence above {self.threshold:g}, "
            f"the highest {top.score:.2f} at {top.text!r}"
        )
        return Fire(positions[0], sentence[-1].position + 1, positions, reason)


def _scored(sentence: Sequence[Token], following: Sequence[Token]) -> list[_Scored]:
    """The words that the model wrote, each with its score."""
    written = [token for token in sentence if token.watched]
    received = dict(zip([token.position for token in written], _received(sentence, following), strict=True))
    words = [list(tokens) for _, tokens in groupby(written, key=lambda token: token.word)]
    attention = np.array([sum(received[token.position] for token in word) for word in words])
    entropy = np.array([np.mean([recorded(token, "entropy") for token in word]) for word in words])
    total = attention.sum()
    scores = entropy * attention * (len(words) / total) if total else entropy
    return [_Scored(word, float(score)) for word, score in zip(words, scores, strict=True)]


def _received(sentence: Sequence[Token], following: Sequence[Token]) -> np.ndarray:
    """The most attention that each token that the model wrote gets from any of the sentence, [written]."""
    places = np.array([token.position for token in sentence if token.watched], np.intp)
    received = np.zeros(len(places))
    # A token's own row comes with the choice of the next one.
    for token in (*sentence[1:], *following[:1]):
        row = attended(token).on_answer
        seen = places < len(row)
        received[seen] = np.maximum(received[seen], row[places[seen]])
    return received


def attended(token: Token) -> Attention:
    """Where the model looked when it chose a token.

    Raises:
        InvalidRequest: that was not recorded, or not saved.
    """
    if token.step.attention is None:
        raise InvalidRequest(
            f"step {token.step.index} ({token.step.label!r}) carries no attention: its model was loaded "
            "without attention='eager', or it comes from a file, which does not hold it.",
            hint="Load the model with attention='eager' and generate anew, or use a policy that reads no "
            "attention, such as 'flare'.",
        )
    return token.step.attention


@dataclass(frozen=True)
class AttendedWords(Query):
    """The content words that the model looked at most when it chose the tokens in doubt (QFS).

    They are taken from the question and from the answer before the words in doubt and between them, each
    once, and asked for in the order of the text. A word weighs what its tokens get together, averaged over
    the tokens in doubt; where the prompt does not hold the question as it was asked, all its words come
    first. For a trigger that knows no doubt the last token written stands in.

    Otherwise than in DRAGIN, whose program reads the sentence again and takes the row of the doubtful word
    itself, the row is that by which the word was chosen, so a wrong word does not steer its own query; and
    the words in doubt are not asked for. DRAGIN's published program keeps the words with the *least*
    attention; the paper says the most, and so does this.

    Attributes:
        max_words: at most so many; DRAGIN uses 25 to 40.
    """

    reads_numbers: ClassVar[bool] = True
    reads_attention: ClassVar[bool] = True

    max_words: int = 25

    def __post_init__(self) -> None:
        require_at_least("max_words", self.max_words, 1)

    def build(self, situation: Situation) -> str:
        """The words with a blank between."""
        looking = _looking(situation)
        if not looking:
            return ""
        rows = [attended(token) for token in looking]
        words = _asked(situation.question, rows) + _answered(situation, rows)
        weights: dict[str, float] = {}
        for word, weight in words:
            weights[word.casefold()] = max(weight, weights.get(word.casefold(), 0.0))
        best = set(sorted(weights, key=lambda word: -weights[word])[: self.max_words])
        spelled = {word.casefold(): word for word, _ in reversed(words)}
        return " ".join(spelled[word] for word in weights if word in best)


_Weighted = list[tuple[str, float]]


def _looking(situation: Situation) -> list[Token]:
    """The tokens in doubt, or the last one written."""
    positions = situation.fire.positions or (situation.fire.at - 1,)
    return [situation.tokens[position] for position in positions if 0 <= position < len(situation.tokens)]


def _asked(question: str, rows: Sequence[Attention]) -> _Weighted:
    """The content words of the question as it stands in the prompt, nearest to the answer."""
    text = question.strip()
    weighted: list[_Weighted] = []
    for row in rows:
        start = b"".join(row.prompt).rfind(text.encode())
        if start < 0:
            return [(text[a:b], math.inf) for a, b in content_word_spans(text)]
        weighted.append(_weighted_words(text, row.prompt, row.on_prompt, start))
    return _means(weighted)


def _answered(situation: Situation, rows: Sequence[Attention]) -> _Weighted:
    """The content words of the answer before the last word in doubt, those in doubt left out."""
    tokens, doubtful = situation.tokens, situation.fire.positions
    in_doubt = {tokens[position].word for position in doubtful}
    before = tokens[: max(in_doubt, default=situation.fire.at)]
    # What is left out still parts the words beside it.
    pieces = [b" " if token.word in in_doubt else token.text.encode() for token in before]
    text = b"".join(pieces).decode()
    weighted: list[_Weighted] = []
    for row in rows:
        weights = np.zeros(len(before), np.float32)
        known = row.on_answer[: len(before)]
        weights[: len(known)] = known
        weighted.append(_weighted_words(text, pieces, weights))
    return _means(weighted)


def _weighted_words(
    text: str, pieces: Sequence[bytes], weights: np.ndarray, start: int = 0
) -> list[tuple[str, float]]:
    """The content words of `text`, each with the weights of the pieces that it lies in.

    Args:
        text: what the pieces hold from byte `start` on.
        pieces: bytes of tokens, [n].
        weights: [n].
        start: in bytes.
    """
    ends = np.cumsum([len(piece) for piece in pieces])
    words: list[tuple[str, float]] = []
    for a, b in content_word_spans(text):
        first, last = (start + len(text[:at].encode()) for at in (a, b))
        part = slice(np.searchsorted(ends, first, "right"), np.searchsorted(ends, last, "left") + 1)
        words.append((text[a:b], float(weights[part].sum())))
    return words


def _means(weighted: Iterable[_Weighted]) -> _Weighted:
    """The same words in each list, with the mean of their weights."""
    return [(same[0][0], sum(w for _, w in same) / len(same)) for same in zip(*weighted, strict=True)]
