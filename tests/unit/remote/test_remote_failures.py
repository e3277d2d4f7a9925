"""What goes wrong with a server, each as the error that says what to do; a key is in none of them."""

import json
import socket
import traceback

import openai
import pytest
from speaking_server import chunk, failing, said, words

from cartoolkit.errors import (
    CartoolkitError,
    ContentRefused,
    MissingDependency,
    ModelNotFound,
    NetworkUnavailable,
    PromptTooLong,
    RateLimited,
    RemoteError,
)
from cartoolkit.remote import connect, keys
from cartoolkit.remote.failures import Server, translated

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def failure(engine, server):
    """The error that an answer of the server becomes."""

    def failure(answer, **settings):
        server.answers = [answer]
        with pytest.raises(CartoolkitError) as caught:
            engine.generate("Hi", **settings)
        return caught.value

    return failure


def test_a_server_that_is_not_there_is_a_network_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with (
            connect("parrot", base_url=f"http://127.0.0.1:{port}/v1") as engine,
            pytest.raises(NetworkUnavailable, match=f"127.0.0.1:{port} could not be reached"),
        ):
            engine.generate("Hi")


def test_a_server_that_hangs_up_without_a_word_is_a_network_error(failure):
    def hang_up(handler):
        handler.connection.shutdown(socket.SHUT_RDWR)

    assert isinstance(failure(hang_up), NetworkUnavailable)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_says_which_variable_to_set_and_hides_the_key(server, monkeypatch, status):
    monkeypatch.setenv("PARROT_KEY", KEY)
    server.answers = [failing(status, {"message": f"Incorrect API key provided: {KEY}.", "code": "invalid"})]
    with (
        connect("parrot", base_url=server.address, key_variable="PARROT_KEY") as engine,
        pytest.raises(RemoteError) as caught,
    ):
        engine.generate("Hi")
    error = caught.value
    assert error.status == status
    assert "PARROT_KEY" in error.hint
    assert "Incorrect API key provided: [key]" in str(error)
    everything = "".join(traceback.format_exception(error)) + error.trace.to_json()
    assert KEY not in everything


def test_the_librarys_own_error_which_holds_the_request_is_not_kept(failure):
    error = failure(failing(500, {"message": "no"}))
    assert (error.__cause__, error.__context__) == (None, None)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "The model `parrot` does not exist.", "code": "model_not_found"},
        {"message": "model 'parrot' not found, try pulling it first", "type": "not_found_error"},
        # mlx-lm's server, which looks for it on the hub.
        "Cannot find an appropriate cached snapshot folder for the specified revision.",
    ],
)
def test_a_model_that_the_server_has_not_is_not_found(failure, error):
    found = failure(failing(404, error))
    assert isinstance(found, ModelNotFound)
    assert "'parrot'" in str(found)


@pytest.mark.parametrize(
    "error", [{"message": "Not Found"}, "404 page not found", "<html><h1>Not Found</h1></html>", "Not Found."]
)
def test_an_address_that_is_none_is_told_from_a_model_that_is_none(failure, error):
    error = failure(failing(404, error))
    assert isinstance(error, RemoteError)
    assert error.status == 404
    assert "/v1" in error.hint


def test_a_limit_on_requests_says_how_long_to_wait(failure):
    error = failure(failing(429, {"message": "Rate limit reached"}, retry_after="20"))
    assert isinstance(error, RateLimited)
    assert error.status == 429
    assert "20 s" in error.hint


def test_an_account_with_nothing_left_is_told_apart_from_a_limit(failure):
    error = failure(failing(429, {"message": "You exceeded your quota", "code": "insufficient_quota"}))
    assert isinstance(error, RateLimited)
    assert "nothing left to spend" in error.hint


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_server_in_trouble_is_asked_once_and_says_its_status(failure, server, status):
    error = failure(failing(status, {"message": "overloaded"}))
    assert type(error) is RemoteError
    assert error.status == status
    assert f"status {status}: overloaded" in str(error)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"},
        {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
        {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000."},
    ],
)
def test_a_prompt_that_does_not_fit_is_too_long(failure, error):
    assert isinstance(failure(failing(400, error)), PromptTooLong)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Rejected as a result of our safety system.", "code": "content_policy_violation"},
        # As Azure OpenAI documents it.
        {"message": "The response was filtered.", "code": "content_filter", "param": "prompt"},
        {"message": "Filtered.", "code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}},
    ],
)
def test_content_that_is_refused_with_a_status_is_told_apart(failure, error):
    assert isinstance(failure(failing(400, error)), ContentRefused)


def test_content_that_is_refused_in_the_answer_is_told_with_the_models_words(failure):
    error = failure(said(chunk(refusal="I'm sorry, "), chunk(refusal="no."), chunk(finish="stop")))
    assert isinstance(error, ContentRefused)
    assert "I'm sorry, no" in str(error)


def test_an_answer_that_a_filter_ends_is_refused_and_what_came_is_in_the_trace(engine, server):
    server.answers = [words("How to", finish="content_filter")]
    session = engine.start("Hi")
    with pytest.raises(ContentRefused):
        session.result()
    assert session.trace.text == "How to"
    assert session.trace.header.stop_reason == "error"


def test_an_answer_that_is_cut_off_is_an_error_with_what_came(failure):
    error = failure(said(chunk("so far"), done=False))
    assert isinstance(error, RemoteError)
    assert "broke its answer off after 1 chunks" in str(error)
    assert error.trace.text == "so far"


def test_a_connection_that_breaks_in_the_middle_is_an_error_with_what_came(failure):
    def broken(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        data = f"data: {json.dumps(chunk('so far'))}\n\n".encode()
        handler.wfile.write(b"%x\r\n%s\r\nfff\r\ndata: {" % (len(data), data))
        handler.wfile.flush()

    error = failure(broken)
    assert isinstance(error, RemoteError)
    assert error.trace.text == "so far"


def test_an_error_in_the_middle_of_an_answer_is_told_with_its_words(failure):
    error = failure(said(chunk("so far"), {"error": {"message": "the GPU fell off", "code": "x"}}))
    assert isinstance(error, RemoteError)
    assert "the GPU fell off" in str(error)
    assert error.trace.text == "so far"


@pytest.mark.parametrize(
    "sent",
    [
        "{not json",
        "[1, 2]",
        "17",
        '"text"',
        "{}",
        '{"choices": 3}',
        '{"choices": [{"delta": {"content": 7}}]}',
        '{"choices": [{"delta": {"content": ["a"]}}]}',
        '{"choices": [{"delta": {}, "logprobs": {"content": [{"token": "a", "bytes": [999]}]}}]}',
    ],
)
def test_what_is_no_chat_completion_is_named_as_such(failure, sent):
    error = failure(said(sent))
    assert isinstance(error, RemoteError)
    assert "no chat completion" in str(error)


@pytest.mark.parametrize(
    "sent",
    [
        '{"choices": [{"delta": null, "finish_reason": "stop"}]}',
        '{"choices": [null]}',
        '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": 5}}]}',
        '{"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [5, {"id": 3}]}}]}',
        '{"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": -1}}',
    ],
)
def test_what_is_only_odd_is_read_as_far_as_it_goes(engine, server, sent):
    server.answers = [said(sent, chunk("b"), chunk(finish="stop"))]
    result = engine.generate("Hi")
    assert result.text in {"", "b", "ab"}
    assert result.usage.prompt_tokens is None


def test_an_answer_that_does_not_stream_is_named_as_such(failure):
    def whole(handler):
        message = {"role": "assistant", "content": "Hello"}
        handler.send_json(200, {"choices": [{"message": message, "finish_reason": "stop"}]}, {})

    error = failure(whole)
    assert isinstance(error, RemoteError)
    assert "no chunk" in str(error)


def test_a_long_page_in_place_of_an_error_is_cut(failure):
    error = failure(failing(502, "<html>" + "x" * 5000))
    assert len(str(error)) < 500


def test_every_error_of_the_library_becomes_one_of_ours():
    """No class that the openai library raises gets through untranslated."""
    server = Server("parrot", "example.org")
    request = openai._httpx.Request("POST", "http://example.org")
    for cls in _all_of(openai.OpenAIError):
        error = cls.__new__(cls)
        Exception.__init__(error, "no")
        error.request, error.body, error.message = request, None, "no"
        error.code = error.type = error.param = None
        error.status_code = getattr(cls, "status_code", 500)
        error.response = openai._httpx.Response(500, request=request)
        for pieces in (0, 3):
            assert isinstance(translated(error, server, pieces=pieces), CartoolkitError), cls


def _all_of(cls):
    yield cls
    for each in cls.__subclasses__():
        yield from _all_of(each)


def test_without_the_library_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(keys, "_has_openai", lambda: False)
    with pytest.raises(MissingDependency) as caught:
        connect("parrot")
    assert "cartoolkit[remote]" in caught.value.hint
