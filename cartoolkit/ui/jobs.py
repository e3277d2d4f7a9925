"""Work that a widget does in the background, one after another: it can be waited for, and stopped."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from cartoolkit.engine import Session

__all__ = ["Job"]

_TICK = 0.05


class Job:
    """A piece of work on a thread of its own, which may run sessions.

    ``await job`` and `wait` wait for its end.

    Attributes:
        stopped: somebody wants it to end.
        sessions: those that it has begun, in order.
    """

    def __init__(self, work: Callable[[Job], object], name: str) -> None:
        """Begin at once.

        Args:
            work: is given the job; must not raise, and should look at `stopped` between its parts.
            name: of the thread.
        """
        self.stopped = False
        self.sessions: list[Session] = []
        self._done = threading.Event()
        threading.Thread(target=self._run, args=(work,), name=name, daemon=True).start()

    def _run(self, work: Callable[[Job], object]) -> None:
        try:
            work(self)
        finally:
            self._done.set()

    @property
    def session(self) -> Session | None:
        """The session that is going on, or was the last one."""
        return self.sessions[-1] if self.sessions else None

    def follow(self, session: Session) -> None:
        """Take a session that was begun; it is stopped if somebody wants the job to end."""
        self.sessions.append(session)
        if self.stopped:
            session.stop()

    def stop(self) -> None:
        """End the session that is going on, and begin nothing more."""
        self.stopped = True
        for session in tuple(self.sessions):
            session.stop()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it has ended or `timeout` seconds have passed; whether it has."""
        return self._done.wait(timeout)

    def __await__(self) -> Generator[object, None, Job]:
        return self._ended().__await__()

    async def _ended(self) -> Job:
        # In ticks: the notebook's interrupt does not wake an idle event loop.
        try:
            while not self.done:  # noqa: ASYNC110 - an asyncio.Event would not be woken by it either
                await asyncio.sleep(_TICK)
        except asyncio.CancelledError:
            self.stop()
            raise
        return self
