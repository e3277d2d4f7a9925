"""Sentences of a text that is still being written, by rules that a reader can check."""

from __future__ import annotations

import re
from itertools import pairwise

from cartoolkit.retrieval.words import has_word_character

__all__ = ["SentenceStream", "split_sentences"]

_CLOSERS = re.escape("\"'”’»)]}*_`」』】）")
_MARK = re.compile(rf"\n|(?:(?P<cjk>[。！？｡]+)|[.!?…]+)[{_CLOSERS}]*")
_LIST_MARKER = re.compile(r"\s*(?:[-*•–]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.)]?)\s*")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")

_TITLES = "mr mrs ms mx dr prof rev fr hon gov sen rep gen col maj capt lt sgt pres st ste mt ft"
_NEVER_LAST = frozenset((*_TITLES.split(), "e.g", "i.e", "cf", "vs", "viz", "approx", "ca", "al"))
_MONTHS = "jan feb mar apr jun jul aug sep sept oct nov dec"
_COUNTED = "no nos nr fig figs eq eqs vol vols ch sec art p pp ed"
_BEFORE_NUMBERS = frozenset((*_MONTHS.split(), *_COUNTED.split()))
_MAY_BE_LAST = frozenset({"a.m", "p.m"})


class SentenceStream:
    r"""Finds where sentences end, as soon as that is certain.

    A sentence ends with ``.``, ``!``, ``?`` or ``…`` and the quotes and brackets that close after it, if a
    blank follows and what comes then does not begin with a small letter; with ``。``, ``！`` or ``？``
    wherever they stand; and with a line. Titles (``St. John's``), initials, dotted abbreviations, numbers
    (``3.14``, ``No. 5``) and the marker of a list (``2.``) do not end one.

    It does not know abbreviations of other languages than English, does not see that a title, an initial
    or ``U.S.`` stands last in its sentence, takes a line for a sentence even if it was wrapped by hand,
    and does not look inside tables, formulas or code. Nothing ends without a letter or digit in it.

    >>> stream = SentenceStream()
    >>> [stream.feed(piece) for piece in ("St", ".", " John", "'s", ".", " It")]
    [[], [], [], [], [], [11]]
    """

    def __init__(self) -> None:
        self._open = ""
        self._base = 0
        self._settled = 0

    def feed(self, piece: str) -> list[int]:
        """Take the next piece of text.

        Returns:
            For each sentence that is now known to have ended, the offset after its last character in all
            the text that was fed.
        """
        self._open += piece
        ends = []
        while (end := self._first_end()) is not None:
            ends.append(self._base + end)
            self._open, self._base, self._settled = self._open[end:], self._base + end, 0
        return ends

    def _first_end(self) -> int | None:
        for mark in _MARK.finditer(self._open, self._settled):
            verdict = _ends(self._open, mark)
            if verdict:
                return mark.start() if mark.group() == "\n" else mark.end()
            if verdict is None:
                self._settled = mark.start()
                return None
        self._settled = len(self._open)
        return None


def _ends(text: str, mark: re.Match[str]) -> bool | None:
    """Whether a sentence ends at a mark; None while what follows has to be waited for."""
    said, rest = text[: mark.start()], text[mark.end() :]
    if not has_word_character(said):
        return False
    if mark.group() == "\n":
        return not _LIST_MARKER.fullmatch(said)
    if mark["cjk"]:
        return True if rest else None
    following = rest.lstrip(" \t")
    if not following:
        return None
    if following is rest and not rest.startswith("\n"):
        return False
    return not (following[0].islower() or (mark.group()[0] == "." and _abbreviates(said, following)))


def _abbreviates(said: str, following: str) -> bool:
    """Whether a full stop after `said` belongs to a number, a title or an initial."""
    if _LIST_MARKER.fullmatch(said):
        return True
    word = said.rsplit(maxsplit=1)[-1].lstrip("([{\"'“‘«*_")
    lower = word.lower()
    if lower in _BEFORE_NUMBERS:
        return following[0].isdigit()
    if lower in _NEVER_LAST:
        return True
    initial = len(word) == 1 and word.isupper() and word != "I"
    return initial or (bool(_DOTTED.fullmatch(word)) and lower not in _MAY_BE_LAST)


def split_sentences(text: str) -> list[str]:
    """The sentences of a whole text; joined they are the text again. See `SentenceStream` for the rules.

    >>> split_sentences("It boils at 99.97 °C. Dr. Who knows.")
    ['It boils at 99.97 °C.', ' Dr. Who knows.']
    """
    places = [0, *SentenceStream().feed(text), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    if len(pieces) > 1 and not has_word_character(pieces[-1]):
        pieces[-2:] = ["".join(pieces[-2:])]
    return [piece for piece in pieces if piece]
