"""Settings that one server or another does not take: less is asked for, and the trace says so."""

import pytest
from speaking_server import failing, words

from cartoolkit.errors import RemoteError


def asked_for_less(result):
    return [event.text for event in result.trace.events if event.kind == "asked_for_less"]


def test_a_server_with_fewer_candidates_is_asked_for_fewer_and_that_is_remembered(engine, server):
    server.answers = [failing(400, "top_logprobs must be at most 11"), words("a")]
    result = engine.generate("Hi")
    assert [each["top_logprobs"] for each in server.requests] == [20, 10]
    assert asked_for_less(result) == ["The server tells 10 candidates a token at most."]
    again = engine.generate("Hi")
    assert server.requests[2]["top_logprobs"] == 10
    assert asked_for_less(again) == asked_for_less(result)


def test_who_asks_for_no_more_than_a_server_tells_gets_all_of_it(engine, server):
    server.answers = [failing(400, "top_logprobs must be at most 11"), words("a")]
    for candidates in (20, 10, 5):
        result = engine.generate("Hi", candidates=candidates)
    assert [each["top_logprobs"] for each in server.requests] == [20, 10, 10, 5]
    assert asked_for_less(result) == []


def test_a_server_without_probabilities_is_asked_for_none(engine, server):
    refusal = {"message": "logprobs are not supported", "param": "logprobs"}
    server.answers = [failing(400, refusal), failing(400, refusal), failing(400, refusal), words("a")]
    result = engine.generate("Hi")
    assert result.text == "a"
    assert not {"logprobs", "top_logprobs"} & server.requests[-1].keys()
    assert asked_for_less(result)[-1] == "The server tells no probabilities."


def test_the_newer_name_of_the_limit_is_used_where_the_old_one_is_refused(engine, server):
    # The words of OpenAI's reasoning models.
    refusal = {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
    server.answers = [failing(400, refusal), words("a")]
    result = engine.generate("Hi", max_tokens=9)
    assert server.requests[1]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[1]
    assert asked_for_less(result) == []


def test_a_temperature_that_nobody_wrote_is_given_up(engine, server):
    refusal = {"message": "Unsupported value: 'temperature' does not support 0.7.", "param": "temperature"}
    server.answers = [failing(400, refusal), words("a")]
    result = engine.generate("Hi")
    assert "temperature" not in server.requests[1]
    assert asked_for_less(result) == ["The server takes no temperature; its own holds."]


def test_a_temperature_that_the_caller_wrote_is_not_given_up(engine, server):
    refusal = {"message": "Unsupported value: 'temperature' does not support 0.7.", "param": "temperature"}
    server.answers = [failing(400, refusal), words("a")]
    with pytest.raises(RemoteError, match="temperature"):
        engine.generate("Hi", temperature=0.7)


def test_a_count_that_the_server_does_not_make_is_given_up(engine, server):
    server.answers = [failing(422, {"message": "stream_options: extra fields not permitted"}), words("a")]
    engine.generate("Hi")
    assert "stream_options" not in server.requests[1]


def test_a_server_that_refuses_whatever_is_asked_is_not_asked_for_ever(engine, server):
    complaint = "temperature top_p logprobs top_logprobs stream_options max_completion_tokens max_tokens"
    server.answers = [failing(400, {"message": complaint})]
    with pytest.raises(RemoteError):
        engine.generate("Hi")
    assert len(server.requests) <= 8


def test_another_complaint_is_not_mistaken_for_one_about_a_setting(engine, server):
    server.answers = [failing(400, {"message": "messages must not be empty"})]
    with pytest.raises(RemoteError, match="messages must not be empty"):
        engine.generate("Hi")
    assert len(server.requests) == 1
