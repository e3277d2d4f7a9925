"""The shelf of engines: opened once, one request at a time, and room made by letting go of idle ones."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from model_rows import local, row

from cartoolkit.errors import EngineBusy, EngineClosed, EngineError, InvalidRequest, ModelNotFound
from cartoolkit.routing.calls.serving import Shelf, open_answerer
from cartoolkit.trace import ModelInfo


class Idle:
    """An answerer with nothing to do."""

    def __init__(self, name):
        self.info = ModelInfo(
            name=name, engine="script", device="cpu", dtype="float32", context_length=8, vocab_size=2,
            weights_hash=f"sha256:{name}",
        )  # fmt: skip
        self.closed = False
        self.session = None

    def close(self):
        self.closed = True


class Opener:
    """Opens rows, and remembers which."""

    def __init__(self):
        self.opened = []

    def __call__(self, model):
        self.opened.append(model.id)
        return Idle(model.id)


def folder(model_id, ram_mb=None):
    return row(model_id, "folder", source={"kind": "folder", "location": "/m"}, cost={"ram_mb": ram_mb})


@pytest.fixture
def opener():
    return Opener()


def shelf_with(opener, free_mb=None):
    return Shelf(opener, lambda: free_mb)


def test_a_model_is_opened_once_and_kept(opener):
    shelf, model = shelf_with(opener), folder("torch/a")
    with shelf.take(model) as first:
        pass
    with shelf.take(model) as second:
        assert second is first
    assert opener.opened == ["torch/a"]
    assert shelf.loaded == {"torch/a"}
    assert shelf.shelved.weights == {"torch/a": "sha256:torch/a"}


def test_threads_that_want_the_same_model_share_one_opening_and_take_turns(opener):
    shelf, model, inside, most = shelf_with(opener), folder("torch/a"), [], []

    def use(_):
        with shelf.take(model):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(32)))
    assert opener.opened == ["torch/a"]
    assert max(most) == 1


def test_whoever_waits_too_long_for_the_others_learns_that_the_engine_is_busy(opener):
    shelf, model = shelf_with(opener), folder("torch/a")
    with shelf.take(model), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: shelf.take(model, patience=0.05).__enter__())
        with pytest.raises(EngineBusy, match="busy with other requests"):
            waiting.result()


def test_a_server_is_asked_by_several_at_once(opener):
    shelf, model = shelf_with(opener), row("acme/large", "remote_api")
    with shelf.take(model) as first, shelf.take(model, patience=0.05) as second:
        assert first is second


def test_what_fails_to_open_is_tried_again_next_time():
    errors = [EngineError("the disk is gone"), None]

    def open_once_broken(model):
        if (error := errors.pop(0)) is not None:
            raise error
        return Idle(model.id)

    shelf, model = shelf_with(open_once_broken), folder("torch/a")
    with pytest.raises(EngineError, match="the disk is gone"), shelf.take(model):
        pass
    with shelf.take(model) as answerer:
        assert answerer.info.name == "torch/a"


def test_a_program_s_end_raised_while_loading_is_an_error_of_the_model():
    def leave(model):
        raise SystemExit(2)

    with pytest.raises(EngineError, match="loading torch/a raised SystemExit: 2"):
        shelf_with(leave).take(folder("torch/a")).__enter__()


def test_room_is_made_by_letting_go_of_the_engine_that_was_unused_for_longest(opener):
    free = {"mb": 1000.0}
    shelf = Shelf(opener, lambda: free["mb"])
    for name in ("torch/a", "torch/b", "torch/a"):
        with shelf.take(folder(name, 400.0)):
            pass
    free["mb"] = 300.0
    with shelf.take(folder("torch/c", 400.0)):
        pass
    # Nothing became free by it, so the other idle one went as well.
    assert shelf.loaded == {"torch/c"}


def test_only_as_many_are_let_go_of_as_are_needed():
    free = {"mb": 1000.0}

    class Freeing(Idle):
        def __del__(self):
            free["mb"] += 400.0

    def open_and_take(model):
        free["mb"] -= 400.0
        return Freeing(model.id)

    shelf = Shelf(open_and_take, lambda: free["mb"])
    for name in ("torch/a", "torch/b", "torch/a", "torch/c"):
        with shelf.take(folder(name, 400.0)):
            pass
    assert shelf.loaded == {"torch/a", "torch/c"}


def test_an_engine_that_was_handed_over_or_is_at_work_is_never_let_go_of(opener):
    shelf = shelf_with(opener, free_mb=0.0)
    mine = Idle("mine")
    shelf.put(folder("torch/mine", 400.0), mine)
    with shelf.take(folder("torch/busy", 400.0)), shelf.take(folder("torch/c", 400.0)):
        assert shelf.loaded == {"torch/mine", "torch/busy", "torch/c"}
        assert shelf.reclaimable_mb == 0.0
    assert shelf.reclaimable_mb == 800.0


def test_an_engine_whose_session_somebody_else_runs_is_not_idle(opener):
    class Running:
        done = False

    shelf = shelf_with(opener)
    with shelf.take(folder("torch/a", 400.0)) as answerer:
        pass
    assert shelf.reclaimable_mb == 400.0
    answerer.session = Running()
    assert shelf.reclaimable_mb == 0.0


def test_what_is_let_go_of_lives_on_with_whoever_else_holds_it(opener):
    shelf = shelf_with(opener, free_mb=0.0)
    with shelf.take(folder("torch/a", 400.0)) as held:
        pass
    with shelf.take(folder("torch/b", 400.0)):
        pass
    assert not held.closed
    forgotten = weakref.ref(held)
    del held
    gc.collect()
    assert forgotten() is None


def test_an_engine_that_was_handed_over_and_closed_is_lost(opener):
    shelf, mine = shelf_with(opener), Idle("mine")
    model = local("torch/mine")  # a row without a location
    shelf.put(model, mine)
    mine.close()
    assert shelf.shelved.lost == {"torch/mine"}
    with pytest.raises(EngineClosed, match=r"the engine of torch/mine was closed"), shelf.take(model):
        pass


def test_an_engine_that_was_closed_is_opened_again_where_its_place_is_known(opener):
    shelf, mine = shelf_with(opener), Idle("mine")
    shelf.put(folder("torch/a"), mine)
    mine.close()
    with shelf.take(folder("torch/a")) as answerer:
        assert answerer is not mine
    assert opener.opened == ["torch/a"]


def test_a_row_that_was_replaced_by_another_one_is_opened_anew(opener):
    shelf = shelf_with(opener)
    with shelf.take(folder("torch/a")) as first:
        pass
    moved = row("torch/a", "folder", source={"kind": "folder", "location": "/elsewhere"})
    with shelf.take(moved) as second:
        assert second is not first
    assert opener.opened == ["torch/a", "torch/a"]


def test_an_interrupt_ends_the_wait_and_the_opening_goes_on(opener):
    may_open, model = threading.Event(), folder("torch/a")

    def slow(row):
        may_open.wait(10)
        return opener(row)

    shelf = shelf_with(slow)
    with pytest.MonkeyPatch.context() as patch:

        def interrupted(*_, **__):
            raise KeyboardInterrupt

        patch.setattr("cartoolkit.routing.calls.serving.wait", interrupted)
        with pytest.raises(KeyboardInterrupt), shelf.take(model):
            pass
    may_open.set()
    with shelf.take(model) as answerer:
        assert answerer.info.name == "torch/a"
    assert opener.opened == ["torch/a"]


def test_closing_lets_go_of_what_was_opened_here_and_closes_connections(opener):
    shelf, mine = shelf_with(opener), Idle("mine")
    shelf.put(local("torch/mine"), mine)
    with shelf.take(row("acme/large", "remote_api")) as connection, shelf.take(folder("torch/a")) as own:
        pass
    shelf.close()
    assert shelf.loaded == {"torch/mine"}
    assert (connection.closed, own.closed, mine.closed) == (True, False, False)


def test_a_row_that_cannot_be_loaded_is_no_fault_of_the_request():
    def refuse(model):
        raise InvalidRequest("no such engine.")

    with pytest.raises(EngineError, match=r"torch/a cannot be loaded: no such engine\."):
        shelf_with(refuse).take(folder("torch/a")).__enter__()
    with pytest.raises(ModelNotFound, match="torch/a has no location, so it cannot be loaded"):
        Shelf(open_answerer, lambda: None).take(local("torch/a")).__enter__()


def test_a_router_that_is_closed_while_a_model_is_opened_still_answers_who_waits_for_it():
    def opened(model):
        shelf.close()
        return Idle(model.id)

    shelf = shelf_with(opened)
    with shelf.take(folder("torch/a")) as engine:
        assert engine.info.name == "torch/a"
    assert shelf.loaded == frozenset()


def test_an_engine_that_is_let_go_of_while_it_is_looked_at_costs_nothing():
    class Leaving(Idle):
        """Another thread closes the router when it is looked at for the second time."""

        looks = 0

        @property
        def closed(self):
            self.looks += 1
            if self.looks == 2:
                shelf.close()
            return False

        @closed.setter
        def closed(self, _):
            pass

    made = []
    shelf = shelf_with(lambda model: made.append(Leaving(model.id)) or made[0])
    with shelf.take(folder("torch/a")):
        pass
    made[0].looks = 0
    assert shelf.shelved.weights in ({"torch/a": "sha256:torch/a"}, {})


def test_an_engine_whose_row_is_gone_is_let_go_of(opener):
    shelf, kept = shelf_with(opener), folder("torch/a")
    with shelf.take(kept), shelf.take(folder("torch/b")):
        pass
    shelf.put(folder("torch/c"), Idle("torch/c"))
    held = weakref.ref(shelf.get("torch/c"))
    shelf.forget_all_but({"torch/a"})
    assert shelf.loaded == {"torch/a"}
    assert held() is None
