"""Search by words in memory, over the bm25s library."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import MissingDependency
from cartoolkit.retrieval.fts5_query import query_words, words_of
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.ranking import best_places
from cartoolkit.retrieval.retriever import require_k

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BM25Retriever"]


class BM25Retriever:
    """BM25 in memory, over the library that evaluations are often made with; it ends with the process.

    Words are compared without case, and not reduced to a stem. The formula is Lucene's, as bm25s
    implements it: per word ``idf · tf / (tf + k1 · (1 − b + b · length / mean length))`` with
    ``idf = ln(1 + (N − n + 0.5) / (n + 0.5))``. Titles are searched together with the texts.

    Several times faster than SQLite (`benchmarks/retrieval.py`), but a change costs a whole new index at the
    next search.

    Args:
        passages: what can be found from the start.
        k1: how soon more of the same word stops counting.
        b: how much long passages are held back, 0 to 1.

    Raises:
        MissingDependency: bm25s is not installed.
    """

    def __init__(self, passages: Iterable[Passage] = (), *, k1: float = 1.5, b: float = 0.75) -> None:
        _bm25s()
        self.k1, self.b = k1, b
        self._lock = threading.RLock()
        self._passages: dict[str, Passage] = {}
        self._order: list[Passage] = []
        self._index: Any = None
        self.add(passages)

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it."""
        new = {passage.id: passage for passage in passages}
        with self._lock:
            self._passages |= new
            self._index = None

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        with self._lock:
            removed = [self._passages.pop(each, None) for each in ids]
            self._index = None
        return sum(each is not None for each in removed)

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages with at least one of the query's words; see `Searcher.search`."""
        require_k(k)
        with self._lock:
            if self._index is None:
                self._index, self._order = self._build(), list(self._passages.values())
            index, passages = self._index, self._order
        known = [word for word in query_words(query) if index and word in index.vocab_dict]
        if not index or not known:
            return []
        scores = index.get_scores(known)
        return [Hit.of(passages[at], scores[at]) for at in best_places(scores, k) if scores[at] > 0]

    def __len__(self) -> int:
        return len(self._passages)

    def __repr__(self) -> str:
        return f"BM25Retriever({len(self)} passages)"

    def _build(self) -> Any:  # noqa: ANN401 (bm25s is loaded on first use)
        words = [words_of(f"{each.title} {each.text}") for each in self._passages.values()]
        if not any(words):
            return None
        index = _bm25s().BM25(k1=self.k1, b=self.b, method="lucene")
        index.index(words, show_progress=False)
        return index


def _bm25s() -> Any:  # noqa: ANN401
    try:
        import bm25s
    except ImportError as exc:
        raise MissingDependency(
            "BM25Retriever needs bm25s, which is not installed.",
            hint="pip install 'cartoolkit[retrieval]', or use FTSRetriever, which needs nothing.",
        ) from exc
    return bm25s
