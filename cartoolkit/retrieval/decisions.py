"""What a policy's controller decides, and what it has to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.trace import Step

if TYPE_CHECKING:
    from cartoolkit.retrieval.passages import Hit

__all__ = [
    "Decision",
    "Ended",
    "Failed",
    "Finish",
    "Found",
    "GoOn",
    "LookUp",
    "Report",
    "ResumeFrom",
    "Rewound",
    "Supposed",
    "Tally",
    "TookTooLong",
]


@dataclass(frozen=True, slots=True)
class Tally:
    """What an answer has cost so far.

    Attributes:
        kept: tokens that stand, the control token at the end included.
        decoded: tokens seen in all, rolled back or not.
        retrievals: look-ups during the answer that brought something new.
        fruitless: look-ups that did not.
        context_tokens: tokens of the passages in the prompt.
    """

    kept: int = 0
    decoded: int = 0
    retrievals: int = 0
    fruitless: int = 0
    context_tokens: int = 0


@dataclass(frozen=True, slots=True)
class GoOn:
    """Decode the next token. `note` says why a look-up changed nothing, if one was just made."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the retriever, and report what came of it; decode nothing until then.

    Attributes:
        query: what to ask.
        k: for how many passages.
        reason: why, one clause for people.
        position: how many tokens of the answer stood when this was decided.
        keep: how many of them survive if something new is found.
        trigger_steps: `Step.index` of the steps in doubt.
        timeout_s: seconds to wait at most, or None.
        upfront: made before the answer.
    """

    query: str
    k: int
    reason: str
    position: int = 0
    keep: int = 0
    trigger_steps: tuple[int, ...] = ()
    timeout_s: float | None = None
    upfront: bool = False


@dataclass(frozen=True, slots=True)
class ResumeFrom:
    """Something new was found: put `context` into the prompt, keep `keep` tokens, and decode on.

    Attributes:
        keep: how many tokens of the answer stand.
        dropped: how many do not any more.
        context: all passages that the prompt is to hold, in order.
        added: those of them that were not there before.
        note: what was left out and why; empty if nothing was.
    """

    keep: int
    dropped: int
    context: tuple[Hit, ...]
    added: tuple[Hit, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is complete; nothing comes after this.

    Attributes:
        reason: what `Ended` said, or ``length`` for a budget that is used up.
        tally: what the answer cost.
        note: which budget it was, or why the last look-up changed nothing.
    """

    reason: str
    tally: Tally
    note: str = ""


Decision = GoOn | LookUp | ResumeFrom | Finish


@dataclass(frozen=True, slots=True)
class Ended:
    """The engine's loop ended: end token, stop string, length, user, time; see `TraceHeader.stop_reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """The retriever answered, perhaps with nothing."""

    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The retriever raised, or gave something that is no passage; `message` says what."""

    message: str


@dataclass(frozen=True, slots=True)
class TookTooLong:
    """The retriever had not answered when `LookUp.timeout_s` was over."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Supposed:
    """Nobody was asked, as in a replay: take it that something new was found, and that the text stays."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """In a replay: the recorded run dropped all but the first `keep` tokens here."""

    keep: int


Report = Step | Ended | Found | Failed | TookTooLong | Supposed | Rewound
