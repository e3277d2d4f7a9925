"""Whether each engine really computes here: asked in a process of its own, which may crash without harm.

A library built for another processor, or a broken driver, ends the process that uses it. So the question
is put to a child: `python -m cartoolkit.engine.probing torch` prints what it computes on, as JSON.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.tiny_gguf import TOKENS, tiny_gguf
from cartoolkit.models.engines import ENGINES, EngineStatus, engine_status

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.models.engines import EngineName

__all__ = ["Probe", "probe_engines"]

# Importing torch from a slow disk for the first time can take a minute.
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of one engine's small computation.

    Attributes:
        status: its libraries and their versions.
        devices: what `load` accepts as its device, best first; empty if it cannot compute.
        why_not: one sentence; empty if it works.
        hint: what to do, or None.
    """

    status: EngineStatus
    devices: tuple[str, ...]
    why_not: str = ""
    hint: str | None = None

    @property
    def works(self) -> bool:
        """Whether it computed something small, and rightly: a sum, llama.cpp a model of one layer."""
        return not self.why_not


def probe_engines() -> list[Probe]:
    """Ask all engines at once; takes as long as the slowest import."""
    started = [(status, _start(status)) for status in (engine_status(e, try_import=False) for e in ENGINES)]
    return [_collect(status, child) for status, child in started]


def _start(status: EngineStatus) -> subprocess.Popen[str] | None:
    if not status.usable:
        return None
    command = [sys.executable, "-m", __spec__.name, status.engine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603


def _collect(status: EngineStatus, child: subprocess.Popen[str] | None) -> Probe:
    if child is None:
        return Probe(status, (), status.why_not, status.hint)
    try:
        said, complaints = child.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return Probe(status, (), f"it did not answer within {_PATIENCE:g} s", None)
    if child.returncode == 0:
        return Probe(status, tuple(json.loads(said.splitlines()[-1])))
    hint = f"Install it anew: pip install --force-reinstall 'cartoolkit[{status.engine}]'"
    return Probe(status, (), _reason(child.returncode, complaints), hint)


def _reason(code: int, complaints: str) -> str:
    if code < 0:
        return f"the library crashed ({signal.Signals(-code).name}); it may be built for another processor"
    lines = [line for line in complaints.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"it ended with exit code {code}"


def _torch() -> list[str]:
    import torch
    import transformers  # noqa: F401 - it has to be importable too

    devices = [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    for device in (*(name.split()[0] for name in devices), "cpu"):
        _expect(float(torch.ones(3, device=device).sum()), 3.0)
    return [*devices, "cpu"]


def _mlx() -> list[str]:
    import mlx.core as mx
    import mlx_lm  # noqa: F401 - it has to be importable too

    _expect(mx.ones(3).sum().item(), 3.0)
    return [mx.default_device().type.name]


def _gguf() -> list[str]:
    from cartoolkit.engine.decoders.llama_cpp_library import require_llama_cpp

    library = require_llama_cpp()
    devices = ["gpu", "cpu"] if library.llama_supports_gpu_offload() else ["cpu"]
    with TemporaryDirectory() as folder:
        path = Path(folder, "tiny.gguf")
        path.write_bytes(tiny_gguf())
        for device in devices:
            _expect_itself_next(_llama_cpp_logits(library, path, 5, on_gpu=device == "gpu"), 5)
    return devices


def _llama_cpp_logits(library: Any, path: Path, token_id: int, *, on_gpu: bool) -> list[float]:  # noqa: ANN401
    """The logits after one token; without the decoder, which asks for a vocabulary."""
    from cartoolkit.engine.decoders.llama_cpp_model import LlamaCppModel

    opened = LlamaCppModel(library)
    try:
        opened.open(path, on_gpu=on_gpu)
        opened.make_context(TOKENS, threads=1, on_gpu=on_gpu)
        ids = (library.llama_token * 1)(token_id)
        if code := library.llama_decode(opened.context, library.llama_batch_get_one(ids, 1)):
            raise ArithmeticError(f"llama.cpp could not compute a model of one layer (code {code})")
        return library.llama_get_logits_ith(opened.context, -1)[:TOKENS]
    finally:
        opened.free()


def _expect_itself_next(row: list[float], token_id: int) -> None:
    right = [math.sqrt(TOKENS) if other == token_id else 0.0 for other in range(TOKENS)]
    if not all(map(partial(math.isclose, abs_tol=0.02), row, right)):
        raise ArithmeticError(f"the logits of a model of one layer came out as {row}")


def _expect(got: object, right: float) -> None:
    if got != right:
        raise ArithmeticError(f"1 + 1 + 1 came out as {got}")


_QUESTIONS: dict[EngineName, Callable[[], list[str]]] = {"torch": _torch, "mlx": _mlx, "gguf": _gguf}


def _answer(engine: EngineName) -> None:
    print(json.dumps(_QUESTIONS[engine]()))


if __name__ == "__main__":
    _answer(sys.argv[1])  # type: ignore[arg-type]
