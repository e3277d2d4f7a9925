"""Engines without a model for the router: real sessions over a decoder whose answer is written down."""

import sys
from pathlib import Path

from cartoolkit.engine import Engine
from cartoolkit.errors import OutOfMemory

# The scripted decoder is at home with the engine's tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

from scripted_decoder import ScriptedDecoder


class Frail(ScriptedDecoder):
    """Answers with its name three times, after its engine's illness, if it has one, has had its turn."""

    def __init__(self, name, health, *, delay=0.0):
        super().__init__([b"a", b"b", name.encode()], [3, 3, 3], context_length=4096, delay=delay)
        self.info = self.info.model_copy(update={"name": name, "engine": "script"})
        self.health = health

    def forward(self, ids, pos):
        if (illness := self.health["illness"]) is not None:
            illness()
        return super().forward(ids, pos)


def engine_called(name, *, delay=0.0):
    """An engine that answers with its name three times, unless its `health["illness"]` is set.

    That is a function called in every forward, also of the decoders that are loaded after a failure.
    """
    health = {"illness": None}
    engine = Engine(lambda: Frail(name, health, delay=delay))
    engine.health = health
    return engine


def raising(error):
    """An illness: every forward raises `error`."""

    def fall_ill():
        raise error

    return fall_ill


def out_of_memory():
    """The library's own error, as the torch and llama.cpp decoders raise it."""
    raise OutOfMemory("the machine ran out of memory in the model's forward: 3 GB were asked for.")


def ask(router, prompt="a", **settings):
    return router.generate(prompt, **{"temperature": 0, "seed": 1} | settings)


def ill(engines, **by_name):
    for name, illness in by_name.items():
        engines[name].health["illness"] = illness
