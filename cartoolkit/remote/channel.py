"""Requests on a thread of their own, so that waiting for a server can be given up at any moment.

The thread runs one asyncio loop for the whole process: a read that is cancelled there closes its connection,
which a read that blocks a thread cannot be made to do. Nothing is read that was not asked for, so a paused
answer waits at the server.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, TypeVar

from cartoolkit.remote.failures import translated
from cartoolkit.remote.pieces import read_piece

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

    from openai import AsyncStream

    from cartoolkit.remote.failures import Server
    from cartoolkit.remote.pieces import Piece

__all__ = ["PENDING", "Answer", "on_loop"]

T = TypeVar("T")

PENDING = object()
"""Nothing has come yet."""

# Seconds to wait for a connection to be closed.
_GOODBYE = 1.0


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="cartoolkit-remote", daemon=True).start()
    return loop


def on_loop(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the loop's thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


class Answer:
    """An answer that comes piece by piece; used by one thread.

    Args:
        server: whom it comes from.
        ask: sends the request; called when the first piece is asked for.

    Attributes:
        pieces: how many have come.
    """

    def __init__(self, server: Server, ask: Callable[[], Coroutine[Any, Any, AsyncStream[Any]]]) -> None:
        self._server = server
        self._ask = ask
        self._stream: AsyncStream[Any] | None = None
        self._pending: Future[Piece | None] | None = None
        self.pieces = 0

    def next(self, seconds: float) -> Piece | object | None:
        """The next piece, None after the last one, or `PENDING` if none comes within `seconds`.

        Raises:
            CartoolkitError: the server cannot be reached, or answers with an error; see `failures`.
        """
        if self._pending is None:
            self._pending = on_loop(self._read())
        if not wait([self._pending], seconds).done:
            return PENDING
        pending, self._pending = self._pending, None
        piece = pending.result()
        self.pieces += piece is not None
        return piece

    async def _read(self) -> Piece | None:
        try:
            if self._stream is None:
                self._stream = await self._ask()
            return read_piece(await anext(self._stream))
        except StopAsyncIteration:
            return None
        except Exception as error:  # noqa: BLE001 - every one of them is translated
            told = translated(error, self._server, pieces=self.pieces)
        # Outside the handler: the library's error holds the request, and with it the key.
        raise told

    def close(self) -> None:
        """Stop reading and close the connection, if it is not over yet."""
        if self._pending is not None:
            self._pending.cancel()
        if self._stream is not None:
            wait([on_loop(self._stream.close())], _GOODBYE)
