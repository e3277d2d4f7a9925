"""What the outcomes say about each model, as a table; a figure that nobody knows is missing, not zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

    from cartoolkit.routing.outcomes.records import ModelProfile, Tally

__all__ = ["ALL_TASKS", "scoreboard", "wilson_interval"]

ALL_TASKS = "all"

_Z = 1.959963984540054  # 0.975 quantile of the normal distribution


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927); (0, 1) without trials.

    >>> [round(end, 3) for end in wilson_interval(1, 10)]
    [0.018, 0.404]
    """
    if not trials:
        return 0.0, 1.0
    share, weight = successes / trials, _Z**2 / trials
    middle = (share + weight / 2) / (1 + weight)
    reach = _Z * math.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def scoreboard(profiles: Iterable[ModelProfile], *, by_task: bool = False) -> pd.DataFrame:
    """One row a model, or one a model and task; the cheapest right answer stands first.

    Rows are ordered by dollars for a success, then by success rate, then by tokens for a success; what is not
    known comes after what is. With `by_task` the rows of one task stand together.

    Args:
        profiles: such as ``tracker.profiles.values()``.
        by_task: a row for each task that a model was asked for, besides one for all of them.

    Returns:
        Columns ``model_id``, ``task`` (`ALL_TASKS` for all); counts ``calls``, ``success``, ``fail``,
        ``inconclusive``, ``judged``; ``success_rate`` with the ends of its 95 % interval, ``success_low`` and
        ``success_high``; ``avg_quality`` and ``ema_quality`` of the verdicts; ``avg_latency_ms`` of the
        answers; ``prompt_tokens``, ``completion_tokens`` of the calls whose tokens are known, ``usd`` of
        those whose bill is known; ``tokens_per_success``, ``usd_per_success``; ``usd_is_estimate``, whether a
        bill among them was worked out and not told. Missing figures are NA.
    """
    import pandas as pd

    rows = [row for profile in profiles for row in _rows(profile, by_task=by_task)]
    table = pd.DataFrame(rows, columns=list(_DTYPES)).astype(_DTYPES)
    order = ["task"] * by_task + ["usd_per_success", "success_rate", "tokens_per_success", "model_id"]
    ascending = [name != "success_rate" for name in order]
    return table.sort_values(order, ascending=ascending, na_position="last", ignore_index=True)


_DTYPES = {
    "model_id": "object",
    "task": "object",
    "calls": "int64",
    "success": "int64",
    "fail": "int64",
    "inconclusive": "int64",
    "judged": "int64",
    "success_rate": "Float64",
    "success_low": "Float64",
    "success_high": "Float64",
    "avg_quality": "Float64",
    "ema_quality": "Float64",
    "avg_latency_ms": "Float64",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "tokens_per_success": "Float64",
    "usd": "Float64",
    "usd_per_success": "Float64",
    "usd_is_estimate": "bool",
}


def _rows(profile: ModelProfile, *, by_task: bool) -> Iterator[dict[str, Any]]:
    yield _row(profile.model_id, ALL_TASKS, profile.total)
    if by_task:
        for task, tally in profile.tasks.items():
            yield _row(profile.model_id, task, tally)


def _row(model_id: str, task: str, tally: Tally) -> dict[str, Any]:
    resolved = tally.success_count + tally.fail_count
    low, high = wilson_interval(tally.success_count, resolved) if resolved else (None, None)
    return {
        "model_id": model_id,
        "task": task,
        "calls": tally.calls,
        "success": tally.success_count,
        "fail": tally.fail_count,
        "inconclusive": tally.inconclusive_count,
        "judged": tally.judged,
        "success_rate": tally.success_rate,
        "success_low": low,
        "success_high": high,
        "avg_quality": tally.mean_quality,
        "ema_quality": tally.ema_quality,
        "avg_latency_ms": tally.mean_latency_ms,
        "prompt_tokens": tally.prompt_tokens if tally.counted else None,
        "completion_tokens": tally.completion_tokens if tally.counted else None,
        "tokens_per_success": tally.tokens_per_success,
        "usd": tally.usd if tally.priced else None,
        "usd_per_success": tally.usd_per_success,
        "usd_is_estimate": tally.estimated > 0,
    }
