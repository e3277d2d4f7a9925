"""The run view's messages: the agreed shapes, every step exactly once, and few of them."""

import base64
import json
import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import write_protocol_examples as examples
from front_end import FrontEnd, columns
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.engine.events import Prefilled
from cartoolkit.trace import Event, ModelInfo, Trace, TraceHeader
from cartoolkit.ui import RunView
from cartoolkit.ui._protocol import Branch, parse_message

PROTOCOL = Path(__file__).parents[2] / "fixtures" / "protocol"
NOTICE = "The prompt was cut."
BRANCH = "Branched off another run after 1 token, with ' &amp;' put there."


def example(name):
    data = json.loads((PROTOCOL / name).read_text())
    return data["content"], [base64.b64decode(buffer) for buffer in data["buffers"]]


def stub_session(
    state, steps, *, done=41, total=41, reused=12, notices=(), branches=(), look_ups=(), retrieval=None,
    error=None, start="update_start.json",
):  # fmt: skip
    """A session as the view sees it, in the middle of the run that the examples tell of."""
    info, _ = example(start)
    named = {
        name: info["info"][name] for name in ("engine", "device", "dtype", "context_length", "vocab_size")
    }
    header = TraceHeader(
        model=ModelInfo(name=info["info"]["model"], **named),
        prompt=info["info"]["prompt"],
        params=info["info"]["params"],
        stop_reason="stop" if state == "finished" else "",
        stop_detail="end token <|im_end|>" if state == "finished" else "",
        events=[
            *(Event(kind="truncated", text=text) for text in notices),
            *(Event(kind="branch", at=at, text=text) for at, text in branches),
            *look_ups,
        ],
        retrieval=retrieval,
    )
    trace = Trace.from_steps(header, steps, prompt_ids=[1], token_bytes=lambda _: b"")
    progress = Prefilled(done, total, reused)
    return SimpleNamespace(
        state=state, steps=steps, header=header, progress=progress, error=error, trace=trace
    )


def message(session, *, first, whole, seq, run="r1"):
    view = RunView()
    view._run, view._seq = run, seq - 1
    return view._update(session, first=first, whole=whole)


@pytest.mark.parametrize(
    ("name", "session", "first", "whole"),
    [
        ("update_start.json", stub_session("prefilling", [], done=0, reused=0), 0, True),
        ("update_steps.json", stub_session("running", examples.steps()[:2]), 0, False),
        ("update_finish.json", stub_session("finished", examples.steps(), notices=[NOTICE]), 2, False),
        ("update_replay.json", stub_session("finished", examples.steps(), notices=[NOTICE]), 0, True),
        (
            "update_branch.json",
            stub_session(
                "prefilling", [], done=42, total=42, reused=41, branches=[(7, "Before."), (1, BRANCH)]
            ),
            0,
            True,
        ),
    ],
)
def test_messages_are_those_that_the_browser_is_tested_with(name, session, first, whole):
    expected, buffers = example(name)
    content, sent = message(session, first=first, whole=whole, seq=expected["seq"], run=expected["run"])
    content = json.loads(json.dumps(content))
    # Progress and notices are repeated in every message; saying them again changes nothing.
    repeated = {k: v for k, v in content.items() if k in {"prefill", "notices"} and k not in expected}
    assert content == {**expected, **repeated}
    assert sent == buffers


RETRIEVAL = {
    "policy": {
        "name": "rollback",
        "trigger": {
            "kind": "ContentTokenBelow",
            "threshold": 0.6,
            "signal": "max_prob",
            "skip_function_words": True,
        },
        "budget": {"max_retrievals": 3, "max_context_tokens": 64},
    },
    "retriever": "FTSRetriever",
    "passages": 2,
}


def look_up(at, **data):
    """The event of a look-up as an engine writes it; at=3 and at=5 are those of the examples."""
    known = {
        "query": "What is the capital of Australia? It is",
        "reason": "' Sydney' at 0.375, below 0.6",
        "position": 3,
        "trigger_steps": [2],
        "upfront": False,
        "outcome": "found",
        "hits": [
            {
                "id": "p1",
                "title": "Capitals",
                "source": "capitals.md:3",
                "score": 7.25,
                "text": "\U0001f998 Canberra <b>is</b> the capital of Australia.",
            },
            {
                "id": "p2",
                "title": "",
                "source": "",
                "score": float("nan"),
                "text": "Sydney is a city in Australia.",
            },
        ],
        "added": ["p1"],
        "keep": 2,
        "dropped": 1,
        "ended": "",
        "note": "1 did not fit into max_context_tokens=64",
        "ms": 4.5,
        "unseen": 0,
        "context_tokens": 11,
    }
    return Event(kind="retrieval", text="Looked up.", at=at, data=known | data)


def flare_session(state, steps, *look_ups, **rest):
    return stub_session(
        state, steps, look_ups=look_ups, retrieval=RETRIEVAL, start="update_flare_start.json", **rest
    )


READ = {"prefill_tokens": 30, "reused_tokens": 12, "prefill_ms": 62.5}
FAILED = {
    "context_tokens": None,
    "query": "What is the capital of Australia? It is Canberra",
    "reason": "'.' at 0.500, below 0.6",
    "position": 4,
    "trigger_steps": [4],
    "outcome": "failed",
    "hits": [],
    "added": [],
    "keep": 4,
    "dropped": 0,
    "note": "the look-up failed: <index> is gone",
    "ms": 1.25,
}


def plain(content, *without):
    """A message as the browser reads it; probabilities rounded as float32 is."""
    content = {k: v for k, v in json.loads(json.dumps(content)).items() if k not in without}
    for row in content.get("look_ups", ()):
        for chance in row["chances"]:
            chance.update({k: round(v, 6) for k, v in chance.items() if isinstance(v, float)})
    return content


def test_look_ups_are_told_as_the_browser_is_tested_with_and_only_what_is_new():
    """One view, from before the first token to the end."""
    view, before = RunView(), examples.flare_steps(rolled_back=False)
    after = examples.flare_steps()
    view._run = "r3"
    messages = [
        ("start", flare_session("prefilling", [], done=0, total=29, reused=0), 0, True),
        ("doubt", flare_session("looking_up", before[:3], done=29, total=29), 0, False),
        ("look_up", flare_session("prefilling", after[:3], look_up(3), done=12, total=42), 2, False),
        (
            "replay",
            flare_session("finished", after, look_up(3, **READ), look_up(5, **FAILED), done=42, total=42),
            0,
            True,
        ),
    ]
    for name, session, first, whole in messages:
        expected, buffers = example(f"update_flare_{name}.json")
        content, sent = view._update(session, first=first, whole=whole)
        assert plain(content) == plain(expected, "what_if", "beside")
        assert sent == buffers


def test_a_long_passage_is_cut_and_so_are_its_marks():
    text = "Canberra " + "x" * 1990 + " Canberra"
    event = look_up(3, hits=[{"id": "p1", "text": text, "score": 1.0, "source": ""}])
    content, _ = RunView()._update(
        flare_session("running", examples.flare_steps()[:4], event), first=0, whole=True
    )
    (hit,) = content["look_ups"][0]["hits"]
    assert (len(hit["text"]), hit["used"]) == (2000, [(0, 8)])


def test_a_run_without_look_ups_says_nothing_of_them():
    content, _ = RunView()._update(stub_session("running", examples.steps()), first=0, whole=True)
    assert not {"look_ups", "retrieved", "budget", "what_if", "beside"} & set(content)
    assert "policy" not in content["info"]


def test_a_failure_is_told_with_its_hint():
    error = RuntimeError("The model's forward raised RuntimeError: no memory.")
    error.hint = "The next call reloads the model."
    content, _ = message(stub_session("failed", [], error=error), first=0, whole=False, seq=3)
    expected, _ = example("update_failure.json")
    assert {**content, **expected} == content


def test_numbers_travel_as_little_endian_columns():
    content, buffers = message(stub_session("running", examples.steps()), first=0, whole=False, seq=1)
    numbers = columns(content["steps"], buffers)
    assert numbers["token_id"].tolist() == [504, 11, 12, 13, 2]
    assert numbers["max_prob"].tolist() == [0.75, 0.375, 0.25, 0.25, 0.5]
    assert numbers["rank"].tolist() == [1, 1, 1, 2, 1]
    assert numbers["draw"].tolist() == [0.25, 0.5, 0.8, 0.125, 0.3]
    assert numbers["candidate_id"][0].tolist() == [504, 1001, -1]
    # kept is 8, special 2, incomplete 1
    assert numbers["flags"].tolist() == [8, 8, 9, 8, 10]


@pytest.mark.parametrize("name", ["ready.json", "ready_empty.json"])
def test_what_the_browser_says_is_understood(name):
    content, _ = example(name)
    ready = parse_message(content)
    assert (ready.run, ready.steps) == (content["run"], content["steps"])


@pytest.mark.parametrize("name", ["branch.json", "branch_draw.json"])
def test_a_branch_that_the_browser_asks_for_is_understood(name):
    content, _ = example(name)
    branch = parse_message(content)
    assert isinstance(branch, Branch)
    assert (branch.run, branch.step, branch.token) == (content["run"], content["step"], content["token"])


def test_a_row_that_the_browser_asks_for_is_understood_and_ignored_where_there_is_none(caplog):
    content, _ = example("pick.json")
    assert parse_message(content).row == 1
    with caplog.at_level(logging.WARNING, logger="cartoolkit"):
        RunView()._handle_custom_msg(content, [])
    assert "row 1 of a comparison" in caplog.text


def test_a_run_arrives_whole_and_ends_with_a_snapshot(make_engine, front_end, eventually):
    session = make_engine().start("ab", temperature=0)
    view = RunView(session)
    eventually(lambda: view.snapshot is not None)
    assert front_end.text == session.result().text == "abc"
    assert front_end.gaps == 0
    assert front_end.parts["state"] == "finished"
    assert front_end.parts["finish"]["stop_detail"] == "end token <end>"
    assert front_end.parts["prefill"] == {"done": 2, "total": 2, "reused": 0}
    saved = FrontEnd()
    saved.receive(view.snapshot, view.snapshot["buffers"])
    assert (saved.texts, saved.parts["finish"]) == (front_end.texts, front_end.parts["finish"])


def test_two_thousand_tokens_come_in_far_fewer_messages_each_once(make_engine, front_end, eventually):
    session = make_engine([1, 2, 3] * 700, words=[b"a", b"b", b"c"]).start(
        "a", max_tokens=2000, temperature=0
    )
    view = RunView(session)
    eventually(lambda: view.snapshot is not None, seconds=30)
    assert front_end.ids == [step.token_id for step in session.steps]
    assert len(front_end.ids) == 2000
    spans = [(m["steps"]["first"], m["steps"]["count"]) for m, _ in front_end.messages if "steps" in m]
    assert [first for first, _ in spans] == [sum(n for _, n in spans[:i]) for i in range(len(spans))]
    assert len(front_end.messages) < 200
    assert max(count for _, count in spans) > 10


def test_messages_are_numbered_upwards(slow, front_end, eventually):
    session = slow.start("a", temperature=0, max_tokens=40)
    view = RunView(session)
    view._receive(view, FrontEnd().ready(), [])
    eventually(lambda: view.snapshot is not None)
    numbers = [content["seq"] for content, _ in front_end.messages]
    assert numbers == sorted(set(numbers))
    assert view.snapshot["seq"] > numbers[-1]


def test_hearing_everything_twice_changes_nothing(slow, front_end, eventually):
    session = slow.start("a", temperature=0, max_tokens=30)
    view = RunView(session)
    eventually(lambda: view.snapshot is not None)
    twice = FrontEnd()
    for content, buffers in front_end.messages:
        twice.receive(content, buffers)
        twice.receive(content, buffers)
    assert twice.ids == front_end.ids
    assert twice.gaps == 0


def test_a_view_that_appears_while_tokens_come_is_brought_up_to_date(slow, front_end, eventually):
    session = slow.start("a", temperature=0)
    view = RunView(session)
    eventually(lambda: len(front_end.ids) >= 5)
    late = FrontEnd()
    before = len(front_end.messages)
    view._handle_custom_msg(late.ready(), [])
    session.stop()
    eventually(lambda: view.snapshot is not None)
    for content, buffers in front_end.messages[before:]:
        late.receive(content, buffers)
    assert late.ids == front_end.ids == [step.token_id for step in session.steps]
    assert late.parts["info"]["prompt"] == "a"


def test_a_view_that_appears_after_the_end_is_told_everything(make_engine, front_end, eventually):
    view = RunView(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    view._handle_custom_msg({"type": "ready", "v": 1, "run": None, "steps": 0}, [])
    content, buffers = front_end.messages[-1]
    late = FrontEnd()
    late.receive(content, buffers)
    assert (late.text, late.parts["state"], late.gaps) == ("abc", "finished", 0)


def test_a_gap_is_filled_from_where_the_view_stands(make_engine, front_end, eventually):
    view = RunView(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    view._receive(view, {"type": "ready", "v": 1, "run": front_end.run, "steps": 2}, [])
    content, _ = front_end.messages[-1]
    assert (content["steps"]["first"], content["steps"]["texts"]) == (2, ["c", ""])


def test_a_view_that_knows_another_run_is_told_this_one_from_its_start(make_engine, front_end, eventually):
    view = RunView(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    view._receive(view, {"type": "ready", "v": 1, "run": "elsewhere", "steps": 3}, [])
    content, _ = front_end.messages[-1]
    assert content["steps"]["first"] == 0
    assert "info" in content


def test_a_view_without_a_run_keeps_still(front_end):
    view = RunView()
    view._receive(view, {"type": "ready", "v": 1, "run": None, "steps": 0}, [])
    assert front_end.messages == []


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
ALMOST = st.fixed_dictionaries(
    {"type": st.sampled_from(["ready", "branch", "pick"]) | JUNK, "v": st.just(1) | JUNK},
    optional={
        "run": st.none() | st.text(max_size=80) | JUNK,
        "steps": st.integers() | JUNK,
        "step": st.integers() | JUNK,
        "token": st.none() | st.integers() | JUNK,
        "row": st.integers() | JUNK,
        "more": JUNK,
    },
)
PARTS = {
    "ready": {"type", "v", "run", "steps"},
    "branch": {"type", "v", "run", "step", "token"},
    "pick": {"type", "v", "row"},
}


def is_number(value):
    return type(value) is int and 0 <= value < 2**31


def is_ours(content):
    """Whether a message is one of ours, said again in other words."""
    kind = content.get("type") if isinstance(content, dict) else None
    if not isinstance(kind, str) or set(content) != PARTS.get(kind) or type(content["v"]) is not int:
        return False
    if kind == "pick":
        return content["v"] == 1 and is_number(content["row"])
    run = content["run"]
    named = (isinstance(run, str) and len(run) <= 64) or (run is None and kind == "ready")
    numbers = [content["steps"]] if kind == "ready" else [content["step"], content["token"] or 0]
    return content["v"] == 1 and named and all(is_number(number) for number in numbers)


@settings(max_examples=300, deadline=None)
@given(content=JUNK | ALMOST, data=st.data())
def test_a_message_is_either_understood_or_refused(content, data):
    if is_ours(content):
        assert parse_message(content).model_dump() == content
    else:
        with pytest.raises(ValueError, match="a message from the browser was refused") as refusal:
            parse_message(content)
        assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "content",
    [
        None, [], "ready", {}, {"type": "update"}, {"type": "ready", "v": 2, "run": None, "steps": 0},
        {"type": "ready", "v": 1, "run": None, "steps": -1}, {"type": "ready", "v": 1, "run": 3, "steps": 0},
        {"type": "ready", "v": 1, "run": "x" * 65, "steps": 0}, {"type": "ready", "v": 1, "run": None},
        {"type": "ready", "v": 1, "run": None, "steps": True},
        {"type": "ready", "v": 1, "run": "r", "steps": "0"},
        {"type": "ready", "v": 1, "run": None, "steps": 0, "more": 1},
        {"type": "x" * 5000}, {"type": ["branch"]},
        {"type": "branch", "v": 1, "run": None, "step": 0, "token": 1},
        {"type": "branch", "v": 1, "run": "r", "step": -1, "token": 1},
        {"type": "branch", "v": 1, "run": "r", "step": 0, "token": 2**31},
        {"type": "branch", "v": 1, "run": "r", "step": 0, "token": True},
        {"type": "branch", "v": 1, "run": "r", "step": 0.0, "token": None},
        {"type": "branch", "v": 1, "run": "r", "step": 0},
        {"type": "pick", "v": 1}, {"type": "pick", "v": 1, "row": -1},
        {"type": "pick", "v": 1, "row": 0, "run": "r"},
    ],
)  # fmt: skip
def test_a_bad_message_is_logged_and_not_raised(content, make_engine, front_end, eventually, caplog):
    view = RunView(make_engine().start("a", temperature=0))
    eventually(lambda: view.snapshot is not None)
    sent = len(front_end.messages)
    with caplog.at_level(logging.WARNING, logger="cartoolkit"):
        view._handle_custom_msg(content, [])
    assert "a message from the browser was refused" in caplog.text
    assert len(front_end.messages) == sent


def test_views_that_ask_from_many_threads_are_all_answered(slow, front_end, eventually):
    session = slow.start("a", temperature=0, max_tokens=60)
    view = RunView(session)
    ready = {"type": "ready", "v": 1, "run": None, "steps": 0}
    threads = [
        threading.Thread(target=lambda: [view._receive(view, ready, []) for _ in range(20)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    eventually(lambda: view.snapshot is not None)
    assert front_end.gaps == 0
    assert front_end.ids == [step.token_id for step in session.steps]
    assert len({content["seq"] for content, _ in front_end.messages}) == len(front_end.messages)
