"""The child's side: load one peer, then time what the parent asks for, one JSON line each way.

    python -m peers.serve llama-cpp-python

Asked for `{"ids": [...], "tokens": n}`, it answers with the seconds from the start to each token. Only one
child works at a time; the others wait for a line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main(name: str) -> None:
    # Whatever a library prints goes to stderr; the parent reads stdout.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from peers import registry

    begun = time.perf_counter()
    peer = registry.PEERS[name]
    peer.imports()
    imported = time.perf_counter()
    run = peer.load()
    loaded = time.perf_counter()
    tell(answers, {"import": imported - begun, "load": loaded - imported, "versions": peer.versions()})
    for line in sys.stdin:
        order = json.loads(line)
        started = time.perf_counter()
        stamps = run(**order)
        tell(answers, {"stamps": [stamp - started for stamp in stamps], "peak_mb": peak_mb()})


def tell(answers: Any, message: dict[str, Any]) -> None:  # noqa: ANN401
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def peak_mb() -> float:
    """Peak resident memory of this process in MB."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
    except OSError:
        import psutil

        return psutil.Process().memory_info().rss / 1e6


if __name__ == "__main__":
    main(sys.argv[1])
