"""What looking up costs in PostgreSQL and Qdrant: built, asked, changed.

    python benchmarks/data_bases.py [--passages 10000]

Passages and queries are those of `retrieval.py`, so that its figures for FTS5 can stand beside these. The
PostgreSQL server is one of our own (pgserver), on a socket of this machine with default settings; Qdrant
is its client's local mode, which compares all vectors. Vectors cost nothing here, so the search alone counts.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
from retrieval import QUERIES, RandomVectors, drawn_texts, measure

from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.postgres import PostgresRetriever
from cartoolkit.retrieval.qdrant import QdrantRetriever


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=10_000)
    count = parser.parse_args().passages
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    rng = np.random.default_rng(1)
    passages = [Passage(str(place), text) for place, text in enumerate(drawn_texts(count, rng, 20, 80))]
    queries = drawn_texts(QUERIES, rng, 12, 12)
    print(f"{count:,} passages, {len(queries)} queries of 12 words, k = 5\n")
    print("| retriever | build | query, median | query, 95 % | add one | delete one |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="ct") as folder:
        measure("FTS5, file", FTSRetriever(Path(folder) / "index.db"), passages, queries)
        server = pgserver.get_server(Path(folder) / "server", cleanup_mode="delete")
        address, vectors = server.get_uri(), RandomVectors()
        with PostgresRetriever(address, "words") as words:
            measure("PostgreSQL, words", words, passages, queries)
        with PostgresRetriever(address, "both", embedder=vectors, progress=False) as both:
            measure("PostgreSQL, words + pgvector, fused", both, passages, queries)
        server.cleanup()
        with QdrantRetriever(embedder=vectors, progress=False) as memory:
            measure("Qdrant, memory", memory, passages, queries)
        with QdrantRetriever(Path(folder) / "points", embedder=vectors, progress=False) as points:
            measure("Qdrant, folder", points, passages, queries)


if __name__ == "__main__":
    main()
