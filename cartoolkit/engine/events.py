"""What the loop has to say while it runs, and the one word it understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np

    from cartoolkit.trace import Step

__all__ = ["STOP", "Decoded", "Ending", "Event", "Prefilled", "Scored", "Taken"]

STOP: Final = "stop"
"""Sent into the loop to end it after the event just received."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Prompt tokens in the cache by now, of how many, and how many were there from before."""

    done: int
    total: int
    reused: int


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
class Ending:
    """Why the loop ended; see `TraceHeader.stop_reason`. `detail` names the token, string or limit."""

    reason: str
    detail: str


Event = Prefilled | Scored | Taken | Decoded
