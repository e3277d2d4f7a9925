"""Engines without a model for the router: real sessions over a decoder whose answer is written down."""

import sys
from pathlib import Path

from cartoolkit.engine import Engine
from cartoolkit.errors import OutOfMemory

# The scripted decoder is at home with the engine's tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

from scripted_decoder import ScriptedDecoder

WORDS = {"one": b"1", "two": b"2", "three": b"3"}


class Frail(ScriptedDecoder):
    """Answers with its word three times, or does in its forward what `ill` says."""

    def __init__(self, name, *, delay=0.0):
        super().__init__([b"a", b"b", name.encode()], [3, 3, 3], delay=delay)
        self.info = self.info.model_copy(update={"name": name, "engine": "script"})
        self.ill = None

    def forward(self, ids, pos):
        if self.ill is not None:
            self.ill()
        return super().forward(ids, pos)


def engine_called(name, *, delay=0.0):
    """An engine that answers with its name three times; `engine.decoder.ill` makes it fail."""
    return Engine(lambda: Frail(name, delay=delay))


def raising(error):
    """An illness: every forward raises `error`."""

    def fall_ill():
        raise error

    return fall_ill


def out_of_memory():
    """The library's own error, as the torch and llama.cpp decoders raise it."""
    raise OutOfMemory("the machine ran out of memory in the model's forward: 3 GB were asked for.")
