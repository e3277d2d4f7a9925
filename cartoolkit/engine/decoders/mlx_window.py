"""Sliding windows of attention: those that mlx-lm keeps, those it can be made to keep, and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.engine.decoders.mlx_config import window_of_layers
from cartoolkit.errors import InvalidCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from mlx import nn

__all__ = ["layer_caches"]


def layer_caches(model: nn.Module, config: dict[str, Any]) -> tuple[Callable[[], list[Any]], int | None]:
    """What makes empty caches for a model, and up to how many tokens its answers are right with them.

    Many classes of mlx-lm take no notice of a window and let every layer see everything. Where all layers
    have the same window, mlx-lm's own rotating cache imposes it; where only some have one, the model is
    right as long as the text is not longer than the window, and that is its context then.

    Returns:
        A function that makes one cache a layer, and the limit in tokens, None if there is none.

    Raises:
        InvalidCheckpoint: mlx-lm puts the windows on other layers than the config does.
    """
    from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

    caches = make_prompt_cache(model)
    windows = window_of_layers(config)
    kept = [cache.max_size if isinstance(cache, RotatingKVCache) else None for cache in caches]
    if not any(windows) or kept == windows or len(kept) != len(windows):
        return lambda: make_prompt_cache(model), None
    if any(kept):
        raise InvalidCheckpoint(
            f"mlx-lm would give the layers of this {config.get('model_type')!r} the attention windows "
            f"{kept}, and its config asks for {windows}.",
            hint="Load it with engine='torch'.",
        )
    window = windows[0]
    if set(windows) == {window} and window and all(type(cache) is KVCache for cache in caches):
        return lambda: [RotatingKVCache(max_size=window) for _ in caches], None
    return lambda: make_prompt_cache(model), min(filter(None, windows))
