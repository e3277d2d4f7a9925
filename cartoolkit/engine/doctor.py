"""What this machine has, which engines work on it and why not, and what `load` would take."""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cartoolkit
from cartoolkit.engine.choosing import ORDER, machine_kind
from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.engine.probing import Probe, probe_engines
from cartoolkit.models import CATALOG, cache_dir
from cartoolkit.models.fetch import is_ready
from cartoolkit.models.memory import free_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Examination", "examine"]

_WIDTH = 11


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings; `str()` is the report.

    Attributes:
        probes: one for each engine.
        kind: what computes here: `CUDA`, `Apple GPU` or `CPU`.
    """

    probes: tuple[Probe, ...]
    kind: str

    @property
    def healthy(self) -> bool:
        """Whether anything can be loaded at all."""
        return any(probe.works for probe in self.probes)

    def __str__(self) -> str:
        rooms = (_machine(self.kind), _engines(self.probes), _models(), _choice(self.probes, self.kind))
        return "\n\n".join("\n".join(lines) for lines in rooms)


def examine() -> Examination:
    """Ask the machine and the libraries; nothing is downloaded and no model is loaded."""
    probes = tuple(probe_engines())
    # Asked of the child that imported torch: here, a library that crashes would take the report with it.
    return Examination(probes, machine_kind(lambda: _torch_has_cuda(probes)))


def _torch_has_cuda(probes: tuple[Probe, ...]) -> bool:
    return any(p.status.engine == "torch" and any(d.startswith("cuda") for d in p.devices) for p in probes)


def _row(name: str, text: str) -> Iterator[str]:
    yield f"{name:<{_WIDTH}}{text}"


def _machine(kind: str) -> Iterator[str]:
    import psutil

    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield from _row("cartoolkit", f"{cartoolkit.__version__}, {python}")
    total, free = psutil.virtual_memory().total, free_memory()
    yield from _row("processor", f"{usable_cores()} cores to use; the fastest device here: {kind}")
    yield from _row("memory", f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB")
    folder = cache_dir()
    yield from _row("models in", f"{folder} ({shutil.disk_usage(_existing(folder)).free / 1e9:.0f} GB free)")


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _engines(probes: tuple[Probe, ...]) -> Iterator[str]:
    for probe in probes:
        libraries = probe.status.libraries.items()
        versions = ", ".join(f"{name} {version}" for name, version in libraries if version)
        if probe.works:
            yield from _row(probe.status.engine, f"works on {', '.join(probe.devices)}; {versions}")
        else:
            yield from _row(probe.status.engine, f"does not work: {probe.why_not}")
            if probe.hint:
                yield from _row("", probe.hint)


def _models() -> Iterator[str]:
    for entry in CATALOG.values():
        here = [name for name in ("gguf", "safetensors") if is_ready(entry, name)]
        missing = f"not here yet, {entry.source.download_bytes / 1e6:.0f} MB to fetch"
        yield from _row("model", f"{entry.name}: {' and '.join(here) + ' here' if here else missing}")


def _choice(probes: tuple[Probe, ...], kind: str) -> Iterator[str]:
    """What `load()` would take, in the order that it goes by."""
    working = {probe.status.engine for probe in probes if probe.works}
    taken = next((engine for engine in ORDER[kind] if engine in working), None)
    if taken is None:
        yield from _row("load()", "would fail: no engine works here")
        return
    left = [f"{e} ({'slower here' if e in working else 'does not work'})" for e in ORDER[kind] if e != taken]
    yield from _row("load()", f"takes {taken}, the fastest on {kind}; not {', '.join(left)}")
