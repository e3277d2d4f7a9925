"""Widgets without a front end: what they send is recorded, what a browser would say is said by hand."""

import sys
import threading
import time
from pathlib import Path

import pytest

import cartoolkit as ct
from cartoolkit.engine import Engine
from cartoolkit.ui import RunView

# The scripted decoder and the hand-made steps are at home elsewhere in the tests.
sys.path[:0] = [str(Path(__file__).parents[1] / "engine"), str(Path(__file__).parents[2] / "fixtures")]


@pytest.fixture
def eventually():
    def wait(condition, seconds=5):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.002)

    return wait


@pytest.fixture
def make_engine():
    from scripted_decoder import ScriptedDecoder

    engines = []

    def make(script=(1, 2, 3, 0), words=(b"a", b"b", b"c"), **options):
        engines.append(Engine(lambda: ScriptedDecoder(words, script, **{"context_length": 5000, **options})))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def slow(make_engine):
    """An engine that takes 5 ms a token and would go on for 600."""
    return make_engine([1, 2, 3] * 200, delay=0.005)


@pytest.fixture
def front_end(monkeypatch):
    """A browser with one view of every run view that is made; it is there from the beginning."""
    from front_end import FrontEnd

    browser = FrontEnd()
    monkeypatch.setattr(RunView, "send", lambda view, content, buffers: browser.receive(content, buffers))
    return browser


@pytest.fixture
def followers(eventually):
    """Names of the threads that follow a session; there are none when the test begins."""

    def names():
        running = {thread.name for thread in threading.enumerate()}
        return sorted(running & {"cartoolkit-view", "cartoolkit-inspector"})

    eventually(lambda: names() == [])
    return names


@pytest.fixture
def inspect(front_end, followers):
    """Make Inspectors; what they have started is stopped at the end."""
    made = []

    def make(engine, prompt="a", **settings):
        made.append(ct.Inspector(engine, prompt, **{"temperature": 0, **settings}))
        return made[-1]

    yield make
    for inspector in made:
        if inspector.session is not None:
            inspector.session.stop()
            inspector.session.wait(5)
