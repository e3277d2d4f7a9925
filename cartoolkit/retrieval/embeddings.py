"""Search by meaning: vectors of the texts, compared with the vector of the query."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.minilm import MiniLM
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.ranking import best_places
from cartoolkit.retrieval.retriever import require_k
from cartoolkit.retrieval.vectors import VectorCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

__all__ = ["Embedder", "EmbeddingRetriever"]


class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        name: of the model and its weights; vectors of another name are never mixed with its own.
    """

    name: str

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 of shape [len(texts), n]."""
        ...


class EmbeddingRetriever:
    """Compares vectors of whole passages in numpy; finds what is said in other words.

    A score is the cosine of the angle between two vectors, at most 1; a query finds something always,
    however far off. All passages are compared: 100,000 take about 30 ms, and 150 MB of memory.

    Args:
        passages: what can be found from the start.
        embedder: the model; `MiniLM` unless given.
        path: a file in which vectors are kept by the hash of their text, so that a text is embedded once
            for all. Without it they go with the process.
        progress: show a bar while more than a few passages are embedded.

    Raises:
        MissingDependency: what the embedder needs is not installed.
        InvalidIndex: the file at `path` is not one of vectors, is damaged, or of another model.
    """

    def __init__(
        self,
        passages: Iterable[Passage] = (),
        *,
        embedder: Embedder | None = None,
        path: Path | str | None = None,
        progress: bool = True,
    ) -> None:
        self.embedder = MiniLM() if embedder is None else embedder
        self._cache = VectorCache(self.embedder, Path(path) if path is not None else None, progress=progress)
        self._lock = threading.RLock()
        self._passages: dict[str, Passage] = {}
        self._order: list[Passage] = []
        self._matrix: np.ndarray | None = None
        self.add(passages)

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it. All or none."""
        new = {passage.id: passage for passage in passages}
        self._cache.prepare(_embedded_text(passage) for passage in new.values())
        with self._lock:
            self._passages |= new
            self._matrix = None

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        with self._lock:
            removed = [self._passages.pop(each, None) for each in ids]
            self._matrix = None
        return sum(each is not None for each in removed)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The passages nearest in meaning; see `Searcher.search`. A blank query finds nothing.

        Raises:
            InvalidRequest: `k` is below 1, or the embedder answered with no unit vector.
        """
        import numpy as np

        require_k(k)
        if not query.strip() or not self._passages:
            return []
        (vector,) = self.embedder([query])
        passages, matrix = self._snapshot()
        if matrix.shape[1:] != vector.shape or not np.isfinite(vector).all():
            raise InvalidRequest(
                f"The embedder {self.embedder.name} gave no vector like those of the passages."
            )
        scores = matrix @ vector
        return [Hit.of(passages[at], scores[at]) for at in best_places(scores, k)]

    def __len__(self) -> int:
        return len(self._passages)

    def __repr__(self) -> str:
        return f"EmbeddingRetriever({len(self)} passages, {self.embedder.name})"

    def _snapshot(self) -> tuple[list[Passage], np.ndarray]:
        with self._lock:
            if self._matrix is None:
                self._order = list(self._passages.values())
                self._matrix = self._cache.matrix([_embedded_text(each) for each in self._order])
            return self._order, self._matrix


def _embedded_text(passage: Passage) -> str:
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text
