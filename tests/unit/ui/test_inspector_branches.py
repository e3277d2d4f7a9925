"""Going on from a token in the Inspector, and the way back to the runs before."""

import threading

import pytest
from test_controls import shown
from test_inspector import refusal

import cartoolkit as ct
from cartoolkit.errors import EngineBusy, InvalidRequest

# The scripted decoder begins its script anew with the token after those that a branch takes over.
A, B, C = 1, 2, 3


@pytest.fixture
def click(front_end):
    """Click on a candidate of the run shown; None draws again."""

    def ask(inspector, step, token):
        message = {"type": "branch", "v": 1, "run": inspector.view._run, "step": step, "token": token}
        inspector.view._handle_custom_msg(message, [])

    return ask


def ids(trace):
    return trace.columns["token_id"].tolist()


def generated(inspector):
    """The trace of a run that has ended."""
    return inspector.start().result().trace


def branched(inspector, before, eventually):
    """The trace of the branch that was asked for, when it has ended."""
    eventually(lambda: inspector.session is not before and not inspector._conductor.replacing.locked())
    return inspector.result.trace


def test_a_click_goes_on_with_the_candidate(inspect, make_engine, click, front_end, eventually):
    inspector = inspect(make_engine([A, B, C] * 9), max_tokens=6)
    generated(inspector)
    before = inspector.session
    click(inspector, 2, A)
    trace = branched(inspector, before, eventually)
    assert ids(trace) == [A, B, A, B, C, A]
    assert trace.flag("forced").tolist() == [False, False, True, False, False, False]
    assert inspector.view.selected == 2
    eventually(lambda: front_end.text == "ababca" and shown(inspector.buttons) == ["Generate"])
    eventually(lambda: "ababca" in inspector._twin.bundle()["text/plain"])


def test_a_branch_has_the_settings_of_its_run_not_of_the_controls(inspect, make_engine, click, eventually):
    inspector = inspect(make_engine([A, B, C] * 9), temperature=1.5, seed=3, max_tokens=6)
    generated(inspector)
    inspector.controls.max_tokens.value = 2
    inspector.controls.temperature.value = 0
    inspector.controls.seed.value = 8
    before = inspector.session
    click(inspector, 1, C)
    params = branched(inspector, before, eventually).header.params
    assert (params["temperature"], params["seed"], params["max_tokens"]) == (1.5, 3, 6)
    assert inspector.controls.seed.value == 8


def test_drawing_again_takes_a_new_seed(inspect, make_engine, click, eventually):
    inspector = inspect(make_engine([A, B, C] * 20), temperature=2, seed=3, max_tokens=40, ignore_eos=True)
    first = generated(inspector)
    before = inspector.session
    click(inspector, 5, None)
    second = branched(inspector, before, eventually)
    assert second.header.params["seed"] != 3
    assert ids(second)[:5] == ids(first)[:5]
    assert second.columns["draw"][5:].tolist() != first.columns["draw"][5:].tolist()
    assert not second.flag("forced").any()


def test_a_run_that_goes_on_is_ended_by_its_branch(inspect, slow, click, front_end, eventually):
    inspector = inspect(slow)
    first = inspector.start()
    eventually(lambda: len(front_end.ids) > 5)
    click(inspector, 3, C)
    eventually(lambda: inspector.session is not first)
    assert first.done
    eventually(lambda: front_end.ids[:4] == [A, B, C, C] and len(front_end.ids) > 8)
    assert shown(inspector.buttons) == ["Pause", "Step", "Stop"]
    assert [len(trace) > 3 for trace in inspector.runs] == [True, True]
    assert inspector.runs[0].header.stop_reason == "stopped"


def test_the_kernel_is_not_kept_waiting_for_the_running_token(inspect, make_engine, click, eventually):
    engine = make_engine([A, B, C] * 9)
    inspector = inspect(engine)
    reached, released = threading.Event(), threading.Event()
    forward = engine.decoder.forward

    def hold(token_ids, pos):
        if len(token_ids) == 1 and pos > 3:
            reached.set()
            assert released.wait(5)
        return forward(token_ids, pos)

    engine.decoder.forward = hold
    before = inspector.start()
    assert reached.wait(5)
    click(inspector, 1, C)
    # The click has returned while the token is still being computed, and a second one changes nothing.
    click(inspector, 1, A)
    assert inspector.session is before
    assert not before.done
    released.set()
    assert ids(branched(inspector, before, eventually))[:2] == [A, C]
    assert len(inspector.runs) == 2


def test_the_buttons_do_not_flicker_between_a_run_and_its_branch(
    inspect, slow, click, eventually, monkeypatch
):
    inspector = inspect(slow)
    first = inspector.start()
    eventually(lambda: len(first.steps) > 3 and "Stop" in shown(inspector.buttons))
    told = []
    monkeypatch.setattr(inspector.buttons, "show_state", told.append)
    click(inspector, 2, A)
    eventually(lambda: inspector.session is not first and len(inspector.session.steps) > 4)
    assert "finished" not in told


def test_a_branch_on_a_busy_engine_is_explained(inspect, slow, click, eventually):
    first, second = inspect(slow, max_tokens=3), inspect(slow)
    generated(first)
    second.start()
    before = first.session
    click(first, 1, C)
    eventually(lambda: "is busy" in refusal(first))
    assert first.session is before
    assert shown(first.buttons) == ["Generate"]
    assert len(first.runs) == 1
    with pytest.raises(EngineBusy):
        first.branch(1, C)
    second.session.stop()
    assert second.session.wait(5)
    click(first, 1, C)
    assert ids(branched(first, before, eventually)) == [A, C, B]
    assert refusal(first) == ""


def test_a_branch_of_a_closed_engine_is_explained(inspect, make_engine, click, eventually):
    engine = make_engine()
    inspector = inspect(engine)
    generated(inspector)
    engine.close()
    click(inspector, 1, C)
    eventually(lambda: "was closed" in refusal(inspector))


def test_a_token_that_the_model_has_not_is_explained_and_the_buttons_come_back(
    inspect, slow, click, eventually
):
    inspector = inspect(slow)
    session = inspector.start()
    eventually(lambda: len(session.steps) > 3)
    click(inspector, 1, 99)
    eventually(lambda: "token ids from 0 to 3" in refusal(inspector))
    eventually(lambda: shown(inspector.buttons) == ["Generate"])
    assert inspector.session is session


def test_branch_raises_what_a_click_explains(inspect, make_engine):
    inspector = inspect(make_engine())
    with pytest.raises(InvalidRequest, match="There is no run yet"):
        inspector.branch(0)
    generated(inspector)
    with pytest.raises(InvalidRequest, match="at must be the index of a step"):
        inspector.branch(9)
    assert inspector.branch(-1, A).result().text == "abcabc"


def test_one_can_go_back_to_the_runs_before(inspect, make_engine, click, front_end, eventually):
    inspector = inspect(make_engine([A, B, C] * 9), max_tokens=3)
    picker = inspector.picker
    generated(inspector)
    eventually(lambda: shown(inspector.buttons) == ["Generate"])
    assert picker.shown == ""
    for token in (A, B):
        before = inspector.session
        click(inspector, 2, token)
        branched(inspector, before, eventually)
    eventually(lambda: picker.shown == "3 / 3" and not picker.previous.disabled)
    assert picker.next.disabled
    picker.previous.click()
    eventually(lambda: front_end.text == "aba" and picker.shown == "2 / 3")
    assert inspector.result.text == "aba"
    picker.previous.click()
    eventually(lambda: front_end.text == "abc" and picker.shown == "1 / 3" and picker.previous.disabled)
    assert [ids(trace)[2] for trace in inspector.runs] == [C, A, B]
    picker.next.click()
    eventually(lambda: front_end.text == "aba" and picker.shown == "2 / 3")
    # A branch of an earlier run becomes the last one.
    before = inspector.session
    click(inspector, 1, A)
    branched(inspector, before, eventually)
    eventually(lambda: front_end.text == "aab" and picker.shown == "4 / 4")


def test_while_one_runs_the_others_cannot_be_picked(inspect, slow, front_end, eventually):
    inspector = inspect(slow)
    for _ in range(2):
        session = inspector.start()
        eventually(lambda session=session: len(session.steps) > 2)
        session.stop()
        session.wait(5)
    session = inspector.start()
    picker = inspector.picker
    eventually(lambda: picker.shown == "3 / 3")
    assert (picker.previous.disabled, picker.next.disabled) == (True, True)
    picker.previous.click()
    assert inspector.session is session
    inspector.buttons.stop.click()
    eventually(lambda: not picker.previous.disabled)


def test_the_last_twenty_runs_are_kept(inspect, make_engine, eventually):
    inspector = inspect(make_engine(), max_tokens=1)
    for seed in range(23):
        inspector.controls.seed.value = seed
        generated(inspector)
    assert [trace.header.params["seed"] for trace in inspector.runs] == list(range(3, 23))
    eventually(lambda: inspector.picker.shown == "20 / 20")


def test_a_session_shown_twice_is_one_run(inspect, make_engine):
    engine = make_engine()
    inspector = inspect(engine)
    session = engine.start("c", temperature=0)
    inspector.show(session)
    inspector.show(session)
    assert len(inspector.runs) == 1


def test_a_closed_inspector_lets_go_of_its_runs(make_engine, front_end, eventually, followers):
    inspector = ct.Inspector(make_engine(), "a", temperature=0)
    generated(inspector)
    eventually(lambda: followers() == [])
    view = inspector.view
    inspector.close()
    assert (view._branch, view.session) == (None, None)
