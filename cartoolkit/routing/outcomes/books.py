"""What a router writes down and heeds: outcomes, circuit breakers and spending, kept in step.

A call is admitted by its breaker and by the spend limits, and settled with both and with the ledger when it
has ended. A ledger that cannot be written to costs no answer: what happens is then remembered for as long as
the router lives, and this is said once.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cartoolkit.errors import InvalidRequest, LedgerError
from cartoolkit.notices import say
from cartoolkit.routing.checks import require_number
from cartoolkit.routing.choice.situation import Evidence
from cartoolkit.routing.outcomes.breaker import BreakerRules, CircuitBreakers, Permit
from cartoolkit.routing.outcomes.ledger import Ledger, OutcomeHistory
from cartoolkit.routing.outcomes.records import Booking, Completion, Verdict
from cartoolkit.routing.outcomes.spending import Reservation, SpendControl, SpendLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cartoolkit.intents import Task
    from cartoolkit.routing.outcomes.records import ModelProfile

__all__ = ["ENOUGH_OF_A_TASK", "Admission", "Books", "default_folder", "evidence_of"]

ENOUGH_OF_A_TASK = 5
"""Resolved calls of one task from which on they alone are a model's evidence for that task."""

_LEDGER = "outcomes.jsonl"


def default_folder() -> Path:
    """Where outcomes are kept: `$CARTOOLKIT_CACHE`, else the platform's folder for a user's data."""
    from platformdirs import user_data_path

    from cartoolkit.models.cache import CACHE_VARIABLE, cache_dir

    chosen = os.environ.get(CACHE_VARIABLE, "").strip()
    return (cache_dir() if chosen else user_data_path("cartoolkit")) / "routing"


class _SharedHistory(OutcomeHistory):
    """A history that tells of every row, and lives on in memory when its file cannot be written to.

    Args:
        ledger: as for `OutcomeHistory`.
        on_rows: gets the rows that changed something, also those that stood in the file before.
        strict: a file that cannot be read at the start is an error.
    """

    def __init__(
        self, ledger: Ledger, on_rows: Callable[[list[Completion | Verdict]], None], *, strict: bool
    ) -> None:
        self._on_rows = on_rows
        self._strict = strict
        self._lost = False
        super().__init__(ledger)
        self._strict = False

    def record(self, row: Completion | Verdict) -> Booking:
        """As `OutcomeHistory.record`; never raises for the file's sake."""
        if not self._lost:
            try:
                return super().record(row)
            except LedgerError as error:
                self._lose(error)
            except StopIteration:
                pass  # written, and could not be read again, which `refresh` has said
        booking = self.tracker.apply(row)
        self._tell([(row, booking)])
        return booking

    def refresh(self) -> list[tuple[Completion | Verdict, Booking]]:
        """As `OutcomeHistory.refresh`; never raises after the start."""
        if self._lost:
            return []
        try:
            booked = super().refresh()
        except LedgerError as error:
            if self._strict:
                raise
            self._lose(error)
            return []
        self._tell(booked)
        return booked

    def _tell(self, booked: Iterable[tuple[Completion | Verdict, Booking]]) -> None:
        self._on_rows([row for row, booking in booked if booking == "booked"])

    def _lose(self, error: LedgerError) -> None:
        self._lost = True
        say(f"{error} The router goes on, and remembers outcomes until it ends.")


@dataclass(frozen=True, slots=True)
class Admission:
    """Leave to make one call.

    Attributes:
        permit: of the breaker; None where the model was named, and is called although its breaker is open.
        held: what it may cost.
    """

    permit: Permit | None
    held: Reservation


class Books:
    """Outcomes, breakers and spending of one router; may be used from several threads.

    Args:
        folder: where the ledger is kept; None for `default_folder`.
        rules: of the breakers.
        limits: of spending.
        clock: seconds since 1970; None for the system's, with one that only goes forward for the breakers.

    Raises:
        LedgerError: a folder was given, and what is there cannot be read.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        rules: BreakerRules | None = None,
        limits: SpendLimits | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._now = clock or time.time
        self._steady = clock or time.monotonic
        self._lock = threading.Lock()
        self._settled_here: set[str] = set()
        self.breakers = CircuitBreakers(rules)
        self.spending = SpendControl(limits)
        place = default_folder() if folder is None else Path(folder).expanduser()
        self.history: OutcomeHistory = _SharedHistory(
            Ledger(place / _LEDGER), self._count_bills, strict=folder is not None
        )

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._now()

    def _count_bills(self, rows: list[Completion | Verdict]) -> None:
        """Bills of earlier calls and of other processes; those that were settled here count already."""
        with self._lock:
            calls = [row for row in rows if isinstance(row, Completion)]
            others = [row for row in calls if row.trace_id not in self._settled_here]
            self._settled_here -= {row.trace_id for row in calls}
        self.spending.replay(others)

    def resting(self, estimates: Mapping[str, float | None]) -> dict[str, str]:
        """Models that would not be admitted now, with the reason.

        Args:
            estimates: what a call may cost in USD, by model id; 0 only if nobody bills it.
        """
        reasons = {
            model_id: self.breakers.why_not(model_id, self._steady())
            or self.spending.why_not(usd, self._now())
            for model_id, usd in estimates.items()
        }
        return {model_id: reason for model_id, reason in reasons.items() if reason}

    def admit(self, model_id: str, estimate: float | None, *, pinned: bool) -> Admission | str:
        """Leave to call a model, or why there is none just now.

        Raises:
            SpendLimitExceeded: it may cost more than a limit leaves, also where the model was named.
        """
        held = self.spending.reserve(estimate, self._now())
        permit = self.breakers.acquire(model_id, self._steady())
        if permit is None and not pinned:
            self.spending.settle(held, 0.0, self._now())
            return self.breakers.why_not(model_id, self._steady()) or "it is being tried right now"
        return Admission(permit, held)

    def settle(self, admission: Admission, row: Completion, billed: float | None) -> None:
        """Write down what became of a call that was admitted.

        Args:
            admission: of the call.
            row: what became of it.
            billed: US dollars; None if nobody knows, and the estimate counts.
        """
        if admission.permit is not None:
            self.breakers.report(row.model_id, admission.permit, row.outcome, self._steady())
        self.spending.settle(admission.held, billed, self._now())
        with self._lock:
            self._settled_here.add(row.trace_id)
        if billed is None:
            # Whoever reads the ledger later, as after a restart, counts the same.
            row = row.model_copy(update={"held_usd": admission.held.usd})
        self.history.record(row)

    def judge(self, trace_id: str, *, accepted: bool, confidence: float) -> Booking:
        """Write down a verdict on an answer.

        Raises:
            InvalidRequest: the confidence is no number from 0 to 1, or the id none that a router gives.
        """
        require_number("confidence", confidence, least=0, most=1)
        if not isinstance(accepted, bool):
            raise InvalidRequest(f"accepted must be True or False; got {accepted!r}.")
        try:
            row = Verdict(trace_id=trace_id, accepted=accepted, time=self._now(), confidence=confidence)
        except ValidationError:
            raise InvalidRequest(
                f"{trace_id!r} is no trace id.", hint="Give the answer, or its trace_id."
            ) from None
        return self.history.record(row)


def evidence_of(profiles: Iterable[ModelProfile], task: Task | None = None) -> dict[str, Evidence]:
    """What came of earlier calls, by model id.

    Args:
        profiles: of the models that were called.
        task: where a model has `ENOUGH_OF_A_TASK` resolved calls of it, they alone count for that model.
    """
    found = {}
    for profile in profiles:
        of_task = profile.task_stats(task) if task else profile.total
        enough = of_task.success_count + of_task.fail_count >= ENOUGH_OF_A_TASK
        found[profile.model_id] = Evidence.of(of_task if enough else profile.total)
    return found
