"""Search by words in one SQLite file: the default retriever, with nothing to install."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.fts5_file import MEMORY, open_index, sqlite_explained, transaction
from cartoolkit.retrieval.fts5_query import MAX_ROWS, any_of, query_words, selective
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.retriever import require_k

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

__all__ = ["FTSRetriever"]

COLUMNS = "id, text, source, title, page, line"
# A tombstone must carry what was indexed, so the words go before the passage.
REMOVE_WORDS = """
INSERT INTO word (word, rowid, title, text) SELECT 'delete', rowid, title, text FROM passage WHERE id = ?
"""
THERE = f"SELECT {COLUMNS} FROM passage WHERE id = ?"  # noqa: S608 (our own column names)
REMOVE = "DELETE FROM passage WHERE id = ?"
ADD = f"INSERT INTO passage ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 (our own column names)
ADD_WORDS = "INSERT INTO word (rowid, title, text) SELECT rowid, title, text FROM passage WHERE rowid > ?"
BEST = f"""
SELECT {COLUMNS}, score FROM (
  SELECT rowid AS row, bm25(word) AS score FROM word WHERE word MATCH ? AND rowid <= ?
  ORDER BY score, rowid LIMIT ?
) JOIN passage ON passage.rowid = row ORDER BY score, row
"""  # noqa: S608
LAST_ROW = 2**63 - 1


class FTSRetriever:
    """BM25 over words and titles, in one SQLite file (FTS5) that stays on disk.

    Words are compared without case, accents and English endings ("mining" finds "mines"; Porter's
    algorithm). Texts written without spaces between words, such as Chinese, are poorly served: use
    `EmbeddingRetriever` with a model for them.

    A score is SQLite's ``-bm25()``: positive, greater is better (k1 = 1.2, b = 0.75;
    https://sqlite.org/fts5.html#the_bm25_function). In an index of more than 5,000 passages only
    the query's rarest words count, so many as occur in 5,000 of them together, which bounds the time.

    Any number of threads may share one retriever, and any number of processes one file: readers never
    wait for the writer, and a writer waits up to 10 s for another.

    Args:
        path: the index file, created if there is none; ":memory:" keeps it in this process.

    Raises:
        InvalidIndex: the file is not an index, damaged, or of a newer version.
        RetrieverFailed: the file cannot be opened.
    """

    def __init__(self, path: Path | str = MEMORY) -> None:
        self.path = path if str(path) == MEMORY else Path(path).absolute()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection = open_index(self.path)

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it. All or none.

        Those that are there as they are cost next to nothing, so a notebook may add its corpus in every run.

        Raises:
            InvalidRequest: an id is empty or not valid Unicode.
        """
        rows = {passage.id: _row(passage) for passage in passages}
        with self._connected() as connection, transaction(connection):
            rows = {
                key: row for key, row in rows.items() if connection.execute(THERE, (key,)).fetchone() != row
            }
            _remove(connection, rows)
            last = _last_row(connection)
            connection.executemany(ADD, rows.values())
            connection.execute(ADD_WORDS, (last,))

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        with self._connected() as connection, transaction(connection):
            return _remove(connection, filter(_encodes, ids))

    def sync(self, passages: Iterable[Passage]) -> tuple[int, int]:
        """Make the index hold exactly `passages`, writing only what differs.

        Returns:
            How many passages were added or changed, and how many were removed.
        """
        wanted = {passage.id: passage for passage in passages}
        there = {passage.id: passage for passage in self.passages()}
        changed = [each for key, each in wanted.items() if _stored(each) != there.get(key)]
        gone = [key for key in there if key not in wanted]
        self.delete(gone)
        self.add(changed)
        return len(changed), len(gone)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages for `query`, which may be any text; see `Searcher.search`.

        Raises:
            InvalidRequest: `k` is below 1.
            InvalidIndex: the file is damaged.
            RetrieverFailed: the file cannot be read.
        """
        require_k(k)
        words = query_words(query)
        if not words:
            return []
        with self._connected() as connection:
            rows = _best(connection, words, k)
        return [Hit.of(Passage(*row[:-1]), -row[-1]) for row in rows]

    def passages(self) -> list[Passage]:
        """All passages, in the order in which they were written."""
        with self._connected() as connection:
            rows = connection.execute(f"SELECT {COLUMNS} FROM passage ORDER BY rowid").fetchall()  # noqa: S608
        return [Passage(*row) for row in rows]

    def __len__(self) -> int:
        with self._connected() as connection:
            return connection.execute("SELECT count(*) FROM passage").fetchone()[0]

    def __contains__(self, passage_id: str) -> bool:
        with self._connected() as connection:
            found = connection.execute("SELECT 1 FROM passage WHERE id = ?", (passage_id,))
            return found.fetchone() is not None

    def __repr__(self) -> str:
        return f"FTSRetriever({str(self.path)!r}, {len(self)} passages)"

    def close(self) -> None:
        """Close the file; what is used afterwards raises `RetrievalError`."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, sqlite_explained(self.path):
            if self._process != os.getpid():
                # A connection that a fork has copied must not be used, nor closed, by the child.
                self._abandoned, self._process = self._connection, os.getpid()
                self._connection = open_index(self.path)
            yield self._connection


def _remove(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    there = "SELECT 1 FROM passage WHERE id = ?"
    keys = [(key,) for key in dict.fromkeys(ids) if connection.execute(there, (key,)).fetchone()]
    connection.executemany(REMOVE_WORDS, keys)
    return connection.executemany(REMOVE, keys).rowcount if keys else 0


def _last_row(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT max(rowid) FROM passage").fetchone()[0] or 0


def _best(connection: sqlite3.Connection, words: list[str], k: int) -> list[tuple]:
    until = LAST_ROW
    if _last_row(connection) > MAX_ROWS:
        rare = selective(connection, words)
        # Where all words are common, no rank is worth a full scan.
        until = LAST_ROW if rare else _row_at(connection, words)
        words = rare or words
    return connection.execute(BEST, (any_of(words), until, k)).fetchall()


def _row_at(connection: sqlite3.Connection, words: list[str]) -> int:
    """The row by which `MAX_ROWS` passages have matched any of `words`."""
    ordered = "SELECT rowid FROM word WHERE word MATCH ? ORDER BY rowid LIMIT 1 OFFSET ?"
    found = connection.execute(ordered, (any_of(words), MAX_ROWS)).fetchone()
    return found[0] if found else LAST_ROW


def _row(passage: Passage) -> tuple[str, str, str, str, int | None, int | None]:
    if not passage.id or not _encodes(passage.id):
        raise InvalidRequest(
            f"A passage's id must be text and not empty; {passage.id!r} is not.",
            hint="Give every passage an id of its own, such as its path and place.",
        )
    stored = _stored(passage)
    return (stored.id, stored.text, stored.source, stored.title, stored.page, stored.line)


def _stored(passage: Passage) -> Passage:
    """`passage` as it comes back from the file: lone surrogates, which UTF-8 cannot hold, are replaced."""
    texts = (passage.text, passage.source, passage.title)
    text, source, title = (each.encode("utf-8", "replace").decode() for each in texts)
    return Passage(passage.id, text, source, title, passage.page, passage.line)


def _encodes(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
