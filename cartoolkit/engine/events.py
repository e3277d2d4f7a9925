"""What the loop has to say while it runs, and what it understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from cartoolkit.retrieval import LookUp, Report
    from cartoolkit.trace import Event as TraceEvent
    from cartoolkit.trace import Step

__all__ = [
    "STOP",
    "Amended",
    "Decoded",
    "Ending",
    "Event",
    "LookedUp",
    "LookingUp",
    "Noted",
    "Prefilled",
    "Reply",
    "Revised",
    "Scored",
    "Taken",
    "Waiting",
]

STOP: Final = "stop"
"""Sent into the loop to end it after the event just received."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Prompt tokens in the cache by now, of how many, and how many were there from before.

    `again` where a look-up has put something into the prompt, and the tokens that stand are read with it.
    """

    done: int
    total: int
    reused: int
    again: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Raw logprobs of the prompt's own tokens, float32 [prompt]; NaN for the first, which follows nothing."""

    logprobs: np.ndarray


@dataclass(frozen=True, slots=True)
class Decoded:
    """One more token was decoded.

    `steps` are those whose text became certain by it, perhaps none; after a `final` one no token follows.
    """

    steps: tuple[Step, ...]
    final: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """Steps taken over from another run; nothing was decoded for them."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Revised:
    """Rows that were there have changed: they stand no more, or a stop string cut their text."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class LookingUp:
    """Something has to be looked up; the reply is what came of it, or `STOP`."""

    look_up: LookUp


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What came of a look-up, for the trace.

    Attributes:
        event: see `cartoolkit.retrieval.retrieval_event`.
        prompt: ids of the prompt from here on; None if it stays.
        dropped: rows that stand no more.
    """

    event: TraceEvent
    prompt: list[int] | None
    dropped: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Amended:
    """The event of the last look-up once more, with what reading the prompt again has cost."""

    event: TraceEvent


@dataclass(frozen=True, slots=True)
class Noted:
    """Fields of the trace's header that became known, by name."""

    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing has come yet from a server elsewhere; said several times a second, so that a stop is heard."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the loop ended; see `TraceHeader.stop_reason`. `detail` names the token, string or limit."""

    reason: str
    detail: str


Event = Prefilled | Scored | Taken | Decoded | Revised | LookingUp | LookedUp | Amended | Noted | Waiting

Reply: TypeAlias = "str | Report | None"
"""`STOP`, what came of a look-up, or nothing."""
