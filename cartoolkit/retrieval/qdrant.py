"""Search by meaning in Qdrant: in memory, in a local folder or on a cluster, all through one client."""

from __future__ import annotations

import importlib.util
import threading
import uuid
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from cartoolkit.errors import InvalidIndex, InvalidRequest, MissingDependency, RetrievalError, RetrieverFailed
from cartoolkit.retrieval.fts5_query import words_of
from cartoolkit.retrieval.minilm import MiniLM
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.retriever import require_k
from cartoolkit.retrieval.storable import encodable, is_storable_id, storable_by_id, vectors_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from qdrant_client import QdrantClient

    from cartoolkit.retrieval.embeddings import Embedder

__all__ = ["QdrantRetriever", "point_id"]

MEMORY = ":memory:"
# Qdrant's ids are numbers or UUIDs, so a passage's own id is hashed into one. Never change this: what is
# stored would not be found again.
NAMESPACE = uuid.UUID("6a1f5c0e-7d53-5f0b-9a35-0d2b8b7c4f11")
BATCH_POINTS = 128
BATCH_BYTES = 8_000_000  # a server takes requests of up to 32 MB
BYTES_A_NUMBER = 24  # of a vector, written as JSON
MOST_HITS = 100_000
TIES = 16  # more than asked for, so that those of equal score can be ordered by id
REMOTE_SECONDS = 60
VERSION = 1
FIELDS = tuple(field.name for field in fields(Passage))


class QdrantRetriever:
    """Passages and their vectors in a collection of Qdrant; finds what is said in other words.

    A score is the cosine of the angle between two vectors, at most 1. In memory or in a folder all passages
    are compared, which is meant for up to some 20,000; a server searches an approximate index (HNSW), and
    may miss a near passage. For search by words as well, put this one and one by words into a
    `HybridRetriever`.

    Threads may share one retriever, and take turns. A folder can be open in one process at a time, takes some
    milliseconds for every passage that is added, and is read with pickle: open only what you made yourself.

    Args:
        server: ":memory:", a folder, the URL of a server (version 1.16 or newer), or a client of
            qdrant-client, which may carry a key.
        collection: its name; it is made if there is none.
        embedder: the model; `MiniLM` unless given.
        progress: show a bar while more than a few passages are embedded.

    Raises:
        MissingDependency: qdrant-client, or what the embedder needs, is not installed.
        InvalidRequest: the server's address is none, or the collection has vectors of another embedder.
        InvalidIndex: the collection is not ours, or of a newer version.
        RetrieverFailed: the server cannot be reached or refuses, or the folder is open elsewhere.
    """

    def __init__(
        self,
        server: QdrantClient | Path | str = MEMORY,
        collection: str = "passages",
        *,
        embedder: Embedder | None = None,
        progress: bool = True,
    ) -> None:
        _require_client()
        self.place = _place(server)
        self.embedder = MiniLM() if embedder is None else embedder
        self.collection = collection
        self.progress = progress
        self._lock = threading.RLock()
        self._closed = False
        self._given = not isinstance(server, Path | str)
        with self._used():
            self._client = _client(server) if isinstance(server, Path | str) else server
        try:
            self._width = self._prepare()
        except BaseException:
            self.close()
            raise

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it.

        All are embedded before the first is written. Qdrant knows no transactions: where a server fails
        between two batches of 128, the batches before stay; adding the same passages again completes
        them. Passages that are there as they are cost next to nothing.

        Raises:
            InvalidRequest: an id is empty, longer than 2,000 bytes or not text, or the embedder's vectors are
                of another shape.
            RetrieverFailed: the server cannot be used.
        """
        wanted = storable_by_id(passages)
        there = self._there(list(wanted))
        changed = [passage for key, passage in wanted.items() if there.get(key) != passage]
        vectors = vectors_of(changed, self.embedder, self._width, progress=self.progress)
        for start, end in batches(changed, self._width):
            self._put(changed[start:end], vectors[start:end])

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        from qdrant_client.models import PointIdsList

        keys = [key for key in dict.fromkeys(ids) if is_storable_id(key)]
        with self._used():
            there = self._there(keys)
            points = PointIdsList(points=[point_id(key) for key in there])
            if there:
                self._client.delete(self.collection, points, wait=True)
        return len(there)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The passages nearest in meaning; see `Searcher.search`. A query without words finds nothing.

        Raises:
            InvalidRequest: `k` is below 1, or the embedder answered with no vector like those that are kept.
            RetrieverFailed: the server cannot be used.
        """
        require_k(k)
        if not words_of(query):
            return []
        (vector,) = vectors_of([Passage("", encodable(query))], self.embedder, self._width)
        limit = min(k, MOST_HITS) + TIES
        with self._used():
            found = self._client.query_points(
                self.collection, query=vector.tolist(), limit=limit, with_payload=True
            ).points
        hits = [Hit.of(passage, point.score) for point in found if (passage := _passage(point.payload))]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]

    def __len__(self) -> int:
        with self._used():
            return self._client.count(self.collection, exact=True).count

    def __repr__(self) -> str:
        return f"QdrantRetriever({self.place}, collection {self.collection}, {self.embedder.name})"

    def close(self) -> None:
        """Close the client, unless it was given; what is used afterwards raises `RetrievalError`."""
        with self._lock:
            self._closed = True
            if not self._given:
                self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> int:
        """How many numbers a vector has; the collection is made if there is none."""
        if not self._exists():
            self._create(len(self.embedder(["width"])[0]))
        with self._used():
            config = self._client.get_collection(self.collection).config
        mark, vectors = config.metadata or {}, config.params.vectors
        where = f"The collection {self.collection} at {self.place}"
        if "cartoolkit" not in mark or vectors is None or isinstance(vectors, dict):
            raise InvalidIndex(
                f"{where} belongs to another program; it was left as it is.",
                hint="Give another collection's name; it is made if there is none.",
            )
        if mark["cartoolkit"] > VERSION:
            raise InvalidIndex(
                f"{where} is of version {mark['cartoolkit']}; this cartoolkit reads up to version {VERSION}.",
                hint="Update cartoolkit, or add the passages to another collection.",
            )
        if mark["embedder"] != self.embedder.name:
            raise InvalidRequest(
                f"{where} holds vectors of {mark['embedder']}, which do not compare with those of "
                f"{self.embedder.name}.",
                hint="Give each embedder a collection of its own.",
            )
        return vectors.size

    def _exists(self) -> bool:
        with self._used():
            return self._client.collection_exists(self.collection)

    def _create(self, width: int) -> None:
        from qdrant_client.models import Distance, VectorParams

        vectors = VectorParams(size=width, distance=Distance.COSINE)
        mark = {"cartoolkit": VERSION, "embedder": self.embedder.name}
        try:
            with self._used():
                self._client.create_collection(self.collection, vectors_config=vectors, metadata=mark)
        except RetrieverFailed:
            if not self._exists():  # else another process was faster
                raise

    def _there(self, ids: Sequence[str]) -> dict[str, Passage]:
        found: dict[str, Passage] = {}
        for start in range(0, len(ids), BATCH_POINTS):
            keys = [point_id(key) for key in ids[start : start + BATCH_POINTS]]
            with self._used():
                points = self._client.retrieve(self.collection, keys, with_payload=True)
            found |= {passage.id: passage for each in points if (passage := _passage(each.payload))}
        return found

    def _put(self, passages: Sequence[Passage], vectors: np.ndarray) -> None:
        from qdrant_client.models import PointStruct

        points = [
            PointStruct(id=point_id(each.id), vector=vector.tolist(), payload=asdict(each))
            for each, vector in zip(passages, vectors, strict=True)
        ]
        with self._used():
            self._client.upsert(self.collection, points, wait=True)

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Take a turn at the client, and turn its errors into one sentence without passages or queries."""
        with self._lock:
            if self._closed:
                raise RetrievalError(f"The retriever on {self.place} was closed.", hint="Open it again.")
            try:
                yield
            except RetrievalError:
                raise
            except Exception as exc:  # noqa: BLE001 (whatever a client raises may quote what was sent)
                raise _explanation(exc, self.place, self.collection) from None


def _passage(payload: dict[str, Any] | None) -> Passage | None:
    """The passage in a point; what others may have added to it is left aside, and so are points of theirs."""
    known = {name: payload[name] for name in FIELDS if name in payload} if payload else {}
    return Passage(**known) if {"id", "text"} <= known.keys() else None


def point_id(passage_id: str) -> str:
    """The UUID under which Qdrant keeps the passage of this id: version 5, the same on every machine."""
    return str(uuid.uuid5(NAMESPACE, passage_id))


def batches(passages: Sequence[Passage], width: int) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of runs of `passages` that are small enough for one request."""
    start, size = 0, 0
    for place, passage in enumerate(passages):
        grown = len(passage.text.encode()) + width * BYTES_A_NUMBER
        if place > start and (place - start == BATCH_POINTS or size + grown > BATCH_BYTES):
            yield start, place
            start, size = place, 0
        size += grown
    if passages:
        yield start, len(passages)


def _client(server: Path | str) -> QdrantClient:
    from qdrant_client import QdrantClient

    if server == MEMORY:
        return QdrantClient(MEMORY)
    if _is_url(server):
        # A server that is away is said to be so by the first request, in our own words.
        return QdrantClient(url=str(server), timeout=REMOTE_SECONDS, check_compatibility=False)
    # Our own lock keeps threads apart.
    return QdrantClient(path=str(server), force_disable_check_same_thread=True)


def _is_url(server: Path | str) -> bool:
    return isinstance(server, str) and "://" in server


def _place(server: QdrantClient | Path | str) -> str:
    """Where the passages are, for messages: of an address no more than scheme, host and port.

    Raises:
        InvalidRequest: it is none of what can be given.
    """
    from qdrant_client import QdrantClient

    if isinstance(server, QdrantClient):
        return "a client of Qdrant"
    if not isinstance(server, Path | str):
        raise InvalidRequest(
            f"{type(server).__name__} is no place for passages.",
            hint='Give ":memory:", a folder, the URL of a Qdrant server, or a QdrantClient.',
        )
    if not isinstance(server, str) or not _is_url(server):
        return f"Qdrant {server}"
    address = urlsplit(server)
    # Whatever stands before an @ is a secret, and the client would send none of it.
    if "@" in server or address.scheme not in {"http", "https"}:
        raise InvalidRequest(
            "The URL of a Qdrant server must begin with http:// or https://, and hold no user or password.",
            hint="Give a client with a key: QdrantClient(url, api_key=...).",
        )
    return f"Qdrant at {address.scheme}://{address.netloc}"


def _explanation(exc: Exception, place: str, collection: str) -> RetrievalError:
    """What went wrong, without anything that was sent."""
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    if isinstance(exc, UnexpectedResponse):
        return _refusal(exc.status_code or 0, place, collection)
    if isinstance(exc, ResponseHandlingException):
        return RetrieverFailed(
            f"{place} cannot be reached: {type(exc.source).__name__}.",
            hint="Check that the server runs and accepts connections from this machine.",
        )
    if "already accessed by another instance" in str(exc):
        return RetrieverFailed(
            f"{place} is open in another client, and a folder can be open in one at a time.",
            hint="Close the other one, or run a Qdrant server and give its URL.",
        )
    if isinstance(exc, ValueError) and str(exc).endswith("not found"):
        return _refusal(404, place, collection)
    reason = exc.strerror if isinstance(exc, OSError) else type(exc).__name__
    return RetrieverFailed(f"{place} failed: {reason}.")


def _refusal(status: int, place: str, collection: str) -> RetrievalError:
    if status == 404:
        return InvalidIndex(
            f"The collection {collection} at {place} is gone.", hint="Open it again and add the passages."
        )
    hint = "Give a client with a key: QdrantClient(url, api_key=...)." if status in {401, 403} else None
    return RetrieverFailed(f"{place} refused, with HTTP status {status}.", hint=hint)


def _require_client() -> None:
    if importlib.util.find_spec("qdrant_client") is None:
        raise MissingDependency(
            "QdrantRetriever needs qdrant-client, which is not installed.",
            hint="pip install 'cartoolkit[qdrant]'",
        )
