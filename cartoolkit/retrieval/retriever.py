"""What every retriever can do, and what may stand where a retriever is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartoolkit.retrieval.passages import Hit, Passage

__all__ = ["Retriever", "Searcher", "require_k"]


@runtime_checkable
class Searcher(Protocol):
    """Anything that answers a query with passages; all that generation needs."""

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages for `query`.

        Args:
            query: any text. Nothing in it is an operator; a query without words finds nothing.
            k: at most so many.

        Returns:
            Hits of distinct ids, best first, ties by id; fewer than `k` where no more fit.

        Raises:
            InvalidRequest: `k` is below 1.
            RetrievalError: the look-up could not be made.
        """
        ...


@runtime_checkable
class Retriever(Searcher, Protocol):
    """A searcher whose passages can be changed."""

    def add(self, passages: Iterable[Passage]) -> None:
        """Make `passages` findable; one whose id is there already replaces it. All or none."""
        ...

    def delete(self, ids: Iterable[str]) -> int:
        """Remove the passages of these ids; unknown ones are ignored. Returns how many were there."""
        ...

    def __len__(self) -> int:
        """How many passages can be found."""
        ...


def require_k(k: int) -> None:
    """Refuse a number of hits that makes no sense.

    Raises:
        InvalidRequest: `k` is below 1.
    """
    if k < 1:
        raise InvalidRequest(
            f"A search returns at least one passage; k = {k} asks for none.", hint="Use k >= 1."
        )
