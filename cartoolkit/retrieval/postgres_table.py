"""The PostgreSQL table of an index: its schema, and whether one that is there is ours."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

from cartoolkit.errors import InvalidIndex, InvalidRequest, RetrieverFailed

if TYPE_CHECKING:
    from psycopg import Cursor
    from psycopg.sql import Composed, Literal

    from cartoolkit.retrieval.embeddings import Embedder

    Rows: TypeAlias = Cursor[tuple[Any, ...]]

__all__ = ["SCHEMA_VERSION", "Table"]

SCHEMA_VERSION = 1
COLUMNS = {"id", "text", "source", "title", "page", "line", "words"}
MARK = "cartoolkit passages, version {}"
NAME = re.compile(r"[a-z_][a-z0-9_]{0,49}")  # a suffix is added for indexes; names end after 63 bytes
LOCK = 0x43544B46  # "CTKF"; the second half of the key is the table's own
MAX_INDEXED_WIDTH = 2_000  # pgvector's limit for an HNSW index over `vector`

# Code point order, whatever the server's locale, so that ties are broken as everywhere in this package.
CREATE = """
CREATE TABLE {table} (
  id text COLLATE "C" PRIMARY KEY, text text NOT NULL, source text NOT NULL, title text NOT NULL,
  page bigint, line bigint, words tsvector NOT NULL
)
"""
# With fastupdate every search would read the last changes one by one until the next vacuum.
INDEX_WORDS = "CREATE INDEX {words_index} ON {table} USING gin (words) WITH (fastupdate = off)"
ADD_VECTORS = "ALTER TABLE {table} ADD COLUMN embedding vector({width}) NOT NULL"
INDEX_VECTORS = "CREATE INDEX {vectors_index} ON {table} USING hnsw (embedding vector_cosine_ops)"
INSTALLED = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
AVAILABLE = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
# Not by to_regclass: within a transaction it remembers that a name was not there.
FIND = """
SELECT oid, obj_description(oid, 'pg_class') FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)
"""
INDEXES = """
SELECT made.relname FROM pg_index JOIN pg_class made ON made.oid = indexrelid
JOIN pg_class ours ON ours.oid = indrelid WHERE ours.relname = %s AND pg_table_is_visible(ours.oid)
"""
SHAPE = """
SELECT attname, atttypmod, col_description(attrelid, attnum) FROM pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""


class Table:
    """One table of passages, made if it is not there.

    A comment marks the table as ours and gives its version, one on the column of vectors names their
    embedder; no table without the mark is ever written to.

    Args:
        name: lower-case letters, digits and underscores, at most 50.

    Attributes:
        width: how many numbers a vector has; 0 without vectors.

    Raises:
        InvalidRequest: the name is not one.
    """

    def __init__(self, name: str, place: str) -> None:
        if not NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r} cannot name a table of passages.",
                hint="Use up to 50 lower-case letters, digits and underscores, not beginning with a digit.",
            )
        self.name = name
        self.place = f"{place}, table {name}"
        self.width = 0

    def statement(self, text: str, **more: Literal) -> Composed:
        """`text` with ``{table}`` and the indexes' names filled in, quoted."""
        from psycopg.sql import SQL, Identifier

        names = {
            "table": Identifier(self.name),
            "words_index": Identifier(f"{self.name}_words"),
            "vectors_index": Identifier(f"{self.name}_embedding"),
        }
        return SQL(text).format(**names, **more)  # pyright: ignore[reportArgumentType] (our own statements)

    def prepare(self, cursor: Rows, embedder: Embedder | None) -> None:
        """Make what is missing; a table that is there already needs no right to create anything.

        Raises:
            InvalidIndex: a table of this name is not ours, damaged, or of a newer version.
            InvalidRequest: it has vectors of another embedder, or passages and no vectors.
            RetrieverFailed: the server has no pgvector.
        """
        columns = self._columns(cursor)
        if columns is None or (embedder and "embedding" not in columns):
            self.lock(cursor)
            columns = self._columns(cursor)  # another process may have been faster
            if columns is None:
                columns = self._create(cursor)
            if embedder and "embedding" not in columns:
                self._add_vectors(cursor, embedder)
                columns = self._columns(cursor) or {}
        if "embedding" in columns:
            self.width, owner = columns["embedding"]
            self._refuse_other_vectors(embedder, owner)

    def lock(self, cursor: Rows) -> None:
        """Let other writers wait until the end of the transaction; readers go on."""
        key = zlib.crc32(self.name.encode()) - 2**31
        cursor.execute("SELECT pg_advisory_xact_lock(%s::int, %s::int)", (LOCK, key))

    def index(self, cursor: Rows) -> None:
        """Make the indexes that are not there; over passages that are, which is several times faster."""
        wanted = {f"{self.name}_words": INDEX_WORDS}
        if 0 < self.width <= MAX_INDEXED_WIDTH:
            wanted[f"{self.name}_embedding"] = INDEX_VECTORS
        there = {name for (name,) in cursor.execute(INDEXES, (self.name,))}
        for name in wanted.keys() - there:
            cursor.execute(self.statement(wanted[name]))

    def _columns(self, cursor: Rows) -> dict[str, tuple[int, str]] | None:
        """Type modifier and comment of each column, or None where there is no such table."""
        found = cursor.execute(FIND, (self.name,)).fetchone()
        oid, mark = found or (None, None)
        if oid is None:
            return None
        version = re.fullmatch(MARK.format(r"(\d+)"), mark or "")
        if not version:
            raise InvalidIndex(
                f"{self.place} belongs to another program; it was left as it is.",
                hint="Give another table's name; it is made if there is none.",
            )
        if int(version[1]) > SCHEMA_VERSION:
            raise InvalidIndex(
                f"{self.place} is an index of version {version[1]}; this cartoolkit reads up to version "
                f"{SCHEMA_VERSION}.",
                hint="Update cartoolkit, or add the passages to another table.",
            )
        columns = {name: (width, note or "") for name, width, note in cursor.execute(SHAPE, (oid,))}
        lost = COLUMNS - columns.keys()
        if lost:
            raise InvalidIndex(
                f"{self.place} is damaged: it lacks {', '.join(sorted(lost))}.",
                hint="Drop the table and add the passages again.",
            )
        return columns

    def _create(self, cursor: Rows) -> dict[str, tuple[int, str]]:
        from psycopg.sql import Literal

        cursor.execute(self.statement(CREATE))
        mark = Literal(MARK.format(SCHEMA_VERSION))
        cursor.execute(self.statement("COMMENT ON TABLE {table} IS {mark}", mark=mark))
        return {}

    def _add_vectors(self, cursor: Rows, embedder: Embedder) -> None:
        from psycopg.sql import Literal

        if cursor.execute(self.statement("SELECT 1 FROM {table} LIMIT 1")).fetchone():
            raise InvalidRequest(
                f"{self.place} holds passages without vectors, so an embedder has nothing to compare.",
                hint="Leave embedder= out, or give another table's name and add the passages there.",
            )
        self._require_pgvector(cursor)
        width = len(embedder(["width"])[0])
        cursor.execute(self.statement(ADD_VECTORS, width=Literal(width)))
        note = "COMMENT ON COLUMN {table}.embedding IS {name}"
        cursor.execute(self.statement(note, name=Literal(embedder.name)))

    def _require_pgvector(self, cursor: Rows) -> None:
        if cursor.execute(INSTALLED).fetchone():
            return
        if not cursor.execute(AVAILABLE).fetchone():
            raise RetrieverFailed(
                f"{self.place}: the server has no pgvector, which vectors need.",
                hint="Install it there (https://github.com/pgvector/pgvector), or leave embedder= out and "
                "search by words.",
            )
        cursor.execute("CREATE EXTENSION vector")

    def _refuse_other_vectors(self, embedder: Embedder | None, owner: str) -> None:
        if embedder is not None and embedder.name != owner:
            raise InvalidRequest(
                f"{self.place} holds vectors of {owner}, which do not compare with those of {embedder.name}.",
                hint="Give each embedder a table of its own.",
            )
