"""Several retrievers as one, by the ranks they give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest, UnsupportedMode
from cartoolkit.retrieval.retriever import Retriever, Searcher, require_k

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cartoolkit.retrieval.passages import Hit, Passage

__all__ = ["HybridRetriever", "reciprocal_rank_fusion"]

RRF_K = 60
DEPTH = 20


def reciprocal_rank_fusion(rankings: Iterable[Sequence[Hit]], *, constant: int = RRF_K) -> list[Hit]:
    """Merge ranked lists: the score of a passage is the sum over the lists of ``1 / (constant + rank)``.

    Ranks count from 1; a list that lacks the passage adds nothing. Only ranks enter, so lists with
    scores of different kinds can be merged. Cormack, Clarke and Büttcher, "Reciprocal rank fusion
    outperforms Condorcet and individual rank learning methods", SIGIR 2009.

    Returns:
        Every passage of any list once, best first, ties by id.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    hits: dict[str, Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.id] += 1 / (constant + rank)
            hits.setdefault(hit.id, hit)
    ordered = sorted(scores, key=lambda key: (-scores[key], key))
    return [replace(hits[key], score=scores[key]) for key in ordered]


class HybridRetriever:
    """Asks several retrievers and merges their answers by reciprocal rank fusion.

    Where one of the lists is weak, the first place suffers most: ask for three passages or more.

    Args:
        retrievers: two or more over the same passages, such as one by words and one by meaning.
        constant: the k of the formula; 60 in the paper.
        depth: how many passages each is asked for, at least.

    Raises:
        InvalidRequest: there is nothing to merge.
    """

    def __init__(self, retrievers: Iterable[Searcher], *, constant: int = RRF_K, depth: int = DEPTH) -> None:
        self.retrievers = tuple(retrievers)
        self.constant = constant
        self.depth = depth
        if not self.retrievers:
            raise InvalidRequest(
                "A hybrid of no retrievers finds nothing.", hint="HybridRetriever([first, second])."
            )

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages by the merged ranks; see `Searcher.search`.

        Raises:
            RetrievalError: one of the retrievers failed.
        """
        require_k(k)
        rankings = [each.search(query, max(k, self.depth)) for each in self.retrievers]
        return reciprocal_rank_fusion(rankings, constant=self.constant)[:k]

    def add(self, passages: Iterable[Passage]) -> None:
        """Add to every retriever.

        Raises:
            UnsupportedMode: one of them cannot be changed; nothing was added anywhere.
        """
        shared = list(passages)
        for each in self._changeable():
            each.add(shared)

    def delete(self, ids: Iterable[str]) -> int:
        """Remove from every retriever; the greatest number that any of them had."""
        shared = list(ids)
        return max(each.delete(shared) for each in self._changeable())

    def __len__(self) -> int:
        return max(len(each) for each in self._changeable())

    def __repr__(self) -> str:
        return f"HybridRetriever({list(self.retrievers)!r})"

    def _changeable(self) -> list[Retriever]:
        fixed = [each for each in self.retrievers if not isinstance(each, Retriever)]
        if fixed:
            raise UnsupportedMode(
                f"{fixed[0]!r} can only be searched, so the hybrid cannot be changed or counted.",
                hint="Change the retrievers themselves.",
            )
        return [each for each in self.retrievers if isinstance(each, Retriever)]
