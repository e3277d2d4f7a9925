"""The key/value cache of a transformers model, addressed by the token ids it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cartoolkit.engine.decoders.cached_ids import CachedIds

if TYPE_CHECKING:
    from transformers import PretrainedConfig
    from transformers.cache_utils import Cache

__all__ = ["CacheKind", "TorchCache"]

CacheKind = Literal["ours", "own", "none"]


class TorchCache(CachedIds):
    """The ids, and the tensors of transformers.

    Attributes:
        tensors: of the kind `ours`, what the model's forward takes and fills; else None.
        own: of the kind `own`, what the model gave back to be given again, by the argument's name.
    """

    def __init__(self, config: PretrainedConfig, chunk: int, kind: CacheKind = "ours") -> None:
        self._config = config
        self._kind = kind
        super().__init__(chunk)

    def can_crop_to(self, length: int) -> bool:
        """Whether every layer still holds what the token after the first `length` needs.

        A recurrent state cannot go back, nor can a window that has let go of the tokens it would need, nor a
        cache of the model's own making. Without any cache there is nothing that could be missing.
        """
        if self.tensors is None:
            return self._kind == "none"
        return all(_can_crop_to(layer, length, len(self.token_ids)) for layer in self.tensors.layers)

    @property
    def has_recurrent_state(self) -> bool:
        """Whether some layer holds a state instead of keys and values of every token."""
        layers = [] if self.tensors is None else self.tensors.layers
        return not all(_can_go_back(layer) for layer in layers)

    def _clear_tensors(self) -> None:
        from cartoolkit.engine.decoders.torch_layers import growing_cache

        self.tensors: Cache | None = growing_cache(self._config) if self._kind == "ours" else None
        self.own: dict[str, Any] = {}

    def _crop_tensors(self, length: int) -> bool:
        if not self.can_crop_to(length):
            return False
        if self.tensors is None:
            return True
        # transformers 5 takes the number of tokens to remove, as a negative number.
        self.tensors.crop(length - len(self.token_ids))
        return self.tensors.get_seq_length() == length


def _can_crop_to(layer: object, length: int, held: int) -> bool:
    if (can := getattr(layer, "can_crop_to", None)) is not None:
        return can(length)
    if not _can_go_back(layer):
        return False
    window = getattr(layer, "sliding_window", None)
    return window is None or held < window


def _can_go_back(layer: object) -> bool:
    # A state of convolutions (LFM2) says that it can, and raises unless it was told to keep its past.
    return getattr(layer, "is_croppable", False) and getattr(layer, "record_past", True)
