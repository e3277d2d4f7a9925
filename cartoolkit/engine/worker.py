"""The one thread that may touch a decoder.

torch keeps a thread pool for every thread that computes, and MLX binds its streams to one, so all work
of an engine happens here, one job after another. The thread is a daemon: a kernel that shuts down does
not wait for a long answer.

A thread that has used MLX must not end while Python ends: it asks for the interpreter once more when its
thread-local objects go, and what Python does to a thread that asks then takes the whole process down. So
at the end threads are left as they are, and one that has just been closed gets a moment to be gone.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Worker"]

T = TypeVar("T")
_Job = tuple["Future[Any]", "Callable[[], Any]"]

# Seconds in which an idle thread has surely ended.
_MOMENT = 0.1


class Worker:
    """Runs jobs in order on a thread of its own, which ends with `close` or when the worker is collected."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name=name, daemon=True)
        self._thread.start()
        self._end = weakref.finalize(self, _end, self._jobs)
        self._end.atexit = False

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


_last_end = -_MOMENT


def _end(jobs: SimpleQueue[_Job | None]) -> None:
    global _last_end  # noqa: PLW0603 - one interpreter, one end
    jobs.put(None)
    _last_end = time.monotonic()


@atexit.register
def _wait_for_ended_threads() -> None:
    time.sleep(max(0.0, _last_end + _MOMENT - time.monotonic()))


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
