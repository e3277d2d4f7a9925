"""The run view as a widget: its settings, what it follows, and that nothing is left behind."""

import gc
import logging
import time
import weakref

import pytest
from traitlets import TraitError

from cartoolkit.ui import RunView


def test_before_a_run_there_is_nothing_to_show():
    view = RunView()
    assert (view.session, view.selected, view.snapshot) == (None, None, None)


def test_an_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="RunView has no setting 'treshold'"):
        RunView(treshold=0.5)


@pytest.mark.parametrize(
    ("name", "value"), [("threshold", 1.5), ("threshold", -0.1), ("metric", "joy"), ("selected", -1)]
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(TraitError):
        RunView(**{name: value})


def test_the_next_run_replaces_the_last(make_engine, front_end, eventually):
    engine = make_engine()
    view = RunView(engine.start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    first = front_end.run
    view.selected = 2
    view.show(engine.start("bc", temperature=0, max_tokens=2))
    assert view.selected is None
    eventually(lambda: view.snapshot is not None)
    assert front_end.run != first
    assert (front_end.text, front_end.parts["info"]["prompt"]) == ("ab", "bc")


def test_a_view_leaves_a_running_session_for_another(make_engine, front_end, eventually, followers):
    old = make_engine([1, 2, 3] * 200, delay=0.005).start("a", temperature=0)
    view = RunView(old)
    eventually(lambda: len(front_end.ids) >= 3)
    view.show(make_engine().start("c", temperature=0))
    eventually(lambda: view.snapshot is not None)
    eventually(lambda: followers() == [])
    assert not old.done
    assert old._listeners == []
    assert front_end.text == "abc"
    old.stop()


def test_threads_and_subscriptions_end_with_the_run(slow, front_end, eventually, followers):
    session = slow.start("a", temperature=0, max_tokens=20)
    views = [RunView(session) for _ in range(3)]
    assert len(session._listeners) == 3
    eventually(lambda: all(view.snapshot for view in views))
    eventually(lambda: followers() == [])
    assert session._listeners == []


def test_a_session_that_is_over_can_be_shown(make_engine, front_end, eventually, followers):
    session = make_engine().start("a", temperature=0)
    session.result()
    view = RunView(session)
    eventually(lambda: view.snapshot is not None and followers() == [])
    assert front_end.text == "abc"


def test_a_paused_run_says_so_and_costs_no_messages(slow, front_end, eventually):
    session = slow.start("a", temperature=0, paused=True)
    RunView(session)
    eventually(lambda: front_end.parts.get("state") == "paused")
    session.step()
    eventually(lambda: len(front_end.ids) == 1 and front_end.parts["state"] == "paused")
    count = len(front_end.messages)
    time.sleep(1.3)
    assert len(front_end.messages) == count
    session.stop()


def test_a_view_alone_brings_its_still_twin(slow):
    empty = RunView()._repr_mimebundle_()[0]
    assert "Nothing has been generated yet" in empty["text/html"]
    session = slow.start("a", temperature=0, max_tokens=3)
    session.wait()
    bundle = RunView(session)._repr_mimebundle_()[0]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "scripted" in bundle["text/html"]
    assert "abc" in bundle["text/plain"]


def test_a_closed_view_follows_nothing_and_sends_nothing(slow, front_end, eventually, followers):
    session = slow.start("a", temperature=0)
    view = RunView(session)
    eventually(lambda: len(front_end.ids) >= 3)
    view.close()
    eventually(lambda: followers() == [])
    assert session._listeners == []
    sent = len(front_end.messages)
    view._receive(view, front_end.ready(), [])
    assert (len(front_end.messages), session.done) == (sent, False)
    session.stop()


def test_a_closed_view_does_not_keep_the_run(make_engine, eventually, followers):
    engine = make_engine()
    view = RunView(engine.start("a", temperature=0))
    eventually(lambda: view.snapshot is not None and followers() == [])
    run = weakref.ref(view.session)
    view.close()
    engine.generate("b")
    gc.collect()
    assert (run(), view.snapshot) == (None, None)


def test_a_view_that_cannot_send_does_not_end_the_run(make_engine, monkeypatch, eventually):
    def broken(*_):
        raise OSError("no front end")

    monkeypatch.setattr(RunView, "send", broken)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    session = make_engine().start("a", temperature=0)
    RunView(session)
    assert session.result().text == "abc"


# Branches: what a view asks its owner for


def branch(run, step=1, token=2):
    """What the browser says when a candidate is clicked."""
    return {"type": "branch", "v": 1, "run": run, "step": step, "token": token}


@pytest.fixture
def finished(make_engine, front_end, eventually):
    """A view of a run that has ended, and the branches that were asked for in it."""
    view, asked = RunView(), []
    view.on_branch(lambda *request: asked.append(request))
    view.show(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    return view, asked


def test_a_view_offers_branches_once_somebody_makes_them():
    view = RunView()
    assert not view.can_branch
    view.on_branch(lambda *_: None)
    assert view.can_branch


@pytest.mark.parametrize("token", [2, 0, None])
def test_a_branch_is_handed_to_who_makes_them(finished, front_end, token):
    view, asked = finished
    view._handle_custom_msg(branch(front_end.run, 1, token), [])
    assert asked == [(view.session, 1, token)]


def test_a_branch_of_a_run_that_is_no_longer_shown_is_only_noticed(
    finished, make_engine, front_end, eventually
):
    view, asked = finished
    view._handle_custom_msg(branch("another"), [])
    assert asked == []
    assert front_end.parts["notices"] == [
        "That token belongs to a run that was no longer shown; nothing was changed."
    ]
    view.show(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    assert front_end.parts["notices"] == []


@pytest.mark.parametrize("owned", [True, False])
def test_a_branch_that_cannot_be_is_logged_and_nothing_else(finished, front_end, caplog, owned):
    view, asked = finished
    if not owned:
        view._branch = None
    with caplog.at_level(logging.WARNING, logger="cartoolkit"):
        view._handle_custom_msg(branch(front_end.run, step=4 if owned else 1), [])
    assert asked == []
    assert ("step 4, which is not there" if owned else "offers none") in caplog.text


def test_an_owner_that_fails_does_not_fail_the_kernel(finished, front_end, caplog):
    view, _ = finished
    view.on_branch(lambda *_: 1 / 0)
    view._handle_custom_msg(branch(front_end.run), [])
    assert "ZeroDivisionError" in caplog.text


def test_a_branch_is_shown_with_what_it_takes_over_in_its_first_message(make_engine, front_end, eventually):
    engine = make_engine([1, 2, 3] * 9)
    first = engine.generate("a", temperature=0, max_tokens=9)
    view = RunView()
    view.show(engine.branch(first, at=4, token=3), selected=4)
    eventually(lambda: view.snapshot is not None)
    content, _ = front_end.messages[0]
    assert content["steps"]["texts"][:4] == ["a", "b", "c", "a"]
    assert content["info"]["branch"]["at"] == 4
    assert (content["notices"], view.selected) == ([], 4)


def test_a_branch_that_waits_is_shown_without_what_it_will_take_over(make_engine, front_end, eventually):
    engine = make_engine([1, 2, 3] * 9)
    first = engine.generate("a", temperature=0, max_tokens=9)
    session = engine.branch(first, at=4, paused=True)
    eventually(lambda: session.state == "paused")
    view = RunView(session)
    eventually(lambda: front_end.parts.get("state") == "paused")
    assert front_end.ids == []
    session.stop()
    eventually(lambda: view.snapshot is not None)
