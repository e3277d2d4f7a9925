"""The look-ups of a run, read back from its events: what was asked, what came, what it dropped and changed.

A trace may come from a file of somebody else, so nothing is taken for granted: what is missing or of
another kind is read as empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cartoolkit.trace.header import Event
    from cartoolkit.trace.step import Step
    from cartoolkit.trace.trace import Trace

__all__ = [
    "OUTCOMES",
    "RETRIEVAL",
    "Chance",
    "FoundPassage",
    "PastLookUp",
    "chances",
    "dropped_rows",
    "look_ups_of",
]

RETRIEVAL = "retrieval"
"""`Event.kind` of a look-up."""

OUTCOMES = ("found", "nothing", "failed", "timeout")
"""What may come of a look-up: something new, nothing new, an error, no answer in time."""

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that a look-up found.

    Attributes:
        id: of the passage.
        text: as it was found.
        score: how well it fits, greater is better; NaN if it is not known.
        source: where it comes from.
        title: of its document.
        added: it entered the prompt by this look-up.
    """

    id: str
    text: str
    score: float
    source: str
    title: str
    added: bool


@dataclass(frozen=True, slots=True)
class PastLookUp:
    """A look-up as it was recorded.

    Attributes:
        number: from 1, in the order of the run.
        at: index of the step before which it was made.
        position: tokens of the answer that stood.
        keep: how many of them stayed.
        dropped: how many did not.
        unseen: steps from `at` on that were decoded before the policy saw them, and were dropped as well.
        query: what was asked.
        reason: why, one clause.
        trigger_steps: indices of the steps in doubt.
        upfront: made before the answer.
        outcome: one of `OUTCOMES`, or what else the event says.
        note: what else there is to say.
        hits: what was found, best first.
        ms: of the look-up; None if it is not known.
        prefill_tokens: prompt tokens that were read because of it; None where none were, or not yet.
        reused_tokens: tokens of the new prompt that were in the cache already; None likewise.
        prefill_ms: milliseconds that reading took; None likewise.
        context_tokens: tokens of all passages in the prompt after it; None if it changed none.
    """

    number: int
    at: int
    position: int
    keep: int
    dropped: int
    unseen: int
    query: str
    reason: str
    trigger_steps: tuple[int, ...]
    upfront: bool
    outcome: str
    note: str
    hits: tuple[FoundPassage, ...]
    ms: float | None
    prefill_tokens: int | None
    reused_tokens: int | None
    prefill_ms: float | None
    context_tokens: int | None = None

    @property
    def resumes_at(self) -> int:
        """Index of the first step behind what it dropped: where the text goes on."""
        return self.at + self.unseen

    @property
    def added(self) -> tuple[FoundPassage, ...]:
        """The hits that entered the prompt."""
        return tuple(hit for hit in self.hits if hit.added)


@dataclass(frozen=True, slots=True)
class Chance:
    """What a look-up did to the probability of one token.

    Attributes:
        text: the token.
        token_id: its number.
        before: raw probability without the new passages; None where it was not among the candidates.
        after: raw probability with them; None likewise.
    """

    text: str
    token_id: int
    before: float | None
    after: float | None


def look_ups_of(events: Iterable[Event]) -> list[PastLookUp]:
    """The look-ups among the events of a run, in order."""
    found = (event for event in events if event.kind == RETRIEVAL)
    return [_read(event, number) for number, event in enumerate(found, 1)]


def _read(event: Event, number: int) -> PastLookUp:
    data = event.data
    steps, hits, added = (_list(data, name) for name in ("trigger_steps", "hits", "added"))
    return PastLookUp(
        number,
        at=max(event.at, 0),
        position=_count(data, "position") or 0,
        keep=_count(data, "keep") or 0,
        dropped=_count(data, "dropped") or 0,
        unseen=_count(data, "unseen") or 0,
        query=_text(data, "query"),
        reason=_text(data, "reason"),
        trigger_steps=tuple(i for i in steps if _is_count(i)),
        upfront=data.get("upfront") is True,
        outcome=_text(data, "outcome"),
        note=_text(data, "note"),
        hits=tuple(_hit(hit, added) for hit in hits if isinstance(hit, dict)),
        ms=_number(data, "ms"),
        prefill_tokens=_count(data, "prefill_tokens"),
        reused_tokens=_count(data, "reused_tokens"),
        prefill_ms=_number(data, "prefill_ms"),
        context_tokens=_count(data, "context_tokens"),
    )


def _hit(hit: Mapping[str, Any], added: list[Any]) -> FoundPassage:
    score = _number(hit, "score")
    return FoundPassage(
        _text(hit, "id"),
        _text(hit, "text"),
        math.nan if score is None else score,
        _text(hit, "source"),
        _text(hit, "title"),
        added=hit.get("id") in added,
    )


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    return list(value) if isinstance(value, list | tuple) else []


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else str(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = data.get(name)
    # A figure may have been kept as a float.
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return whole if _is_count(whole) else None  # pyright: ignore[reportReturnType] - an int, as was checked


def _number(data: Mapping[str, Any], name: str) -> float | None:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


# What a look-up dropped, and what came instead


def dropped_rows(look_ups: Sequence[PastLookUp], count: int) -> list[list[int]]:
    """Which of the first `count` steps each look-up dropped, in order."""
    standing: list[int] = []
    dropped, row = [], 0
    for look_up in look_ups:
        now = max(row, min(look_up.at, count))
        standing.extend(range(row, now))
        row = min(now + look_up.unseen, count)
        gone = standing[look_up.keep :] if look_up.dropped else []
        del standing[len(standing) - len(gone) :]
        dropped.append([*gone, *range(now, row)])
    return dropped


def chances(run: Trace | Sequence[Step], look_ups: Sequence[PastLookUp]) -> list[tuple[Chance, ...]]:
    """What each look-up did to the token that it dropped, and to the one in its place.

    They are those of the first place where the new text differs from the old one; up to there both were
    written after the same tokens, so that the passages alone make the difference. Where nothing differs it
    is the token in doubt, alone.

    Args:
        run: all steps, dropped ones too.
        look_ups: those of the run.

    Returns:
        One tuple a look-up; empty where nothing was dropped, or nothing has been written since.
    """
    found: list[tuple[Chance, ...]] = []
    for place, (look_up, gone) in enumerate(zip(look_ups, dropped_rows(look_ups, len(run)), strict=True)):
        # The next one that found something changes the prompt once more.
        later = (each.at for each in look_ups[place + 1 :] if each.added)
        end = min(next(later, len(run)), len(run))
        found.append(_compared(run, look_up, list(zip(gone, range(look_up.resumes_at, end), strict=False))))
    return found


def _compared(
    run: Trace | Sequence[Step], look_up: PastLookUp, pairs: list[tuple[int, int]]
) -> tuple[Chance, ...]:
    if not pairs:
        return ()
    compared = [(run[old], run[new]) for old, new in pairs]
    for before, after in compared:
        if before.token_id != after.token_id:
            return _chance(before, before, after), _chance(after, before, after)
    doubt = next((i for i, (old, _) in enumerate(pairs) if old in look_up.trigger_steps), 0)
    before, after = compared[doubt]
    return (_chance(before, before, after),)


def _chance(token: Step, before: Step, after: Step) -> Chance:
    number = token.token_id
    return Chance(token.label, number, _probability(before, number), _probability(after, number))


def _probability(step: Step, token_id: int) -> float | None:
    """Raw probability of a token at a step, as far as it was recorded."""
    if token_id == step.token_id:
        logprob = step.logprob
    else:
        places = np.flatnonzero(step.candidates.ids == token_id)
        logprob = float(step.candidates.logprobs[places[0]]) if places.size else math.nan
    return None if math.isnan(logprob) else float(np.exp(logprob))
