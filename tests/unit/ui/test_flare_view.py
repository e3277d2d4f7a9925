"""The FlareView without a front end: policies, their settings, what a drag shows, and comparisons."""

import logging
import threading
import time

import pytest
import write_protocol_examples as examples
from front_end import FrontEnd
from test_run_view_messages import FAILED, READ, example, flare_session, look_up, plain

import cartoolkit as ct
from cartoolkit.errors import EngineBusy, InvalidRequest
from cartoolkit.retrieval import (
    ContentTokenBelow,
    Continue,
    EntropyAbove,
    Hit,
    Partial,
    Policy,
    preset,
)
from cartoolkit.ui.flare_comparison import beside_html
from cartoolkit.ui.flare_run_view import FlareRunView

PASSAGE = "Tango is told of sierra."
WORDS = [b" sierra", b" tango", b" victor", b"What?", b"Else?"]


class Library:
    """Finds the same passage whatever is asked."""

    def search(self, query, k=3):
        return [Hit("p", PASSAGE, 1.0, "book")][:k]


@pytest.fixture
def engine(make_engine):
    """Says " sierra tango victor" whatever it reads, each word at one half."""
    return make_engine([1, 2, 3, 0], WORDS)


@pytest.fixture
def flare(front_end, followers, engine):
    """Make FlareViews; what they have started is stopped at the end."""
    made = []

    def make(own_engine=None, question="What?", retriever=None, **settings):
        made.append(ct.FlareView(own_engine or engine, retriever or Library(), question, **settings))
        return made[-1]

    yield make
    for view in made:
        if view.comparison is not None:
            view.comparison.stop()
            view.comparison.wait(5)
        if view.session is not None:
            view.session.stop()
            view.session.wait(5)


def refusal(view):
    shown = view._conductor.refusal
    return "" if shown.layout.display == "none" else shown.value


def shown(controls):
    """Which of the policy's own controls are on the page."""
    return [
        n
        for n in ("threshold", "entropy", "look_ups", "passages")
        if getattr(controls, n).layout.display != "none"
    ]


# Asking


def test_answer_asks_with_the_policy_of_the_controls(flare, front_end, eventually):
    view = flare(max_tokens=9)
    assert (view.session, view.trace, view.result, view.simulation) == (None,) * 4
    view.buttons.generate.click()
    assert view.result.text == " sierra tango victor"
    assert view.trace.header.retrieval["policy"]["name"] == "rollback"
    assert view.trace.header.params["temperature"] == 0
    eventually(lambda: "what_if" in front_end.parts)
    assert front_end.parts["look_ups"][0]["outcome"] == "found"
    assert front_end.parts["info"]["policy"]["name"] == "rollback"


def test_policies_that_need_attention_are_offered_only_where_the_engine_records_it(flare):
    assert list(flare().controls.policy.options) == ["none", "upfront", "seed", "flare", "rollback"]


def test_a_plain_function_may_be_the_retriever(flare):
    view = flare(retriever=lambda _query: PASSAGE)
    assert view.start().result().trace.events[0].data["hits"][0]["text"] == PASSAGE


def test_the_answer_may_be_begun_by_the_caller(flare):
    view = flare(answer_start=" sierra")
    assert view.controls.answer_start.value == " sierra"
    run = view.start().result().trace
    assert run.flag("forced").tolist()[0] is True
    view.controls.answer_start.value = ""
    assert not view.start().result().trace.flag("forced").any()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"policy": "rolback"}, "rolback"),
        ({"policy": 3}, "policy must be"),
        ({"retriever": 3}, "3 is no retriever"),
        ({"retriever": Library}, "is no retriever"),
        ({"temprature": 1}, "temprature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"answer_start": 3}, "answer_start"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence_before_anything_runs(engine, arguments, named):
    with pytest.raises(InvalidRequest, match=named):
        ct.FlareView(engine, **{"retriever": Library(), **arguments})


def test_what_is_no_engine_is_refused():
    with pytest.raises(InvalidRequest, match="takes an engine; got a str"):
        ct.FlareView("smollm2", Library())


def test_an_empty_question_is_explained(flare):
    view = flare(question="")
    view.buttons.generate.click()
    assert "There is no question yet" in refusal(view)
    with pytest.raises(InvalidRequest, match="no question"):
        view.compare()
    view.start("What?")
    assert refusal(view) == ""


def test_what_the_engine_refuses_is_explained(flare):
    view = flare(inspect=False)
    view.buttons.generate.click()
    assert "inspect=False" in refusal(view)
    assert view.session is None


# Policies and their settings


@pytest.mark.parametrize(
    ("name", "controls"),
    [
        ("none", []),
        ("upfront", ["passages"]),
        ("seed", ["threshold", "look_ups", "passages"]),
        ("flare", ["threshold", "look_ups", "passages"]),
        ("rollback", ["threshold", "look_ups", "passages"]),
    ],
)
def test_a_policy_shows_the_settings_that_it_has(flare, name, controls):
    view = flare(policy=name)
    assert shown(view.controls) == controls
    assert view.controls.has_threshold == ("threshold" in controls)
    view = flare()
    view.controls.policy.value = name
    assert shown(view.controls) == controls
    assert view.policy == preset(name)


def test_entropy_has_a_range_of_its_own_and_does_not_move_the_line(flare):
    own = Policy("doubtful", trigger=EntropyAbove(9.5))
    view = flare(policy=own)
    assert shown(view.controls) == ["entropy", "look_ups", "passages"]
    assert (view.controls.entropy.value, view.controls.entropy.max) == (9.5, 9.5)
    assert view.controls.has_threshold is False
    view.controls.entropy.value = 1.5
    assert view.policy.trigger.threshold == 1.5
    assert view.view.threshold == 0.4


def test_a_policy_of_one_s_own_stands_beside_the_presets(flare):
    own = preset("rollback", threshold=0.25).changed(name="mine")
    view = flare(policy=own)
    assert view.controls.policy.options == ("none", "upfront", "seed", "flare", "rollback", "mine")
    assert (view.policy, view.view.threshold) == (own, 0.25)
    view.policy = "flare"
    assert (view.controls.policy.value, view.view.threshold) == ("flare", 0.8)
    view.policy = preset("seed", window=2)
    assert view.policy.trigger.window == 2
    assert view.controls.policy.value == "seed"
    with pytest.raises(InvalidRequest, match="no policy 'mine too'"):
        view.policy = "mine too"


def test_a_policy_keeps_what_was_set_on_it(flare):
    view = flare()
    view.controls.threshold.value = 0.3
    view.controls.look_ups.value = 1
    view.controls.passages.value = 4
    view.controls.policy.value = "flare"
    assert view.policy == preset("flare")
    view.controls.policy.value = "rollback"
    assert view.policy == preset("rollback", threshold=0.3, max_retrievals=1, passages_per_query=4)
    assert view.controls.threshold.value == 0.3


def test_the_slider_the_line_and_the_next_answer_have_one_threshold(flare):
    view = flare()
    assert view.view.threshold == view.controls.threshold.value == 0.6
    view.view.threshold = 0.3  # as the browser does when the line is dragged
    assert view.controls.threshold.value == 0.3
    run = view.start().result().trace
    assert run.header.retrieval["policy"]["trigger"]["threshold"] == 0.3
    assert [event for event in run.events if event.kind == "retrieval"] == []
    view.controls.threshold.value = 0.75
    assert view.view.threshold == 0.75


# What if


def test_a_drag_shows_which_look_ups_would_have_been_made(flare, front_end, eventually):
    view = flare(policy=preset("rollback", cooldown_tokens=0, threshold=0.4))
    assert view.start().result().trace.events == []
    # Every word has one half; the end token is no word.
    eventually(lambda: front_end.parts.get("what_if", {}).get("look_ups") == [])
    view.view.threshold = 0.6
    eventually(lambda: front_end.parts["what_if"]["threshold"] == 0.6)
    what_if = front_end.parts["what_if"]
    assert [(row["at"], row["trigger_steps"]) for row in what_if["look_ups"]] == [
        (1, [0]),
        (2, [1]),
        (3, [2]),
    ]
    assert (what_if["policy"], what_if["runs"]) == ("rollback", False)
    assert len(view.simulation.look_ups) == 3
    assert view.simulation.at == (1, 2, 3)


def test_another_policy_is_replayed_as_well(flare, front_end, eventually):
    view = flare(policy="none")
    view.start().result()
    eventually(lambda: front_end.parts.get("what_if", {}).get("threshold", 1) is None)
    view.controls.policy.value = "flare"
    eventually(lambda: front_end.parts["what_if"]["policy"] == "flare")
    (row,) = front_end.parts["what_if"]["look_ups"]
    assert (row["at"], row["trigger_steps"]) == (4, [0, 1, 2])


def test_a_snapshot_holds_the_replay(flare, eventually):
    view = flare()
    view.start().result()
    eventually(lambda: view.view.snapshot is not None)
    assert view.view.snapshot["what_if"]["threshold"] == 0.6


def test_many_drags_are_few_replays_and_the_last_one_counts(flare, front_end, eventually, monkeypatch):
    view = flare()
    view.start().result()
    eventually(lambda: view.view.snapshot is not None)
    replays = []
    slow = FlareRunView._simulate

    def counted(self, session, policy):
        replays.append(policy.trigger.threshold)
        time.sleep(0.02)
        return slow(self, session, policy)

    monkeypatch.setattr(FlareRunView, "_simulate", counted)
    for hundredth in range(1, 100):
        view.view.threshold = hundredth / 100
    eventually(lambda: front_end.parts["what_if"]["threshold"] == 0.99)
    assert replays[-1] == 0.99
    assert len(replays) < 50


def test_a_running_answer_can_be_replayed_as_far_as_it_is(flare, make_engine, front_end, eventually):
    view = flare(make_engine([1, 2, 3] * 200, WORDS, delay=0.005), policy="none", max_tokens=600)
    session = view.start()
    eventually(lambda: len(session.steps) > 3)
    view.policy = preset("rollback", max_retrievals=9, cooldown_tokens=0)
    eventually(lambda: front_end.parts.get("what_if", {}).get("policy") == "rollback")
    assert front_end.parts["what_if"]["runs"] is True
    assert front_end.parts["what_if"]["look_ups"][0]["at"] == 1
    session.stop()
    eventually(lambda: front_end.parts["what_if"]["runs"] is False)


def test_a_run_without_numbers_is_shown_without_a_replay(flare, engine, front_end, eventually):
    view = flare()
    view.show(engine.start("What?", temperature=0, inspect=False))
    eventually(lambda: view.view.snapshot is not None)
    assert "what_if" not in front_end.parts
    with pytest.raises(InvalidRequest, match="inspect=False"):
        _ = view.simulation


def test_five_hundred_tokens_are_replayed_while_a_finger_moves(flare, make_engine):
    view = flare(make_engine([1, 2, 3] * 200, WORDS), policy="none", max_tokens=500)
    view.start().result()
    view.policy = preset("rollback", threshold=0.6)
    assert view.simulation.finish.tally.decoded == 500
    best = min(_timed(lambda: view.simulation) for _ in range(5))
    assert best < 0.05


def _timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# Comparing


def test_policies_are_compared_one_after_another(flare, front_end, eventually):
    view = flare()
    view.start().result()
    comparison = view.compare()
    assert comparison.wait(10)
    rows = comparison.rows()
    assert [row["policy"] for row in rows] == ["none", "upfront", "seed", "flare", "rollback"]
    assert {row["answer"] for row in rows} == {" sierra tango victor"}
    # flare writes its sentence anew, rollback asks at each of three words; seed never sees three below 0.4.
    assert [row["look_ups"] for row in rows] == [0, 1, 0, 1, 3]
    assert [row["decoded"] for row in rows] == [4, 4, 4, 8, 5]
    assert not any(row["running"] or row["failed"] for row in rows)
    # The run on the page was asked the same with the same settings, so it was not run again.
    assert comparison.sessions["rollback"] is view.session
    eventually(lambda: [row["shown"] for row in front_end.parts.get("beside", ())] == [False] * 4 + [True])
    frame = comparison.to_frame()
    assert frame["decoded"].tolist() == [4, 4, 4, 8, 5]
    assert frame.columns.tolist() == ["policy", "answer", "look_ups", "decoded", "prefilled", "ms", "failed"]


def test_a_comparison_can_be_the_first_thing(flare, front_end, eventually):
    view = flare(policy="flare")
    view._compare_button.click()
    assert view.comparison.wait(10)
    # The policy of the controls runs first, and is what is shown.
    assert view.trace.header.retrieval["policy"]["name"] == "flare"
    eventually(lambda: len(front_end.parts.get("beside", ())) == 5)


def test_a_setting_that_was_changed_since_is_answered_anew(flare):
    view = flare()
    session = view.start()
    session.wait()
    view.controls.threshold.value = 0.5
    comparison = view.compare(["rollback"])
    assert comparison.wait(10)
    assert comparison.sessions["rollback"] is not session
    assert view.session is comparison.sessions["rollback"]


def test_all_policies_ask_for_as_many_passages_and_one_s_own_comes_first(flare):
    own = preset("rollback").changed(name="mine", passages_per_query=1)
    comparison = flare(policy=own).compare(["upfront", "flare"])
    assert comparison.wait(10)
    assert list(comparison._policies) == ["mine", "upfront", "flare"]
    assert {policy.passages_per_query for policy in comparison._policies.values()} == {1}
    with pytest.raises(InvalidRequest, match="no policy 'fare'"):
        flare().compare("fare")


def test_a_row_can_be_picked(flare, front_end, eventually, caplog):
    view = flare()
    comparison = view.compare(["none", "rollback"])
    assert comparison.wait(10)
    assert view.session is comparison.sessions["rollback"]
    view.view._handle_custom_msg({"type": "pick", "v": 1, "row": 0}, [])
    assert view.session is comparison.sessions["none"]
    eventually(lambda: [row["shown"] for row in front_end.parts.get("beside", ())] == [True, False])
    with caplog.at_level(logging.WARNING, logger="cartoolkit"):
        view.view._handle_custom_msg({"type": "pick", "v": 1, "row": 2}, [])
    assert "row 2 of a comparison" in caplog.text
    assert view.session is comparison.sessions["none"]


def test_a_policy_that_fails_has_its_reason_in_its_row_and_the_next_one_runs(flare, engine):
    view = flare()
    start, calls = engine.start, []

    def busy_once(*args, **settings):
        calls.append(settings["retrieval"].name)
        if calls == ["none"]:
            raise EngineBusy("the engine is busy.")
        return start(*args, **settings)

    engine.start = busy_once
    view.policy = "none"
    comparison = view.compare(["none", "upfront"])
    assert comparison.wait(10)
    assert [row["failed"] for row in comparison.rows()] == ["the engine is busy.", ""]
    assert comparison.rows()[1]["answer"] == " sierra tango victor"


@pytest.fixture
def long_engine(make_engine):
    return make_engine([1, 2, 3] * 200, WORDS, delay=0.005)


def test_a_comparison_can_be_stopped(flare, long_engine, eventually):
    view = flare(long_engine, policy="none", max_tokens=600)
    comparison = view.compare(["none", "upfront", "seed"])
    eventually(lambda: view._compare_button.description == "Stop comparing" and view.session is not None)
    view.buttons.stop.click()
    assert comparison.wait(10)
    assert list(comparison.sessions) == ["none"]
    eventually(lambda: view._compare_button.description == "Compare policies")
    view._compare_button.click()
    second = view.comparison
    eventually(lambda: second.sessions and next(iter(second.sessions.values())).steps)
    view._compare_button.click()
    assert second.wait(10)
    assert not second.rows()[1]["answer"]


def test_an_answer_ends_the_comparison(flare, long_engine, eventually):
    view = flare(long_engine, policy="none", max_tokens=600)
    first = view.start()
    first.stop()
    first.wait()
    comparison = view.compare(["none", "upfront"])
    eventually(lambda: "upfront" in comparison.sessions)
    session = view.start("Else?")
    assert comparison.done
    assert view.session is session
    # What stands beside is about another question.
    assert view._rows(session) == []


def test_a_comparison_can_be_awaited(flare, run_async):
    view = flare()

    async def work():
        return await view.compare(["none", "rollback"])

    comparison = run_async(work())
    assert comparison.done
    assert len(comparison.sessions) == 2


# Messages and the still copy


def test_what_stands_beside_a_run_is_told_as_the_browser_is_tested_with():
    expected, buffers = example("update_flare_replay.json")
    session = flare_session(
        "finished",
        examples.flare_steps(),
        look_up(3, **READ),
        look_up(5, **FAILED),
        done=42,
        total=42,
    )
    session.done = True
    view = FlareRunView()
    view._session, view._run, view._seq = session, "r3", 3
    # The full stop is its own doubt here, so that there are two.
    trigger = ContentTokenBelow(0.6, skip_wordless=False)
    policy = Policy("rollback", trigger=trigger, query=Partial(), resume=Continue())
    view._what_if = view._supposed(session, policy)
    view._beside = lambda _session: examples.flare_beside()
    content, sent = view._update(session, first=0, whole=True)
    assert plain(content) == plain(expected)
    assert sent == buffers
    # Nothing but the drag is new in the next message.
    expected, _ = example("update_flare_what_if.json")
    view._what_if = view._supposed(session, policy.changed(threshold=0.4))
    content, _ = view._update(session, first=6, whole=False)
    assert plain(content, "notices", "prefill", "finish") == expected


def test_the_twin_has_the_look_ups_and_the_comparison(flare):
    view = flare()
    assert view.compare(["none", "rollback"]).wait(10)
    html = view._repr_mimebundle_()["text/html"]
    assert "The same question under other policies" in html
    assert "▲1" in html
    assert '<b style="color:#0b6b3a">Tango</b>' in html
    assert "below 0.6" in html


def test_the_twin_of_a_view_that_has_not_been_asked_says_what_to_do(flare):
    empty = flare(question="")._repr_mimebundle_()
    assert "write a question and press Answer" in empty["text/html"]
    assert "write a question and press Answer" in empty["text/plain"]


def test_a_hostile_answer_is_text_in_the_table():
    row = {**examples.flare_beside()[0], "answer": "<script>alert(1)</script>", "policy": "<b>"}
    html = beside_html([row, examples.flare_beside()[3]])
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "not asked yet" in html
    assert beside_html([]) == ""


def test_nothing_is_left_behind(flare, eventually, followers):
    view = flare()
    assert view.compare(["none", "rollback"]).wait(10)
    eventually(lambda: followers() == [])
    names = {"cartoolkit-compare", "cartoolkit-what-if"}
    eventually(lambda: not names & {thread.name for thread in threading.enumerate()})
    view.close()
    assert view.view.comm is None
    assert view.result.text == " sierra tango victor"


def test_a_late_view_is_told_of_everything(flare, eventually):
    view = flare()
    assert view.compare(["none", "rollback"]).wait(10)
    eventually(lambda: {"beside", "what_if"} <= set(view.view.snapshot or ()))
    saved = FrontEnd()
    saved.receive(view.view.snapshot, view.view.snapshot["buffers"])
    assert [row["policy"] for row in saved.parts["beside"]] == ["none", "rollback"]
    assert saved.parts["what_if"]["policy"] == "rollback"
