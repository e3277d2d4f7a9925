"""A decoder's forwards as the loop calls them; what goes wrong inside is said in the toolkit's own errors."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, cast

import numpy as np

from cartoolkit.errors import CartoolkitError, ForwardFailed, OutOfMemory
from cartoolkit.notices import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cartoolkit.engine.decoder import AttentiveDecoder, Decoder

__all__ = ["attention", "forward", "forward_all", "prefill", "translated"]


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Whatever a decoder raises leaves its state unknown, and is said so."""
    try:
        yield
    except CartoolkitError:
        raise
    except MemoryError as error:
        raise OutOfMemory(
            f"the machine ran out of memory in the model's forward: {error or 'no figures were given'}.",
            hint="Close other engines (engine.close()), shorten the prompt, or take a smaller model.",
        ) from error
    except BaseException as error:
        # Also what is no Exception: a panic in a library written in Rust must not end the worker.
        raise ForwardFailed(
            f"the model's forward raised {type(error).__name__}: {in_words(error)}",
            hint="The model is reloaded on the next call.",
        ) from error


def prefill(decoder: Decoder, ids: Sequence[int], pos: int) -> None:
    """See `Decoder.prefill`; raises ForwardFailed for whatever the decoder raises."""
    with translated():
        decoder.prefill(ids, pos)


def forward(decoder: Decoder, ids: Sequence[int], pos: int) -> np.ndarray:
    """See `Decoder.forward`; raises ForwardFailed also for a row without a finite largest value."""
    with translated():
        logits = decoder.forward(ids, pos)
    return _usable(logits, pos)


def forward_all(decoder: Decoder, ids: Sequence[int], pos: int) -> np.ndarray:
    """See `Decoder.forward_all`; errors as for `forward`."""
    with translated():
        logits = decoder.forward_all(ids, pos)
    return _usable(logits, pos)


def attention(decoder: Decoder) -> np.ndarray:
    """See `AttentiveDecoder.attention`; for a decoder whose `info.attention` is not empty."""
    with translated():
        return cast("AttentiveDecoder", decoder).attention()


def _usable(logits: np.ndarray, pos: int) -> np.ndarray:
    """Logits [vocab] or [n, vocab] as they are, if each row has a finite largest value."""
    if not np.isfinite(logits.max(axis=-1)).all():
        raise ForwardFailed(
            f"the model produced no usable logits in the forward at position {pos} (NaN or infinite).",
            hint="Half precision can overflow in some models: try dtype='float32' (torch, mlx), or a "
            "GGUF file of another quantization.",
        )
    return logits
