"""The passages in the prompt: each once, and no more than fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cartoolkit.retrieval.passages import Hit
    from cartoolkit.retrieval.policy import Policy

__all__ = ["Shelf"]


class Shelf:
    """Holds the passages of one answer.

    Args:
        policy: says whether new passages are appended or replace the old ones, and how much fits.
        count_tokens: of a text.
        passages: what is there from the beginning, whether it fits or not.

    Attributes:
        passages: in the order of the prompt.
        tokens: of all passages together.
    """

    def __init__(
        self, policy: Policy, count_tokens: Callable[[str], int], passages: Iterable[Hit] = ()
    ) -> None:
        self._replaces = policy.context == "replace"
        self._most = policy.budget.max_context_tokens
        self._count = count_tokens
        self.passages = tuple(passages)
        self.tokens = sum(count_tokens(hit.text) for hit in self.passages)

    def put(self, hits: Iterable[Hit]) -> tuple[tuple[Hit, ...], str]:
        """Add what is new and fits, best first; a passage that does not fit is left out whole.

        Returns:
            The passages that were added, and a sentence about those that were not; empty if all were.
        """
        found: dict[str, Hit] = {}
        for hit in hits:
            if hit.text.strip():
                found.setdefault(hit.id, hit)
        there = {hit.id for hit in self.passages}
        if not found.keys() - there:
            return (), "nothing new was found" if found else "nothing was found"
        shelf, tokens, too_long = self._fill(found, there)
        added = tuple(hit for hit in shelf if hit.id not in there)
        note = _note(known=len(found.keys() & there), too_long=too_long, most=self._most)
        if added:
            self.passages, self.tokens = tuple(shelf), tokens
        return added, note

    def _fill(self, found: dict[str, Hit], there: set[str]) -> tuple[list[Hit], int, int]:
        """The passages to hold now, their tokens, and how many did not fit."""
        shelf = [] if self._replaces else list(self.passages)
        tokens = 0 if self._replaces else self.tokens
        too_long = 0
        for hit in found.values():
            if hit.id in there and not self._replaces:
                continue
            size = self._count(hit.text)
            if self._most is not None and tokens + size > self._most:
                too_long += 1
                continue
            shelf.append(hit)
            tokens += size
        return shelf, tokens, too_long


def _note(*, known: int, too_long: int, most: int | None) -> str:
    parts = []
    if known:
        parts.append(f"{known} passage{'s were' if known > 1 else ' was'} there already")
    if too_long:
        parts.append(f"{too_long} did not fit into max_context_tokens={most}")
    return "; ".join(parts)
