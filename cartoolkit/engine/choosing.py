"""Which engine to use: the fastest one here that serves the model and the wishes, and why not the others."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from cartoolkit.engine.opening import refuse_meaningless, refuse_missing_device, require_known_attention
from cartoolkit.errors import CartoolkitError, InvalidCheckpoint, InvalidRequest, MissingDependency
from cartoolkit.models import available_formats, engine_status, resolve
from cartoolkit.models.engines import ENGINES, EngineName

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cartoolkit.models import Checkpoint
    from cartoolkit.models.weights import Format

__all__ = ["ORDER", "Choice", "Wishes", "choose_engine", "machine_kind", "named_engine"]

READS: dict[EngineName, tuple[Format, ...]] = {
    "torch": ("safetensors",),
    "mlx": ("safetensors",),
    "gguf": ("gguf",),
}
# Fastest first: on a processor by benchmarks/engines.py, elsewhere by what the libraries are made for.
ORDER: dict[str, tuple[EngineName, ...]] = {
    "CUDA": ("torch", "gguf", "mlx"),
    "Apple GPU": ("mlx", "gguf", "torch"),
    "CPU": ("gguf", "torch", "mlx"),
}
_ALIASES = {
    "llama.cpp": "gguf",
    "llama_cpp": "gguf",
    "llama-cpp": "gguf",
    "mlx-lm": "mlx",
    "pytorch": "torch",
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller of `load` asked for; None leaves it to the engine."""

    device: str | None = None
    dtype: str | None = None
    quantize: str | None = None
    context_length: int | None = None
    attention: Literal["eager"] | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine and the checkpoint it will load.

    Attributes:
        why: a few words for the line that `load` prints.
        passed_over: for each other engine, a few words on why it was not taken.
    """

    engine: EngineName
    checkpoint: Checkpoint
    why: str
    passed_over: dict[EngineName, str] = field(default_factory=dict)


def named_engine(name: object) -> EngineName | None:
    """The engine that is meant; None for ``auto``.

    Raises:
        InvalidRequest: there is none of this name.
    """
    if name is None or name == "auto":
        return None
    meant = _ALIASES.get(name.lower(), name.lower()) if isinstance(name, str) else name
    for known in get_args(EngineName):
        if meant == known:
            return known
    raise InvalidRequest(f"engine must be 'auto', {', '.join(map(repr, ENGINES))}; got {name!r}.")


def choose_engine(
    model: str | Path | None, engine: EngineName | None, wishes: Wishes, *, progress: bool
) -> Choice:
    """Find the checkpoint, and the engine for it.

    Raises:
        ModelError, NetworkUnavailable: as for `resolve`.
        MissingDependency: no engine that could serve it is installed; nothing was fetched.
        InvalidCheckpoint: no engine that is installed can serve it.
        InvalidRequest: what is wished for means nothing to the engine that is named, or no engine has it.
    """
    require_known_attention(wishes.attention)
    if engine is not None:
        _require(engine, wishes)
        return Choice(engine, _resolved(model, engine, wishes, progress=progress), "asked for")
    return _best(model, wishes, progress=progress)


def _require(engine: EngineName, wishes: Wishes) -> None:
    """Refuse what a named engine cannot do, before anything is fetched for it."""
    status = engine_status(engine, try_import=False)
    if not status.usable:
        raise MissingDependency(status.why_not, hint=status.hint)
    refuse_meaningless(engine, wishes)
    if wishes.device is not None:
        status = engine_status(engine)
        if not status.usable:
            raise MissingDependency(status.why_not, hint=status.hint)
        refuse_missing_device(engine, wishes.device)


def _resolved(model: str | Path | None, engine: EngineName, wishes: Wishes, *, progress: bool) -> Checkpoint:
    return resolve(
        model,
        formats=READS[engine],
        progress=progress,
        allow_pickle=wishes.allow_pickle and engine == "torch",
        trust_remote_code=wishes.trust_remote_code,
        engine=engine,
    )


def _best(model: str | Path | None, wishes: Wishes, *, progress: bool) -> Choice:
    kind = machine_kind()
    formats = available_formats(model)
    if not _readable(wishes) & set(formats):
        # Neither engine is at fault; what is wrong with the files is said best where they are read.
        checkpoint = resolve(model, formats=("safetensors", "gguf"), progress=progress)
        formats = (checkpoint.format,)
    passed_over: dict[EngineName, str] = {}
    hints: list[str] = []
    refused = False
    for engine in ORDER[kind]:
        why_not, hint = _outside_reason(engine, wishes, formats, try_import=True)
        checkpoint = None
        if not why_not:
            checkpoint, why_not, hint = _tried(model, engine, wishes, progress=progress)
            refused = refused or checkpoint is None
        if checkpoint is not None:
            for other in ORDER[kind][ORDER[kind].index(engine) + 1 :]:
                reason, _ = _outside_reason(other, wishes, formats, try_import=False)
                passed_over[other] = reason or "slower here"
            return Choice(engine, checkpoint, _why(kind, wishes), passed_over)
        passed_over[engine] = why_not
        hints.extend([hint] if hint else [])
    raise _nothing_serves(model, passed_over, hints, refused=refused)


def _readable(wishes: Wishes) -> set[Format]:
    """The formats that some engine reads."""
    pickles: set[Format] = {"pickle"} if wishes.allow_pickle else set()
    return pickles.union(*READS.values())


def _tried(
    model: str | Path | None, engine: EngineName, wishes: Wishes, *, progress: bool
) -> tuple[Checkpoint | None, str, str | None]:
    """The checkpoint, if the engine can serve it, else why not and what to do."""
    try:
        checkpoint = _resolved(model, engine, wishes, progress=progress)
    except InvalidCheckpoint as error:
        # On the hub the config is enough to tell, and no weights were downloaded.
        return None, str(error), error.hint
    return checkpoint, "", None


def _why(kind: str, wishes: Wishes) -> str:
    asked = [
        name
        for name in ("device", "dtype", "quantize", "context_length", "attention")
        if getattr(wishes, name) is not None
    ]
    return f"fits {', '.join(asked)}" if asked else f"fastest {_ON[kind]}"


_ON = {"CUDA": "with CUDA", "Apple GPU": "on an Apple GPU", "CPU": "on a CPU"}


def _outside_reason(
    engine: EngineName, wishes: Wishes, formats: tuple[Format, ...], *, try_import: bool
) -> tuple[str, str | None]:
    """Why not, as far as that shows without the files, and what to do; empty if nothing is against it."""
    if reason := _against_wishes(engine, wishes):
        return reason, None
    readable = {*READS[engine], *(("pickle",) if wishes.allow_pickle and engine == "torch" else ())}
    if not readable & set(formats):
        return f"reads no {' or '.join(formats)} files", None
    status = engine_status(engine, try_import=False)
    if not status.usable:
        return _NOT_INSTALLED, status.hint
    if not try_import:
        return "", None
    status = engine_status(engine)
    if not status.usable:
        return status.why_not, status.hint
    return _without_device(engine, wishes, ask_library=True)


def _without_device(engine: EngineName, wishes: Wishes, *, ask_library: bool) -> tuple[str, str | None]:
    try:
        refuse_missing_device(engine, wishes.device, ask_library=ask_library)
    except InvalidRequest as error:
        return f"has no device {wishes.device}", error.hint
    return "", None


def _against_wishes(engine: EngineName, wishes: Wishes) -> str:
    """What the caller asked for and this engine does not have."""
    if engine == "gguf" and wishes.dtype is not None:
        return "keeps the file's own precision"
    if engine == "gguf" and wishes.quantize is not None:
        return "takes weights as the file has them"
    if engine != "gguf" and wishes.context_length is not None:
        return "needs no context_length"
    if engine != "torch" and wishes.attention is not None:
        return "does not say where the model looks"
    if wishes.quantize not in (None, *_PACKS[engine]):
        return f"does not quantize to {wishes.quantize}"
    return _without_device(engine, wishes, ask_library=False)[0]


_NOT_INSTALLED = "not installed"
_PACKS: dict[EngineName, tuple[str, ...]] = {"torch": ("int8",), "mlx": ("int8", "int4"), "gguf": ()}


def _nothing_serves(
    model: str | Path | None, reasons: dict[EngineName, str], hints: list[str], *, refused: bool
) -> CartoolkitError:
    """The error; `refused`: an engine that reads such files looked at these and cannot use them."""
    said = "; ".join(f"{engine}: {reason.rstrip('.')}" for engine, reason in reasons.items())
    message = f"no engine here can load {'the default model' if model is None else model!s}. {said}."
    hint = hints[0] if hints else None
    if refused:
        return InvalidCheckpoint(message, hint=hint)
    if missing := [engine for engine, reason in reasons.items() if reason == _NOT_INSTALLED]:
        commands = " or ".join(f"pip install 'cartoolkit[{engine}]'" for engine in missing)
        return MissingDependency(message, hint=f"Install an engine: {commands}")
    return InvalidRequest(message, hint=hint)


def machine_kind(torch_sees_gpu: Callable[[], bool] | None = None) -> str:
    """What computes here: ``CUDA``, ``Apple GPU`` or ``CPU``; torch is asked only where there is a card.

    A card of AMD's counts as ``CUDA``, the name under which torch built for ROCm has it.

    Args:
        torch_sees_gpu: whether torch can use the card; None imports torch and asks.
    """
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "Apple GPU"
    has_card = any(map(os.path.exists, _CARDS)) or any(map(shutil.which, ("nvidia-smi", "rocm-smi")))
    return "CUDA" if has_card and (torch_sees_gpu or _torch_sees_cuda)() else "CPU"


# What the drivers of NVIDIA, of AMD (ROCm) and of Windows' Linux lay out.
_CARDS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def _torch_sees_cuda() -> bool:
    if not engine_status("torch").usable:
        return False
    import torch

    return torch.cuda.is_available()
