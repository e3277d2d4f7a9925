"""The next token's computation, laid out while the last one is still being carried out.

MLX first builds a graph, in Python, and carries it out afterwards on threads of its own or on a GPU.
mlx-lm's own generation overlaps the two by choosing tokens inside the graph. Here tokens are chosen
outside, where they can be looked at; so the next graph is built before its token is known, with a place
in memory for the token, which is filled in when it has been chosen.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import mlx.core as mx

__all__ = ["NextToken"]


class NextToken:
    """At most one computation that waits for its token."""

    def __init__(self) -> None:
        import mlx.core as mx
        import numpy as np

        self._token = mx.array([[0]])
        # MLX documents that what is written into such a view is reflected in the array.
        self._place = np.array(self._token, copy=False)
        self._place[0, 0] = 1
        # A device with memory of its own might not see it; then nothing is laid out.
        self._is_seen = (self._token + 1).item() == 2
        self._waiting: mx.array | None = None
        self._before: list[Any] = []

    def lay_out(self, compute: Callable[[mx.array], mx.array], layers: list[Any]) -> None:
        """Build the computation.

        Args:
            compute: ids [1, 1] to logits, not yet carried out; it moves the caches on.
            layers: the caches, as they are before it.
        """
        if not self._is_seen:
            return
        self._before = [_copied(layer) for layer in layers]
        self._waiting = compute(self._token)

    def take(self, token_id: int) -> mx.array | None:
        """The computation that waited, with its token filled in; None if none did."""
        waiting, self._waiting = self._waiting, None
        # A second reference to keys and values would make MLX copy them instead of writing into them.
        self._before = []
        if waiting is not None:
            self._place[0, 0] = token_id
        return waiting

    def give_up(self, layers: list[Any]) -> list[Any]:
        """Forget what waits, also one that was not built to its end.

        Returns:
            The caches as they were before it; `layers` themselves if nothing waits.
        """
        self._waiting, before = None, self._before
        self._before = []
        return before or layers


def _copied(value: Any) -> Any:  # noqa: ANN401 - a cache, or what caches hold
    """A cache of mlx-lm that stays as it is when the original moves on; no numbers are copied.

    Assigning to a part of an array changes the Python object, not the numbers of other objects that share
    them; so it takes new objects for the arrays, and for the lists that hold them.
    """
    import mlx.core as mx

    if isinstance(value, list | tuple):
        return type(value)(_copied(item) for item in value)
    duplicate = copy.copy(value)
    if not isinstance(value, mx.array) and hasattr(duplicate, "__dict__"):
        vars(duplicate).update({name: _copied(item) for name, item in vars(value).items()})
    return duplicate
