"""An engine that asks a server: what it sends, what comes back, and how it is stopped, paused and closed."""

import gc
import threading
import time

import pytest
from speaking_server import chunk, failing, said, usage, words

import cartoolkit as ct
from cartoolkit.engine import Usage
from cartoolkit.errors import (
    DecodeTimeout,
    EngineClosed,
    InvalidRequest,
    RemoteError,
    UnsupportedMode,
)
from cartoolkit.remote import connect
from cartoolkit.trace import Trace


def kinds(run):
    return [event.kind for event in run.trace.events]


class Gate:
    """Lets a server go on when the test says so."""

    def __init__(self):
        self.opened = threading.Event()

    def __call__(self, _handler):
        assert self.opened.wait(20)


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# What is sent


def test_a_request_is_sent_as_a_chat_completion(engine, server):
    engine.generate("Why?", temperature=0, top_p=0.5, max_tokens=9, seed=3, stop=["\n"], candidates=4)
    assert server.requests == [
        {
            "model": "parrot",
            "messages": [{"role": "user", "content": "Why?"}],
            "temperature": 0,
            "top_p": 0.5,
            "max_tokens": 9,
            "seed": 3,
            "stop": ["\n"],
            "logprobs": True,
            "top_logprobs": 4,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


def test_without_inspection_no_probabilities_are_asked_for(engine, server):
    engine.generate("Why?", inspect=False)
    assert not {"logprobs", "top_logprobs"} & server.requests[0].keys()


def test_no_seed_is_sent_and_none_is_recorded_where_none_was_given(engine, server):
    result = engine.generate("Why?")
    assert "seed" not in server.requests[0]
    assert result.trace.header.params["seed"] is None


def test_a_conversation_with_calls_and_a_context_is_sent_whole(engine, server):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Add 1 "}, {"type": "text", "text": "and 2."}]},
        {"role": "assistant", "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]},
        {"role": "tool", "content": "3", "tool_call_id": "call_2_0"},
    ]
    engine.generate(messages, context="One and two are three.")
    system, asked, call, answer = server.requests[0]["messages"]
    assert system["content"].startswith("Be brief.")
    assert system["content"].endswith("One and two are three.")
    assert asked == {"role": "user", "content": "Add 1 and 2."}
    assert call["tool_calls"] == [
        {"id": "call_2_0", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    ]
    assert answer == {"role": "tool", "content": "3", "tool_call_id": "call_2_0"}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"answer_start": "Because"}, "answer_start"),
        ({"logit_bias": {5: -1.0}}, "logit_bias"),
        ({"chat_template": False}, "chat_template=False"),
        ({"prompt_logprobs": True}, "prompt_logprobs"),
        ({"ignore_eos": True}, "ignore_eos"),
        ({"workload": "batch"}, "workload"),
        ({"temprature": 1}, "temprature"),
    ],
)
def test_a_setting_that_would_change_the_answer_is_refused_before_anything_is_sent(
    engine, server, settings, named
):
    with pytest.raises(InvalidRequest, match=named):
        engine.generate("Why?", **settings)
    assert server.requests == []


def test_pictures_and_look_ups_are_refused_by_name(engine, server):
    picture = {"type": "image", "url": "http://127.0.0.1/a.png"}
    with pytest.raises(UnsupportedMode, match="'image'"):
        engine.generate([{"role": "user", "content": [picture]}])
    with pytest.raises(UnsupportedMode, match="looked up"):
        engine.generate("Why?", retrieval="upfront", retriever=lambda _query: "Because.")
    assert server.requests == []


def test_a_policy_that_never_looks_anything_up_asks_for_nothing(engine):
    assert engine.generate("Why?", retrieval="none", retriever=None).text == "Hello there."


def test_settings_that_a_server_has_not_are_named_aloud_and_in_the_trace(engine, capsys):
    result = engine.generate("Why?", top_k=40, min_p=0.1, repeat_penalty=1.5, candidates=50, repeatable=True)
    names = ["top_k=40", "min_p=0.1", "repeat_penalty=1.5", "candidates=50", "repeatable=True"]
    assert result.trace.events[0].data["settings"] == names
    assert all(name in capsys.readouterr().out or name in result.trace.events[0].text for name in names)


def test_a_quiet_start_prints_nothing(engine, capsys):
    session = engine.start("Why?", quiet=True, top_k=40)
    session.result()
    assert capsys.readouterr().out == ""
    assert session.header.events[0].kind == "not_heeded"


# What comes back


def test_an_answer_is_the_chunks_joined_with_the_servers_own_count(engine, server):
    server.answers = [words("Hel", "lo ", "wörld 🙂")]
    result = engine.generate("Hi")
    assert str(result) == "Hello wörld 🙂"
    assert result.stop_reason == "stop"
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (7, 3)
    assert [step.text for step in result.trace] == ["Hel", "lo ", "wörld 🙂"]
    assert result.trace.header.prompt == "Hi"
    assert result.trace.header.model.name == "parrot"
    assert result.trace.header.provider.model == "parrot-2026"
    assert "openai" in result.trace.header.versions


def test_what_was_cached_and_thought_is_counted_apart(engine, server):
    parts = {"cached_tokens": 60}, {"reasoning_tokens": 30}
    count = usage(100, 40, prompt_tokens_details=parts[0], completion_tokens_details=parts[1])
    thought = chunk(reasoning_content="Hm.")
    server.answers = [said(thought, chunk("Be"), chunk("cause"), chunk(finish="stop"), count)]
    result = engine.generate("Why?")
    assert result.text == "Because"
    assert result.usage == Usage(prompt_tokens=100, prefill_tokens=40, reused_tokens=60, completion_tokens=40)
    assert result.trace.completion_tokens == 10
    assert "thought" in kinds(result)


def test_what_a_server_does_not_count_is_unknown_and_not_zero(engine, server):
    server.answers = [words("Hello", count=None)]
    assert engine.generate("Hi").usage == Usage(None, None, None, None)


def test_a_step_without_tokens_says_that_it_is_a_chunk(engine, server):
    result = engine.generate("Hi")
    assert result.trace.header.provider.unit == "chunk"
    assert "chunks" in kinds(result)
    assert "a step is a chunk" in result.trace.to_html()
    assert "Told by a server: no probabilities" in result.trace.to_html()


def test_the_speed_of_chunks_is_told_in_tokens(engine, server):
    def rest(_handler):
        time.sleep(0.1)

    pieces = [chunk("a"), rest, chunk("b"), rest, chunk("c"), chunk(finish="stop")]
    server.answers = [said(*pieces, usage(7, 30)), said(*pieces)]
    trace = engine.generate("Hi").trace
    first, last = trace.columns["elapsed"][[0, 2]]
    # Thirty tokens in three chunks are ten each, and two of the three come after the first.
    assert trace.tokens_per_second == pytest.approx(20 / (last - first))
    assert engine.generate("Hi").tokens_per_second is None


def test_the_first_token_is_timed_when_it_comes(engine, server):
    def rest(_handler):
        time.sleep(0.3)

    server.answers = [said(chunk("", role="assistant"), rest, chunk("a"), chunk(finish="stop"))]
    begun = time.perf_counter()
    ttft = engine.generate("Hi").ttft_ms
    assert 300 <= ttft <= (time.perf_counter() - begun) * 1000


def test_a_trace_from_a_server_is_saved_and_opened_again(engine, tmp_path):
    trace = engine.generate("Hi").trace
    again = Trace.load(trace.save(tmp_path / "run.trace"))
    assert again.text == trace.text
    assert again.header == trace.header


def test_the_limit_is_told_as_the_reason(engine, server):
    server.answers = [words("a", "b", finish="length")]
    assert engine.generate("Hi", max_tokens=2).stop_reason == "length"


def test_a_huge_chunk_is_one_step(engine, server):
    text = "wörd " * 200_000
    server.answers = [words(text)]
    trace = engine.generate("Hi").trace
    assert (trace.text, len(trace)) == (text, 1)


def test_half_a_character_shows_as_unknown_instead_of_failing(engine, server):
    lone = '{"choices": [{"index": 0, "delta": {"content": "a\\ud83d"}, "finish_reason": "stop"}]}'
    server.answers = [said(lone)]
    result = engine.generate("Hi")
    assert result.text.startswith("a�")
    assert b"a" in result.trace.token_bytes[0]


# Stop strings, also where the server knows none


def test_a_stop_string_is_cut_out_though_the_server_sends_it(engine, server):
    server.answers = [words("one", ", tw", "o, th", "ree")]
    result = engine.generate("Count", stop=["two"])
    assert result.text == "one, "
    assert (result.stop_reason, result.stop_detail) == ("stop", "stop string 'two'")


def test_stop_strings_beyond_the_fourth_are_found_here(engine, server):
    stops = ["1", "2", "3", "4", "ree"]
    server.answers = [words("one, ", "two, th", "ree")]
    assert engine.generate("Count", stop=stops).text == "one, two, th"
    assert server.requests[0]["stop"] == stops[:4]


# Steering


def test_stop_in_the_middle_ends_the_request_and_keeps_what_came(engine, server):
    gate = Gate()

    def flood(handler):
        for _ in range(100_000):
            handler.send_data('{"choices": [{"index": 0, "delta": {"content": "la "}}]}')

    server.answers = [said(chunk("do "), gate, flood)]
    session = engine.start("Sing")
    until(lambda: session.steps)
    session.stop()
    gate.opened.set()
    result = session.result()
    assert (result.stop_reason, result.stop_detail) == ("stopped", "by the user")
    assert result.text.startswith("do ")
    assert result.usage.completion_tokens is None
    assert server.left.wait(10)  # the connection is closed, so the server writes in vain


def test_stop_is_heard_while_the_server_says_nothing(engine, server):
    gate = Gate()
    server.answers = [said(gate)]
    session = engine.start("Hi")
    until(lambda: server.requests)
    begun = time.monotonic()
    session.stop()
    assert session.wait(5)
    assert time.monotonic() - begun < 3
    gate.opened.set()
    assert session.result().stop_reason == "stopped"


def test_a_paused_start_sends_nothing_and_each_step_takes_a_chunk(engine, server):
    server.answers = [words("a", "b", "c")]
    session = engine.start("Hi", paused=True)
    until(lambda: session.state == "paused")
    time.sleep(0.1)
    assert server.requests == []
    session.step()
    until(lambda: len(session.steps) == 1 and session.state == "paused")
    session.step(2)
    until(lambda: len(session.steps) == 3)
    session.resume()
    assert session.result().text == "abc"


def test_a_pause_does_not_count_as_silence(server):
    server.answers = [words("a", "b")]
    with connect("parrot", base_url=server.address, timeout=0.5) as engine:
        session = engine.start("Hi", paused=True)
        session.step()
        until(lambda: len(session.steps) == 1 and session.state == "paused")
        time.sleep(0.8)
        session.resume()
        assert session.result().text == "ab"


def test_leaving_a_stream_early_ends_the_request(engine, server):
    gate = Gate()
    server.answers = [said(chunk("a"), chunk("b"), gate, *[chunk("c")] * 3000)]
    for step in engine.stream("Hi"):
        assert step.text == "a"
        break
    gate.opened.set()
    assert engine.session.done
    assert engine.session.trace.header.stop_reason == "stopped"


def test_several_requests_run_at_once(engine, server):
    gate = Gate()
    server.answers = [said(gate, chunk("late"), chunk(finish="stop")), words("early")]
    first = engine.start("one")
    until(lambda: server.requests)
    assert engine.generate("two").text == "early"
    gate.opened.set()
    assert first.result().text == "late"


def test_a_session_can_be_awaited(engine, run_async):
    async def answer():
        return await engine.start("Hi")

    assert run_async(answer()).text == "Hello there."


# Time


def test_a_server_that_says_nothing_in_time_is_a_timeout(engine, server):
    gate = Gate()
    server.answers = [said(gate)]
    with pytest.raises(DecodeTimeout, match=r"after 0\.2 s"):
        engine.generate("Hi", time_limit=0.2)
    gate.opened.set()


def test_comments_that_keep_a_connection_alive_do_not_hold_time_up(engine, server):
    def comments(handler):
        for _ in range(200):
            handler.wfile.write(b": still thinking\n\n")
            handler.wfile.flush()
            time.sleep(0.02)

    server.answers = [said(comments)]
    with pytest.raises(DecodeTimeout):
        engine.generate("Hi", time_limit=0.3)
    assert server.left.wait(10)


def test_what_came_before_the_time_was_up_is_kept(engine, server):
    gate = Gate()
    server.answers = [said(chunk("so far"), gate)]
    result = engine.generate("Hi", time_limit=1.0)
    gate.opened.set()
    assert (result.text, result.stop_reason) == ("so far", "local_decode_timeout")


def test_a_server_that_falls_silent_is_given_up(server):
    gate = Gate()
    server.answers = [said(chunk("so far"), gate)]
    with connect("parrot", base_url=server.address, timeout=0.4) as engine:
        result = engine.generate("Hi", time_limit=None)
    gate.opened.set()
    assert result.stop_reason == "local_decode_timeout"
    assert "sent nothing for 0.4 s" in result.stop_detail


# Closing, branching, showing


def test_a_closed_engine_stops_what_runs_and_answers_no_more(server):
    gate = Gate()
    server.answers = [said(chunk("a"), gate)]
    engine = connect("parrot", base_url=server.address)
    session = engine.start("Hi")
    until(lambda: session.steps)
    engine.close()
    gate.opened.set()
    assert (session.done, engine.closed) == (True, True)
    with pytest.raises(EngineClosed, match="connect again"):
        engine.generate("Hi")


def test_a_run_outlives_the_name_of_its_engine(server):
    session = connect("parrot", base_url=server.address).start("Hi")
    gc.collect()
    assert session.result().text == "Hello there."


def test_a_run_on_a_server_cannot_be_branched_and_says_why(engine):
    session = engine.start("Hi")
    session.wait()
    with pytest.raises(UnsupportedMode, match="cannot be branched"):
        session.branch(at=1)
    with pytest.raises(UnsupportedMode, match="cannot be branched"):
        engine.branch(session.trace, at=1)


def test_the_inspector_shows_runs_of_a_server_and_offers_no_branch(engine):
    inspector = ct.Inspector(engine, "Hi")
    inspector.start().result()
    assert inspector.trace.text == "Hello there."
    assert inspector.view.can_branch is False
    inspector.close()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"model": ""}, "model"),
        ({"model": None}, "model"),
        ({"base_url": "127.0.0.1:8080"}, "base_url"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"base_url": "http://[::1"}, "base_url"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"client": object()}, "AsyncOpenAI"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(arguments, named):
    with pytest.raises(InvalidRequest, match=named):
        connect(**{"model": "parrot", "base_url": "http://127.0.0.1:1/v1", **arguments})


def test_a_client_of_ones_own_is_used_and_not_closed(server):
    import openai

    client = openai.AsyncOpenAI(api_key="my-own-key-1", base_url=server.address)
    with connect("parrot", client=client) as engine:
        assert engine.generate("Hi").text == "Hello there."
    assert server.heard[0]["authorization"] == "Bearer my-own-key-1"
    assert client.is_closed() is False


def test_the_key_of_a_client_of_ones_own_is_hidden_too(server):
    import openai

    client = openai.AsyncOpenAI(api_key="my-own-key-1", base_url=server.address)
    server.answers = [failing(401, {"message": "wrong key my-own-key-1"})]
    with connect("parrot", client=client) as engine, pytest.raises(RemoteError, match=r"wrong key \[key\]"):
        engine.generate("Hi")


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(InvalidRequest) as caught:
        connect("parrot", base_url="http://me:hunter22@127.0.0.1:8080/v1")
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"base_url": 5}, "base_url must be a text; got int"),
        ({"name": 5}, "name must be a text; got int"),
        ({"api_key": b"secret"}, "api_key must be a text; got bytes"),
        ({"context_length": "many"}, "context_length must be a whole number of at least 1; got 'many'"),
        ({"context_length": -5}, "context_length must be a whole number of at least 1; got -5"),
        ({"timeout": True}, "timeout must be a number of seconds above 0; got True"),
    ],
)
def test_what_is_no_argument_of_a_connection_is_refused_in_a_sentence(wrong, said):
    with pytest.raises(InvalidRequest, match=said):
        connect("parrot", **wrong)


def test_a_key_in_the_place_of_its_variable_s_name_is_refused_and_not_repeated():
    with pytest.raises(InvalidRequest, match="not the key itself") as caught:
        connect("parrot", key_variable="sk-hunter22")
    assert "hunter22" not in str(caught.value)


# Keys


def test_the_key_is_read_with_every_request(server, monkeypatch):
    with connect("parrot", base_url=server.address, key_variable="PARROT_KEY") as engine:
        monkeypatch.delenv("PARROT_KEY", raising=False)
        with pytest.raises(RemoteError, match="no key set: PARROT_KEY"):
            engine.generate("Hi")
        monkeypatch.setenv("PARROT_KEY", "secret-one")
        engine.generate("Hi")
        monkeypatch.setenv("PARROT_KEY", "secret-two")
        engine.generate("Hi")
    assert [each["authorization"] for each in server.heard] == ["Bearer secret-one", "Bearer secret-two"]


def test_the_key_of_openai_is_sent_to_openai_only(engine, server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-house")
    engine.generate("Hi")
    assert "sk-of-another-house" not in str(server.heard)


def test_a_key_shows_nowhere(server, tmp_path, caplog):
    key = "sk-very-secret-0123456789"
    with caplog.at_level("DEBUG"), connect("parrot", base_url=server.address, api_key=key) as engine:
        result = engine.generate("Hi")
        shown = [repr(engine), engine._repr_html_(), repr(engine.info), repr(engine._connection.server)]
        saved = result.trace.save(tmp_path / "run.trace").read_bytes()
    assert server.heard[0]["authorization"] == f"Bearer {key}"
    assert key not in "".join([*shown, caplog.text, result.trace.to_html(), result.trace.to_json()])
    assert key.encode() not in saved
