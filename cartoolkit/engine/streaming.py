"""A session as an iterator over its steps."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartoolkit.engine.session import Session
    from cartoolkit.trace import Step

__all__ = ["stream"]


def stream(start: Callable[[], Session]) -> Iterator[Step]:
    """Start a session with the first step asked for, yield its steps, and stop it when nobody wants more.

    A step that is rolled back is yielded again. Errors are raised as by `Session.result`.
    """
    session = start()
    ticks: SimpleQueue[None] = SimpleQueue()
    unsubscribe = session.subscribe(lambda: ticks.put(None))
    sent: list[Step] = []
    try:
        while True:
            done = session.done
            for step in _changed(sent, list(session.steps)):
                sent[step.index : step.index + 1] = [step]
                yield step
            if done:
                break
            ticks.get()
        session.result()
    finally:
        unsubscribe()
        session.stop()
        session.wait()


def _changed(sent: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """The steps that are new or have been rolled back since."""
    return [step for i, step in enumerate(steps) if i >= len(sent) or step is not sent[i]]
