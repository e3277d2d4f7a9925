"""What other programs took of the processor while something was timed."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

from cartoolkit.engine.decoders.cores import usable_cores

__all__ = ["Bystanders", "lacking_cores"]


def lacking_cores(taken_by_others: float, usable: int, total: int) -> float:
    """How many of the cores that a process may use others had, on average.

    What others take beyond the cores that the process may not use anyway is missing.

    Args:
        taken_by_others: cores' worth of time that they had, at least 0.
        usable: cores that the process may use.
        total: cores of the machine.

    >>> lacking_cores(0.5, usable=2, total=2), lacking_cores(50.0, usable=2, total=64)
    (0.5, 0.0)
    """
    return min(max(taken_by_others + usable - total, 0.0), float(usable))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Seconds: on the clock, of all cores while they worked, of this process while it did."""

    clock: float
    all_cores: float
    this_process: float


class Bystanders:
    """Watches the processor from now on; work of this process's own children counts as that of others."""

    def __init__(self) -> None:
        self._begun = _read()

    def lacking(self) -> float:
        """Cores that this process may use and others had, on average since the beginning."""
        now, begun = _read(), self._begun
        passed = max(now.clock - begun.clock, 1e-9)
        others = (now.all_cores - begun.all_cores) - (now.this_process - begun.this_process)
        total = psutil.cpu_count(logical=True) or usable_cores()
        return lacking_cores(max(others, 0.0) / passed, usable_cores(), total)


def _read() -> _Reading:
    times = psutil.cpu_times()
    # Guests are part of the user's time; what a virtual machine's host took for others is stolen.
    kinds = ("user", "nice", "system", "irq", "softirq", "steal", "interrupt", "dpc")
    return _Reading(
        time.perf_counter(), sum(getattr(times, kind, 0.0) for kind in kinds), time.process_time()
    )
