"""Stop strings: held back while they may be coming, cut out when they have come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.trace import Step

__all__ = ["StopGate"]


class StopGate:
    """Lets steps through once their text is certain to belong to the answer.

    A step waits while the text at the end could be the beginning of a stop string. When a stop string is
    complete, it and everything after it is cut from the texts of the steps; ids and bytes stay.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held: list[Step] = []
        self._text = ""

    @property
    def held(self) -> int:
        """How many steps are waiting."""
        return len(self._held)

    def push(self, step: Step) -> tuple[list[Step], str]:
        """Take the next step.

        Returns:
            The steps whose text is certain now, and the stop string that was found, or "".
        """
        self._held.append(step)
        self._text += step.text
        at, found = self._find()
        if found:
            return self._cut(at), found
        return self._release(len(self._text) - self._possible_start()), ""

    def flush(self) -> list[Step]:
        """Let everything through: the text ends here without a stop string."""
        return self._release(len(self._text))

    def _find(self) -> tuple[int, str]:
        """The earliest stop string, the longest of those that begin there."""
        found = [(self._text.find(stop), -len(stop), stop) for stop in self._stops if stop in self._text]
        at, _, stop = min(found, default=(0, 0, ""))
        return at, stop

    def _possible_start(self) -> int:
        """Length of the longest end of the text that begins a stop string."""
        longest = max((len(stop) for stop in self._stops), default=0)
        sizes = range(min(longest - 1, len(self._text)), 0, -1)
        return next((n for n in sizes if any(stop.startswith(self._text[-n:]) for stop in self._stops)), 0)

    def _release(self, certain: int) -> list[Step]:
        """Steps that end within the first `certain` characters."""
        end = count = 0
        for step in self._held:
            end += len(step.text)
            if end > certain:
                end -= len(step.text)
                break
            count += 1
        released, self._held = self._held[:count], self._held[count:]
        self._text = self._text[end:]
        return released

    def _cut(self, at: int) -> list[Step]:
        """Every held step, with text only up to character `at`."""
        cut, start = [], 0
        for step in self._held:
            text = step.text[: max(at - start, 0)]
            start += len(step.text)
            cut.append(step if text == step.text else replace(step, text=text))
        self._held, self._text = [], ""
        return cut
