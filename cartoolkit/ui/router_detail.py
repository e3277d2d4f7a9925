"""One cell of a `RouterTable` told in lines: every term with its arithmetic, the sum, the worth, the others.

Weights are shown in full, what they add with four decimals, so that the sum is right to three; the other
numbers have three. Whoever computes a line by hand gets what stands behind it, but for the last decimal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.routing.choice.selection import FLOOR
from cartoolkit.routing.choice.weights import shown_weight
from cartoolkit.ui._router_protocol import Change, Detail, DetailLine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cartoolkit.routing.choice import changes
    from cartoolkit.routing.choice.decision import Candidate, Decision
    from cartoolkit.routing.choice.scores import Score, Term

__all__ = ["column_title", "detail_of"]

LONGEST_CHAIN = 5
"""Models that are named as fallbacks; of the others it is said how many there are."""


def detail_of(
    decision: Decision,
    model_id: str,
    titles: Mapping[str, str],
    found: Sequence[changes.Change],
    prior_strength: float,
) -> Detail:
    """A cell in lines.

    Args:
        decision: of the cell's workload, by the mean worth.
        model_id: the cell's model, one of the decision's candidates.
        titles: short names, by id.
        found: what would change the choice.
        prior_strength: K of `selection`.
    """
    candidate = next(each for each in decision.candidates if each.model.id == model_id)
    return Detail(
        title=_title(decision, candidate),
        lines=_lines(candidate.score, is_local=candidate.model.is_local),
        sum=_sum(candidate),
        worth=_worth(candidate, prior_strength),
        fallbacks=_chain(decision, titles),
        changes=[Change(text=each.text) for each in found],
    )


def column_title(name: str) -> str:
    """A workload's name as a heading.

    >>> column_title("local_preferred")
    'LocalPreferred'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) or name


def _title(decision: Decision, candidate: Candidate) -> str:
    workload = column_title(decision.profile.name)
    if candidate.rank is None:
        return f"{workload}: {candidate.model.id} is left out"
    if candidate.rank == 1:
        return f"{workload} → {candidate.model.id}"
    return f"{workload}: {candidate.model.id} is #{candidate.rank} of {len(decision.eligible)}"


def _lines(scored: Score | None, *, is_local: bool) -> list[DetailLine]:
    if scored is None:
        return []
    return [*map(_line, scored.terms), _bonus(scored, is_local=is_local)]


def _line(term: Term) -> DetailLine:
    arithmetic = (
        f"{shown_weight(term.weight)} × {term.value:.3f} = {term.points:.4f}, "
        f"where {term.value:.3f} = {term.arithmetic}"
    )
    return DetailLine(name=term.name, points=term.points, basis=term.basis, arithmetic=arithmetic)


def _bonus(scored: Score, *, is_local: bool) -> DetailLine:
    why = "it runs on this machine" if is_local else "it does not run on this machine"
    arithmetic = f"{shown_weight(scored.local_bonus)}: {why}"
    return DetailLine(name="local bonus", points=scored.local_bonus, basis="", arithmetic=arithmetic)


def _sum(candidate: Candidate) -> str:
    scored = candidate.score
    if scored is None:
        return f"Left out: {'; '.join(refusal.reason for refusal in candidate.refused)}."
    points = " + ".join(f"{term.points:.4f}" for term in scored.terms)
    return f"{points} + {shown_weight(scored.local_bonus)} = {scored.total:.3f}"


def _worth(candidate: Candidate, strength: float) -> str:
    """Reliability and worth, with the counts that they come from; see `routing.selection`."""
    if candidate.score is None:
        return ""
    assert candidate.reliability is not None
    assert candidate.worth is not None
    prior, seen = min(candidate.score.total, 1.0), candidate.evidence
    alpha, said = _count("α", strength, prior, seen.successes)
    beta, told = _count("β", strength, 1 - prior, seen.failures)
    return (
        f"{said}, {told}; reliability "
        f"{alpha:.3f} / ({alpha:.3f} + {beta:.3f}) = {candidate.reliability:.3f}; "
        f"worth {candidate.reliability:.3f} × {candidate.score.total:.3f} = {candidate.worth:.3f}"
    )


def _count(sign: str, strength: float, share: float, seen: int) -> tuple[float, str]:
    count = strength * share + seen
    line = f"{sign} = {strength:g} × {share:.3f} + {seen:,} = {count:.3f}"
    return (count, line) if count >= FLOOR else (FLOOR, f"{line}, at least {FLOOR:g}")


def _chain(decision: Decision, titles: Mapping[str, str]) -> list[str]:
    names = [titles[model_id] for model_id in decision.fallbacks]
    more = len(names) - LONGEST_CHAIN
    return names if more < 2 else [*names[:LONGEST_CHAIN], f"{more} more"]
