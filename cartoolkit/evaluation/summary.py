"""The figures of an evaluation: a line a policy, means with bootstrap intervals, a test against a baseline.

What a line has means of:

- ``match``, ``exact``: share of the questions that the corpus can answer; a run that failed is not right.
- ``made_up``: share of the others for which an answer was invented.
- ``fired``: share of answers in which something was looked up while they were written.
- ``look_ups``, ``retrievals``, ``decoded``, ``kept``, ``prefilled``, ``reused``, ``seconds``: a question,
  see `Run`; runs that failed are left out.

Intervals come from drawing questions anew within each kind and relation, as the questions were drawn. A
relation with fewer than eight of them is drawn together with other such ones: drawing one question out of one
would know no doubt.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.evaluation.statistics import (
    Interval,
    McNemar,
    bootstrap_difference,
    bootstrap_means,
    mcnemar,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cartoolkit.evaluation.runs import Run

__all__ = ["ALPHA", "METRICS", "Line", "Settings", "columns_of", "summary", "verdict"]

METRICS = (
    "match", "exact", "made_up", "fired", "look_ups", "retrievals",
    "decoded", "kept", "prefilled", "reused", "seconds",
)  # fmt: skip
"""What there is a mean of."""

_SMALLEST_STRATUM = 8

ALPHA = 0.05
"""A difference is called clear where p is below this."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a summary is computed.

    Attributes:
        baseline: policy to compare with.
        level: of the intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """

    baseline: str
    level: float = 0.95
    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One policy on one group of questions.

    Attributes:
        group: values of the columns that the groups were made by.
        policy: its name.
        questions: runs there are.
        errors: runs that failed.
        means: by the names in `METRICS`; NaN where nothing was measured.
        difference: of match to the baseline's, paired; None for the baseline itself, or without one.
        test: the pairs that differ, policy first, and the exact McNemar test; None likewise.
    """

    group: tuple[str, ...]
    policy: str
    questions: int
    errors: int
    means: dict[str, Interval]
    difference: Interval | None = None
    test: McNemar | None = None

    @property
    def is_answerable(self) -> bool:
        """Whether it holds questions that the corpus can answer."""
        return not math.isnan(self.means["match"].value)


def columns_of(by: str | Sequence[str] | None) -> list[str]:
    """The columns that groups are made by; none for one group of all."""
    return [] if by is None else [by] if isinstance(by, str) else list(by)


def summary(
    runs: Iterable[Run], policies: Sequence[str], by: str | Sequence[str] | None, settings: Settings
) -> list[Line]:
    """The lines of each group, groups in the order of their first run, policies in the order given."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault(tuple(str(getattr(run, name)) for name in columns_of(by)), []).append(run)
    return [line for group, members in groups.items() for line in _lines(group, members, policies, settings)]


def _lines(
    group: tuple[str, ...], runs: Sequence[Run], policies: Sequence[str], settings: Settings
) -> Iterator[Line]:
    baseline = [run for run in runs if run.policy == settings.baseline]
    for policy in policies:
        own = [run for run in runs if run.policy == policy]
        if not own:
            continue
        pairs = [] if policy == settings.baseline else list(_pairs(own, baseline))
        errors = sum(bool(run.error) for run in own)
        compared = _compared(pairs, settings) if pairs else (None, None)
        yield Line(group, policy, len(own), errors, _means(own, settings), *compared)


def _means(runs: Sequence[Run], settings: Settings) -> dict[str, Interval]:
    values = np.array([[_value(run, name) for name in METRICS] for run in runs])
    intervals = bootstrap_means(
        values,
        strata=_strata(runs),
        resamples=settings.resamples,
        level=settings.level,
        seed=settings.seed,
    )
    return dict(zip(METRICS, intervals, strict=True))


def _value(run: Run, name: str) -> float:
    """One figure of a run; NaN where it has no meaning."""
    if name in ("match", "exact"):
        return float(getattr(run, name)) if run.answerable else math.nan
    if run.error or (name == "made_up" and run.answerable):
        return math.nan
    return float(run.fired > 0) if name == "fired" else float(getattr(run, name))


def _strata(runs: Sequence[Run]) -> np.ndarray:
    """Kind and relation of each run; those of few questions are one stratum together."""
    labels = [f"{run.kind}\n{run.relation}" for run in runs]
    counts = Counter(labels)
    return np.array([label if counts[label] >= _SMALLEST_STRATUM else "" for label in labels])


def _pairs(runs: Sequence[Run], baseline: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    """Runs of both on the same question, where the corpus can answer it."""
    other = {(run.question, run.kind): run for run in baseline}
    for run in runs:
        if run.answerable and (pair := other.get((run.question, run.kind))):
            yield run, pair


def _compared(pairs: Sequence[tuple[Run, Run]], settings: Settings) -> tuple[Interval, McNemar]:
    own, other = (np.array([run.match for run in side]) for side in zip(*pairs, strict=True))
    difference = bootstrap_difference(
        own,
        other,
        strata=_strata([run for run, _ in pairs]),
        resamples=settings.resamples,
        level=settings.level,
        seed=settings.seed,
    )
    return difference, mcnemar(own, other)


def verdict(lines: Sequence[Line], baseline: str) -> str:
    """One sentence on which policies of a group are better or worse than the baseline; empty without one."""
    compared = [line for line in lines if line.test and line.difference]
    sides: dict[str, list[str]] = {"better than": [], "worse than": [], "not clearly different from": []}
    for line in compared:
        assert line.test
        clear, up = line.test.p < ALPHA, line.test.only_first > line.test.only_second
        sides["not clearly different from" if not clear else "better than" if up else "worse than"].append(
            line.policy
        )
    said = "; ".join(f"{what} {baseline}: {', '.join(names)}" for what, names in sides.items() if names)
    return f"{said[0].upper()}{said[1:]}." if said else ""
