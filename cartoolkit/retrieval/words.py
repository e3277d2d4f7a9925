"""Words in the text of a model: which carry content, and where one begins."""

from __future__ import annotations

import re
import unicodedata

__all__ = [
    "FUNCTION_WORDS",
    "content_word_spans",
    "content_words",
    "has_word_character",
    "is_unspaced",
    "limit_words",
    "starts_word",
]

_PRONOUNS = (
    "a an the this that these those some any each every no such both all "
    "i me my mine you your yours he him his she her hers it its we us our ours they them their theirs "
    "one ones who whom whose which what where when why how there here "
)
_LINKS = (
    "of in on at by for from to with without within into onto upon over under about above below between "
    "among through during before after since until against along across around near as than like per via "
    "and or but nor so yet if then because while although though whether unless "
)
_AUXILIARIES = (
    "is are was were be been being am do does did done has have had having will would shall should can "
    "could may might must not n't also too very just only even still ever never already again"
)
FUNCTION_WORDS = frozenset((*_PRONOUNS.split(), *_LINKS.split(), *_AUXILIARIES.split()))
"""English words that say nothing about the subject, lower case. Other languages have none here."""

_WORD = re.compile(r"[^\W_](?:[\w'’.-]*[^\W_])?")
_OPENERS = "([{\"'“‘«「『（"


def has_word_character(text: str) -> bool:
    """Whether a letter or a digit of any script is in `text`.

    >>> has_word_character(" 2"), has_word_character(" —")
    (True, False)
    """
    return any(map(str.isalnum, text))


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that puts no spaces between words.

    >>> is_unspaced("国"), is_unspaced("あ"), is_unspaced("é"), is_unspaced("")
    (True, True, False, False)
    """
    if not character or character < "\u0e00":
        return False
    name = unicodedata.name(character, "")
    return name.startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))


def starts_word(text: str, before: str) -> bool:
    """Whether a token of this text begins a word, so that an answer may be cut before it.

    A cut inside a word would leave the model half a word that it would not write now, so a word goes from
    blank to blank: a hyphen, an apostrophe or a decimal point does not end it. A blank belongs to the
    word after it, in whichever token it stands. A line, an opening bracket or quote, and a character of a
    script without blanks begin a word too.

    Args:
        text: what the token adds; empty if it only begins a character.
        before: the character before it, empty at the beginning of the answer.
    """
    if not before or before == "\n":
        return True
    if text[:1].isspace():
        return not before.isspace()
    return before in _OPENERS or is_unspaced(before) or is_unspaced(text[:1])


def content_words(text: str) -> list[str]:
    """The words of `text` in order, function words and repetitions left out.

    >>> content_words("What is the capital of the U.S., and what's its capital's name?")
    ['capital', 'U.S', "what's", "capital's", 'name']
    """
    words: dict[str, str] = {}
    for start, end in content_word_spans(text):
        words.setdefault(text[start:end].casefold(), text[start:end])
    return list(words.values())


def content_word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of `text` stand that are no function words, as (start, end), repetitions included.

    >>> content_word_spans("Gold is Au, and Au is gold.")
    [(0, 4), (8, 10), (16, 18), (22, 26)]
    """
    words = _WORD.finditer(text)
    return [found.span() for found in words if found.group().casefold() not in FUNCTION_WORDS]


def limit_words(text: str, most: int) -> str:
    r"""The last `most` words of `text`, runs of blanks made one.

    >>> limit_words("  one two\n three ", 2)
    'two three'
    """
    return " ".join(text.split()[-most:])
