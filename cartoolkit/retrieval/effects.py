"""What a look-up did to the answer: the words it brought, and the probabilities it moved.

Nothing here asks the model: all of it follows from the steps of a run and from what its look-ups found. A
word counts as brought by a look-up if it carries content, stands in one of the passages that were added,
and is written after the look-up, but neither in the question nor in what stood of the answer before. The
model may have known it all the same; the two probabilities say how far the passages made it likelier.
Words of scripts that put no spaces between them are found only where a whole run of characters is the same.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from cartoolkit.retrieval.words import content_word_spans
from cartoolkit.trace import Trace
from cartoolkit.trace.look_ups import Chance, PastLookUp, chances, look_ups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cartoolkit.trace import Step

__all__ = ["Chance", "Effect", "effects_of", "look_up_effects", "retrieved_steps"]

_POSSESSIVE = re.compile(r"['’]s$")


@dataclass(frozen=True, slots=True)
class Effect:
    """What one look-up did.

    Attributes:
        before_after: the token that was dropped and, if it is another, the one that came in its place, at
            the first place where the new text differs; where nothing differs, the token in doubt. Empty
            where nothing was dropped.
        used: id of a passage, start and end of a word of it that the look-up brought, in characters.
    """

    before_after: tuple[Chance, ...] = ()
    used: tuple[tuple[str, int, int], ...] = ()


def look_up_effects(trace: Trace) -> list[Effect]:
    """What each look-up of a run did, in order."""
    return effects_of(trace, look_ups_of(trace.events), trace.header.prompt)[0]


def retrieved_steps(trace: Trace) -> list[int]:
    """Indices of the kept steps, ascending, that are part of a word which a look-up brought."""
    return effects_of(trace, look_ups_of(trace.events), trace.header.prompt)[1]


def effects_of(
    run: Trace | Sequence[Step], look_ups: Sequence[PastLookUp], question: str
) -> tuple[list[Effect], list[int]]:
    """`look_up_effects` and `retrieved_steps` at once, also of a run that is going on.

    Args:
        run: all steps so far, dropped ones too.
        look_ups: those of the run.
        question: what the user asked.
    """
    answer, asked = _Answer(run), set(_keys(question))
    effects, retrieved = [], set()
    for look_up, moved in zip(look_ups, chances(run, look_ups), strict=True):
        new = answer.words_from(look_up.at) - asked if look_up.added else set()
        used, words = _used(look_up, new)
        retrieved |= answer.steps_of(words, look_up.at)
        effects.append(Effect(moved, used))
    return effects, sorted(retrieved)


def _used(look_up: PastLookUp, new: set[str]) -> tuple[tuple[tuple[str, int, int], ...], set[str]]:
    """Where words of `new` stand in the passages that were added, and which they are."""
    used, words = [], set()
    for hit in look_up.added if new else ():
        for start, end in content_word_spans(hit.text):
            if (word := _key(hit.text[start:end])) in new:
                used.append((hit.id, start, end))
                words.add(word)
    return tuple(used), words


def _key(word: str) -> str:
    """What two spellings of a word share."""
    return _POSSESSIVE.sub("", word.casefold())


def _keys(text: str) -> Iterator[str]:
    return (_key(text[start:end]) for start, end in content_word_spans(text))


class _Answer:
    """The words of the steps that stand, each with the steps that it is made of."""

    def __init__(self, run: Trace | Sequence[Step]) -> None:
        texts = _standing(run)
        text = "".join(texts.values())
        rows, ends = list(texts), list(accumulate(map(len, texts.values())))
        self._words: list[tuple[str, list[int]]] = []
        for start, end in content_word_spans(text):
            first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
            self._words.append((_key(text[start:end]), rows[first : last + 1]))

    def words_from(self, row: int) -> set[str]:
        """Words that begin at this step or later, and stand nowhere before it."""
        since = {word for word, rows in self._words if rows[0] >= row}
        return since - {word for word, rows in self._words if rows[0] < row}

    def steps_of(self, words: set[str], row: int) -> set[int]:
        """The steps, from `row` on, that these words are made of."""
        return {each for word, rows in self._words if word in words and rows[0] >= row for each in rows}


def _standing(run: Trace | Sequence[Step]) -> dict[int, str]:
    """Index -> text of the steps that stand and add text."""
    if isinstance(run, Trace):
        rows = zip(run.texts, run.flag("kept").tolist(), strict=True)
    else:
        rows = ((step.text, step.kept) for step in run)
    return {i: text for i, (text, kept) in enumerate(rows) if kept and text}
