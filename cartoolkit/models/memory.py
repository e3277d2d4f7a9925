"""How much memory there is, how much a model's weights take, and the refusal before it is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import NotEnoughMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartoolkit.models.checkpoint import Checkpoint

__all__ = ["free_memory", "require_memory", "weight_memory"]

DTYPE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}


def free_memory() -> int:
    """Bytes that this process can still take: what the machine has available, or less under a cgroup's limit.

    Containers (Binder, Docker, Kubernetes, Slurm) show the whole machine's memory and end a process that
    takes more than its cgroup allows.
    """
    import psutil

    available = psutil.virtual_memory().available
    limited = cgroup_free()
    return available if limited is None else min(available, limited)


def require_memory(needed: int, free: int, *, what: str, place: str = "this machine") -> None:
    """Refuse what does not fit, before anything is loaded.

    Args:
        needed: bytes it will take.
        free: bytes there are, from `free_memory` or from a GPU's library.
        what: the subject of the sentence, such as a model's name.
        place: whose memory it is, such as `this machine` or `cuda:0`.

    Raises:
        NotEnoughMemory: with both numbers in MB and what to do.
    """
    if needed > free:
        raise NotEnoughMemory(
            f"{what} needs {needed / 1e6:,.0f} MB of memory, and {place} has {free / 1e6:,.0f} MB free;"
            " nothing was loaded.",
            hint="Close other engines (engine.close()), or choose a smaller dtype, a quantized version or a"
            " smaller model.",
        )


def weight_memory(checkpoint: Checkpoint, dtype: object = None) -> int:
    """Bytes that the weights take once they are loaded; cache and activations come on top.

    Args:
        checkpoint: as inspected.
        dtype: such as `bfloat16` or `torch.bfloat16`; None means as they are stored. Packed weights and
            GGUF files count as they are stored, whatever the dtype: an engine that unpacks them while it
            loads needs more.

    Raises:
        ValueError: a dtype whose size is not known here.
    """
    packed = checkpoint.quantization is not None and checkpoint.quantization.is_packed
    if dtype is None or packed or checkpoint.format == "gguf" or not checkpoint.parameters:
        return checkpoint.weight_bytes
    name = str(dtype).rsplit(".", 1)[-1]
    if name not in DTYPE_BYTES:
        raise ValueError(f"the size of the dtype {name!r} is not known; known are {', '.join(DTYPE_BYTES)}")
    return checkpoint.parameters * DTYPE_BYTES[name]


# -- cgroups: https://docs.kernel.org/admin-guide/cgroup-v2.html and …/cgroup-v1/memory.html ---------


def cgroup_free(root: Path = Path("/")) -> int | None:
    """Bytes left under the tightest memory limit of this process's cgroups; None without a limit.

    Pages of files that the kernel may drop at once (`inactive_file`) count as free, as in the working set
    that Docker and Kubernetes report: a model file that was just read would otherwise fill the limit.

    Args:
        root: what `/proc` and `/sys` lie in.
    """
    left = [free for folder in _cgroup_folders(root) if (free := _left_in(folder)) is not None]
    return min(left, default=None)


def _cgroup_folders(root: Path) -> Iterator[Path]:
    """Every folder whose limit holds for this process: its own group, and those above it."""
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            base = mount if (mount / "cgroup.controllers").exists() else mount / "unified"
        elif "memory" in controllers.split(","):
            base = mount / "memory"
        else:
            continue
        # Seen from inside a container, the path may be the host's: then only the top is there.
        own = base.joinpath(*(part for part in path.split("/") if part not in {"", "..", "."}))
        yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(base))


def _left_in(folder: Path) -> int | None:
    for limit_file, usage_file, cached in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, usage = _number(folder / limit_file), _number(folder / usage_file)
        if limit is not None and usage is not None:
            return max(limit - max(usage - _stat(folder, cached), 0), 0)
    return None  # no such group, or `max`: no limit


def _stat(folder: Path, key: str) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.isdecimal():
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
