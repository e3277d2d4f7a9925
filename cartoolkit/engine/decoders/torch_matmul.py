"""One row times a bfloat16 matrix on a CPU: torch's own kernel where it is faster than oneDNN's.

torch hands bfloat16 products to oneDNN, which is made for many rows. For one row, which is all that decoding
has, torch's own kernel reads the weights at the memory's speed, for which oneDNN takes twice the time unless
they are in the processor's cache. torch has no argument for it, only a switch for the whole process.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

__all__ = ["matmul_for_rows", "own_kernel_pays"]

_MARGIN = 1.3  # how much faster the own kernel must be; near 1 the choice could differ between two runs
_SAMPLE = 100_000_000  # bytes of weights; what a processor's cache holds would tell nothing
_PATIENCE = 10.0  # seconds; only a forward that hangs in another thread takes longer


def own_kernel_pays(model: torch.nn.Module) -> bool:
    """Whether products of one row with the bfloat16 matrices of `model` are clearly faster without oneDNN.

    Measured on the model's own weights, in about a tenth of a second: the gain depends on the processor, on
    torch, and on whether the weights fit into its cache.
    """
    import torch

    weights = _sample(model)
    if not weights or not torch.backends.mkldnn.is_available():
        return False
    with torch.inference_mode():
        with _GATE.holding(on=True):
            onednn = _seconds(weights)
        with _GATE.holding(on=False):
            own = _seconds(weights)
    return own * _MARGIN < onednn


def _sample(model: torch.nn.Module) -> list[torch.Tensor]:
    """Weights of linear layers from all of the model, not much more than `_SAMPLE` bytes together."""
    import torch

    layers = (part for part in model.modules() if isinstance(part, torch.nn.Linear))
    weights = [layer.weight for layer in layers if layer.weight.dtype == torch.bfloat16]
    total = sum(weight.nbytes for weight in weights)
    return weights[:: max(1, total // _SAMPLE)]


def _seconds(weights: list[torch.Tensor]) -> float:
    import torch

    rows = {
        columns: torch.ones(1, columns, dtype=torch.bfloat16) for columns in {w.shape[1] for w in weights}
    }
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        for weight in weights:
            torch.nn.functional.linear(rows[weight.shape[1]], weight)
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
        self._holders: set[object] = set()
        self._is_on = self._before = True

    @contextlib.contextmanager
    def holding(self, *, on: bool) -> Iterator[None]:
        holder = self._enter(on=on)
        try:
            yield
        finally:
            self._leave({holder})

    def _enter(self, *, on: bool) -> object:
        from torch.backends import mkldnn

        holder = object()
        with self._changed:
            found = set(self._holders)
            if not self._changed.wait_for(lambda: not self._holders or self._is_on == on, _PATIENCE):
                # Who has held it all this time hangs: it counts as gone, and nobody waits for it again.
                self._leave(found)
            if not self._holders:
                self._before, self._is_on = mkldnn.enabled, on
                mkldnn.enabled = on
            self._holders.add(holder)
        return holder

    def _leave(self, holders: set[object]) -> None:
        from torch.backends import mkldnn

        with self._changed:
            held = bool(self._holders)
            self._holders -= holders
            if held and not self._holders:
                mkldnn.enabled = self._before
                self._changed.notify_all()


_GATE = _Gate()
