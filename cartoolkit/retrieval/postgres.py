"""Search in PostgreSQL, by words and, with pgvector, by meaning: for more than one machine holds."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.fts5_query import query_words, words_of
from cartoolkit.retrieval.hybrid import DEPTH, reciprocal_rank_fusion
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.postgres_server import Server
from cartoolkit.retrieval.postgres_table import Table
from cartoolkit.retrieval.retriever import require_k
from cartoolkit.retrieval.storable import encodable, is_storable_id, storable_by_id, vectors_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from psycopg import Connection

    from cartoolkit.retrieval.embeddings import Embedder
    from cartoolkit.retrieval.postgres_table import Rows

__all__ = ["PostgresRetriever"]

# A tsvector ends at 1 MiB. So many characters stay below it, whatever they are: 4 bytes each, and 5 a word.
MAX_INDEXED_CHARACTERS = 150_000
MAX_ROWS = 2_000  # PostgreSQL counts and ranks some 200,000 rows a second
MOST_HITS = 2**31 - 1
TIES = 16
DEFAULT_EF, MAX_EF = 40, 1_000  # how many neighbours pgvector's HNSW looks at: its default and its limit

THERE = "SELECT id, text, source, title, page, line FROM {table} WHERE id = ANY(%s)"
PUT = """
INSERT INTO {table} (id, text, source, title, page, line, words)
VALUES (%s, %s, %s, %s, %s, %s, to_tsvector('english', %s))
ON CONFLICT (id) DO UPDATE SET (text, source, title, page, line, words)
  = (excluded.text, excluded.source, excluded.title, excluded.page, excluded.line, excluded.words)
"""
PUT_WITH_VECTOR = """
INSERT INTO {table} (id, text, source, title, page, line, words, embedding)
VALUES (%s, %s, %s, %s, %s, %s, to_tsvector('english', %s), %s::vector)
ON CONFLICT (id) DO UPDATE SET (text, source, title, page, line, words, embedding) = (excluded.text,
  excluded.source, excluded.title, excluded.page, excluded.line, excluded.words, excluded.embedding)
"""
# Function words have no lexeme. Counting stops early, so that "the" costs no more than a rare word.
COUNTS = """
SELECT query::text, (SELECT count(*) FROM (SELECT 1 FROM {table} WHERE words @@ query LIMIT %(most)s) few)
FROM (
  SELECT query, min(place) AS place
  FROM unnest(%(words)s::text[]) WITH ORDINALITY AS asked (word, place), to_tsquery('english', word) AS query
  WHERE numnode(query) > 0 GROUP BY query
) lexemes ORDER BY place
"""
SIZE = "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT %s) few"
BY_WORDS = """
SELECT id, text, source, title, page, line, score FROM (
  SELECT id, sum(weight * ts_rank('{{1,1,1,1}}', words, query::tsquery, 1) ORDER BY place) AS score
  FROM unnest(%(queries)s::text[], %(weights)s::float8[]) WITH ORDINALITY AS asked (query, weight, place)
  JOIN {table} ON words @@ query::tsquery
  GROUP BY id ORDER BY score DESC, id LIMIT %(k)s
) best JOIN {table} USING (id) ORDER BY score DESC, id
"""
BY_COMMON_WORDS = """
SELECT id, text, source, title, page, line, ts_rank('{{1,1,1,1}}', words, %(query)s::tsquery, 1) AS score
FROM (
  SELECT * FROM {table} WHERE words @@ %(query)s::tsquery ORDER BY id LIMIT %(most)s
) first ORDER BY score DESC, id LIMIT %(k)s
"""
# An index gives no order among equals, so a few more are taken from it than are asked for.
BY_INDEX = """
SELECT id, text, source, title, page, line, 1 - distance FROM (
  SELECT *, embedding <=> %(vector)s::vector AS distance FROM {table} ORDER BY distance LIMIT %(near)s
) nearest ORDER BY distance, id LIMIT %(k)s
"""
# No index fits a sum, so all are compared.
EXACTLY = """
SELECT id, text, source, title, page, line, 1 - (embedding <=> %(vector)s::vector) FROM {table}
ORDER BY (embedding <=> %(vector)s::vector) + 0, id LIMIT %(k)s
"""


class PostgresRetriever:
    """Passages in a table of a PostgreSQL server, which any number of machines may share.

    Words are compared without case, accents and English endings, function words are left out. A passage's
    score is the sum over the query's words of ``idf · ts_rank(word)``, where ``ts_rank`` is PostgreSQL's with
    all weights 1, divided by the logarithm of the passage's length (normalization 1), and
    ``idf = ln(1 + (N - n + 0.5) / (n + 0.5))`` for a word in n of N passages, both counted up to 2,001. In an
    index of more than 2,000 passages only the query's rarest words count, so many as occur in 2,000
    of them together, which bounds the time. Of a very long passage the first 150,000 characters are
    found by their words.

    With an embedder, vectors are kept too (pgvector, cosine distance, an HNSW index up to 2,000 numbers), and
    the two rankings are merged: a score is then that of `reciprocal_rank_fusion`. HNSW is approximate: it may
    miss a near passage in a large table.

    Threads may share one retriever, and take turns. A lost connection is opened again at the next use.

    Args:
        server: an address such as ``postgresql://user@host/database``, or an open connection of psycopg.
        table: its name; it is made if there is none.
        embedder: the model for search by meaning, such as `MiniLM()`. Without it, words alone count.
        progress: show a bar while more than a few passages are embedded.

    Raises:
        MissingDependency: psycopg is not installed.
        InvalidRequest: address or name cannot be read, or the table has vectors of another embedder.
        InvalidIndex: the table is not ours, damaged, or of a newer version.
        RetrieverFailed: the server cannot be used, or has no pgvector.
    """

    def __init__(
        self,
        server: str | Connection[Any],
        table: str = "passages",
        *,
        embedder: Embedder | None = None,
        progress: bool = True,
    ) -> None:
        self.embedder = embedder
        self.progress = progress
        self._server = Server(server)
        self._table = Table(table, self._server.place)
        try:
            self._server.run(lambda cursor: self._table.prepare(cursor, embedder))
        except BaseException:
            self._server.close()
            raise

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it. All or none.

        Those that are there as they are cost next to nothing. What PostgreSQL cannot hold is replaced: a
        lone surrogate by a question mark, NUL by U+FFFD.

        Raises:
            InvalidRequest: an id is empty, longer than 2,000 bytes or not text; the table has vectors and
                there is no embedder, or one whose vectors are of another shape.
            RetrieverFailed: the server cannot be used.
        """
        wanted = storable_by_id(passages)
        there = self._there(list(wanted))
        changed = [wanted[key] for key in sorted(wanted) if wanted[key] != there.get(key)]
        if not changed:
            return
        rows = self._rows(changed)
        statement = self._table.statement(PUT_WITH_VECTOR if self._table.width else PUT)

        def write(cursor: Rows) -> None:
            self._table.lock(cursor)
            cursor.executemany(statement, rows)
            self._table.index(cursor)

        self._server.run(write)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        keys = [key for key in ids if is_storable_id(key)]

        def remove(cursor: Rows) -> int:
            self._table.lock(cursor)
            return cursor.execute(
                self._table.statement("DELETE FROM {table} WHERE id = ANY(%s)"), (keys,)
            ).rowcount

        return self._server.run(remove) if keys else 0

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages for `query`, which may be any text; see `Searcher.search`.

        Raises:
            InvalidRequest: `k` is below 1, or the embedder answered with no vector like those in the table.
            InvalidIndex: the table is gone or damaged.
            RetrieverFailed: the server cannot be used.
        """
        require_k(k)
        k = min(k, MOST_HITS)
        words = [folded(word) for word in query_words(query)]
        if not words:
            return []
        if self.embedder is None:
            return self._server.run(lambda cursor: self._by_words(cursor, words, k))
        (vector,) = vectors_of([Passage("", encodable(query))], self.embedder, self._table.width)
        depth = max(k, DEPTH)

        def both(cursor: Rows) -> list[list[Hit]]:
            return [self._by_words(cursor, words, depth), self._by_meaning(cursor, vector, depth)]

        return reciprocal_rank_fusion(self._server.run(both))[:k]

    def __len__(self) -> int:
        statement = self._table.statement("SELECT count(*) FROM {table}")
        return self._server.run(lambda cursor: _number(cursor.execute(statement).fetchone()))

    def __repr__(self) -> str:
        return f"PostgresRetriever({self._table.place})"

    def close(self) -> None:
        """Close the connection, unless it was given; what is used afterwards raises `RetrievalError`."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _there(self, ids: list[str]) -> dict[str, Passage]:
        statement = self._table.statement(THERE)
        rows = self._server.run(lambda cursor: cursor.execute(statement, (ids,)).fetchall())
        return {row[0]: Passage(*row) for row in rows}

    def _rows(self, passages: Sequence[Passage]) -> list[tuple[Any, ...]]:
        rows = [
            (each.id, each.text, each.source, each.title, each.page, each.line, indexed_text(each))
            for each in passages
        ]
        if not self._table.width:
            return rows
        if self.embedder is None:
            raise InvalidRequest(
                f"The passages of {self._table.place} have vectors, and there is no embedder for more.",
                hint="Open it with embedder=, the one that the table was made with.",
            )
        vectors = vectors_of(passages, self.embedder, self._table.width, progress=self.progress)
        return [(*row, _literal(vector)) for row, vector in zip(rows, vectors, strict=True)]

    def _by_words(self, cursor: Rows, words: list[str], k: int) -> list[Hit]:
        most = MAX_ROWS + 1
        counts = cursor.execute(self._table.statement(COUNTS), {"words": words, "most": most}).fetchall()
        size = _number(cursor.execute(self._table.statement(SIZE), (most,)).fetchone())
        asked = weighted(counts, size)
        if asked:
            values = {"queries": list(asked), "weights": list(asked.values()), "k": k}
            return _hits(cursor.execute(self._table.statement(BY_WORDS), values))
        # Where all words are common, no rank is worth a full scan.
        anything = " | ".join(lexeme for lexeme, count in counts if count)
        values = {"query": anything, "most": MAX_ROWS, "k": k}
        return _hits(cursor.execute(self._table.statement(BY_COMMON_WORDS), values)) if anything else []

    def _by_meaning(self, cursor: Rows, vector: np.ndarray, k: int) -> list[Hit]:
        near = k + TIES
        values = {"vector": _literal(vector), "k": k, "near": near}
        if near <= MAX_EF:
            cursor.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(max(near, DEFAULT_EF)),))
            found = _hits(cursor.execute(self._table.statement(BY_INDEX), values))
            if len(found) == k:
                return found
        # HNSW gives up early among passages that were deleted a moment ago.
        return _hits(cursor.execute(self._table.statement(EXACTLY), values))


def folded(text: str) -> str:
    """The words of `text`, case folded and without accents, one blank between them.

    The server's locale would decide what a letter is, and accents need an extension that few servers have.

    >>> folded("Crème-Brûlée, ÅNGSTRÖM!")
    'creme brulee angstrom'
    """
    decomposed = unicodedata.normalize("NFD", " ".join(words_of(text)))
    kept = "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", kept)


def indexed_text(passage: Passage) -> str:
    """Title and text as they are found by their words."""
    beginning = f"{passage.title} {passage.text[:MAX_INDEXED_CHARACTERS]}"
    return folded(beginning)[:MAX_INDEXED_CHARACTERS]


def weighted(counts: Sequence[tuple[str, int]], size: int) -> dict[str, float]:
    """The words that count, with their weights ``ln(1 + (N - n + 0.5) / (n + 0.5))``.

    Args:
        counts: each word, and in how many passages it occurs (n).
        size: how many passages there are (N).

    Returns:
        All words, in an index of at most `MAX_ROWS` passages; in a larger one the rarest which together occur
        in at most `MAX_ROWS`. In their order in `counts`.

    >>> {word: round(weight, 3) for word, weight in weighted([("iron", 1), ("metal", 3)], 4).items()}
    {'iron': 1.204, 'metal': 0.357}
    """
    kept, rows = set(), 0
    for word, count in sorted(counts, key=lambda each: each[1]):
        rows += count
        if size > MAX_ROWS and rows > MAX_ROWS:
            break
        kept.add(word)
    return {word: math.log1p((size - n + 0.5) / (n + 0.5)) for word, n in counts if word in kept and n}


def _hits(rows: Iterable[tuple[Any, ...]]) -> list[Hit]:
    return [Hit.of(Passage(*row[:-1]), row[-1]) for row in rows]


def _number(row: tuple[Any, ...] | None) -> int:
    return int(row[0]) if row else 0


def _literal(vector: np.ndarray) -> str:
    return f"[{','.join(map(str, vector.tolist()))}]"
