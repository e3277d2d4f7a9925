"""How many processor cores this process may really use."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

__all__ = ["usable_cores"]

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Cores of the machine, fewer if the process is bound to some, or a container limits its time.

    Two threads of one physical core share what decoding needs, so only physical ones count. A container
    on a large machine sees all its cores; threads beyond its share of time only wait for each other.
    `OMP_NUM_THREADS` is honoured as people expect. At least 1.
    """
    limits = [_bound_cores(), psutil.cpu_count(logical=False), _quota(cgroup), _asked_for()]
    return max(1, min(limit for limit in limits if limit is not None))


def _bound_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _asked_for() -> int | None:
    value = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(value) if value.isdecimal() and int(value) > 0 else None


def _quota(cgroup: Path) -> int | None:
    """Whole cores' worth of processor time that the container grants, by cgroup version 2, then 1."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (cgroup / "cpu.max").read_text().split()
        return None if quota == "max" else max(1, int(quota) // int(period))
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota = int((cgroup / "cpu" / "cpu.cfs_quota_us").read_text())
        period = int((cgroup / "cpu" / "cpu.cfs_period_us").read_text())
        return max(1, quota // period) if quota > 0 else None
    return None
