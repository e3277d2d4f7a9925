"""What all caches share: they are addressed by the token ids that they hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from cartoolkit.engine.decoder import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CachedIds"]


class CachedIds(ABC):
    """Keeps the ids beside a library's tensors, so that "how much is still right?" has one answer.

    Attributes:
        token_ids: the ids that the tensors stand for, in order.
        repeatable: how many of the first tokens were read as a fresh read would read them, in whole chunks.
            Tokens read in other portions have slightly other tensors, since sums are rounded in another
            order, and in half precision that is enough to change a text.
    """

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self.clear()

    def clear(self) -> None:
        """Start empty."""
        self._clear_tensors()
        self.token_ids: list[int] = []
        self.repeatable = 0

    def keep_prefix_of(self, ids: Sequence[int], *, repeatable: bool) -> int:
        """Crop to what is shared with `ids`, at most len(ids) - 1; a cache that cannot be cropped is emptied.

        Returns:
            How many tokens are left.
        """
        shared = min(common_prefix(self.token_ids, ids), len(ids) - 1)
        if repeatable:
            shared = min(shared, self.repeatable) // self._chunk * self._chunk
        if shared < len(self.token_ids):
            self._crop(shared)
        return len(self.token_ids)

    def _crop(self, length: int) -> None:
        if not length or not self._crop_tensors(length):
            self.clear()
            return
        self.token_ids = self.token_ids[:length]
        self.repeatable = min(self.repeatable, length // self._chunk * self._chunk)

    def extend(self, ids: Sequence[int]) -> None:
        """Record that one read has added `ids` to the tensors."""
        if self.repeatable == len(self.token_ids) and len(ids) == self._chunk:
            self.repeatable += self._chunk
        self.token_ids.extend(ids)

    @abstractmethod
    def _clear_tensors(self) -> None:
        """Forget everything."""

    @abstractmethod
    def _crop_tensors(self, length: int) -> bool:
        """Keep the first `length` > 0 tokens.

        Returns:
            Whether the tensors hold exactly these now; if not, they are cleared.
        """
