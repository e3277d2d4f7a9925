"""Three engines without a model, and a router over them that prefers them by the alphabet."""

import pytest
from scripted_engines import engine_called

from cartoolkit.routing import Deterministic, Registry, Router


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engines():
    """Three engines; the router below prefers them in this order, since equal scores go by the id."""
    made = {name: engine_called(name) for name in ("a", "b", "c")}
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture
def router(engines, tmp_path, clock):
    with Router(Registry(), strategy=Deterministic(), folder=tmp_path, clock=clock) as router:
        for engine in engines.values():
            router.add(engine)
        yield router
