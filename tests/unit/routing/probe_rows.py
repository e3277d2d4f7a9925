"""A measurement for the tests, and an engine that answers by script."""

import sys
from pathlib import Path

from cartoolkit.engine import Engine
from cartoolkit.routing.probing.machine import MachineIdentity
from cartoolkit.routing.probing.measurements import Probe

sys.path.append(str(Path(__file__).parents[1] / "engine"))

from scripted_decoder import ScriptedDecoder

MACHINE = MachineIdentity(processor="Abacus 9", architecture="beads", cores=4, memory_gib=16, system="Plan 9")
VERSIONS = {"python": "3.11.7", "llama-cpp-python": "0.3.36"}
LETTERS = [bytes([code]) for code in range(32, 127)] + [b"\n"]


def probe_row(model_id="gguf/small:q4", **fields):
    """A measurement; everything that is not given is unknown."""
    given = {
        "model_id": model_id, "measured_at": 1_700_000_000.0, "machine": MACHINE, "engine": "llama.cpp",
        "device": "cpu", "dtype": "Q4_1", "weights_hash": "sha256:1", "versions": VERSIONS,
    }  # fmt: skip
    return Probe.model_validate(given | fields)


class FreshDecoder(ScriptedDecoder):
    """Keeps nothing of a prompt that must be read anew, as the real ones do below a chunk."""

    def begin_prompt(self, ids, *, repeatable=False):
        if repeatable:
            self.cached = []
        return super().begin_prompt(ids)


def scripted_engine(answer="Paris\n", *, kind=FreshDecoder, **settings):
    """An engine whose tokens are letters, and which always says `answer`."""
    script = [1 + LETTERS.index(bytes([code])) for code in answer.encode()]
    settings = {"context_length": 4096} | settings
    return Engine(lambda: kind(LETTERS, script, **settings))
