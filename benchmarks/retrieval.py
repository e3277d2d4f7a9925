"""What looking up costs: indexes of 100,000 passages, built, asked, changed.

    python benchmarks/retrieval.py [--passages 100000]

The passages are made of words that are as frequent as in a language (Zipf's law over 50,000 words, 20 to 80
a passage), the queries of 12 words drawn from the same distribution: like a question, mostly common words
with a few rare ones. Medians of many repetitions; the file is on disk, in a temporary folder.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.retrieval.bm25 import BM25Retriever
from cartoolkit.retrieval.embeddings import EmbeddingRetriever
from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.hybrid import HybridRetriever
from cartoolkit.retrieval.passages import Passage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartoolkit.retrieval.retriever import Retriever

VOCABULARY = 50_000
QUERIES = 100
CHANGES = 20


class RandomVectors:
    """An embedder that costs nothing, so that the search alone is measured."""

    name = "random"

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._rng.standard_normal((len(texts), 384), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def drawn_texts(count: int, rng: np.random.Generator, shortest: int, longest: int) -> list[str]:
    share = 1 / np.arange(1, VOCABULARY + 1)
    lengths = rng.integers(shortest, longest + 1, count)
    words = rng.choice(VOCABULARY, p=share / share.sum(), size=lengths.sum())
    return [" ".join(f"w{word}" for word in part) for part in np.split(words, lengths.cumsum()[:-1])]


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(name: str, retriever: Retriever, passages: list[Passage], queries: list[str]) -> None:
    def build() -> None:
        retriever.add(passages)
        retriever.search(queries[0], 5)

    built = seconds(build)
    asked = sorted(seconds(lambda query=query: retriever.search(query, 5)) for query in queries)
    added, deleted = [], []
    for place in range(CHANGES):
        new = Passage(f"new{place}", passages[place].text)
        added.append(seconds(lambda new=new: retriever.add([new])))
        deleted.append(seconds(lambda new=new: retriever.delete([new.id])))
    times = (
        statistics.median(asked),
        asked[int(0.95 * len(asked))],
        *map(statistics.median, (added, deleted)),
    )
    print(f"| {name} | {built:.1f} s | " + " | ".join(f"{1000 * each:.2f} ms" for each in times) + " |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=100_000)
    count = parser.parse_args().passages
    rng = np.random.default_rng(1)
    passages = [Passage(str(place), text) for place, text in enumerate(drawn_texts(count, rng, 20, 80))]
    queries = drawn_texts(QUERIES, rng, 12, 12)
    print(f"{count:,} passages, {len(queries)} queries of 12 words, k = 5\n")
    print("| retriever | build | query, median | query, 95 % | add one | delete one |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        file = FTSRetriever(Path(folder) / "index.db")
        measure("FTS5, file", file, passages, queries)
        size = (Path(folder) / "index.db").stat().st_size
        measure("FTS5, memory", FTSRetriever(), passages, queries)
        words = BM25Retriever()
        vectors, fresh = (EmbeddingRetriever(embedder=RandomVectors(), progress=False) for _ in range(2))
        measure("bm25s", words, passages, queries)
        measure("embeddings, search only", vectors, passages, queries)
        measure("FTS5 + embeddings, fused", HybridRetriever([FTSRetriever(), fresh]), passages, queries)
        file.close()
    print(f"\nThe file takes {size / 1e6:.0f} MB. Changes of the other two are paid at the next search.")


if __name__ == "__main__":
    main()
