"""What a router writes down: ledger, breakers and spending in step, and nothing lost for a file's sake."""

import pytest

from cartoolkit.errors import InvalidRequest, LedgerError, SpendLimitExceeded
from cartoolkit.routing.outcomes.books import Books, evidence_of
from cartoolkit.routing.outcomes.breaker import BreakerRules
from cartoolkit.routing.outcomes.records import Completion, ModelProfile, Tally
from cartoolkit.routing.outcomes.spending import SpendLimits


class Clock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def completion(trace_id, model_id="acme/large", time=1000.0, reason="", usd=0.25):
    outcome = "failure" if reason else "success"
    return Completion(
        trace_id=trace_id, model_id=model_id, task="chat", time=time, outcome=outcome, reason=reason, usd=usd
    )


def call(books, trace_id, *, reason="", estimate=0.25, usd=0.25, model_id="acme/large"):
    admission = books.admit(model_id, estimate, pinned=False)
    assert not isinstance(admission, str), admission
    books.settle(admission, completion(trace_id, model_id, books.now, reason, usd), usd)


def spent(books):
    return books.spending.status(books.now)[0].spent


def test_a_call_is_counted_in_the_ledger_the_breaker_and_the_spending(tmp_path):
    books = Books(tmp_path, rules=BreakerRules(failures=1), clock=Clock())
    call(books, "t1")
    assert books.history.tracker.profile("acme/large").total.success_count == 1
    assert spent(books) == 0.25
    call(books, "t2", reason="error")
    assert books.resting({"acme/large": 0.0}) == {"acme/large": "failed repeatedly; is tried again in 60 s"}
    assert books.admit("acme/large", 0.0, pinned=False) == "failed repeatedly; is tried again in 60 s"


def test_what_a_ledger_holds_is_counted_into_the_spending_when_it_is_opened(tmp_path):
    clock = Clock()
    call(Books(tmp_path, clock=clock), "t1")
    later = Books(tmp_path, limits=SpendLimits(per_hour=0.40), clock=clock)
    assert spent(later) == 0.25
    assert later.resting({"acme/large": 0.25}) == {
        "acme/large": "$0.25 may pass the limit of $0.4 for the last hour: $0.25 spent, $0 reserved"
    }


def test_two_routers_on_one_ledger_see_each_other_s_bills_once(tmp_path):
    clock = Clock()
    first, second = Books(tmp_path, clock=clock), Books(tmp_path, clock=clock)
    call(first, "t1")
    call(second, "t2", usd=0.5)
    first.history.refresh()
    assert (spent(first), spent(second)) == (0.75, 0.75)


def test_a_call_that_may_pass_a_limit_is_not_admitted_even_if_its_model_was_named(tmp_path):
    books = Books(tmp_path, limits=SpendLimits(per_call=0.10))
    with pytest.raises(SpendLimitExceeded, match=r"\$0.25 is above the limit of \$0.1 for one call"):
        books.admit("acme/large", 0.25, pinned=True)


def test_a_model_that_rests_is_admitted_if_it_was_named_and_nothing_stays_reserved_if_not(tmp_path):
    books = Books(tmp_path, rules=BreakerRules(failures=1), clock=Clock())
    call(books, "t1", reason="error", usd=0.0)
    assert isinstance(books.admit("acme/large", 0.25, pinned=False), str)
    assert books.spending.status(books.now)[0].reserved == 0
    assert not isinstance(books.admit("acme/large", 0.25, pinned=True), str)


def test_a_folder_that_cannot_be_written_costs_no_outcome_and_is_said_once(tmp_path, capsys):
    books = Books(tmp_path, clock=Clock())
    (tmp_path / "outcomes.jsonl").mkdir()  # nothing can be written to a folder
    call(books, "t1")
    call(books, "t2")
    assert books.history.tracker.profile("acme/large").total.success_count == 2
    assert spent(books) == 0.5
    assert books.judge("t1", accepted=False, confidence=1.0) == "booked"
    assert books.history.tracker.profile("acme/large").total.fail_count == 1
    said = capsys.readouterr().out
    assert said.count("The router goes on, and remembers outcomes until it ends.") == 1


def test_a_foreign_file_in_a_folder_that_was_given_is_refused(tmp_path):
    (tmp_path / "outcomes.jsonl").write_text("dear diary\n")
    with pytest.raises(LedgerError, match="is not an outcome ledger"):
        Books(tmp_path)


def test_a_foreign_file_in_the_usual_folder_is_left_alone_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path))
    diary = tmp_path / "routing" / "outcomes.jsonl"
    diary.parent.mkdir()
    diary.write_text("dear diary\n")
    books = Books()
    assert "is not an outcome ledger" in capsys.readouterr().out
    call(books, "t1")
    assert books.history.tracker.profile("acme/large").total.calls == 1
    assert diary.read_text() == "dear diary\n"


def test_a_verdict_is_checked_before_it_is_written(tmp_path):
    books = Books(tmp_path)
    with pytest.raises(InvalidRequest, match="confidence must be a number from 0 to 1; got 2"):
        books.judge("t1", accepted=True, confidence=2)
    with pytest.raises(InvalidRequest, match="accepted must be True or False; got 'yes'"):
        books.judge("t1", accepted="yes", confidence=1.0)
    with pytest.raises(InvalidRequest, match="'the first one' is no trace id"):
        books.judge("the first one", accepted=True, confidence=1.0)
    assert not (tmp_path / "outcomes.jsonl").exists()


def test_the_evidence_for_a_task_is_its_own_once_there_are_five_calls_of_it():
    four = ModelProfile("a/four", Tally(success_count=9, fail_count=1), {"code": Tally(fail_count=4)})
    five = ModelProfile(
        "a/five", Tally(success_count=9, fail_count=5), {"code": Tally(success_count=1, fail_count=4)}
    )
    found = evidence_of([four, five], "code")
    assert (found["a/four"].successes, found["a/four"].failures) == (9, 1)
    assert (found["a/five"].successes, found["a/five"].failures) == (1, 4)
    assert evidence_of([five])["a/five"].successes == 9
