"""Engine and session: three ways to answer, steered from other threads, and robust against failures."""

import _thread
import asyncio
import gc
import sys
import threading
import time
import types
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from scripted_decoder import EOS, ScriptedDecoder

from cartoolkit.engine import Engine
from cartoolkit.engine import engine as engine_module
from cartoolkit.engine import session as session_module
from cartoolkit.engine.worker import Worker
from cartoolkit.errors import (
    DecodeTimeout,
    EngineBusy,
    EngineClosed,
    ForwardFailed,
    InvalidRequest,
    OutOfMemory,
    PromptTooLong,
)

WORDS = [b"a", b"b", b"c"]
LONG = [1, 2, 3] * 200


def eventually(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


@pytest.fixture
def decoders():
    """The decoders that the engine has loaded, oldest first."""
    return []


@pytest.fixture
def make_engine(decoders):
    engines = []

    def make(script=(1, 2, 3, EOS), **options):
        def load():
            decoders.append(ScriptedDecoder(WORDS, script, **{"context_length": 2000, **options}))
            return decoders[-1]

        engines.append(Engine(load))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def slow(make_engine):
    """An engine that takes 5 ms a token and would go on for 600."""
    return make_engine(LONG, delay=0.005)


def test_generate_returns_text_reason_and_true_counts(make_engine):
    result = make_engine().generate("ab", temperature=0)
    assert (str(result), result.stop_reason, result.stop_detail) == ("abc", "stop", "end token <end>")
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (2, 3)
    assert result.ttft_ms > 0
    assert len(result.trace) == 4


def test_a_second_call_reuses_the_shared_part_of_the_prompt(make_engine):
    engine = make_engine()
    engine.generate("abc", temperature=0)
    usage = engine.generate("aba", temperature=0).usage
    assert (usage.reused_tokens, usage.prefill_tokens) == (2, 1)


def test_stream_yields_the_steps_of_generate(make_engine):
    engine = make_engine()
    assert [step.text for step in engine.stream("a", temperature=0)] == ["a", "b", "c", ""]


def test_leaving_a_stream_early_stops_the_generation(slow):
    for step in slow.stream("a", temperature=0):
        if step.index == 2:
            break
    assert slow.session.done
    assert slow.session.header.stop_reason == "stopped"
    assert slow.generate("a", temperature=0, max_tokens=1).text == "a"


@pytest.mark.parametrize(
    "settings", [{"model": "torch/other"}, {"workload": "batch"}, {"intent": {"prefer_fast": True}}]
)
def test_what_says_which_model_to_choose_is_refused_with_the_way_to_a_router(make_engine, settings):
    engine = make_engine()
    for ask in (engine.generate, engine.start, lambda *a, **k: engine.score(*a, continuation="b", **k)):
        with pytest.raises(InvalidRequest, match="says which model to choose") as caught:
            ask("a", **settings)
        assert "Router" in caught.value.hint
    with pytest.raises(InvalidRequest, match="says which model to choose"):
        engine.stream("a", **settings)


def test_bad_settings_are_refused_before_anything_runs(make_engine, decoders):
    engine = make_engine()
    for call in (engine.generate, engine.stream, engine.start):
        with pytest.raises(InvalidRequest, match="temperature"):
            call("a", temperature=-1)
    assert decoders[0].forwards == []


def test_pause_stops_before_the_next_token_and_resume_goes_on(slow):
    session = slow.start("a", temperature=0)
    eventually(lambda: len(session.steps) >= 3)
    session.pause()
    eventually(lambda: session.state == "paused")
    count = len(session.steps)
    time.sleep(0.05)
    assert len(session.steps) == count
    session.resume()
    eventually(lambda: len(session.steps) > count)
    assert session.state == "running"


def test_step_decodes_exactly_one_token(slow):
    session = slow.start("a", temperature=0, paused=True)
    eventually(lambda: session.state == "paused")
    assert len(session.steps) == 0
    for expected in (1, 2, 3):
        session.step()
        eventually(lambda expected=expected: len(session.steps) == expected and session.state == "paused")
        time.sleep(0.02)
        assert len(session.steps) == expected
    session.step(4)
    eventually(lambda: len(session.steps) == 7 and session.state == "paused")


def test_step_while_running_pauses_after_a_token(slow):
    session = slow.start("a", temperature=0)
    eventually(lambda: len(session.steps) >= 2)
    session.step()
    eventually(lambda: session.state == "paused")


def test_stop_takes_effect_within_one_token(slow):
    session = slow.start("a", temperature=0)
    eventually(lambda: len(session.steps) >= 3)
    count = len(session.steps)
    session.stop()
    result = session.result()
    assert result.stop_reason == "stopped"
    assert len(result.trace) <= count + 1


def test_stop_ends_a_paused_session(slow):
    session = slow.start("a", temperature=0, paused=True)
    eventually(lambda: session.state == "paused")
    session.stop()
    assert session.wait(2)
    assert session.result().text == ""


def test_stop_during_prefill_takes_effect_within_one_chunk(make_engine, decoders):
    engine = make_engine(delay=0.01)
    session = engine.start(("a" * 400), temperature=0)
    eventually(lambda: session.progress is not None and session.progress.done >= 8)
    assert session.state == "prefilling"
    read = len(decoders[0].forwards)
    session.stop()
    assert session.wait(2)
    assert len(decoders[0].forwards) <= read + 1
    assert session.result().stop_reason == "stopped"


def test_an_interrupt_returns_what_there_is_and_leaves_the_engine_usable(slow, interruptible):
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    result = slow.generate("a", temperature=0)
    assert result.stop_reason == "stopped"
    assert 0 < len(result.trace) < 100
    assert slow.generate("a", temperature=0, max_tokens=3).text == "abc"


async def wait_for(session):
    return await session


async def start_and_cancel(engine):
    """A task that awaits a session, cancelled after a tenth of a second; also the session."""
    session = engine.start("a", temperature=0)
    task = asyncio.ensure_future(wait_for(session))
    await asyncio.sleep(0.1)
    task.cancel()
    return await asyncio.gather(task, return_exceptions=True), session


def test_await_returns_the_result(slow, run_async):
    async def whole():
        return await slow.start("a", temperature=0, max_tokens=3)

    assert run_async(whole()).text == "abc"


def test_a_cancel_stops_the_session_and_is_heard(slow, run_async):
    (outcome,), session = run_async(start_and_cancel(slow))
    assert isinstance(outcome, asyncio.CancelledError)
    assert session.wait(2)
    assert session.header.stop_reason == "stopped"


def test_a_timeout_around_await_is_a_timeout(slow, run_async):
    async def limited():
        async with asyncio.timeout(0.1):
            await slow.start("a", temperature=0)

    with pytest.raises(TimeoutError):
        run_async(limited())


def test_the_notebooks_interrupt_of_an_await_returns_what_there_is(slow, monkeypatch, run_async):
    kernel = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    (result,), _ = run_async(start_and_cancel(slow))
    assert result.stop_reason == "stopped"
    assert len(result.trace) > 0


def test_time_spent_in_a_pause_counts_for_nothing(slow):
    session = slow.start("a", temperature=0, paused=True, time_limit=0.5, max_tokens=4)
    time.sleep(0.6)
    session.step()
    eventually(lambda: len(session.steps) == 1 and session.state == "paused")
    time.sleep(0.6)
    session.resume()
    result = session.result()
    assert result.stop_reason == "length"
    assert result.ttft_ms < 500
    assert result.trace.columns["elapsed"][-1] < 0.5


def test_times_are_measured_from_the_call_and_hold_the_prefill(make_engine):
    result = make_engine(delay=0.03).generate("abcabc", temperature=0, max_tokens=2)
    # Two chunks of the prompt take 30 ms each before the first token.
    assert result.trace.header.prefill_seconds >= 0.06
    assert result.ttft_ms >= 60
    assert result.trace.columns["elapsed"][1] - result.trace.columns["elapsed"][0] >= 0.03


def test_a_step_onto_the_last_token_finishes_the_session(make_engine):
    for settings, tokens in (({}, 4), ({"max_tokens": 2}, 2), ({"stop": "bc"}, 3)):
        session = make_engine().start("a", temperature=0, paused=True, **settings)
        session.step(tokens)
        assert session.wait(2), settings


def test_steps_asked_for_one_after_the_other_add_up(slow):
    session = slow.start("a", temperature=0, paused=True)
    eventually(lambda: session.state == "paused")
    session.step(2)
    session.step(3)
    eventually(lambda: len(session.steps) == 5 and session.state == "paused")
    time.sleep(0.03)
    assert len(session.steps) == 5


@pytest.mark.parametrize("tokens", [0, -1, 2.5, True, "3"])
def test_step_takes_a_whole_number_of_tokens(slow, tokens):
    session = slow.start("a", temperature=0, paused=True)
    with pytest.raises(InvalidRequest, match="step takes a whole number"):
        session.step(tokens)


def test_the_trace_seen_after_the_end_knows_how_it_ended(slow):
    session = slow.start("a", temperature=0, max_tokens=3)
    while not session.done:
        assert session.trace.header.stop_reason in ("", "length")
    assert session.trace.header.stop_reason == "length"
    assert session.trace is session.trace


def test_generate_knows_no_setting_of_start(make_engine):
    for name in ("paused", "quiet"):
        with pytest.raises(InvalidRequest, match=f"'{name}' is not a setting"):
            make_engine().generate("a", **{name: True})


def test_a_second_session_is_refused_with_a_clear_answer(slow):
    first = slow.start("a", temperature=0)
    eventually(lambda: first.steps)
    with pytest.raises(EngineBusy, match="a session is running with"):
        slow.start("a")
    first.stop()
    first.wait()
    assert slow.generate("a", temperature=0, max_tokens=1).text == "a"


def test_a_failed_forward_is_reported_with_the_trace_and_the_next_call_works(make_engine, decoders):
    engine = make_engine()
    decoders[0].fail_at = 3
    with pytest.raises(ForwardFailed, match="no memory for this") as caught:
        engine.generate("a", temperature=0)
    assert caught.value.trace.text == "abc"
    assert caught.value.trace.header.stop_reason == "error"
    assert "reloaded" in caught.value.hint
    assert decoders[0].closed
    assert engine.generate("a", temperature=0).text == "abc"
    assert len(decoders) == 2


def test_an_error_that_cannot_say_itself_is_reported_by_its_kind(make_engine, decoders):
    class Speechless(RuntimeError):
        def __str__(self):
            raise ValueError("no words")

    def fail(ids, pos):
        raise Speechless

    engine = make_engine()
    decoders[0].forward = fail
    with pytest.raises(ForwardFailed, match="raised Speechless: Speechless, whose message cannot be shown"):
        engine.generate("a", temperature=0)


def test_what_is_no_exception_is_reported_as_well(make_engine, decoders):
    class Panic(BaseException):
        """What a library written in Rust raises when it panics."""

    engine = make_engine()

    def panic(ids, pos):
        raise Panic("index out of bounds")

    decoders[0].forward = panic
    with pytest.raises(ForwardFailed, match="Panic: index out of bounds"):
        engine.generate("a", temperature=0)
    assert engine.generate("a", temperature=0).text == "abc"


def test_a_forward_without_memory_is_reported_as_that_and_survived(make_engine, decoders):
    engine = make_engine()

    def no_memory(ids, pos):
        raise MemoryError("Unable to allocate 3.00 GiB")

    decoders[0].forward = no_memory
    with pytest.raises(OutOfMemory, match=r"3\.00 GiB") as caught:
        engine.generate("a", temperature=0)
    assert "smaller model" in caught.value.hint
    assert engine.generate("a", temperature=0).text == "abc"
    assert len(decoders) == 2


@pytest.fixture
def impatient(monkeypatch):
    """A forward is taken to hang 50 ms after the time limit."""
    monkeypatch.setattr(session_module, "_HANG_GRACE", 0.05)


def hanging_from(decoder, count):
    """Let the forwards from the `count`-th on wait; returns the event that lets them go on."""
    released, usual = threading.Event(), decoder.forward

    def forward(ids, pos):
        if len(decoder.forwards) >= count:
            released.wait(20)
        return usual(ids, pos)

    decoder.forward = forward
    return released


def test_a_forward_that_hangs_before_the_first_token_is_an_error_and_the_next_call_works(
    make_engine, decoders, impatient
):
    engine = make_engine()
    released = hanging_from(decoders[0], 0)
    with pytest.raises(DecodeTimeout, match="did not return"):
        engine.generate("a", temperature=0, time_limit=0.1)
    assert engine.generate("a", temperature=0).text == "abc"
    assert len(decoders) == 2
    released.set()


def test_a_forward_that_hangs_later_leaves_the_text_so_far(make_engine, decoders, impatient):
    engine = make_engine()
    released = hanging_from(decoders[0], 2)
    session = engine.start("a", temperature=0, time_limit=0.1)
    result = session.result()
    assert (result.text, result.stop_reason) == ("ab", "local_decode_timeout")
    assert "did not return" in result.stop_detail
    released.set()
    assert engine.generate("a", temperature=0).text == "abc"
    # What the forward brings after all is not added to the run that was given up.
    time.sleep(0.05)
    assert session.trace.text == "ab"


def test_a_forward_that_fails_after_it_was_given_up_harms_nobody(make_engine, decoders, impatient):
    engine = make_engine(LONG)
    released, usual = threading.Event(), decoders[0].forward

    def fail_late(ids, pos):
        if len(decoders[0].forwards) < 2:
            return usual(ids, pos)
        released.wait(20)
        raise RuntimeError("the device is gone")

    decoders[0].forward = fail_late
    session = engine.start("a", temperature=0, time_limit=0.1)
    assert session.result().stop_reason == "local_decode_timeout"
    second = engine.start("a", temperature=0, max_tokens=500)
    eventually(lambda: len(second.steps) > 2)
    released.set()
    assert second.result().stop_reason == "length"
    assert session.result().stop_reason == "local_decode_timeout"
    assert session.error is None
    assert not decoders[1].closed
    eventually(lambda: decoders[0].closed)


def test_closing_does_not_wait_for_ever_for_a_forward_that_hangs(make_engine, decoders, monkeypatch):
    monkeypatch.setattr(engine_module, "_PATIENCE", 0.1)
    engine = make_engine()
    released = hanging_from(decoders[0], 1)
    session = engine.start("a", temperature=0, time_limit=None)
    eventually(lambda: len(session.steps) == 1)
    begun = time.monotonic()
    engine.close()
    assert time.monotonic() - begun < 2
    assert not decoders[0].closed
    released.set()
    eventually(lambda: decoders[0].closed)


def test_two_callers_after_a_failure_load_one_model(make_engine, decoders):
    engine = make_engine()
    decoders[0].fail_at = 0
    with pytest.raises(ForwardFailed):
        engine.generate("a", temperature=0)
    with ThreadPoolExecutor(4) as pool:
        assert len({id(d) for d in pool.map(lambda _: engine.decoder, range(4))}) == 1
    assert len(decoders) == 2


def test_a_long_pause_is_not_taken_for_a_forward_that_hangs(make_engine, impatient):
    session = make_engine().start("a", temperature=0, paused=True, time_limit=0.1)
    session.step()
    time.sleep(0.5)
    assert session.state == "paused"
    session.resume()
    assert session.result().text == "abc"


def test_slow_forwards_within_the_time_limit_are_waited_for(make_engine, impatient):
    assert make_engine(delay=0.2).generate("a", temperature=0, time_limit=5).text == "abc"


def test_whoever_sees_the_failure_can_call_again_at_once(make_engine, decoders):
    engine = make_engine()
    decoders[0].fail_at = 2
    session = engine.start("a", temperature=0, paused=True)
    session.subscribe(lambda: time.sleep(0.02))
    session.resume()
    with pytest.raises(ForwardFailed):
        session.result()
    assert engine.generate("a", temperature=0).text == "abc"


def test_a_failed_session_raises_with_a_fresh_traceback_each_time(make_engine, decoders):
    engine = make_engine()
    decoders[0].fail_at = 0
    session = engine.start("a")
    depths = []
    for _ in range(3):
        with pytest.raises(ForwardFailed) as caught:
            session.result()
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


class Weights:
    """Stands for a model whose forward fails with its tensors in hand."""

    def forward(self, ids, pos):
        tensor = self
        raise RuntimeError(f"no memory beside {type(tensor)}")


def test_a_failure_lets_go_of_the_model_before_it_is_loaded_again(make_engine, decoders):
    engine = make_engine()
    weights = Weights()
    gone = weakref.ref(weights)
    decoders[0].forward = weights.forward
    del weights
    with pytest.raises(ForwardFailed, match="no memory beside") as caught:
        engine.generate("a")
    decoders.clear()
    gc.collect()
    assert gone() is None
    assert caught.value.__cause__.__traceback__ is not None


def test_a_session_that_has_ended_does_not_keep_the_decoder_alive():
    decoder = ScriptedDecoder(WORDS, [1, 2, EOS])
    gone = weakref.ref(decoder)
    engine = Engine(lambda decoder=decoder: decoder)
    session = engine.start("a", temperature=0)
    assert session.result().text == "ab"
    del engine, decoder
    gc.collect()
    eventually(lambda: gone() is None)
    assert session.trace[0].candidates[0].text == "a"


def test_an_error_outside_the_forward_leaves_the_decoder_loaded(make_engine, decoders):
    engine = make_engine()
    with pytest.raises(PromptTooLong):
        engine.generate(("a" * 3000), truncate=False)
    with pytest.raises(InvalidRequest, match="forbids every token"):
        engine.generate("a", logit_bias=dict.fromkeys(range(4), float("-inf")))
    with pytest.raises(InvalidRequest, match="token 9"):
        engine.generate("a", logit_bias={9: 1.0})
    assert engine.generate("a", temperature=0).text == "abc"
    assert len(decoders) == 1


def test_a_cut_prompt_is_said_aloud_and_recorded(make_engine, capsys):
    engine = make_engine(context_length=40)
    trace = engine.generate(("a" * 100), temperature=0, max_tokens=10).trace
    assert "its first 70 of 100 tokens were cut" in capsys.readouterr().out
    assert [(e.kind, e.data["from"], e.data["to"]) for e in trace.events] == [("truncated", 100, 30)]


def test_a_listener_that_fails_does_not_end_the_generation(make_engine, caplog):
    engine = make_engine(delay=0.002)
    session = engine.start("a", temperature=0, paused=True)
    session.subscribe(lambda: 1 / 0)
    session.resume()
    assert session.result().text == "abc"
    assert "a listener of a session failed" in caplog.text


def test_unsubscribing_ends_the_calls(slow):
    calls = []
    session = slow.start("a", temperature=0)
    unsubscribe = session.subscribe(lambda: calls.append(1))
    eventually(lambda: calls)
    unsubscribe()
    unsubscribe()
    time.sleep(0.02)
    count = len(calls)
    time.sleep(0.05)
    assert len(calls) == count


def test_the_same_seed_repeats_and_a_missing_one_is_recorded(make_engine):
    engine = make_engine([1] * 30)
    first = engine.generate("a", max_tokens=20, temperature=2.0, top_p=1.0, ignore_eos=True)
    again = engine.generate(
        "a",
        max_tokens=20,
        temperature=2.0,
        top_p=1.0,
        ignore_eos=True,
        seed=first.trace.header.params["seed"],
    )
    assert first.text == again.text
    assert list(first.trace.columns["draw"]) == list(again.trace.columns["draw"])


def test_a_start_that_meets_a_close_is_refused_not_lost(make_engine, monkeypatch):
    engine = make_engine()
    prepare = engine_module.prepare_prompt

    def close_in_between(*arguments):
        engine.close()
        return prepare(*arguments)

    monkeypatch.setattr(engine_module, "prepare_prompt", close_in_between)
    with pytest.raises(EngineClosed):
        engine.start("a")


def test_close_stops_what_runs_and_refuses_more(slow, decoders):
    session = slow.start("a", temperature=0)
    eventually(lambda: session.steps)
    slow.close()
    assert session.wait(2)
    assert decoders[0].closed
    with pytest.raises(EngineClosed, match="load the model again"):
        slow.generate("a")
    assert "closed" in repr(slow)


def test_an_engine_that_is_forgotten_gives_its_decoder_and_its_thread_back():
    before = threading.active_count()
    decoder = ScriptedDecoder(WORDS, [1, EOS])
    gone = weakref.ref(decoder)
    engine = Engine(lambda decoder=decoder: decoder)
    assert engine.generate("a", temperature=0).text == "a"
    del engine, decoder
    gc.collect()
    eventually(lambda: gone() is None and threading.active_count() == before)


def test_the_worker_runs_everything_on_one_thread_and_hands_errors_back():
    worker = Worker("test")
    names = {worker.run(threading.current_thread) for _ in range(3)}
    assert len(names) == 1
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 / 0)
    assert worker.run(lambda: worker.run(lambda: 7)) == 7
    worker.close()
