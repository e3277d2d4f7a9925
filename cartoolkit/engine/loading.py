"""From a model's name to an engine, with every choice said aloud."""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Literal

from cartoolkit.engine.choosing import Choice, Wishes, choose_engine, named_engine
from cartoolkit.engine.engine import Engine
from cartoolkit.engine.opening import Opening, prepare_opening
from cartoolkit.notices import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cartoolkit.engine.decoder import Decoder

__all__ = ["load"]


def load(
    model: str | Path | None = None,
    *,
    engine: str = "auto",
    device: str | None = None,
    dtype: str | None = None,
    quantize: str | None = None,
    context_length: int | None = None,
    attention: Literal["eager"] | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    fresh: bool = False,
    quiet: bool = False,
) -> Engine:
    """Load a model and say what was chosen.

    An engine that is still loaded with the same checkpoint and settings is used again, so that a notebook
    may be run twice without a second copy of the weights in memory. Whoever closes it closes it for all
    who hold it.

    Args:
        model: a name from the catalog, a folder with a checkpoint in Hugging Face's layout, a GGUF file, or
            the name of a repository on the hub. None is the default model, which is fetched once from the
            package index.
        engine: ``torch``, ``mlx``, ``gguf`` (llama.cpp), or ``auto`` for the fastest one that is installed
            and serves the model.
        device: torch: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; gguf: ``cpu``, or ``gpu`` where llama.cpp was
            built for one; mlx: MLX's default device alone, ``gpu`` on a Mac. None takes the best there is.
        dtype: ``float32``, ``bfloat16`` or ``float16`` (torch, mlx); None takes what the device does best
            (torch) or what is stored (mlx).
        quantize: pack the weights while loading: ``int8`` (torch, mlx) or ``int4`` (mlx). Smaller and, on a
            processor, faster; the probabilities change a little.
        context_length: tokens to make room for (gguf, whose cache is allocated at once); None for what the
            model was trained for, as far as memory allows.
        attention: ``eager`` (torch) records with every token where the model looked when it chose it, as the
            policy ``dragin`` needs; a long prompt is read more slowly for it. None for the fastest.
        allow_pickle: also load weights that exist only as pickle files (torch), which can run code.
        trust_remote_code: run code that comes with the checkpoint (torch). Naming another engine with
            either of these two is refused; ``auto`` takes the one that can use it, if it is needed.
        fresh: load another copy even so, for instance to let two sessions run side by side.
        quiet: say nothing and show no progress bar.

    Raises:
        ModelError: there is no such model, or its files cannot be used; the message says why.
        NetworkUnavailable: it had to be downloaded and could not be.
        InvalidRequest: no such engine, device, dtype, quantization or attention.
        MissingDependency: the engine is not installed.
        NotEnoughMemory: the weights do not fit.
    """
    wishes = Wishes(device, dtype, quantize, context_length, attention, allow_pickle, trust_remote_code)
    choice = choose_engine(model, named_engine(engine), wishes, progress=not quiet)
    opening = prepare_opening(choice.engine, choice.checkpoint, wishes)
    key = (str(choice.checkpoint.path), choice.checkpoint.fingerprint, choice.engine, *opening.key)
    loaded, how = _engine_of(key, opening.load, fresh=fresh)
    if not quiet:
        say(_sentence(loaded, choice, opening, how))
    return loaded


def _sentence(loaded: Engine, choice: Choice, opening: Opening, how: str) -> str:
    info = loaded.info
    engines_by_reason: dict[str, list[str]] = {}
    for engine, reason in choice.passed_over.items():
        engines_by_reason.setdefault(reason.rstrip("."), []).append(engine)
    others = ", ".join(f"{' and '.join(names)} ({reason})" for reason, names in engines_by_reason.items())
    return (
        f"{info.name}: {info.engine} ({choice.why}) on {info.device} ({opening.why_device}), "
        f"{info.dtype} ({opening.why_dtype}), context {info.context_length:,} tokens, {how}"
        + (f"; not {others}" if others else "")
    )


# A widget, which Jupyter keeps until the kernel ends, holds its engine; a second one must not add to it.
_LOADED: weakref.WeakValueDictionary[tuple[str, ...], Engine] = weakref.WeakValueDictionary()


def _engine_of(
    key: tuple[str, ...], load_decoder: Callable[[], Decoder], *, fresh: bool
) -> tuple[Engine, str]:
    """The engine that is loaded already, or a new one, and which of the two it is in words."""
    begun = time.perf_counter()
    known = _LOADED.get(key)
    if known is not None and known.closed:
        known = None
    if known is not None and not fresh:
        return known, "used again, as it was loaded already"
    engine = Engine(load_decoder)
    if known is None:
        _LOADED[key] = engine
    return engine, f"loaded in {time.perf_counter() - begun:.1f} s"
