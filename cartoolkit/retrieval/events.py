"""A look-up as an event of a trace, written by whoever drives a controller and read by replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.retrieval.decisions import Failed, Found, ResumeFrom, TookTooLong
from cartoolkit.trace import Event

if TYPE_CHECKING:
    from cartoolkit.retrieval.decisions import Decision, LookUp, Report

__all__ = ["RETRIEVAL", "retrieval_event"]

RETRIEVAL = "retrieval"
"""`Event.kind` of a look-up."""


def retrieval_event(
    look_up: LookUp,
    report: Report,
    decision: Decision,
    *,
    at: int,
    ended: str = "",
    **figures: float,
) -> Event:
    """The event of one look-up.

    Its data: ``query``, ``reason``, ``position``, ``trigger_steps``, ``upfront``; ``outcome`` (``found``,
    ``nothing``, ``failed`` or ``timeout``); ``hits``, each with id, title, score, source and text; ``added``,
    the ids of those that entered the prompt; ``keep`` and ``dropped`` tokens; ``ended`` and ``note``.
    An engine adds ``ms``; ``unseen``, how many steps from `at` on were decoded before the policy was asked
    and were dropped as well (a possible stop string holds steps back); and after something was found
    ``context_tokens``, those of all passages in the prompt, and ``prefill_tokens``, ``reused_tokens`` and
    ``prefill_ms`` of reading it again.

    Args:
        look_up: what was asked.
        report: what came of it.
        decision: what the controller said to that.
        at: index that the next step of the trace will have.
        ended: why the loop had ended when it was made, empty if it had not.
        figures: numbers to put beside them, such as ``ms``, ``prefill_tokens``, ``reused_tokens``.
    """
    resumed = decision if isinstance(decision, ResumeFrom) else None
    note = getattr(decision, "note", "")
    data: dict[str, Any] = {
        "query": look_up.query,
        "reason": look_up.reason,
        "position": look_up.position,
        "trigger_steps": list(look_up.trigger_steps),
        "upfront": look_up.upfront,
        "outcome": _outcome(report, resumed),
        "hits": [_plain(hit) for hit in report.hits] if isinstance(report, Found) else [],
        "added": [hit.id for hit in resumed.added] if resumed else [],
        "keep": resumed.keep if resumed else look_up.position,
        "dropped": resumed.dropped if resumed else 0,
        "ended": ended,
        "note": note,
    }
    return Event(kind=RETRIEVAL, text=_sentence(data), at=at, data=data | figures)


def _plain(hit: Any) -> dict[str, Any]:  # noqa: ANN401 - a Hit or what stands for one
    return {name: getattr(hit, name) for name in ("id", "title", "score", "source", "text")}


def _outcome(report: Report, resumed: ResumeFrom | None) -> str:
    if isinstance(report, Failed):
        return "failed"
    if isinstance(report, TookTooLong):
        return "timeout"
    return "found" if resumed else "nothing"


def _sentence(data: dict[str, Any]) -> str:
    asked = f"Looked up {data['query']!r} ({data['reason']})"
    if data["outcome"] != "found":
        return f"{asked}: {data['note'] or 'nothing was found'}; the text goes on."
    new = len(data["added"])
    passages = f"{new} new passage{'s' if new != 1 else ''}"
    rest = f"; {data['note']}" if data["note"] else ""
    return f"{asked}: {passages}, {data['dropped']} tokens dropped{rest}."
