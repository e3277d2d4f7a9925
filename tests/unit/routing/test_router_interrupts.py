"""Ctrl-C while the router answers, loads or waits: it comes through, and what there is is kept."""

import os
import signal
import threading
import time

import pytest
from model_rows import row
from scripted_engines import ask, ill

from cartoolkit.routing import Deterministic, Registry, Router

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")


@pytest.fixture
def interrupt_once(interruptible):
    """Send the interrupt signal to this process, once, as soon as a condition holds."""
    senders = []

    def begin(condition):
        def watch():
            deadline = time.monotonic() + 20
            while not condition() and time.monotonic() < deadline:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        senders.append(threading.Thread(target=watch))
        senders[-1].start()

    yield begin
    for sender in senders:
        sender.join()


def test_an_interrupt_ends_the_answer_and_returns_what_there_is(router, engines, interrupt_once):
    ill(engines, a=lambda: time.sleep(0.05))
    sessions = []
    interrupt_once(lambda: sessions and sessions[0].steps)
    answer = ask(
        router, max_tokens=2000, ignore_eos=True, on_start=lambda _, session: sessions.append(session)
    )
    assert answer.result.stop_reason == "stopped"
    assert answer.text.startswith("a")
    assert [attempt.reason for attempt in answer.attempts] == ["cancelled"]


def test_an_interrupt_while_a_model_loads_is_raised_and_the_model_is_there_later(
    engines, tmp_path, interrupt_once
):
    model = row("torch/slow", "folder", source={"kind": "folder", "location": "/m"})
    router = Router(Registry([model]), strategy=Deterministic(), folder=tmp_path)
    loading, may_end, opened = threading.Event(), threading.Event(), []

    def open_slowly(model):
        opened.append(model.id)
        loading.set()
        may_end.wait(20)
        return engines["a"]

    router._shelf._open = open_slowly
    interrupt_once(loading.is_set)
    with pytest.raises(KeyboardInterrupt):
        ask(router)
    assert router.history.tracker.profile("torch/slow").total.inconclusive_count == 1
    may_end.set()
    assert ask(router).text == "aaa"
    assert opened == ["torch/slow"]


def test_an_interrupt_while_waiting_for_another_request_is_raised(router, engines, interrupt_once):
    started, may_end = threading.Event(), threading.Event()
    ill(engines, a=lambda: (started.set(), may_end.wait(20)))
    other = threading.Thread(target=ask, args=(router,), kwargs={"model": "script/a"})
    other.start()
    started.wait(20)
    waiting, take = threading.Event(), router._shelf.take

    def take_and_say(*args, **settings):
        waiting.set()
        return take(*args, **settings)

    router._shelf.take = take_and_say
    interrupt_once(waiting.is_set)
    with pytest.raises(KeyboardInterrupt):
        ask(router, model="script/a")
    may_end.set()
    other.join()
    total = router.history.tracker.profile("script/a").total
    assert (total.success_count, total.inconclusive_count) == (1, 1)


def test_a_half_answer_is_returned_if_its_fallback_is_interrupted_while_it_loads(
    engines, tmp_path, interrupt_once
):
    slow = row("torch/slow", "folder", source={"kind": "folder", "location": "/m"}, quality=0.0)
    router = Router(Registry([slow]), strategy=Deterministic(), folder=tmp_path)
    router.add(engines["a"])
    loading, may_end = threading.Event(), threading.Event()

    def open_slowly(model):
        loading.set()
        may_end.wait(20)
        return engines["b"]

    router._shelf._open = open_slowly
    ill(engines, a=lambda: time.sleep(0.4))
    interrupt_once(loading.is_set)
    answer = ask(router, max_tokens=50, ignore_eos=True, time_limit=1.0)
    may_end.set()
    assert (answer.model_id, answer.result.stop_reason) == ("script/a", "local_decode_timeout")
    assert [attempt.reason for attempt in answer.attempts] == ["timeout", "cancelled"]
