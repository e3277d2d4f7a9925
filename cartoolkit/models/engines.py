"""Which engines this Python has: found, named with their versions, and imported for the proof."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ENGINES", "EngineName", "EngineStatus", "engine_status"]

EngineName = Literal["torch", "mlx", "gguf"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)

# What to import, and the distribution that brings it; the first one names the engine's version.
_PARTS: dict[str, dict[str, str]] = {
    "torch": {"torch": "torch", "transformers": "transformers"},
    "mlx": {"mlx.core": "mlx", "mlx_lm": "mlx-lm"},
    "gguf": {"llama_cpp": "llama-cpp-python"},
}


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine on this machine.

    Attributes:
        engine: `torch`, `mlx` or `gguf`.
        usable: whether its libraries are here and, if that was tried, can be imported.
        version: that of its main library; None if it is not installed.
        why_not: one sentence; empty if it is usable.
        hint: what to do about it, or None.
        libraries: distribution name to version, or None for one that is not installed.
    """

    engine: EngineName
    usable: bool
    version: str | None
    why_not: str = ""
    hint: str | None = None
    libraries: dict[str, str | None] = field(default_factory=dict, hash=False)


def engine_status(engine: EngineName, *, try_import: bool = True) -> EngineStatus:
    """Whether an engine's libraries are here and work.

    A library that is not installed is told in a millisecond. One that is there is imported, since a missing
    shared library or an interrupted import shows in no other way; that costs its import, once a process.

    Args:
        engine: `torch`, `mlx` or `gguf`.
        try_import: False believes a library that is found; nothing is imported.

    Raises:
        ValueError: there is no such engine.
    """
    if engine not in ENGINES:
        raise ValueError(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
    libraries = {distribution: _version(distribution) for distribution in _PARTS[engine].values()}
    missing = [dist for module, dist in _PARTS[engine].items() if not _is_there(module)]
    why_not, hint = "", None
    if missing:
        why_not = f"the {engine} engine needs {' and '.join(missing)}, not installed in this Python."
        hint = f"Install with: pip install 'cartoolkit[{engine}]'"
    elif try_import and (failure := _import_failure(engine)):
        why_not = f"the {engine} engine's libraries are installed and cannot be imported: {failure}"
        hint = f"Restart Python, or install anew: pip install --force-reinstall 'cartoolkit[{engine}]'"
    return EngineStatus(engine, not why_not, next(iter(libraries.values())), why_not, hint, libraries)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except ValueError:
        return False  # what an interrupted import leaves behind has no spec


@cache
def _import_failure(engine: str) -> str:
    """What importing the engine's libraries raises, as one line; empty if all is well."""
    for module in _PARTS[engine]:
        try:
            with _limits_kept():
                importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - a library may fail in any way, and each is an answer
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return f"{module}: {lines[0]}"
    return ""


@contextmanager
def _limits_kept() -> Iterator[None]:
    """mlx-lm lowers the limit of open files on import, also the hard one, which only root can raise again.

    A notebook's kernel is not mlx-lm's process, so its wish is not heard.
    """
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    usual, resource.setrlimit = resource.setrlimit, lambda *_: None
    try:
        yield
    finally:
        resource.setrlimit = usual
