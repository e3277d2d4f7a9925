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

    def can_crop_to(self, length: int) -> bool:
        """Whether every layer still holds what the token after the first `length` needs.

        A recurrent state cannot go back, nor can a window that has let go of the tokens it would need.
        """
        return all(_can_crop_to(layer, length, len(self.token_ids)) for layer in self.tensors.layers)

    def _clear_tensors(self) -> None:
        from cartoolkit.engine.decoders.torch_layers import growing_cache

        self.tensors: Cache = growing_cache(self._config)

    def _crop_tensors(self, length: int) -> bool:
        if not self.can_crop_to(length):
            return False
        # transformers 5 takes the number of tokens to remove, as a negative number.
        self.tensors.crop(length - len(self.token_ids))
        return self.tensors.get_seq_length() == length


def _can_crop_to(layer: object, length: int, held: int) -> bool:
    if (can := getattr(layer, "can_crop_to", None)) is not None:
        return can(length)
    if not getattr(layer, "is_croppable", False):
        return False
    window = getattr(layer, "sliding_window", None)
    return window is None or held < window
