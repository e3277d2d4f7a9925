"""The scoreboard: figures worked out by hand, and nothing where nothing is known."""

import pandas as pd
import pytest

from cartoolkit.routing.outcomes.records import Completion, OutcomeTracker, Verdict
from cartoolkit.routing.outcomes.scoreboard import scoreboard, wilson_interval


def done(trace_id, model_id, **about):
    return Completion(**{"trace_id": trace_id, "model_id": model_id, "task": "chat", "time": 1, **about})


@pytest.fixture
def profiles():
    rows = [
        done("a", "cloud/dear", usd=0.3, latency_ms=100, prompt_tokens=10, completion_tokens=30),
        done("b", "cloud/dear", usd=0.1, usd_is_estimate=True, prompt_tokens=20, completion_tokens=20),
        done("c", "cloud/dear", usd=0.2, task="code", prompt_tokens=5, completion_tokens=15),
        done("d", "cloud/cheap", usd=0.01),
        done("e", "lab/unpriced", latency_ms=50),
        done("f", "lab/refuser", outcome="inconclusive", reason="refused"),
        Verdict(trace_id="b", accepted=False, time=2, confidence=0.8),
        Verdict(trace_id="a", accepted=True, time=3, confidence=0.6),
    ]
    return OutcomeTracker.replay(rows).profiles.values()


def test_the_cheapest_right_answer_stands_first_and_unknown_prices_last(profiles):
    table = scoreboard(profiles)
    # 0.01 a success; 0.6 for 2 successes; no bill known, by success rate
    assert list(table.model_id) == ["cloud/cheap", "cloud/dear", "lab/unpriced", "lab/refuser"]
    assert table.usd_per_success[:2].tolist() == pytest.approx([0.01, 0.3])
    assert table.usd_per_success[2:].isna().all()


def test_the_figures_of_a_row(profiles):
    row = scoreboard(profiles).set_index("model_id").loc["cloud/dear"]
    assert (row.calls, row.success, row.fail, row.inconclusive, row.judged) == (3, 2, 1, 0, 2)
    assert row.success_rate == pytest.approx(2 / 3)
    # Wilson for 2 of 3: middle (2/3 + z²/6) / (1 + z²/3), reach z √(2/27 + z²/36) / (1 + z²/3), z² = 3.8415
    assert (row.success_low, row.success_high) == pytest.approx((0.2077, 0.9385), abs=5e-5)
    assert row.avg_quality == pytest.approx((0.2 + 0.6) / 2)
    assert row.ema_quality == pytest.approx(0.2 + 0.2 * (0.6 - 0.2))
    assert row.avg_latency_ms == 100
    assert (row.prompt_tokens, row.completion_tokens) == (35, 65)
    assert row.tokens_per_success == 50
    assert row.usd_is_estimate


def test_what_nobody_knows_is_missing(profiles):
    row = scoreboard(profiles).set_index("model_id").loc["lab/refuser"]
    names = [name for name in row.index if name.startswith(("success_", "avg", "ema", "tokens", "usd_per"))]
    assert all(pd.isna(row[name]) for name in [*names, "usd", "prompt_tokens"])
    assert (row.success, row.fail, row.inconclusive) == (0, 0, 1)


def test_tasks_stand_together(profiles):
    table = scoreboard(profiles, by_task=True)
    dear = table[table.model_id == "cloud/dear"].set_index("task")
    assert dear.calls.to_dict() == {"all": 3, "chat": 2, "code": 1}
    assert table.task.is_monotonic_increasing


def test_a_scoreboard_of_nothing_has_its_columns():
    assert list(scoreboard([]).columns)[:3] == ["model_id", "task", "calls"]


@pytest.mark.parametrize(
    ("successes", "trials", "interval"),
    # Newcombe 1998, table I, method 3
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilson_intervals_as_published(successes, trials, interval):
    assert wilson_interval(successes, trials) == pytest.approx(interval, abs=5e-5)
