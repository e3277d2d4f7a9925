"""A run that looks something up, as the view follows it: what was dropped comes again, and nothing twice."""

import threading

import pytest
from front_end import FrontEnd

from cartoolkit.retrieval import Hit, Policy, preset
from cartoolkit.retrieval.triggers import ContentTokenBelow
from cartoolkit.trace import Trace
from cartoolkit.ui import RunView
from cartoolkit.ui.run_view import _first_change

PASSAGE = "Tango is told of sierra."
# What it says, and what it can be asked.
WORDS = [b" sierra", b" tango", b" victor", b"What?"]


class Library:
    """Finds a passage at each of the first `times` look-ups, and waits for `gate` before it answers."""

    def __init__(self, times=1):
        self.times, self.queries, self.gate = times, [], threading.Event()
        self.gate.set()

    def search(self, query, k=3):
        self.gate.wait(10)
        self.queries.append(query)
        return [Hit(f"p{len(self.queries)}", PASSAGE, 1.0, "book")] if len(self.queries) <= self.times else []


@pytest.fixture
def engine(make_engine):
    """Says " sierra tango victor" whatever it reads, each word at one half."""
    return make_engine([1, 2, 3, 0], WORDS)


def start(engine, library, **settings):
    policy = preset("rollback", threshold=0.6, cooldown_tokens=0, **settings)
    return engine.start("What?", retrieval=policy, retriever=library, temperature=0)


def test_what_was_dropped_comes_again_and_does_not_stand(engine, front_end, eventually):
    session = start(engine, Library())
    view = RunView(session)
    eventually(lambda: view.snapshot is not None)
    # The first word is dropped once, and written again; later look-ups find nothing.
    assert front_end.texts == [" sierra", " sierra", " tango", " victor", ""]
    assert front_end.kept == [False, True, True, True, True]
    assert front_end.text == session.result().text == " sierra tango victor"
    assert front_end.gaps == 0
    first, *rest = front_end.parts["look_ups"]
    assert (first["at"], first["keep"], first["dropped"], first["outcome"]) == (1, 0, 1, "found")
    assert [(chance["text"], chance["before"], chance["after"]) for chance in first["chances"]] == [
        (" sierra", pytest.approx(0.5), pytest.approx(0.5))
    ]
    assert {row["outcome"] for row in rest} == {"nothing"}
    assert [PASSAGE[start:end] for start, end in first["hits"][0]["used"]] == ["Tango", "sierra"]
    assert front_end.parts["retrieved"] == [1, 2]
    assert front_end.parts["notices"] == []
    assert front_end.parts["info"]["policy"] == {
        "name": "rollback",
        "trigger": "at a token below 0.6",
        "threshold": 0.6,
        "retriever": "Library",
    }
    budget = front_end.parts["budget"]
    assert (budget["retrievals"], budget["max_retrievals"], budget["kept"], budget["decoded"]) == (1, 3, 4, 5)


def test_a_look_up_that_takes_its_time_is_shown_while_it_runs(engine, front_end, eventually):
    library = Library()
    library.gate.clear()
    view = RunView(start(engine, library))
    eventually(lambda: front_end.parts.get("state") == "looking_up")
    eventually(lambda: front_end.texts == [" sierra"] and front_end.kept == [True])
    library.gate.set()
    eventually(lambda: view.snapshot is not None)
    assert front_end.kept[0] is False


def test_a_view_that_appears_after_a_rollback_knows_what_was_dropped(engine, front_end, eventually):
    view = RunView(start(engine, Library()))
    eventually(lambda: view.snapshot is not None)
    late = FrontEnd()
    # It has seen the first step before that was dropped, and missed what came then.
    view._handle_custom_msg({"type": "ready", "v": 1, "run": front_end.run, "steps": 1}, [])
    late.receive(*front_end.messages[-1])
    assert (late.texts, late.kept) == (front_end.texts, front_end.kept)
    saved = FrontEnd()
    saved.receive(view.snapshot, view.snapshot["buffers"])
    assert (saved.kept, saved.parts["look_ups"]) == (front_end.kept, front_end.parts["look_ups"])


def test_parts_that_do_not_change_are_not_sent_again(make_engine, front_end, eventually):
    engine = make_engine([1, 2, 3] * 40, WORDS, delay=0.005)
    policy = Policy("once", trigger=ContentTokenBelow(0.6)).changed(max_retrievals=1, max_fruitless=0)
    view = RunView(
        engine.start("What?", retrieval=policy, retriever=Library(), temperature=0, max_tokens=120)
    )
    eventually(lambda: view.snapshot is not None, 10)
    with_look_ups = [content for content, _ in front_end.messages if "look_ups" in content]
    assert len(front_end.messages) > len(with_look_ups) + 4
    assert len(with_look_ups) < 8


def test_the_first_step_that_has_changed_is_found():
    a, b, c, d = (object() for _ in range(4))
    assert _first_change([], []) == 0
    assert _first_change([], [a]) == 0
    assert _first_change([a, b], [a, b]) == 2
    assert _first_change([a, b], [a, b, c]) == 2
    assert _first_change([a, b], [d, b, c]) == 0
    assert _first_change([a, b], [a, d, c]) == 1


def test_the_twin_shows_words_from_passages(engine):
    session = start(engine, Library())
    session.wait()
    bundle = RunView(session)._repr_mimebundle_()[0]
    assert '<b style="color:#0b6b3a">Tango</b> is told of ' in bundle["text/html"]
    assert "▲1 before token 1: asked “What?” " in bundle["text/plain"]
    assert isinstance(session.trace, Trace)
