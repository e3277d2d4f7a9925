"""The loop over the models: who is asked, when it ends, and what is raised; attempts are written down."""

import pytest

from cartoolkit.errors import AllModelsFailed, ContentRefused, EngineError, InvalidRequest
from cartoolkit.routing.calls.attempts import Attempt
from cartoolkit.routing.calls.dispatch import dispatch


class Partial:
    """In the place of a trace: all that the loop looks at is its text."""

    def __init__(self, text):
        self.text = text


def made(model_id, outcome="success", reason="", error=None, text=None):
    trace = None if text is None else Partial(text)
    message = "" if error is None else str(error)
    return Attempt(f"t-{model_id}", model_id, outcome, reason, message, error=error, trace=trace)


def failed(model_id, error=None):
    return made(model_id, "failure", "error", error or EngineError(f"{model_id} broke"))


class Script:
    """Attempts by model, and who was asked."""

    def __init__(self, *attempts):
        self.attempts = {attempt.model_id: attempt for attempt in attempts}
        self.asked = []

    def __call__(self, model_id):
        self.asked.append(model_id)
        return self.attempts[model_id]


def test_the_first_model_that_answers_ends_it():
    script = Script(failed("a"), made("b"), made("c"))
    ended = dispatch(["a", "b", "c"], script)
    assert script.asked == ["a", "b"]
    assert ended.answer.model_id == "b"
    assert [attempt.model_id for attempt in ended.attempts] == ["a", "b"]


def test_no_model_is_asked_twice():
    script = Script(failed("a"), failed("b"))
    with pytest.raises(AllModelsFailed):
        dispatch(["a", "b", "a"], script)
    assert script.asked == ["a", "b"]


def test_when_all_failed_the_error_says_why_for_each_and_holds_the_attempts():
    broken = EngineError("the forward raised")
    script = Script(
        failed("a", broken), made("b", "inconclusive", "refused", EngineError("busy")), failed("c")
    )
    with pytest.raises(AllModelsFailed) as caught:
        dispatch(["a", "b", "c"], script)
    assert str(caught.value) == (
        "No model answered:\n"
        "  a: failed: the forward raised\n"
        "  b: could not be asked: busy\n"
        "  c: failed: c broke"
    )
    assert [attempt.model_id for attempt in caught.value.attempts] == ["a", "b", "c"]
    assert str(caught.value.__cause__) == "c broke"


def test_a_partial_answer_is_returned_only_if_nobody_gives_a_whole_one():
    late = made("a", "failure", "timeout", text="half an ans")
    assert dispatch(["a", "b"], Script(late, made("b", text="whole"))).answer.model_id == "b"
    assert dispatch(["a", "b"], Script(late, failed("b"))).answer is late


def test_of_two_partial_answers_that_of_the_better_model_is_returned():
    script = Script(*(made(name, "failure", "timeout", text=name) for name in ("a", "b")))
    assert dispatch(["a", "b"], script).answer.model_id == "a"


def test_running_out_of_time_without_a_word_is_no_partial_answer():
    script = Script(made("a", "failure", "timeout", EngineError("no token"), text=""))
    with pytest.raises(AllModelsFailed, match="a: ran out of time: no token"):
        dispatch(["a"], script)


def test_refused_content_is_raised_and_nobody_else_is_asked():
    script = Script(made("a", "inconclusive", "refused", ContentRefused("not this")), made("b"))
    with pytest.raises(ContentRefused, match="not this"):
        dispatch(["a", "b"], script)
    assert script.asked == ["a"]


def test_a_request_at_fault_is_raised_even_after_half_an_answer():
    script = Script(
        made("a", "failure", "timeout", text="half"),
        made("b", "inconclusive", "invalid_request", InvalidRequest("no such token")),
        made("c"),
    )
    with pytest.raises(InvalidRequest, match="no such token") as caught:
        dispatch(["a", "b", "c"], script)
    assert script.asked == ["a", "b"]
    assert "Tried before it: a: ran out of time: " in caught.value.__notes__


def test_what_a_stop_left_is_the_answer():
    script = Script(made("a", "inconclusive", "cancelled", text="so f"), made("b"))
    assert dispatch(["a", "b"], script).answer.model_id == "a"
    assert script.asked == ["a"]


def test_an_interrupt_before_there_is_anything_is_raised():
    script = Script(made("a", "inconclusive", "cancelled", KeyboardInterrupt()), made("b"))
    with pytest.raises(KeyboardInterrupt):
        dispatch(["a", "b"], script)
    assert script.asked == ["a"]


def test_an_interrupt_of_a_fallback_hands_over_half_an_answer_that_there_is():
    script = Script(
        made("a", "failure", "timeout", text="half"),
        made("b", "inconclusive", "cancelled", KeyboardInterrupt()),
    )
    assert dispatch(["a", "b"], script).answer.model_id == "a"


def test_the_error_of_a_named_model_is_raised_as_it_is():
    broken = EngineError("the forward raised")
    with pytest.raises(EngineError) as caught:
        dispatch(["a"], Script(failed("a", broken)), pinned=True)
    assert caught.value is broken


def test_what_would_end_a_program_is_raised_as_an_error_of_the_model():
    with pytest.raises(EngineError, match="SystemExit was raised: 3"):
        dispatch(["a"], Script(failed("a", SystemExit(3))), pinned=True)
