"""Work that only its newest order is worth doing for, such as a replay while a slider is dragged."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Latest"]

_Order = TypeVar("_Order")


class Latest(Generic[_Order]):
    """Does one order at a time on a thread of its own; what comes meanwhile replaces what waits.

    Args:
        work: what to do with an order; must not raise.
        name: of the thread, which is there only while there is work.
    """

    def __init__(self, work: Callable[[_Order], object], name: str) -> None:
        self._work = work
        self._name = name
        self._waiting: list[_Order] = []
        self._busy = False
        self._lock = threading.Lock()

    def ask(self, order: _Order) -> None:
        """Have `order` done, as soon as what is being done is done; returns at once."""
        with self._lock:
            self._waiting = [order]
            if self._busy:
                return
            self._busy = True
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._busy = False
                    return
                order = self._waiting.pop()
            self._work(order)
