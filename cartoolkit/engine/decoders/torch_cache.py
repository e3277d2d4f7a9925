"""The key/value cache of a transformers model, addressed by the token ids it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.engine.decoder import common_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import PretrainedConfig
    from transformers.cache_utils import Cache

__all__ = ["TorchCache"]


class TorchCache:
    """Keeps the ids beside the tensors, so that "how much is still right?" has one answer.

    Attributes:
        tensors: what the model's forward takes and fills.
        token_ids: the ids that the tensors stand for, in order.
        repeatable: how many of the first tokens were read as a fresh read would read them, in whole chunks.
            Tokens read in other portions have slightly other tensors, since sums are rounded in another
            order, and in half precision that is enough to change a text.
    """

    def __init__(self, config: PretrainedConfig, chunk: int) -> None:
        self._config = config
        self._chunk = chunk
        self.clear()

    def clear(self) -> None:
        """Start empty."""
        from transformers import DynamicCache

        self.tensors: Cache = DynamicCache(config=self._config)
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
        surplus = len(self.token_ids) - length
        if not length or not self.is_croppable:
            self.clear()
            return
        # transformers 5 takes the number of tokens to remove, as a negative number.
        self.tensors.crop(-surplus)
        self.token_ids = self.token_ids[:length]
        self.repeatable = min(self.repeatable, length // self._chunk * self._chunk)
        if self.tensors.get_seq_length() != length:
            self.clear()

    @property
    def is_croppable(self) -> bool:
        """Whether every layer still holds all its tokens: no recurrent state, no window that has moved on."""
        return all(_holds_everything(layer, len(self.token_ids)) for layer in self.tensors.layers)

    def extend(self, ids: Sequence[int]) -> None:
        """Record that a forward has added `ids` to the tensors."""
        if self.repeatable == len(self.token_ids) and len(ids) == self._chunk:
            self.repeatable += self._chunk
        self.token_ids.extend(ids)


def _holds_everything(layer: object, length: int) -> bool:
    if not getattr(layer, "is_croppable", False):
        return False
    window = getattr(layer, "sliding_window", None)
    return window is None or length < window
