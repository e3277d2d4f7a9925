"""The SQLite file of an index: its schema, opening it safely, and what SQLite says in plain words."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidIndex, RetrievalError, RetrieverFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MEMORY", "SCHEMA_VERSION", "open_index", "sqlite_explained", "transaction"]

MEMORY = ":memory:"
SCHEMA_VERSION = 1
APPLICATION_ID = 0x43544B46  # "CTKF": which program a SQLite file belongs to, in its header
MAGIC = b"SQLite format 3\0"
BUSY_SECONDS = 10.0

# Marks belong to words: without M* the vowel signs of Hindi or Thai would split them.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories ''L* N* Co Mn Mc''"
# The index refers to the table's rows instead of keeping the texts twice. No triggers hold the two together:
# inside one FTS5 writes its buffer out for every row, which makes building an index ten times slower.
SCHEMA = f"""
CREATE TABLE passage (
  rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
  source TEXT NOT NULL, title TEXT NOT NULL, page INTEGER, line INTEGER
);
CREATE VIRTUAL TABLE word USING fts5(
  title, text, content='passage', content_rowid='rowid', tokenize='{TOKENIZER}'
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")


def open_index(path: Path | str) -> sqlite3.Connection:
    """A connection to the index at `path`, which is created if there is none.

    Args:
        path: a file, or `MEMORY` for an index that goes with the process.

    Returns:
        A connection in autocommit mode that may be used from any thread, one at a time.

    Raises:
        InvalidIndex: the file is not SQLite, not ours, damaged, or of a newer version; it is not touched.
        RetrieverFailed: the file cannot be opened or stays locked for 10 seconds.
    """
    if str(path) != MEMORY:
        _refuse_other_formats(Path(path))
    with sqlite_explained(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _refuse_other_formats(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as exc:
        raise RetrieverFailed(f"The index {path} cannot be read: {exc.strerror}.") from exc
    if start and start != MAGIC:
        raise InvalidIndex(
            f"{path} is not an index: it does not begin as a SQLite file does.",
            hint="Give the path of a new file, or of an index that FTSRetriever wrote.",
        )


def _prepare(connection: sqlite3.Connection, path: Path | str) -> None:
    if not _is_ours(connection, path):
        _journal_ahead(connection)
        with transaction(connection):
            if not _is_ours(connection, path):  # another process may have been faster
                for statement in _statements(SCHEMA):
                    connection.execute(statement)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("SELECT count(*) FROM word WHERE word MATCH '\"a\"'").fetchone()


def _is_ours(connection: sqlite3.Connection, path: Path | str) -> bool:
    """True for an index, False for an empty file; anything else is refused."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if owner != APPLICATION_ID and (owner or tables):
        raise InvalidIndex(
            f"{path} is a SQLite file of another program; it was left as it is.",
            hint="Give the path of a new file, or of an index that FTSRetriever wrote.",
        )
    if version > SCHEMA_VERSION:
        raise InvalidIndex(
            f"{path} is an index of version {version}; this cartoolkit reads up to version {SCHEMA_VERSION}.",
            hint="Update cartoolkit, or build the index again in a new file.",
        )
    return owner == APPLICATION_ID


def _journal_ahead(connection: sqlite3.Connection) -> None:
    # SQLite does not wait for others while it changes the journal's kind.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as exc:
            if not _kind(exc).startswith(BUSY) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _statements(script: str) -> Iterator[str]:
    # `executescript` would end the transaction that keeps a half-made schema from being seen.
    gathered = ""
    for line in script.splitlines(keepends=True):
        gathered += line
        if sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of what is written inside, or nothing; readers go on meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_explained(path: Path | str) -> Iterator[None]:
    """Turn SQLite's errors, anywhere inside, into one sentence about `path`.

    Raises:
        InvalidIndex: the file is damaged.
        RetrieverFailed: it is locked, cannot be written, or the disk is full.
        RetrievalError: the index was closed.
    """
    try:
        yield
    except sqlite3.ProgrammingError as exc:
        raise RetrievalError(
            f"The index {path} was closed.", hint="Open it again: FTSRetriever(path)."
        ) from exc
    except sqlite3.DatabaseError as exc:
        raise _explanation(exc, path) from exc


def _explanation(exc: sqlite3.DatabaseError, path: Path | str) -> RetrievalError:
    kind = _kind(exc)
    # A lost table is damage as well: the schema is written whole or not at all.
    if kind.startswith(DAMAGED) or "no such" in str(exc) or "vtable constructor" in str(exc):
        return InvalidIndex(
            f"The index {path} is damaged: {exc}.", hint="Delete the file and build the index again."
        )
    if kind.startswith(BUSY):
        return RetrieverFailed(
            f"The index {path} stayed locked for {BUSY_SECONDS:.0f} s by another process that writes to it.",
            hint="Wait for the other process, or give each its own file.",
        )
    return RetrieverFailed(
        f"The index {path} cannot be used: {exc} ({kind}).",
        hint="Check that the folder is there and can be written to, and that the disk has space.",
    )


def _kind(exc: sqlite3.Error) -> str:
    return getattr(exc, "sqlite_errorname", None) or type(exc).__name__
