"""What a person sees while a model is being fetched: one bar for the download, one for the conversion."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Bars"]


@dataclass(frozen=True, slots=True)
class Bars:
    """Progress bars that are always closed, or silence.

    Attributes:
        shown: False prints nothing but what must be told.
    """

    shown: bool

    def say(self, sentence: str) -> None:
        """Print one line."""
        if self.shown:
            print(sentence, flush=True)

    def insist(self, sentence: str) -> None:
        """Print one line even in silence; then beside the output, which may be an answer that is kept."""
        print(sentence, flush=True, file=sys.stdout if self.shown else sys.stderr)

    @contextmanager
    def bytes(self, title: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar over `total` bytes; what it yields takes the number of bytes that are there so far."""
        with self._bar(desc=title, total=total, unit="B", unit_scale=True) as bar:
            yield lambda there: _move(bar, min(there, total))

    def items(self, title: str, items: Iterable[Any], total: int) -> Iterator[Any]:
        """Pass `items` on, with a bar that counts them."""
        with self._bar(desc=title, total=total) as bar:
            for item in items:
                yield item
                bar.update()

    def _bar(self, **settings: Any) -> Any:  # noqa: ANN401 (tqdm.auto chooses its class at run time)
        from tqdm.auto import tqdm

        return tqdm(**settings, disable=not self.shown)


def _move(bar: Any, there: int) -> None:  # noqa: ANN401
    # pip copies the wheel at the end and the copy starts at zero: a bar never goes back.
    bar.update(max(there - bar.n, 0))
