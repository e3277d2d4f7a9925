"""What torch and transformers raise, in this toolkit's own errors."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from cartoolkit.engine.frames import release_frames
from cartoolkit.errors import CartoolkitError, InvalidCheckpoint, NotEnoughMemory, OutOfMemory
from cartoolkit.models import free_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from cartoolkit.models import Checkpoint

__all__ = ["forward_errors", "free_on", "is_out_of_memory", "loading_errors"]

_WORDS = ("out of memory", "not enough memory", "can't allocate memory")
# As CUDA and MPS say it (in GiB or MiB) and as the CPU does (in bytes).
_WANTED = re.compile(r"tried to allocate ([\d.]+) ?(bytes|KiB|MiB|GiB|KB|MB|GB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 1e3, "mb": 1e6, "gb": 1e9}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that memory ran out, on whichever device."""
    import torch

    is_named = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return is_named or any(said in str(error).lower() for said in _WORDS)


def free_on(device: torch.device) -> int:
    """Bytes that are free where `device` keeps its tensors."""
    import torch

    if device.type == "cuda":
        # What torch holds in reserve is free for its own tensors.
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserve
    return free_memory()


@contextlib.contextmanager
def forward_errors(device: torch.device, tokens: int) -> Iterator[None]:
    """Raise OutOfMemory, with the numbers, for a forward that ends with `tokens` tokens in the cache."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"{device} ran out of memory in a forward at {tokens:,} tokens: {_wanted(error)}"
            f"{free_on(device) / 1e6:,.0f} MB are free.",
            hint="Close other engines (engine.close()), shorten the prompt, or choose a smaller model.",
        ) from error


def _wanted(error: BaseException) -> str:
    if found := _WANTED.search(str(error)):
        return f"{float(found[1]) * _UNITS[found[2].lower()] / 1e6:,.0f} MB more were needed, "
    return ""


@contextlib.contextmanager
def loading_errors(checkpoint: Checkpoint, device: torch.device, needed: int) -> Iterator[None]:
    """Raise NotEnoughMemory or InvalidCheckpoint for whatever goes wrong while a checkpoint is loaded.

    The error's traceback holds nothing of the model, so long as the frame with this context does not.

    Args:
        checkpoint: what is loaded.
        device: where to.
        needed: bytes of its weights there.
    """
    try:
        yield
    except BaseException as error:
        # A config with odd values runs into whatever line of transformers looks at them first.
        told = _told(error, checkpoint, device, needed)
        release_frames(error)
        if told is error:
            raise
        raise told from error


def _told(error: BaseException, checkpoint: Checkpoint, device: torch.device, needed: int) -> BaseException:
    if isinstance(error, CartoolkitError) or not isinstance(error, Exception):
        return error
    return _no_room(checkpoint, device, needed) if is_out_of_memory(error) else _unreadable(checkpoint, error)


def _unreadable(checkpoint: Checkpoint, error: Exception) -> InvalidCheckpoint:
    hint = (
        "Load it with dtype='float32', or on another device."
        if "not implemented for" in str(error)
        else "Check that the folder is complete and that this version of transformers knows "
        f"the architecture {checkpoint.model_type!r}."
    )
    return InvalidCheckpoint(
        f"{checkpoint.name} could not be loaded by transformers: {_first_line(error)}", hint=hint
    )


def _no_room(checkpoint: Checkpoint, device: torch.device, needed: int) -> NotEnoughMemory:
    return NotEnoughMemory(
        f"{checkpoint.name} does not fit into the memory of {device}: its weights need "
        f"{needed / 1e6:,.0f} MB, and {free_on(device) / 1e6:,.0f} MB are free.",
        hint="Close other engines (engine.close()), or choose another dtype, device or model.",
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
