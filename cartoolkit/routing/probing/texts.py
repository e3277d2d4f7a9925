"""Prompts that nobody has asked before: texts of common words, each of which begins in its own way."""

from __future__ import annotations

import random

__all__ = ["ProbeTexts"]

# Frequent words, which nearly every vocabulary holds as one token each.
_FREQUENT = (
    "about after again air all also always and another any around ask away back because been before "
    "below between big book both boy but call came can car change city close come could country cut day "
    "did different do does down each earth eat end enough even every eye face family far father feel "
    "feet few find first follow food for form found four from get girl give go good great group grow "
    "had hand hard has have head hear help her here high him his home house how if important in into it "
    "just keep kind know land large last late learn leave left let letter life light like line list "
    "little live long look made make man many mean men might mile more most mother mountain move much "
    "must name near need never new next night no not now number of off often old on once one only open "
    "or other our out over own page paper part people place plant play point"
)
_WORDS = _FREQUENT.split()


class ProbeTexts:
    """Texts by their length in words; the same ones in the same order for every model."""

    def __init__(self, seed: int = 0) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - a draw, not a secret
        self._beginnings: list[str] = []

    def of(self, words: int) -> str:
        """A new text of so many words, at least one; its first one comes again only when all had a turn."""
        if not self._beginnings:
            self._beginnings = self._draw.sample(_WORDS, len(_WORDS))
        return " ".join([self._beginnings.pop(), *self._draw.choices(_WORDS, k=words - 1)])
