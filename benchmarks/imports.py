"""What `import cartoolkit` costs in a fresh interpreter, beside an import of nothing.

python benchmarks/imports.py
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time

ROUNDS = 9


def seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def main() -> None:
    codes = {"nothing": "pass", "cartoolkit": "import cartoolkit", "numpy": "import numpy"}
    times = {name: [] for name in codes}
    for _ in range(ROUNDS):
        for name, code in codes.items():
            times[name].append(seconds(code))
    base = statistics.median(times["nothing"])
    print(f"Python {platform.python_version()}, {platform.machine()}, median of {ROUNDS} fresh interpreters")
    for name, values in times.items():
        print(f"import {name:12}{1000 * (statistics.median(values) - base):8.0f} ms")


if __name__ == "__main__":
    main()
