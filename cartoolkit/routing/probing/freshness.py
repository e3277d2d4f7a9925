"""Whether a measurement still speaks for a model: the same machine, weights and engine library."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.engine.choosing import READS
from cartoolkit.errors import CartoolkitError
from cartoolkit.models import CATALOG, engine_status, resolve
from cartoolkit.models.fetch import fetch, is_ready

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cartoolkit.models import Checkpoint, EngineName
    from cartoolkit.routing.probing.machine import MachineIdentity
    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["ENGINE_LIBRARIES", "installed_versions", "weights_hash_of", "why_stale"]

ENGINE_LIBRARIES: dict[EngineName, str] = {"torch": "torch", "mlx": "mlx", "gguf": "llama.cpp"}
"""What an engine is called in a trace, and so in a measurement."""


def why_stale(
    probe: Probe,
    model: ModelSchema,
    machine: MachineIdentity,
    weights_hash: str | None,
    installed: Mapping[str, str] | None = None,
) -> str:
    """Why a measurement does not speak for a model here and now, as a clause; empty if it does.

    Args:
        probe: the measurement.
        model: the row it is of.
        machine: this one.
        weights_hash: of the weights that would answer, see `weights_hash_of`; None if they are not here.
        installed: versions of the engine's libraries; None looks them up. Those that differ in their first or
            second number count as another library.
    """
    library = ENGINE_LIBRARIES.get(model.source.engine) if model.source.engine else probe.engine
    if probe.machine != machine:
        return f"it was measured on another machine ({probe.machine})"
    if probe.engine != library:
        return f"it was measured with {probe.engine}, and the row says {library}"
    if weights_hash is None:
        return "its weights are not here to be compared"
    if probe.weights_hash != weights_hash:
        return "it was measured with other weights"
    now = installed_versions(probe.engine) if installed is None else installed
    for name, version in now.items():
        measured = probe.versions.get(name, "unknown")
        if _minor(measured) != _minor(version):
            return f"it was measured with {name} {measured}, and {version} is installed"
    return ""


def installed_versions(library: str) -> dict[str, str]:
    """The libraries that an engine computes with and their versions; none for what runs elsewhere."""
    engines: list[EngineName] = [engine for engine, called in ENGINE_LIBRARIES.items() if called == library]
    found = [engine_status(engine, try_import=False).libraries for engine in engines]
    return {name: version or "none" for libraries in found for name, version in libraries.items()}


def _minor(version: str) -> list[str]:
    """The first two numbers, such as 2.11 of `2.11.0+cpu`."""
    return version.split(".")[:2]


def weights_hash_of(model: ModelSchema) -> str | None:
    """What tells the weights that would answer from others; None if they are not here or cannot be read.

    It equals `ModelInfo.weights_hash` of an engine that has loaded them. What answers elsewhere is told by
    its address. Nothing is downloaded; files are read again only if one of them has changed.
    """
    source = model.source
    if source.kind in {"local_server", "remote_api"}:
        said = "\0".join(f"{name}={value}" for name, value in sorted(source.model_dump().items()))
        return f"address:{hashlib.sha256(said.encode()).hexdigest()}"
    try:
        if source.kind == "hub":
            return _hub_fingerprint(source.location, source.engine)
        place = _place(source.location, source.kind, source.engine)
        return place and _fingerprint(place, source.engine, _state(place))
    except (CartoolkitError, OSError):
        return None


def _place(location: str, kind: str, engine: EngineName | None) -> Path | None:
    """Where the weights lie; None if they do not."""
    if not location:
        return None  # an engine that was handed over: nobody knows where its weights came from
    if kind != "catalog":
        place = Path(location).expanduser().absolute()
        return place if place.exists() else None
    entry, wanted = CATALOG.get(location.strip().lower()), "gguf" if engine == "gguf" else "safetensors"
    if entry is None or not is_ready(entry, wanted):
        return None
    return fetch(entry.name, format=wanted, progress=False)


def _state(place: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of change of every file beside the weights."""
    folder = place if place.is_dir() else place.parent
    found = ((path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file())
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)


@lru_cache(maxsize=64)
def _fingerprint(place: Path, engine: EngineName | None, _: tuple[tuple[str, int, int], ...]) -> str:
    formats = READS[engine] if engine else ("safetensors", "gguf")
    return resolve(place, formats=formats, progress=False).fingerprint


def _hub_fingerprint(name: str, engine: EngineName | None) -> str | None:
    from cartoolkit.models.hub import local_copy

    found: Checkpoint | None = local_copy(name, READS[engine] if engine else ("safetensors", "gguf"))
    return found and found.fingerprint
