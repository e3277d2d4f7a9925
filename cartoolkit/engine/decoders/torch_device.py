"""Which device and precision torch should use, and the reason, so that it can be said aloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    import torch

__all__ = ["choose_device", "choose_dtype"]

DTYPES = ("float32", "bfloat16", "float16")


def choose_device(wanted: str | None = None) -> tuple[torch.device, str]:
    """The device asked for, or the best there is: CUDA, then Apple's MPS, then CPU.

    Returns:
        The device, and why it was chosen.

    Raises:
        InvalidRequest: the device does not exist on this machine.
    """
    import torch

    if wanted is not None:
        return _named_device(wanted), "asked for"
    if torch.cuda.is_available():
        return torch.device("cuda"), f"{torch.cuda.get_device_name()} found"
    if torch.backends.mps.is_available():
        return torch.device("mps"), "Apple GPU found"
    return torch.device("cpu"), "no CUDA or Apple GPU here"


def _named_device(wanted: str) -> torch.device:
    import torch

    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError) as error:
        raise InvalidRequest(
            f"device {wanted!r} is not one that torch knows; try 'cpu' or 'cuda'."
        ) from error
    usable = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device.type == "cuda" and usable["cuda"] and (device.index or 0) >= torch.cuda.device_count():
        raise InvalidRequest(
            f"device {wanted!r} is not there; CUDA sees {torch.cuda.device_count()} of them."
        )
    if not usable.get(device.type, False):
        there = ", ".join(name for name, ok in usable.items() if ok)
        raise InvalidRequest(f"device {wanted!r} is not available here; this machine has: {there}.")
    return device


def choose_dtype(device: torch.device, wanted: str | None = None) -> tuple[torch.dtype, str]:
    """The precision asked for, or the fastest that the device computes natively.

    Returns:
        The dtype, and why it was chosen.

    Raises:
        InvalidRequest: not one of float32, bfloat16, float16.
    """
    import torch

    if wanted is not None:
        if wanted not in DTYPES:
            raise InvalidRequest(f"dtype must be one of {', '.join(DTYPES)}; got {wanted!r}.")
        return getattr(torch, wanted), "asked for"
    if device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16, "this GPU has no bfloat16"
    if device.type == "cpu" and not _cpu_has_bfloat16():
        return torch.float32, "this CPU does not compute bfloat16 natively"
    return torch.bfloat16, f"fast on this {device.type}"


def _cpu_has_bfloat16() -> bool:
    import torch

    # Without these instructions torch falls back to kernels slower than float32.
    probes = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, probe, bool)() for probe in probes)
