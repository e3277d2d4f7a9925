"""Whether an answer is right: the known answer stands in it, or is all of it.

Both sides are folded first: accents, case, punctuation and the apostrophes inside names are left out,
"Mt." is "Mount" and "St." is "Saint", and numbers are compared as numbers. What is compared are whole words,
so 12 is not in 112, nor in 12.5. An answer of up to three letters with a capital is a symbol or a code, and
keeps its case: "Al" is not in "al", nor the lek's "ALL" in "all".

Two limits are known. A text that names several things matches if one of them is right. A symbol that is
an English word as well ("I", "In", "He") counts only where it does not begin a longer sentence.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.retrieval.words import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.retrieval import LabelledQuestion

__all__ = ["Grade", "abstains", "contains_answer", "grade", "is_exactly"]

# Letters that Unicode does not take for an accented form of another.
_PLAIN = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "æ": "ae", "Æ": "Ae",
     "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th", "ð": "d", "Ð": "D"}
)  # fmt: skip
_ABBREVIATED = {"mt": "mount", "st": "saint"}
_ARTICLES = frozenset({"a", "an", "the"})
_APOSTROPHES = "'’‘ʼʻ`´"
_POSSESSIVE = re.compile(rf"(?<=\w)[{_APOSTROPHES}]s\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[,\u00a0\u2009\u202f]\d{3})+(?!\d)")
_WORD = re.compile(r"\d+(?:\.\d+)?[^\W_]*|[^\W_]+")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?:st|nd|rd|th)?", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SYMBOL = re.compile(r"[A-Z][A-Za-z]{0,2}")

_ABSTAINS = re.compile(
    r"\b(?:i|we) (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|am not able|am unable|"
    r"have no|am not sure|am not certain)\b"
    r"|\bi'm (?:not (?:sure|able|certain|aware)|unable|sorry)\b|\bi am sorry\b"
    r"|\bno (?:information|answer|data|mention)\b|\bnot (?:known|clear|available)\b"
    r"|(?:\bnot|n't) (?:mentioned|provided|specified|given|stated|mention|provide|specify|give|say|know)\b"
    r"|\b(?:unknown|unclear|unavailable)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Grade:
    """How an answer compares with what is known.

    Attributes:
        match: one of the known answers stands in it.
        exact: it is one of them and nothing else, articles aside.
        abstained: it says that it does not know, or says nothing.
        made_up: the question cannot be answered from the passages, and something else was said.
    """

    match: bool
    exact: bool
    abstained: bool
    made_up: bool


def grade(text: str, question: LabelledQuestion) -> Grade:
    """Grade what a model wrote; a start that was put into its mouth counts for nothing."""
    said = text.strip().removeprefix(question.start)
    match = any(contains_answer(said, answer) for answer in question.answers)
    exact = any(is_exactly(said, answer) for answer in question.answers)
    abstained = not match and abstains(said)
    made_up = question.kind == "unanswerable" and not match and not abstained
    return Grade(match, exact, abstained, made_up)


def contains_answer(text: str, answer: str) -> bool:
    """Whether `answer` stands in `text` as whole words, as the module says.

    >>> contains_answer("It was found in 1,766 by Cavendish.", "1766"), contains_answer("112", "12")
    (True, False)
    >>> contains_answer("the symbol is al", "Al"), contains_answer("The capital is Brasilia.", "Brasília")
    (False, True)
    """
    cased = _is_symbol(answer)
    wanted = _words(answer, cased=cased)
    if not wanted:
        return False
    if cased and answer.lower() in FUNCTION_WORDS:
        return any(_names_symbol(_words(each, cased=True), answer) for each in _SENTENCE.split(text))
    return _is_in(wanted, _words(text, cased=cased))


def is_exactly(text: str, answer: str) -> bool:
    """Whether `text` is `answer` and nothing else, leading articles and punctuation aside.

    >>> is_exactly("The euro.", "euro"), is_exactly("It is the euro.", "euro")
    (True, False)
    """
    cased = _is_symbol(answer)
    said, wanted = (_without_article(_words(each, cased=cased)) for each in (text, answer))
    return bool(wanted) and said == wanted


def abstains(text: str) -> bool:
    """Whether a text says, in English, that it does not know, or says nothing.

    >>> abstains("I'm not sure about that."), abstains("It is Kabul.")
    (True, False)
    """
    plain = text.translate(dict.fromkeys(map(ord, _APOSTROPHES), "'"))
    return not plain.strip() or _ABSTAINS.search(plain) is not None


def _is_symbol(answer: str) -> bool:
    return _SYMBOL.fullmatch(answer) is not None


def _names_symbol(words: Sequence[str], symbol: str) -> bool:
    """Whether a sentence names a symbol that is a word as well: anywhere but at the start of more words."""
    return list(words) == [symbol] or symbol in words[1:]


def _words(text: str, *, cased: bool) -> list[str]:
    text = _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), text)
    text = unicodedata.normalize("NFKD", _POSSESSIVE.sub("", text).translate(_PLAIN))
    text = "".join(c for c in text if not unicodedata.combining(c) and c not in _APOSTROPHES)
    words = [_plain_number(word) for word in _WORD.findall(text)]
    if cased:
        return words
    folded = (word.casefold() for word in words)
    return [_ABBREVIATED.get(word, word) for word in folded]


def _plain_number(word: str) -> str:
    """A number without what does not change it: 012 and 12.0 are 12, and so is 12th."""
    found = _NUMBER.fullmatch(word)
    if not found:
        return word
    whole, _, fraction = found[1].partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _without_article(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if words and words[0].lower() in _ARTICLES and len(words) > 1 else words


def _is_in(wanted: Sequence[str], words: Sequence[str]) -> bool:
    size = len(wanted)
    return any(words[i : i + size] == wanted for i in range(len(words) - size + 1))
