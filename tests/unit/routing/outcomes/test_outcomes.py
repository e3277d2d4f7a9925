"""Outcomes: booked at once, reversed once, and never invented; the figures are worked out by hand."""

import sys
import threading

import pytest
from pydantic import ValidationError

from cartoolkit.routing.outcomes.records import VERDICT_WINDOW, Completion, OutcomeTracker, Verdict

MODEL = "lab/small:q4"


def done(trace_id, **about):
    return Completion(**{"trace_id": trace_id, "model_id": MODEL, "task": "chat", "time": 100.0, **about})


def failed(trace_id, reason="error", **about):
    return done(trace_id, outcome="failure", reason=reason, **about)


def verdict(trace_id, accepted, confidence=1.0, time=200.0):
    return Verdict(trace_id=trace_id, accepted=accepted, confidence=confidence, time=time)


def counts(tally):
    return tally.calls, tally.success_count, tally.fail_count, tally.inconclusive_count


# Lifecycle


def test_an_answer_is_a_success_before_anybody_judged_it():
    total = OutcomeTracker.replay([done("a")]).profile(MODEL).total
    assert counts(total) == (1, 1, 0, 0)
    assert total.success_rate == 1
    assert (total.judged, total.ema_quality) == (0, None)


def test_a_rejection_reverses_the_success_and_an_acceptance_leaves_it():
    rows = [done("a"), done("b"), verdict("a", accepted=False), verdict("b", accepted=True)]
    total = OutcomeTracker.replay(rows).profile(MODEL).total
    assert counts(total) == (2, 1, 1, 0)
    assert (total.accepted, total.rejected) == (1, 1)


def test_a_verdict_counts_once():
    tracker = OutcomeTracker.replay([done("a"), verdict("a", accepted=False)])
    assert tracker.apply(verdict("a", accepted=False)) == "judged before"
    assert tracker.apply(verdict("a", accepted=True)) == "judged before"
    assert counts(tracker.profile(MODEL).total) == (1, 0, 1, 0)


def test_an_attempt_counts_once_even_if_it_is_written_down_twice():
    tracker = OutcomeTracker.replay([done("a")])
    assert tracker.apply(done("a")) == "known already"
    assert tracker.profile(MODEL).total.calls == 1


@pytest.mark.parametrize(
    ("rows", "booking"),
    [
        ([], "unknown trace"),
        ([failed("a")], "no answer to judge"),
        ([done("a", outcome="inconclusive", reason="refused")], "no answer to judge"),
        ([done("a", time=199.0)], "too late"),
        ([done("a", time=200.0)], "booked"),
    ],
)
def test_a_verdict_on_something_else_than_a_recent_answer_says_why_it_does_not_count(rows, booking):
    tracker = OutcomeTracker.replay(rows)
    before = tracker.profiles
    assert tracker.apply(verdict("a", accepted=False, time=200.0 + VERDICT_WINDOW)) == booking
    assert (tracker.profiles == before) == (booking != "booked")


def test_a_refusal_counts_neither_for_nor_against_the_model():
    total = OutcomeTracker.replay([done("a", outcome="inconclusive", reason="refused")]).profile(MODEL).total
    assert counts(total) == (1, 0, 0, 1)
    assert total.success_rate is None


def test_what_is_remembered_of_single_calls_does_not_grow_for_ever():
    tracker = OutcomeTracker()
    for day in range(100):
        tracker.apply(done(f"call-{day}", time=day * 24 * 3600.0))
    assert len(tracker._calls) == 8
    assert tracker.profile(MODEL).total.calls == 100


def test_one_row_from_a_clock_far_ahead_does_not_end_the_learning():
    tracker = OutcomeTracker.replay([done("a", time=1e11), done("b", time=100.0)])
    assert tracker.apply(verdict("b", accepted=False)) == "booked"


# Quality


def test_confidence_moves_the_average_and_not_the_counts():
    rows = [done(name) for name in "abc"]
    rows += [verdict("a", accepted=True, confidence=0.9), verdict("b", accepted=False, confidence=0.6)]
    rows += [verdict("c", accepted=True, confidence=0.5)]
    total = OutcomeTracker.replay(rows).profile(MODEL).total
    # 0.9; then 0.8 * 0.9 + 0.2 * 0.4 = 0.80; then 0.8 * 0.80 + 0.2 * 0.5 = 0.74
    assert total.ema_quality == pytest.approx(0.74)
    assert total.mean_quality == pytest.approx((0.9 + 0.4 + 0.5) / 3)
    assert counts(total) == (3, 2, 1, 0)


def test_a_failed_call_has_no_quality():
    assert OutcomeTracker.replay([failed("a")]).profile(MODEL).total.ema_quality is None


# Tasks and models


def test_tasks_and_models_are_counted_apart():
    rows = [
        done("a"),
        done("b", task="code"),
        failed("c", task="code"),
        done("d", model_id="lab/large"),
        verdict("b", accepted=False),
    ]
    tracker = OutcomeTracker.replay(rows)
    profile = tracker.profile(MODEL)
    assert counts(profile.total) == (3, 1, 2, 0)
    assert counts(profile.task_stats("chat")) == (1, 1, 0, 0)
    assert counts(profile.task_stats("code")) == (2, 0, 2, 0)
    assert counts(profile.task_stats("reasoning")) == (0, 0, 0, 0)
    assert list(tracker.profiles) == [MODEL, "lab/large"]
    assert (profile.should_degrade(0), profile.should_degrade(1)) == (True, False)
    assert profile.updated_at == 200.0


def test_a_profile_stays_as_it_was_when_it_was_asked_for():
    tracker = OutcomeTracker.replay([done("a")])
    profile = tracker.profile(MODEL)
    tracker.apply(done("b"))
    assert (profile.total.calls, profile.task_stats("chat").calls) == (1, 1)
    assert tracker.profile(MODEL).total.calls == 2
    assert tracker.profile("never/called").updated_at is None


# What is not known


def test_figures_are_none_where_a_figure_is_missing_never_zero():
    total = OutcomeTracker.replay([done("a")]).profile(MODEL).total
    assert (total.mean_latency_ms, total.tokens_per_success, total.usd_per_success) == (None, None, None)


def test_what_a_success_costs_includes_the_failures():
    rows = [
        done("a", latency_ms=100, prompt_tokens=10, completion_tokens=20, usd=0.02),
        done("b", latency_ms=300, prompt_tokens=10, completion_tokens=40, usd=0.03, usd_is_estimate=True),
        failed("c", latency_ms=5, prompt_tokens=10, completion_tokens=0, usd=0.01),
    ]
    total = OutcomeTracker.replay(rows).profile(MODEL).total
    assert total.mean_latency_ms == 200  # the failure's 5 ms would make the model look fast
    assert total.tokens_per_success == (30 + 50 + 10) / 2
    assert total.usd_per_success == pytest.approx(0.03)
    assert total.estimated == 1


def test_one_unknown_bill_makes_the_price_of_a_success_unknown():
    total = OutcomeTracker.replay([done("a", usd=0.02), done("b")]).profile(MODEL).total
    assert total.usd_per_success is None
    assert (total.priced, total.usd) == (1, 0.02)


# Rows


@pytest.mark.parametrize(
    "about",
    [
        {"trace_id": "a b"},
        {"trace_id": ""},
        {"model_id": "x" * 201},
        {"task": "What is the capital of France?"},
        {"time": float("nan")},
        {"usd": -1},
        {"latency_ms": float("inf")},
        {"completion_tokens": -1},
        {"prompt": "hello"},
        {"reason": "HTTP 401: key sk-123 is invalid"},
        {"reason": "timeout"},  # with outcome "success"
        {"outcome": "failure", "reason": "refused"},
        {"outcome": "failure"},
    ],
)
def test_a_row_holds_names_and_numbers_and_no_text_of_prompts_or_errors(about):
    with pytest.raises(ValidationError):
        done(**{"trace_id": "a", **about})


def test_a_replay_gives_the_same_profiles():
    rows = [done("a"), failed("b", "timeout"), verdict("a", accepted=False, confidence=0.7), done("a")]
    one, other = OutcomeTracker.replay(rows), OutcomeTracker()
    for row in rows:
        other.apply(row)
    assert one.profiles == other.profiles


def test_profiles_may_be_read_while_another_thread_books_calls_of_new_models():
    tracker = OutcomeTracker()

    def book():
        for number in range(3000):
            model_id = f"lab/m{number % 300}"
            tracker.apply(Completion(trace_id=f"t{number}", model_id=model_id, task="chat", time=1.0))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns within a single line
    try:
        booking = threading.Thread(target=book)
        booking.start()
        while booking.is_alive():
            assert all(profile.total.calls for profile in tracker.profiles.values())
    finally:
        sys.setswitchinterval(before)
        booking.join()
    assert sum(profile.total.calls for profile in tracker.profiles.values()) == 3000
