"""Spend limits: kept to before the call, settled after it, and not fooled by a missing price."""

import contextlib
import threading

import pytest

from cartoolkit.errors import InvalidRequest, SpendLimitExceeded
from cartoolkit.routing.outcomes.records import Completion
from cartoolkit.routing.outcomes.spending import SpendControl, SpendLimits

HOUR, DAY = 3600.0, 86_400.0


def spend(control, usd, now):
    control.settle(control.reserve(usd, now), usd, now)


def test_a_call_that_fits_is_let_through_and_one_that_does_not_is_refused():
    control = SpendControl(SpendLimits(per_day=1.0))
    spend(control, 0.6, now=0)
    spend(control, 0.4, now=1)  # exactly the limit
    with pytest.raises(SpendLimitExceeded, match=r"limit of \$1 for the last 24 hours: \$1 spent"):
        control.reserve(0.000001, now=2)


def test_the_window_rolls():
    control = SpendControl(SpendLimits(per_hour=1.0))
    spend(control, 0.7, now=0)
    spend(control, 0.3, now=HOUR / 2)
    assert control.why_not(0.5, now=HOUR - 1)
    assert control.why_not(0.7, now=HOUR) == ""
    assert control.why_not(0.8, now=HOUR)


def test_every_window_is_kept_to():
    control = SpendControl(SpendLimits(per_hour=1.0, per_day=1.5))
    spend(control, 1.0, now=0)
    spend(control, 0.5, now=2 * HOUR)
    assert "last 24 hours" in control.why_not(0.1, now=4 * HOUR)
    assert control.why_not(0.1, now=DAY) == ""


def test_one_call_has_its_own_limit():
    control = SpendControl(SpendLimits(per_call=0.05))
    assert "for one call" in control.why_not(0.06, now=0)
    for now in range(10):
        spend(control, 0.05, now)


def test_calls_under_way_cannot_pass_a_limit_together():
    control = SpendControl(SpendLimits(per_day=1.0))
    made = []

    def call():
        with contextlib.suppress(SpendLimitExceeded):
            made.append(control.reserve(0.3, now=0))

    threads = [threading.Thread(target=call) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3


def test_what_was_reserved_and_not_billed_is_free_again():
    control = SpendControl(SpendLimits(per_day=1.0))
    held = control.reserve(0.9, now=0)
    assert control.why_not(0.2, now=1)
    control.settle(held, 0.0, now=2)
    assert control.why_not(1.0, now=3) == ""


def test_a_reservation_is_settled_once():
    control = SpendControl(SpendLimits(per_day=1.0))
    held = control.reserve(0.4, now=0)
    control.settle(held, 0.4, now=1)
    control.settle(held, 0.4, now=2)
    assert control.status(3)[1].spent == 0.4


def test_a_bill_above_its_estimate_is_booked_in_full():
    control = SpendControl(SpendLimits(per_day=1.0))
    control.settle(control.reserve(0.9, now=0), 1.5, now=1)
    status = control.status(2)[1]
    assert (status.spent, status.left) == (1.5, 0.0)
    assert control.why_not(0.01, now=3)


def test_a_bill_that_nobody_knows_counts_as_estimated():
    control = SpendControl(SpendLimits(per_day=1.0))
    control.settle(control.reserve(0.9, now=0), None, now=1)
    assert control.status(2)[1].spent == 0.9


# Unknown prices


def test_an_unknown_price_is_refused_while_there_is_a_limit():
    with pytest.raises(SpendLimitExceeded, match="nobody knows what it costs"):
        SpendControl(SpendLimits(per_month=100)).reserve(None, now=0)
    SpendControl().reserve(None, now=0)


def test_an_unknown_price_that_is_allowed_makes_the_sum_a_lower_bound():
    control = SpendControl(SpendLimits(per_day=1.0), unpriced="allow")
    spend(control, None, now=0)
    spend(control, 0.8, now=1)
    assert control.status(2)[1].unpriced == 1
    assert "at least $0.8 spent" in control.why_not(0.3, now=2)
    assert control.status(DAY + 2)[1].unpriced == 0


def test_what_nobody_bills_passes_even_a_limit_of_nothing():
    control = SpendControl(SpendLimits(per_day=0.0))
    assert control.why_not(0.0, now=0) == ""
    assert control.why_not(1e-6, now=0)
    assert control.why_not(1e-12, now=0)


# Sums and replays


def test_many_small_bills_add_up_exactly():
    control = SpendControl(SpendLimits(per_day=0.1))
    for _ in range(10_000):
        spend(control, 0.00001, now=0)  # as floats they add up to 0.10000000000000184
    assert control.status(1)[1].left == 0.0
    assert control.why_not(0.00001, now=1)


def test_earlier_calls_count_after_a_restart():
    about = {"model_id": "cloud/large", "task": "chat"}
    rows = [
        Completion(trace_id="a", time=DAY, usd=0.5, **about),
        Completion(trace_id="b", time=DAY / 2, usd=0.25, **about),
        Completion(trace_id="c", time=DAY, **about),
    ]
    control = SpendControl(SpendLimits(per_day=1.0))
    control.replay(rows)
    hour, day, month = control.status(DAY + 10)
    assert (hour.spent, day.spent, month.spent) == (0.5, 0.75, 0.75)
    assert (day.left, day.unpriced) == (0.25, 1)
    assert (hour.limit, hour.left) == (None, None)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_limits_and_prices_out_of_range_are_refused(value):
    with pytest.raises(InvalidRequest, match="per_hour"):
        SpendLimits(per_hour=value)
    with pytest.raises(InvalidRequest, match="a price"):
        SpendControl().reserve(value, now=0)
