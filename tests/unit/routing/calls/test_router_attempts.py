"""What an attempt's end means, and how a trace tells the story."""

import numpy as np
import pytest
from model_rows import local, remote
from scripted_engines import engine_called

from cartoolkit.errors import (
    ContentRefused,
    DecodeTimeout,
    EngineBusy,
    ForwardFailed,
    InvalidRequest,
    MissingDependency,
    NetworkUnavailable,
    NotEnoughMemory,
    OutOfMemory,
    PromptTooLong,
    RateLimited,
    SpendLimitExceeded,
    UnsupportedMode,
)
from cartoolkit.routing.calls.attempts import (
    Attempt,
    ending_of_answer,
    ending_of_error,
    routed_trace_id,
    story,
    with_story,
)
from cartoolkit.routing.choice.decision import decide
from cartoolkit.routing.choice.intent import plan
from cartoolkit.routing.rows.registry import Registry
from cartoolkit.trace import Event


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (ForwardFailed("x"), ("failure", "error")),
        (RuntimeError("x"), ("failure", "error")),
        (SystemExit(1), ("failure", "error")),
        (MissingDependency("x"), ("failure", "error")),
        (NetworkUnavailable("x"), ("failure", "error")),
        (RateLimited("x"), ("failure", "error")),
        (OutOfMemory("x"), ("failure", "out_of_memory")),
        (NotEnoughMemory("x"), ("failure", "out_of_memory")),
        (MemoryError(), ("failure", "out_of_memory")),
        (DecodeTimeout("x"), ("failure", "timeout")),
        (EngineBusy("x"), ("inconclusive", "refused")),
        (UnsupportedMode("x"), ("inconclusive", "refused")),
        (SpendLimitExceeded("x"), ("inconclusive", "refused")),
        (ContentRefused("x"), ("inconclusive", "refused")),
        (InvalidRequest("x"), ("inconclusive", "invalid_request")),
        (PromptTooLong("x"), ("inconclusive", "refused")),
    ],
)
def test_what_an_error_says_of_an_attempt(error, ending):
    assert ending_of_error(error) == ending


@pytest.mark.parametrize(
    ("stop_reason", "ending"),
    [
        ("stop", ("success", "")),
        ("length", ("success", "")),
        ("stopped", ("inconclusive", "cancelled")),
        ("local_decode_timeout", ("failure", "timeout")),
    ],
)
def test_what_the_end_of_an_answer_says_of_an_attempt(stop_reason, ending):
    assert ending_of_answer(stop_reason) == ending


@pytest.fixture(scope="module")
def decision():
    registry = Registry([remote("acme/large"), local("torch/small")])
    return decide(registry, plan(registry, workload="local_preferred"))


def test_the_story_has_an_event_an_attempt_and_marks_the_answer(decision):
    first = Attempt("t1", "torch/small", "failure", "out_of_memory", "no memory left.", 1234.4)
    second = Attempt("t2", "acme/large", latency_ms=80.0)
    events = story(decision, [first, second], second)
    assert [event.kind for event in events] == ["routed", "routed"]
    assert [event.at for event in events] == [0, 0]
    assert events[0].text == f"{decision.reason} It ran out of memory after 1,234 ms: no memory left."
    assert events[1].text == "acme/large was asked next."
    assert events[0].data == {
        "model_id": "torch/small", "trace_id": "t1", "outcome": "failure", "reason": "out_of_memory",
        "ms": 1234.4, "answered": False,
    }  # fmt: skip
    assert events[1].data == {
        "model_id": "acme/large", "trace_id": "t2", "outcome": "success", "reason": "", "ms": 80.0,
        "answered": True,
    }  # fmt: skip


def test_a_partial_answer_is_told_for_what_it_is(decision):
    late = Attempt("t1", "torch/small", "failure", "timeout", "the answer was cut after 1 s", 1000.0)
    broken = Attempt("t2", "acme/large", "failure", "error", "it broke")
    told = story(decision, [late, broken], late)
    assert told[0].text.endswith(
        "It ran out of time after 1,000 ms: the answer was cut after 1 s. "
        "What it had written is the answer, since there is no other."
    )
    assert [event.data["answered"] for event in told] == [True, False]


@pytest.fixture(scope="module")
def trace():
    with engine_called("one") as engine:
        return engine.generate("a", temperature=0).trace


def routed(trace_id, *, answered):
    return Event(kind="routed", text="", data={"trace_id": trace_id, "answered": answered})


def test_the_story_is_put_before_a_trace_s_own_events_and_changes_nothing_else(trace):
    told = with_story(with_story(trace, [Event(kind="truncated", text="")]), [routed("t", answered=True)])
    assert [event.kind for event in told.events] == ["routed", "truncated"]
    assert (told.text, len(told), told.ttft_ms) == (trace.text, len(trace), trace.ttft_ms)
    assert all(
        np.array_equal(told.columns[name], trace.columns[name], equal_nan=True) for name in ("logprob",)
    )
    assert trace.events == []


def test_a_trace_names_the_attempt_that_its_answer_is_of(trace):
    told = with_story(trace, [routed("t1", answered=False), routed("t2", answered=True)])
    assert routed_trace_id(told) == "t2"
    assert routed_trace_id(trace) is None


def test_a_branch_of_a_routed_answer_is_not_the_router_s_answer_any_more(trace):
    branch = with_story(trace, [routed("t2", answered=True), Event(kind="branch", text="")])
    assert routed_trace_id(branch) is None


def test_a_trace_tells_its_story_after_it_was_saved(trace, tmp_path):
    told = with_story(trace, [routed("t2", answered=True)])
    told.save(tmp_path / "run.trace")
    assert routed_trace_id(type(trace).load(tmp_path / "run.trace")) == "t2"
