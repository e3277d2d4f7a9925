"""One row times a bfloat16 matrix on a CPU: torch's own kernel where it is faster than oneDNN's.

torch hands bfloat16 products to oneDNN, which is made for many rows. For one row, which is all that decoding
has, torch's own kernel reads the weights at the memory's speed and takes half the time. torch has no argument
for it, only a switch for the whole process.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = ["matmul_for_rows", "own_kernel_pays"]

_MARGIN = 1.3  # how much faster the own kernel must be; near 1 the choice could differ between two runs
_PATIENCE = 10.0  # seconds; only a forward that hangs in another thread takes longer


@functools.cache
def own_kernel_pays() -> bool:
    """Whether a bfloat16 product with one row is clearly faster without oneDNN here; measured once."""
    import torch

    if not torch.backends.mkldnn.is_available():
        return False
    weights = [torch.ones(1024, 1024, dtype=torch.bfloat16) for _ in range(4)]
    with torch.inference_mode(), _GATE.holding(on=True):
        onednn = _seconds(weights)
    with torch.inference_mode(), _GATE.holding(on=False):
        own = _seconds(weights)
    return own * _MARGIN < onednn


def _seconds(weights: list[torch.Tensor]) -> float:
    import torch

    row, times = torch.ones(1, 1024, dtype=torch.bfloat16), []
    for _ in range(6):
        begun = time.perf_counter()
        for weight in weights:
            torch.nn.functional.linear(row, weight)
        times.append(time.perf_counter() - begun)
    return min(times)


def matmul_for_rows(rows: int) -> contextlib.AbstractContextManager[None]:
    """While it is held, products of `rows` rows use the kernel that is fastest for them."""
    return _GATE.holding(on=rows > 1)


class _Gate:
    """Turns oneDNN off and on for the process; threads that need the other position wait for their turn.

    Without the wait, one thread's prompt would be read by the slow kernel while another decodes, and with
    other bits than alone.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders = 0
        self._is_on = True

    @contextlib.contextmanager
    def holding(self, *, on: bool) -> Iterator[None]:
        self._enter(on=on)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, *, on: bool) -> None:
        from torch.backends import mkldnn

        with self._changed:
            free = self._changed.wait_for(lambda: not self._holders or self._is_on == on, _PATIENCE)
            if free and not self._holders:
                self._before, self._is_on = mkldnn.enabled, on
                mkldnn.enabled = on
            self._holders += 1

    def _leave(self) -> None:
        from torch.backends import mkldnn

        with self._changed:
            self._holders -= 1
            if not self._holders:
                mkldnn.enabled = self._before
                self._changed.notify_all()


_GATE = _Gate()
