"""Circuit breakers: how soon a dead model is left, and how it comes back; times are worked out by hand."""

import threading

import pytest

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.outcomes.breaker import BreakerRules, CircuitBreakers

MODEL = "cloud/large"
RULES = BreakerRules(failures=3, cooldown_s=60, longest_cooldown_s=150, probe_timeout_s=300)


@pytest.fixture
def breakers():
    return CircuitBreakers(RULES)


def call(breakers, outcome, now):
    """One call that ends at once; False if it was not let through."""
    permit = breakers.acquire(MODEL, now)
    if permit is None:
        return False
    breakers.report(MODEL, permit, outcome, now)
    return True


def fail_until_open(breakers, now=0.0):
    for _ in range(RULES.failures):
        call(breakers, "failure", now)


def test_a_dead_model_is_left_after_the_stated_number_of_failures(breakers):
    made = [call(breakers, "failure", now) for now in range(60)]
    assert made == [True] * 3 + [False] * 57  # opened at 2 s, for 60 s
    assert breakers.circuit(MODEL).state(61) == "open"
    assert breakers.circuit(MODEL).state(62) == "half open"


def test_a_model_that_lives_again_is_back_after_one_probe(breakers):
    fail_until_open(breakers)
    assert not call(breakers, "success", 59.9)
    assert call(breakers, "success", 60)
    assert breakers.circuit(MODEL).state(60) == "closed"
    assert breakers.why_not(MODEL, 60) == ""
    assert [call(breakers, "failure", 61) for _ in range(4)] == [True, True, True, False]


def test_each_probe_that_fails_doubles_the_wait_up_to_the_longest(breakers):
    fail_until_open(breakers)
    probes = [now for now in range(700) if call(breakers, "failure", now)]
    assert probes == [60, 180, 330, 480, 630]  # waits of 60, 120, 150, 150, 150


def test_the_wait_is_short_again_after_the_model_lived(breakers):
    fail_until_open(breakers)
    call(breakers, "failure", 60)
    call(breakers, "success", 180)
    fail_until_open(breakers, 200)
    assert breakers.allows(MODEL, 260)


def test_a_success_between_them_ends_a_row_of_failures(breakers):
    for now in range(20):
        assert call(breakers, "success" if now % 3 == 2 else "failure", now)


def test_a_refusal_says_nothing_about_the_model(breakers):
    outcomes = ["failure", "inconclusive", "failure", "inconclusive", "inconclusive", "failure", "success"]
    assert [call(breakers, outcome, 0) for outcome in outcomes] == [True] * 6 + [False]


def test_only_one_caller_gets_the_probe(breakers):
    fail_until_open(breakers)
    permits = []
    threads = [threading.Thread(target=lambda: permits.append(breakers.acquire(MODEL, 60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(permit is not None for permit in permits) == 1
    assert not breakers.allows(MODEL, 60)
    assert "right now" in breakers.why_not(MODEL, 60)


def test_a_probe_that_says_nothing_is_given_back(breakers):
    fail_until_open(breakers)
    assert call(breakers, "inconclusive", 60)
    assert call(breakers, "success", 61)
    assert breakers.circuit(MODEL).state(61) == "closed"


def test_a_probe_that_never_comes_back_counts_as_failed(breakers):
    fail_until_open(breakers)
    lost = breakers.acquire(MODEL, 60)
    assert not breakers.allows(MODEL, 359)
    assert not breakers.allows(MODEL, 360)  # opened at 360, for 120 s
    assert breakers.allows(MODEL, 480)
    breakers.report(MODEL, lost, "success", 480)
    assert breakers.circuit(MODEL).state(480) == "half open"


def test_calls_that_were_under_way_when_it_opened_change_nothing(breakers):
    permits = [breakers.acquire(MODEL, 0) for _ in range(6)]
    for permit in permits[:3]:
        breakers.report(MODEL, permit, "failure", 1)
    before = breakers.circuit(MODEL)
    for permit, outcome in zip(permits[3:], ["success", "failure", "inconclusive"], strict=True):
        breakers.report(MODEL, permit, outcome, 2)
    assert breakers.circuit(MODEL) == before
    late = permits[0]
    assert call(breakers, "success", 61)
    breakers.report(MODEL, late, "failure", 62)
    assert breakers.circuit(MODEL).failures == 0


def test_models_fail_apart(breakers):
    fail_until_open(breakers)
    assert not breakers.allows(MODEL, 1)
    assert breakers.allows("lab/small", 1)


@pytest.mark.parametrize(
    "rules",
    [
        {"failures": 0},
        {"cooldown_s": 0},
        {"cooldown_s": float("nan")},
        {"longest_cooldown_s": 30},
        {"probe_timeout_s": float("inf")},
    ],
)
def test_rules_out_of_range_are_refused_by_name(rules):
    with pytest.raises(InvalidRequest, match=next(iter(rules))):
        BreakerRules(**rules)
