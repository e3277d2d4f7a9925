"""The process in which one model is loaded and measured: ``python -m cartoolkit.routing.probing.child``.

It reads `ProbeTask` as JSON from standard input and writes one JSON object a line: what it is doing, then the
measurement or what went wrong. Memory, load time and a crash are thereby the model's own.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import psutil

from cartoolkit.engine import load
from cartoolkit.errors import CartoolkitError
from cartoolkit.models import engine_status
from cartoolkit.routing.probing.measuring import ProbeOptions, measure
from cartoolkit.routing.probing.timing import median_figure
from cartoolkit.routing.rows.figures import Figure, Row
from cartoolkit.routing.rows.schema import ModelSchema  # noqa: TC001 - pydantic reads it

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.engine import Engine
    from cartoolkit.routing.probing.measurements import Probe

__all__ = ["ProbeTask", "answer", "peak_memory"]

_STATUS = Path("/proc/self/status")


class ProbeTask(Row):
    """What the process is asked.

    Attributes:
        model: the row; one whose weights lie on this disk.
        options: what to measure.
    """

    model: ModelSchema
    options: ProbeOptions


def answer(task: ProbeTask, out: TextIO) -> None:
    """Measure, and write down what comes of it, one JSON object a line."""
    try:
        probe = _measured(task, partial(_tell, out))
    except CartoolkitError as error:
        _write(out, {"error": str(error), "hint": error.hint, "kind": type(error).__name__})
    except MemoryError:
        _write(out, {"error": "Python had no memory left", "hint": None, "kind": "MemoryError"})
    else:
        _write(out, {"probe": probe.model_dump(mode="json")})


def _tell(out: TextIO, what: str, done: int, total: int) -> None:
    _write(out, {"progress": [what, done, total]})


def _write(out: TextIO, message: dict[str, object]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def _measured(task: ProbeTask, report: Callable[[str, int, int], None]) -> Probe:
    source = task.model.source
    if source.engine is not None:
        engine_status(source.engine)  # imports its libraries, which are not the model's memory
    before = psutil.Process().memory_info().rss
    report("loading", 0, task.options.loads + 1)
    engine = _loaded(task.model)
    probe = measure(task.model, engine, task.options, report)
    taken = max(peak_memory() - before, _on_apple_gpu(engine))
    engine.close()
    del engine
    loads = [_load_time(task, n, report) for n in range(task.options.loads)]
    memory = Figure(value=max(taken, 0) / 1e6, basis="measured", n=1)
    return probe.model_copy(update={"ram_mb": memory, "load_ms": median_figure(loads)})


def _loaded(model: ModelSchema) -> Engine:
    return load(model.source.location, engine=model.source.engine or "auto", fresh=True, quiet=True)


def _load_time(task: ProbeTask, number: int, report: Callable[[str, int, int], None]) -> float:
    """Milliseconds of one more load, with the files in the system's cache."""
    report("loading", number + 1, task.options.loads + 1)
    gc.collect()
    began = time.perf_counter()
    engine = _loaded(task.model)
    passed = time.perf_counter() - began
    engine.close()
    return 1000 * passed


def peak_memory() -> int:
    """Bytes of main memory that this process has had at most.

    Linux counts a process anew when it begins another program; `getrusage` would tell of its parent too.
    """
    if _STATUS.exists():
        lines = _STATUS.read_text().splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
        if found:
            return found[0]
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _on_apple_gpu(engine: Engine) -> int:
    """Bytes that MLX has held at most, where its GPU shares the main memory without being counted in it."""
    if engine.info.engine != "mlx" or engine.info.device != "gpu":
        return 0
    import mlx.core as mx

    return mx.get_peak_memory()


def _main() -> None:
    # What a library prints must not stand between the lines of JSON.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        answer(ProbeTask.model_validate_json(sys.stdin.buffer.read()), out)


if __name__ == "__main__":
    _main()
