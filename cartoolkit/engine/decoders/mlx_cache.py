"""The cache of an mlx-lm model, addressed by the token ids it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.engine.decoders.cached_ids import CachedIds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MlxCache"]


class MlxCache(CachedIds):
    """The ids and the tensors of mlx-lm.

    Attributes:
        tensors: one cache a layer, which the model's forward takes and fills.
    """

    def __init__(self, make: Callable[[], list[Any]], chunk: int) -> None:
        """Start empty.

        Args:
            make: a new list of empty layer caches (`mlx_lm.models.cache.make_prompt_cache`).
            chunk: see `CachedIds.repeatable`.
        """
        self._make = make
        super().__init__(chunk)

    @property
    def is_croppable(self) -> bool:
        """Whether every layer still holds all its tokens: no recurrent state, no window that has moved on."""
        return all(_holds_everything(layer, len(self.token_ids)) for layer in self.tensors)

    def release(self) -> None:
        """Let go of the tensors, and of the model that shaped them; the cache cannot be used afterwards."""
        self._make = list
        self.clear()

    def _clear_tensors(self) -> None:
        self.tensors = self._make()

    def _crop_tensors(self, length: int) -> bool:
        from mlx_lm.models.cache import trim_prompt_cache

        if not self.is_croppable:
            return False
        trim_prompt_cache(self.tensors, len(self.token_ids) - length)
        return all(_ends_at(layer, length) for layer in self.tensors)


def _holds_everything(layer: Any, length: int) -> bool:  # noqa: ANN401 - mlx-lm's caches have no common type
    """Whether a layer's cache can be cropped; some that say so have let go of their beginning."""
    if not layer.is_trimmable() or getattr(layer, "start_position", 0):
        return False
    parts = getattr(layer, "caches", None)
    return _ends_at(layer, length) if parts is None else all(_holds_everything(p, length) for p in parts)


def _ends_at(layer: Any, length: int) -> bool:  # noqa: ANN401
    parts = getattr(layer, "caches", None)
    if parts is not None:
        return all(_ends_at(part, length) for part in parts)
    return getattr(layer, "offset", None) == length
