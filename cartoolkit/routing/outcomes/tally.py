"""Sums over the calls of one model, and the figures that they give; what nobody knows stays None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cartoolkit.routing.outcomes.records import Completion, Verdict

__all__ = ["EMA_ALPHA", "RECENT", "Tally", "Timing"]

EMA_ALPHA = 0.2
"""Weight of the newest verdict in the moving average of quality; the last ten make up nine tenths of it."""


RECENT = 50
"""Answers whose times are remembered one by one."""


class Timing(NamedTuple):
    """How long an answer took, in parts.

    Attributes:
        ttft_ms: to the first token.
        read_tokens: prompt tokens that were read for it; None is not known.
        later_ms: from the first token to the last; 0 if that is not known.
        later_tokens: tokens after the first; 0 if their number or time is not known.
    """

    ttft_ms: float
    read_tokens: int | None
    later_ms: float
    later_tokens: int

    @classmethod
    def of(cls, row: Completion, ttft_ms: float) -> Timing:
        """The times of an answer whose first token was timed."""
        read = None if row.prompt_tokens is None else max(0, row.prompt_tokens - (row.cached_tokens or 0))
        later = (row.completion_tokens or 0) - 1
        if row.latency_ms is None or later < 1:
            return cls(ttft_ms, read, 0.0, 0)
        return cls(ttft_ms, read, row.latency_ms - ttft_ms, later)


@dataclass(slots=True)
class Tally:
    """Calls of one model, in all or of one task.

    Attributes:
        calls: attempts that ended, however they did.
        success_count: ended well and were not rejected.
        fail_count: failed, or were rejected.
        inconclusive_count: say nothing about the model.
        accepted: verdicts that confirmed a success.
        rejected: verdicts that reversed one.
        ema_quality: moving average of the verdicts' quality; None without a verdict. A call that failed
            has no answer whose quality could be told, so it counts in `fail_count` alone.
        quality_sum: of all verdicts, for their plain mean.
        timed, total_latency_ms: answers whose time is known, and their time. A call that failed is not among
            them: failing at once is not being fast.
        recent: times of the latest `RECENT` answers whose first token was timed, the newest last: how fast a
            model is changes with what else a machine does.
        counted, prompt_tokens, completion_tokens: calls whose tokens are known, and their tokens.
        priced, usd: calls whose bill is known, and the bills' sum.
        estimated: of these, how many bills are estimates.
    """

    calls: int = 0
    success_count: int = 0
    fail_count: int = 0
    inconclusive_count: int = 0
    accepted: int = 0
    rejected: int = 0
    ema_quality: float | None = None
    quality_sum: float = 0.0
    timed: int = 0
    total_latency_ms: float = 0.0
    recent: tuple[Timing, ...] = ()
    counted: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    priced: int = 0
    usd: float = 0.0
    estimated: int = 0

    def add_completion(self, row: Completion) -> None:
        """Count one more call."""
        self.calls += 1
        if row.outcome == "success":
            self.success_count += 1
        elif row.outcome == "failure":
            self.fail_count += 1
        else:
            self.inconclusive_count += 1
        if row.outcome == "success":
            self._add_times(row)
        if row.prompt_tokens is not None and row.completion_tokens is not None:
            self.counted += 1
            self.prompt_tokens += row.prompt_tokens
            self.completion_tokens += row.completion_tokens
        if row.usd is not None:
            self.priced += 1
            self.usd += row.usd
            self.estimated += row.usd_is_estimate

    def _add_times(self, row: Completion) -> None:
        if row.latency_ms is not None:
            self.timed += 1
            self.total_latency_ms += row.latency_ms
        if row.ttft_ms is not None:
            self.recent = (*self.recent, Timing.of(row, row.ttft_ms))[-RECENT:]

    def add_verdict(self, row: Verdict) -> None:
        """Count a verdict on one of its successes.

        The first verdict is the average; each later one moves it by `EMA_ALPHA` of the distance.

        >>> from cartoolkit.routing.outcomes.records import Verdict
        >>> tally = Tally(calls=2, success_count=2)
        >>> tally.add_verdict(Verdict(trace_id="a", accepted=True, time=1))
        >>> tally.add_verdict(Verdict(trace_id="b", accepted=False, time=2))
        >>> tally.ema_quality, tally.success_count, tally.fail_count  # 1 + 0.2 * (0 - 1)
        (0.8, 1, 1)
        """
        if row.accepted:
            self.accepted += 1
        else:
            self.rejected += 1
            self.success_count -= 1
            self.fail_count += 1
        before = self.ema_quality
        self.ema_quality = row.quality if before is None else before + EMA_ALPHA * (row.quality - before)
        self.quality_sum += row.quality

    @property
    def judged(self) -> int:
        """Answers with a verdict."""
        return self.accepted + self.rejected

    @property
    def success_rate(self) -> float | None:
        """Successes among what succeeded or failed; None while there is neither, never an invented half."""
        resolved = self.success_count + self.fail_count
        return self.success_count / resolved if resolved else None

    @property
    def mean_latency_ms(self) -> float | None:
        """Mean time of an answer; None if no time is known."""
        return self.total_latency_ms / self.timed if self.timed else None

    @property
    def started(self) -> list[Timing]:
        """The recent answers of which it is known how much was read for the first token."""
        return [each for each in self.recent if each.read_tokens is not None]

    @property
    def paced(self) -> list[Timing]:
        """The recent answers of more than one token whose end was timed."""
        return [each for each in self.recent if each.later_tokens]

    @property
    def mean_quality(self) -> float | None:
        """Plain mean of the verdicts' quality; None without a verdict."""
        return self.quality_sum / self.judged if self.judged else None

    @property
    def tokens_per_success(self) -> float | None:
        """All tokens, those of failures too, for one success; None if a call's tokens are unknown."""
        known = self.success_count and self.counted == self.calls
        return (self.prompt_tokens + self.completion_tokens) / self.success_count if known else None

    @property
    def usd_per_success(self) -> float | None:
        """All bills, those of failures too, for one success; None if a call's bill is unknown."""
        return self.usd / self.success_count if self.success_count and self.priced == self.calls else None
