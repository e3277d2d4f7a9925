"""The Inspector without a front end: what its buttons do, and that it explains instead of raising."""

import logging

import pytest
from test_controls import shown

import cartoolkit as ct
from cartoolkit.errors import EngineBusy, InvalidRequest


def refusal(inspector):
    """What is written near the prompt, or nothing."""
    shown = inspector._conductor.refusal
    return "" if shown.layout.display == "none" else shown.value


def test_generate_answers_the_prompt_with_the_settings_of_the_controls(
    inspect, make_engine, front_end, eventually
):
    inspector = inspect(make_engine(), "ab", max_tokens=2, seed=7)
    assert (inspector.session, inspector.trace, inspector.result) == (None, None, None)
    inspector.buttons.generate.click()
    assert inspector.result.text == "ab"
    assert inspector.trace.header.prompt == "ab"
    assert inspector.trace.header.params["seed"] == 7
    eventually(lambda: front_end.text == "ab")


def test_the_buttons_follow_the_run(inspect, slow, eventually):
    inspector = inspect(slow)
    buttons = inspector.buttons
    assert shown(buttons) == ["Generate"]
    buttons.generate.click()
    eventually(lambda: shown(buttons) == ["Pause", "Step", "Stop"] and len(inspector.session.steps) > 2)
    buttons.pause.click()
    eventually(lambda: shown(buttons) == ["Resume", "Step", "Stop"])
    count = len(inspector.session.steps)
    buttons.step.click()
    eventually(lambda: len(inspector.session.steps) == count + 1)
    eventually(lambda: inspector.session.state == "paused")
    buttons.pause.click()
    eventually(lambda: len(inspector.session.steps) > count + 2)
    buttons.stop.click()
    assert inspector.session.wait(2)
    eventually(lambda: shown(buttons) == ["Generate"])
    assert inspector.result.stop_reason == "stopped"


def test_step_while_running_pauses(inspect, slow, eventually):
    inspector = inspect(slow)
    inspector.buttons.generate.click()
    eventually(lambda: len(inspector.session.steps) > 2)
    inspector.buttons.step.click()
    eventually(lambda: inspector.session.state == "paused")


def test_buttons_before_the_first_run_do_nothing(inspect, make_engine):
    inspector = inspect(make_engine())
    for name in ("pause", "step", "stop"):
        getattr(inspector.buttons, name).click()
    assert inspector.session is None


def test_a_double_click_on_generate_starts_one_run(inspect, slow, eventually):
    inspector = inspect(slow)
    inspector.buttons.generate.click()
    session = inspector.session
    inspector.buttons.generate.click()
    assert inspector.session is session
    assert refusal(inspector) == ""


def test_start_takes_a_prompt_and_returns_the_session(inspect, make_engine):
    inspector = inspect(make_engine())
    session = inspector.start("bc")
    assert session is inspector.session
    assert inspector.prompt.value == "bc"
    assert session.result().trace.header.prompt == "bc"


def test_start_can_begin_paused(inspect, slow, eventually):
    session = inspect(slow).start(paused=True)
    eventually(lambda: session.state == "paused")
    assert len(session.steps) == 0
    session.step(2)
    eventually(lambda: len(session.steps) == 2)


def test_a_session_started_elsewhere_can_be_shown(inspect, make_engine, front_end, eventually):
    engine = make_engine()
    inspector = inspect(engine)
    session = engine.start("c", temperature=0)
    inspector.show(session)
    assert inspector.result.trace.header.prompt == "c"
    eventually(lambda: front_end.text == "abc" and shown(inspector.buttons) == ["Generate"])


def test_the_same_seed_repeats_the_run_and_a_new_one_is_kept(inspect, make_engine):
    inspector = inspect(make_engine([1, 2, 3] * 10), temperature=1, max_tokens=20, seed=5)
    first, second = (inspector.start().result() for _ in range(2))
    assert first.trace.columns["token_id"].tolist() == second.trace.columns["token_id"].tolist()
    inspector.controls.new_seed.value = True
    third = inspector.start().result()
    assert inspector.controls.seed.value == third.trace.header.params["seed"] != 5
    inspector.controls.new_seed.value = False
    fourth = inspector.start().result()
    assert third.trace.columns["token_id"].tolist() == fourth.trace.columns["token_id"].tolist()


def test_without_a_seed_the_first_run_can_be_repeated(inspect, make_engine):
    inspector = inspect(make_engine())
    assert (inspector.controls.seed.value, inspector.controls.new_seed.value) == (0, False)
    assert inspect(make_engine(), seed=None).controls.new_seed.value


def test_settings_without_a_control_reach_the_run(inspect, make_engine):
    inspector = inspect(make_engine(), candidates=2, logit_bias={1: -1.0}, time_limit=None)
    params = inspector.start().result().trace.header.params
    assert (params["candidates"], params["logit_bias"], params["time_limit"]) == (2, {1: -1.0}, None)


@pytest.mark.parametrize(
    "settings", [{"temprature": 1}, {"temperature": -1}, {"max_tokens": 0}, {"top_p": 2}]
)
def test_a_bad_setting_is_refused_when_the_inspector_is_made(make_engine, settings):
    with pytest.raises(InvalidRequest, match=next(iter(settings))):
        ct.Inspector(make_engine(), **settings)


def test_an_empty_prompt_is_explained_near_the_prompt(inspect, make_engine):
    inspector = inspect(make_engine())
    inspector.prompt.value = "  "
    inspector.buttons.generate.click()
    assert "There is no prompt yet" in refusal(inspector)
    assert 'role="alert"' in refusal(inspector)
    assert inspector.session is None
    inspector.prompt.value = "a"
    inspector.buttons.generate.click()
    assert refusal(inspector) == ""
    assert inspector.result.text == "abc"


def test_start_raises_what_the_button_explains(inspect, make_engine):
    with pytest.raises(InvalidRequest, match="There is no prompt yet"):
        inspect(make_engine()).start("")


def test_a_second_inspector_on_a_busy_engine_says_so(inspect, slow, eventually):
    first, second = inspect(slow), inspect(slow)
    first.buttons.generate.click()
    second.buttons.generate.click()
    assert "is busy" in refusal(second)
    assert second.session is None
    with pytest.raises(EngineBusy):
        second.start()
    first.buttons.stop.click()
    assert first.session.wait(2)
    second.controls.max_tokens.value = 3
    second.buttons.generate.click()
    assert refusal(second) == ""
    assert second.result.text == "abc"


def test_an_unexpected_error_is_shown_and_logged(inspect, make_engine, caplog):
    inspector = inspect(make_engine(), "ab")

    def fail(*_args, **_settings):
        raise ValueError("<b>no such word</b>")

    inspector.engine.start = fail
    with caplog.at_level(logging.ERROR, logger="cartoolkit"):
        inspector.buttons.generate.click()
    assert "ValueError" in refusal(inspector)
    assert "<b>no such" not in refusal(inspector)
    assert "the Generate button failed" in caplog.text


def test_a_model_that_fails_is_told_in_the_view_and_the_next_run_works(
    inspect, make_engine, front_end, eventually
):
    engine = make_engine([1, 2, 3] * 9, delay=0.01)
    engine.decoder.fail_at = 4
    inspector = inspect(engine, max_tokens=9)
    inspector.buttons.generate.click()
    inspector.session.wait(5)
    eventually(lambda: inspector.view.snapshot is not None and shown(inspector.buttons) == ["Generate"])
    assert "no memory for this" in front_end.parts["failure"]["message"]
    assert "reloaded" in front_end.parts["failure"]["hint"]
    assert front_end.text == "abca"
    assert "no memory for this" in inspector._twin.bundle()["text/plain"]
    inspector.buttons.generate.click()
    assert inspector.result.text == "abcabcabc"


def test_threads_and_subscriptions_end_with_the_run(inspect, make_engine, eventually, followers):
    inspector = inspect(make_engine())
    for _ in range(5):
        inspector.start().result()
    eventually(lambda: followers() == [])
    assert inspector.session._listeners == []


def test_a_closed_inspector_follows_nothing_and_the_run_goes_on(inspect, slow, eventually, followers):
    inspector = inspect(slow)
    session = inspector.start()
    eventually(lambda: len(session.steps) > 2)
    inspector.close()
    eventually(lambda: session._listeners == [])
    assert not session.done
    assert inspector.buttons.stop.comm is None
    session.stop()
    eventually(lambda: followers() == [])
    assert inspector.result.stop_reason == "stopped"


def test_the_model_and_the_device_are_named(inspect, make_engine):
    engine = make_engine()
    engine.info = engine.info.model_copy(update={"name": "<img src=x onerror=alert(1)>"})
    head = inspect(engine).children[0].children[0].value
    assert "&lt;img src=x onerror=alert(1)&gt;" in head
    assert "<img" not in head
    assert "script" in head  # the engine's name


def test_a_closed_engine_is_explained(inspect, make_engine):
    engine = make_engine()
    inspector = inspect(engine)
    engine.close()
    inspector.buttons.generate.click()
    assert "was closed" in refusal(inspector)
