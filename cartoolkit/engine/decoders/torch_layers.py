"""Layers of transformers' cache that are filled in place, so that a token costs no copy of all before it.

transformers' own layers build keys and values anew with every token. These keep room for the tokens to
come and are cropped by moving their end. They hold one text each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig

__all__ = ["GrowingLayer", "GrowingWindowLayer", "growing_cache"]

# Room is a multiple of this, so that every head's rows begin at the same alignment whatever was read before.
_STEP = 256
# Tokens that a window keeps behind itself, for going back.
_REACH = 1024


def growing_cache(config: PretrainedConfig) -> DynamicCache:
    """An empty cache as transformers makes it for `config`, with layers that grow in place.

    Layers of other kinds (recurrent states, compressed keys) stay the library's own.
    """
    cache = DynamicCache(config=config)
    cache.layers = [_growing(layer) for layer in cache.layers]
    if all(isinstance(layer, GrowingLayer) for layer in cache.layers):
        # Some configs of decoders taken out of an encoder-decoder count another number of layers.
        cache.layer_class_to_replicate = GrowingLayer
    return cache


def _growing(layer: object) -> Any:  # noqa: ANN401 - the layers share no base
    # The exact classes only: a subclass holds more than keys and values.
    if type(layer) is DynamicLayer:
        return GrowingLayer()
    if type(layer) is DynamicSlidingWindowLayer:
        return GrowingWindowLayer(layer.sliding_window)
    return layer


class _Rows:
    """One tensor [batch, heads, tokens, dim] that grows at its third dimension."""

    def __init__(self) -> None:
        self._memory: torch.Tensor | None = None
        self.length = 0

    def append(self, new: torch.Tensor) -> None:
        """Write `new` [batch, heads, n, dim] behind the last row."""
        end = self.length + new.shape[-2]
        if self._memory is None or end > self._memory.shape[-2]:
            self._memory = self._with_room(new, end)
        self._memory.narrow(-2, self.length, new.shape[-2]).copy_(new)
        self.length = end

    def _with_room(self, new: torch.Tensor, needed: int) -> torch.Tensor:
        room = -(-max(needed, self.length * 3 // 2) // _STEP) * _STEP
        memory = new.new_empty((*new.shape[:-2], room, new.shape[-1]))
        if self._memory is not None:
            memory.narrow(-2, 0, self.length).copy_(self._memory.narrow(-2, 0, self.length))
        return memory

    def last(self, count: int) -> torch.Tensor:
        """The last `count` rows, as a view."""
        assert self._memory is not None
        return self._memory.narrow(-2, self.length - count, count)

    def forget_all_but(self, count: int) -> None:
        """Keep the last `count` rows only, in memory of their own."""
        kept = self.last(count)
        self._memory, self.length = None, 0
        self.append(kept)


class GrowingLayer(DynamicLayer):
    """Full attention: keys and values of every token.

    `keys` and `values` are views of what is held, [batch, heads, tokens, dim].
    """

    def __init__(self, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._keys, self._values = _Rows(), _Rows()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: object, **_kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the keys and values of new tokens; returns those of all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._keys.append(key_states)
        self._values.append(value_states)
        return self._show(self._keys.length)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._keys, self._values = _Rows(), _Rows()

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last `-tokens_to_remove` tokens; nothing is copied."""
        if not self.is_initialized:
            return
        self._keys.length += tokens_to_remove
        self._values.length += tokens_to_remove
        self._show(self._keys.length)

    def _show(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        shown = self.keys, self.values = self._keys.last(count), self._values.last(count)
        return shown


class GrowingWindowLayer(DynamicSlidingWindowLayer):
    """Sliding-window (or chunked) attention that can be cropped although its window has moved on.

    It keeps up to twice `_REACH` tokens behind the window, where transformers keeps none. `keys` and `values`
    are views of what the next token sees.
    """

    def __init__(self, sliding_window: int, **kwargs: object) -> None:
        super().__init__(sliding_window, **kwargs)
        self._keys, self._values = _Rows(), _Rows()

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: object, **_kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the keys and values of new tokens; returns those that at least one of them sees."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        new = key_states.shape[-2]
        seen = self._visible + new
        self._keys.append(key_states)
        self._values.append(value_states)
        self.cumulative_length += new
        shown = self._keys.last(seen), self._values.last(seen)
        self._let_go()
        return shown

    @property
    def _visible(self) -> int:
        """How many of the tokens held the next token sees besides itself."""
        return min(self.cumulative_length, self.sliding_window - 1)

    def _let_go(self) -> None:
        if self._keys.length > self.sliding_window + 2 * _REACH:
            self._keys.forget_all_but(self.sliding_window + _REACH)
            self._values.forget_all_but(self.sliding_window + _REACH)
        self._show()

    def _show(self) -> None:
        self.keys, self.values = self._keys.last(self._visible), self._values.last(self._visible)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._keys, self._values = _Rows(), _Rows()

    def can_crop_to(self, length: int) -> bool:
        """Whether everything that the token after the first `length` sees is still held."""
        first_held = self.cumulative_length - self._keys.length
        return first_held <= max(length - (self.sliding_window - 1), 0)

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last `-tokens_to_remove` tokens; nothing is copied.

        Raises:
            ValueError: the window would need tokens that are no longer held.
        """
        if not self.is_initialized:
            return
        length = self.cumulative_length + tokens_to_remove
        if not self.can_crop_to(length):
            raise ValueError(f"the window cannot go back to {length} tokens; it holds {self._keys.length}")
        self._keys.length += tokens_to_remove
        self._values.length += tokens_to_remove
        self.cumulative_length = length
        self._show()
