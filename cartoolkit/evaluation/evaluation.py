"""What came of an evaluation: every run, and the tables and figures that are made of them."""

from __future__ import annotations

import dataclasses
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.journal import read_journal
from cartoolkit.evaluation.runs import Run
from cartoolkit.evaluation.summary import Settings, summary

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pandas as pd
    from matplotlib.figure import Figure

    from cartoolkit.evaluation.summary import Line

__all__ = ["BASELINE", "Evaluation"]

BASELINE = "upfront"
"""What every policy is compared with: one look-up of the question before the answer."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Policies that answered the same questions; made by `evaluate`.

    Attributes:
        runs: one a policy and question, question by question.
        policies: names of the policies, in the order of the tables.
        about: what all runs have in common: model, retriever, instruction, settings.
        wanted: how many runs there are when it is complete.
    """

    runs: tuple[Run, ...]
    policies: tuple[str, ...]
    about: dict[str, Any]
    wanted: int

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, setup: str | None = None) -> Self:
        """Read what `evaluate` kept in a folder; no model is needed.

        Of a policy and question that were run with several settings under one name, the last is taken.

        Args:
            folder: where it was kept.
            setup: id of the setup to read, if the folder holds several; the last one if None.

        Raises:
            InvalidRequest: the folder holds no run, or none of this setup.
        """
        record = read_journal(Path(folder))
        known = [each for each in record.setups if record.runs.get(each)]
        setup = setup or (known[-1] if known else None)
        if setup not in known:
            hint = (
                f"It holds: {', '.join(known)}." if known else "Give the folder that evaluate(…) wrote into."
            )
            raise InvalidRequest(f"{folder} holds no runs{f' of {setup!r}' if setup else ''}.", hint=hint)
        runs = {(run.policy, run.question, run.kind): run for run in record.runs[setup].values()}
        policies = tuple(dict.fromkeys(run.policy for run in runs.values()))
        return cls(tuple(runs.values()), policies, record.setups[setup], wanted=len(runs))

    @property
    def missing(self) -> int:
        """Runs that are still to be made, because it was interrupted."""
        return self.wanted - len(self.runs)

    def to_frame(self) -> pd.DataFrame:
        """One row a run; columns as in `Run`."""
        import pandas as pd

        frame = pd.DataFrame([dataclasses.asdict(run) for run in self.runs])
        return frame if len(frame) else pd.DataFrame(columns=[f.name for f in dataclasses.fields(Run)])

    def table(
        self,
        by: str | Sequence[str] | None = None,
        *,
        baseline: str = BASELINE,
        level: float = 0.95,
        resamples: int = 10_000,
        seed: int = 0,
    ) -> pd.DataFrame:
        """One row a policy: means with bootstrap intervals, and a paired test against the baseline.

        The columns are explained in `cartoolkit.evaluation.summary` and `tables.frame_of`.

        Args:
            by: "kind", "relation" or both, for a table of each; None for all questions together.
            baseline: policy to compare with; nothing is compared if it is not there.
            level: of the intervals.
            resamples: of the bootstrap.
            seed: of the bootstrap.
        """
        from cartoolkit.evaluation.tables import frame_of

        settings = Settings(baseline, level=level, resamples=resamples, seed=seed)
        return frame_of(summary(self.runs, self.policies, by, settings), by)

    def to_markdown(self, by: str | Sequence[str] | None = "kind", *, baseline: str = BASELINE) -> str:
        """The tables as Markdown, with what they were measured on and what they mean."""
        from cartoolkit.evaluation.tables import markdown_of

        return markdown_of(self, self._lines(by, baseline), baseline)

    def plot(self, by: str | Sequence[str] | None = "kind", *, baseline: str = BASELINE) -> Figure:
        """A row a group: how many answers are right under each policy, and how many tokens they cost."""
        from cartoolkit.evaluation.figures import plot_summary

        return plot_summary(self._lines(by, baseline), baseline)

    def _lines(self, by: str | Sequence[str] | None, baseline: str) -> list[Line]:
        return summary(self.runs, self.policies, by, Settings(baseline))

    def __repr__(self) -> str:
        questions = len({(run.question, run.kind) for run in self.runs})
        rest = f", {self.missing} still missing" if self.missing else ""
        errors = sum(bool(run.error) for run in self.runs)
        failed = f", {errors} failed" if errors else ""
        return f"<Evaluation: {len(self.policies)} policies on {questions} questions{rest}{failed}>"

    def _repr_html_(self) -> str:
        from cartoolkit.evaluation.tables import html_of

        tables = html_of(self._lines("kind", BASELINE), BASELINE)
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{tables}"
