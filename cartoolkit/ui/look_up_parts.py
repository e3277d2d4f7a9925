"""The parts of a view's messages that tell of look-ups: each whole, and only when it has changed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cartoolkit.retrieval.effects import effects_of
from cartoolkit.trace.look_ups import look_ups_of
from cartoolkit.trace.policy_text import (
    policy_name,
    policy_part,
    retriever_name,
    threshold_of,
    trigger_in_words,
)
from cartoolkit.ui._protocol import (
    LONGEST_PASSAGE,
    BudgetUsed,
    ChancePair,
    LookUpRow,
    Parts,
    PolicyInfo,
    ShownHit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.retrieval.effects import Effect
    from cartoolkit.trace import Step, TraceHeader
    from cartoolkit.trace.look_ups import FoundPassage, PastLookUp

__all__ = ["LookUpParts", "policy_info"]


class LookUpParts:
    """Remembers what has been said of one run's look-ups."""

    def __init__(self) -> None:
        self._said = Parts()

    def changed(self, header: TraceHeader, steps: Sequence[Step], *, whole: bool) -> Parts:
        """What is new since the last call; `whole`: everything there is.

        Nothing for a run that can look nothing up.
        """
        now = _parts(header, steps)
        before, self._said = self._said, now
        if whole:
            return now
        return Parts(**{name: part for name, part in now.items() if part != before.get(name)})  # pyright: ignore[reportArgumentType]


def policy_info(header: TraceHeader) -> PolicyInfo | None:
    """What decides about look-ups in this run; None if nothing does."""
    if header.retrieval is None:
        return None
    return PolicyInfo(
        name=policy_name(header),
        trigger=trigger_in_words(header),
        threshold=threshold_of(header),
        retriever=retriever_name(header),
    )


def _parts(header: TraceHeader, steps: Sequence[Step]) -> Parts:
    look_ups = look_ups_of(header.events)
    if header.retrieval is None and not look_ups:
        return Parts()
    effects, retrieved = effects_of(steps, look_ups, header.prompt)
    return Parts(
        look_ups=[_row(look_up, effect) for look_up, effect in zip(look_ups, effects, strict=True)],
        retrieved=retrieved,
        budget=_budget(header, steps, look_ups),
    )


def _row(look_up: PastLookUp, effect: Effect) -> LookUpRow:
    return LookUpRow(
        at=look_up.resumes_at,
        position=look_up.position,
        keep=look_up.keep,
        dropped=look_up.dropped,
        query=look_up.query,
        reason=look_up.reason,
        trigger_steps=list(look_up.trigger_steps),
        upfront=look_up.upfront,
        outcome=look_up.outcome,
        note=look_up.note,
        hits=[_hit(hit, effect) for hit in look_up.hits],
        ms=look_up.ms,
        prefill_tokens=look_up.prefill_tokens,
        reused_tokens=look_up.reused_tokens,
        prefill_ms=look_up.prefill_ms,
        chances=[ChancePair(text=c.text, before=c.before, after=c.after) for c in effect.before_after],
    )


def _hit(hit: FoundPassage, effect: Effect) -> ShownHit:
    used = [(start, end) for name, start, end in effect.used if name == hit.id and end <= LONGEST_PASSAGE]
    return ShownHit(
        id=hit.id,
        title=hit.title,
        source=hit.source,
        score=None if math.isnan(hit.score) else hit.score,
        text=hit.text[:LONGEST_PASSAGE],
        added=hit.added,
        used=used,
    )


def _budget(header: TraceHeader, steps: Sequence[Step], look_ups: Sequence[PastLookUp]) -> BudgetUsed:
    limits = policy_part(header, "budget")
    known = (each.context_tokens for each in reversed(look_ups) if each.context_tokens is not None)
    new = sum(look_up.outcome == "found" and not look_up.upfront for look_up in look_ups)
    return BudgetUsed(
        retrievals=new,
        max_retrievals=limits.get("max_retrievals", 0),
        kept=sum(step.kept for step in steps),
        decoded=len(steps),
        fruitless=sum(look_up.outcome != "found" for look_up in look_ups),
        context_tokens=next(known, 0),
        max_context_tokens=limits.get("max_context_tokens"),
    )
