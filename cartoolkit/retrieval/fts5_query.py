"""From any text to an FTS5 query that means its words and nothing else."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

__all__ = ["MAX_ROWS", "MAX_WORDS", "any_of", "query_words", "selective", "words_of"]

MAX_WORDS = 64
MAX_ROWS = 5_000  # FTS5 scores about a million rows a second


def words_of(text: str) -> list[str]:
    """The words of `text`, case folded: runs of letters, digits and marks, as FTS5 sees them."""
    spaced = "".join(char if _in_word(char) else " " for char in unicodedata.normalize("NFC", text))
    return spaced.casefold().split()


def query_words(text: str) -> list[str]:
    """The first `MAX_WORDS` distinct words of `text`.

    Operators, quotes, brackets, NUL and lone surrogates are between words, so none reaches SQLite.
    """
    return list(dict.fromkeys(words_of(text)))[:MAX_WORDS]


def _in_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) in {"Mn", "Mc", "Co"}


def any_of(words: list[str]) -> str:
    """The FTS5 expression that matches a passage with at least one of `words`."""
    return " OR ".join(f'"{word}"' for word in words)


def selective(connection: sqlite3.Connection, words: list[str]) -> list[str]:
    """The rarest of `words` which together occur in at most `MAX_ROWS` passages; empty if none is that rare.

    A word that occurs nowhere is none of them: it finds nothing that would stand for the others.
    Scoring every passage that holds a "the" is what makes a search in a large index slow, and moves its
    rank least.
    """
    counts = sorted((_rows_with(connection, word), place, word) for place, word in enumerate(words))
    kept, rows = [], 0
    for count, _, word in counts:
        if not count:
            continue
        rows += count
        if rows > MAX_ROWS:
            break
        kept.append(word)
    return kept


def _rows_with(connection: sqlite3.Connection, word: str) -> int:
    """In how many passages `word` occurs; counting stops above `MAX_ROWS`."""
    bounded = "SELECT count(*) FROM (SELECT 1 FROM word WHERE word MATCH ? LIMIT ?)"
    return connection.execute(bounded, (any_of([word]), MAX_ROWS + 1)).fetchone()[0]
