"""How many threads to compute with while other programs want the same cores.

llama.cpp's threads wait for each other by spinning, hundreds of times a token. Where each has a core of its
own that is the fastest way. Where programs share the cores, the thread that is waited for may not be running,
and a token can take seconds. With fewer threads each, all go on at their share of the machine's speed
(`benchmarks/crowded.py`).
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CrowdedThreads"]

# A thread with a core of its own runs all the time, computing or spinning; one that shares it, half the time.
_CROWDED_SHARE = 0.8
_WINDOW = 0.1  # seconds of computing until a share of them means something; some clocks tick every 16 ms
_FIRST_PATIENCE, _LONGEST_PATIENCE = 1.0, 60.0  # seconds until more threads are tried again


class CrowdedThreads:
    """A number of threads that is halved while the machine is crowded, and tried again later.

    Attributes:
        count: how many to compute with now, from 1 to `most`.

    Args:
        most: how many when nobody else is there, at least 1.
    """

    def __init__(self, most: int) -> None:
        self.count = self._most = most
        self._wall = self._running = 0.0
        self._patience, self._try_again_at = _FIRST_PATIENCE, 0.0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Compute within, on the thread that leads the others; `count` may be another afterwards."""
        begun, running = time.perf_counter(), time.thread_time()
        yield
        now = time.perf_counter()
        self.note(now - begun, time.thread_time() - running, now)

    def note(self, wall: float, running: float, now: float) -> None:
        """Take in a stretch of computing.

        Args:
            wall: how long it took, in seconds.
            running: how long of it the leading thread had a core, in seconds.
            now: when it ended, in seconds on any clock that only goes forward.
        """
        self._wall += wall
        self._running += running
        if self._wall < _WINDOW:
            return
        crowded = self._running < _CROWDED_SHARE * self._wall
        self._wall = self._running = 0.0
        if crowded:
            if self.count > 1:
                self.count //= 2
                self._try_again_at = now + self._patience
                self._patience = min(2 * self._patience, _LONGEST_PATIENCE)
        elif self.count == self._most:
            self._patience = _FIRST_PATIENCE
        elif now >= self._try_again_at:
            self.count = min(2 * self.count, self._most)
