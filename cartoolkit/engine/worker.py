"""The one thread that may touch a decoder.

torch keeps a thread pool for every thread that computes, and MLX binds its streams to one, so all work
of an engine happens here, one job after another. The thread is a daemon: a kernel that shuts down does
not wait for a long answer.
"""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Worker"]

T = TypeVar("T")
_Job = tuple["Future[Any]", "Callable[[], Any]"]


class Worker:
    """Runs jobs in order on a thread of its own, which ends with `close` or when the worker is collected."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, self._jobs.put, None)

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job; its result or error arrives in the future."""
        future: Future[T] = Future()
        self._jobs.put((future, job))
        return future

    def run(self, job: Callable[[], T]) -> T:
        """Queue a job and wait for it; an interrupt ends the wait, not the job."""
        if threading.current_thread() is self._thread:
            return job()
        return self.submit(job).result()

    def close(self) -> None:
        """End the thread after the jobs that are queued."""
        self._end()


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    """The thread's body holds no reference to the worker, or the worker could never be collected."""
    while (entry := jobs.get()) is not None:
        future, job = entry
        try:
            result = job()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
            future.set_exception(error)
        else:
            future.set_result(result)
            del result
        # What the job closed over must not live until the next job comes.
        del entry, future, job
