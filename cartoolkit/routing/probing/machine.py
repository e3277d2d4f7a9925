"""This machine: what tells it from others where speeds are concerned, and what it has at the moment."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.models.memory import free_memory
from cartoolkit.routing.choice.situation import Machine
from cartoolkit.routing.rows.figures import Count, Row, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["MachineIdentity", "machine_identity", "machine_now"]

_GIB = 2**30
_SECONDS_TO_ASK = 10
_CPU_INFO = Path("/proc/cpuinfo")


class MachineIdentity(Row):
    """What a speed depends on, and no name of the machine or of its user.

    Attributes:
        processor: as it calls itself, such as `AMD EPYC 7B13`.
        architecture: such as `x86_64`.
        cores: physical cores that this process may use, see `usable_cores`; with fewer it is another machine.
        memory_gib: whole GiB of main memory.
        system: such as `Linux`; its version is left out, since an update does not make another machine.
        gpus: names of the graphics cards that a driver tells of; an Apple GPU is part of the processor.
    """

    processor: Text
    architecture: Text
    cores: Count
    memory_gib: Count
    system: Text
    gpus: tuple[Text, ...] = ()

    @property
    def key(self) -> str:
        """Twelve hex digits that differ where an attribute differs."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def __str__(self) -> str:
        parts = (
            f"{self.processor}, {self.cores} core{'s' * (self.cores > 1)}",
            f"{self.memory_gib} GiB",
            *self.gpus,
            f"{self.system} {self.architecture}",
        )
        return ", ".join(parts)


def machine_identity() -> MachineIdentity:
    """Which machine this is; takes milliseconds, and imports no engine."""
    return MachineIdentity(
        processor=_processor(),
        architecture=platform.machine() or "unknown",
        cores=usable_cores(),
        memory_gib=max(1, round(psutil.virtual_memory().total / _GIB)),
        system=platform.system() or sys.platform,
        gpus=_nvidia_cards(),
    )


def machine_now(loaded: Iterable[str] = (), resting: Mapping[str, str] | None = None) -> Machine:
    """What this machine has at the moment.

    Args:
        loaded: ids of the models that are in memory.
        resting: ids of the models that are left out for now, each with a clause that says why.
    """
    return Machine(free_memory_mb=free_memory() / 1e6, loaded=frozenset(loaded), resting=dict(resting or {}))


@cache
def _processor() -> str:
    asked = {"Linux": _linux_processor, "Darwin": _mac_processor}.get(platform.system(), platform.processor)
    return asked().strip() or platform.processor().strip() or platform.machine() or "unknown"


def _linux_processor() -> str:
    """The model's name; on ARM, where there is none, the numbers of maker and part."""
    try:
        lines = _CPU_INFO.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    # Of several cores the first one is kept.
    facts = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in reversed(lines))
    }
    if name := facts.get("model name") or facts.get("Model") or facts.get("cpu model"):
        return name
    return f"CPU {facts.get('CPU implementer', '')} {facts.get('CPU part', '')}".strip() if facts else ""


def _mac_processor() -> str:
    return _output("sysctl", "-n", "machdep.cpu.brand_string")


@cache
def _nvidia_cards() -> tuple[str, ...]:
    said = _output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    return tuple(name for line in said.splitlines() if (name := line.strip()))


def _output(program: str, *arguments: str) -> str:
    """What a program of the system prints; nothing if it is not there, fails or does not answer."""
    if (path := shutil.which(program)) is None:
        return ""
    try:
        run = subprocess.run(  # noqa: S603 - the program is named above
            [path, *arguments], capture_output=True, text=True, timeout=_SECONDS_TO_ASK, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout
