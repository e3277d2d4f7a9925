"""The key/value cache of a transformers model, addressed by the token ids it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.engine.decoders.cached_ids import CachedIds

if TYPE_CHECKING:
    from transformers import PretrainedConfig
    from transformers.cache_utils import Cache

__all__ = ["TorchCache"]


class TorchCache(CachedIds):
    """The ids and the tensors of transformers.

    Attributes:
        tensors: what the model's forward takes and fills.
    """

    def __init__(self, config: PretrainedConfig, chunk: int) -> None:
        self._config = config
        super().__init__(chunk)

    @property
    def is_croppable(self) -> bool:
        """Whether every layer still holds all its tokens: no recurrent state, no window that has moved on."""
        return all(_holds_everything(layer, len(self.token_ids)) for layer in self.tensors.layers)

    def _clear_tensors(self) -> None:
        from transformers import DynamicCache

        self.tensors: Cache = DynamicCache(config=self._config)

    def _crop_tensors(self, length: int) -> bool:
        if not self.is_croppable:
            return False
        # transformers 5 takes the number of tokens to remove, as a negative number.
        self.tensors.crop(length - len(self.token_ids))
        return self.tensors.get_seq_length() == length


def _holds_everything(layer: object, length: int) -> bool:
    if not getattr(layer, "is_croppable", False):
        return False
    window = getattr(layer, "sliding_window", None)
    return window is None or length < window
