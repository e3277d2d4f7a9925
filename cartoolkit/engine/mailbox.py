"""Stop, pause, resume and step: posted by any thread, read by the worker between tokens."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Mailbox"]


class Mailbox:
    """What the people around a session want, without touching the model.

    Attributes:
        paused: whether the worker is waiting in `wait_for_permission`.
        paused_seconds: how long it has waited there in all.
    """

    def __init__(self, *, paused: bool = False) -> None:
        self._changed = threading.Condition()
        self._stopped = False
        # Tokens that may still be decoded before a pause; None means no limit.
        self._allowance: int | None = 0 if paused else None
        self.paused = False
        self.paused_seconds = 0.0

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopped

    @property
    def _must_wait(self) -> bool:
        return self._allowance == 0 and not self._stopped

    def stop(self) -> None:
        """End the session, paused or not."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def pause(self) -> None:
        """Decode no further token until `resume` or `step`."""
        self._allow(0)

    def resume(self) -> None:
        """Go on without a limit."""
        self._allow(None)

    def step(self, tokens: int = 1) -> None:
        """Decode a few more tokens, then pause.

        Raises:
            InvalidRequest: not a whole number of tokens, or less than one.
        """
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            raise InvalidRequest(f"step takes a whole number of tokens ≥ 1; got {tokens!r}.")
        with self._changed:
            self._allow((self._allowance or 0) + tokens)

    def _allow(self, tokens: int | None) -> None:
        with self._changed:
            self._allowance = tokens
            self._changed.notify_all()

    def wait_for_permission(self, *, spend: bool, on_change: Callable[[], None]) -> None:
        """Return when the worker may go on.

        Args:
            spend: whether it will decode a token then, which counts against a `step`.
            on_change: called when a pause begins and when it ends.
        """
        with self._changed:
            self.paused = self._must_wait
        if self.paused:
            on_change()
            begun = time.perf_counter()
            with self._changed:
                self._changed.wait_for(lambda: not self._must_wait)
                # In this order, or who watches the clock would take the pause for a forward that hangs.
                self.paused_seconds += time.perf_counter() - begun
                self.paused = False
            on_change()
        with self._changed:
            if spend and self._allowance:
                self._allowance -= 1
