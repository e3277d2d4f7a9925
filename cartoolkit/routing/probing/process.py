"""The near side of `probe_child`: started, listened to, and ended if it hangs.

The process can crash or be ended without harm to a notebook; the error then says how. It does not outlive
whoever waits for it, interrupted or not.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from cartoolkit.errors import ProbeFailed
from cartoolkit.routing.probing.child import ProbeTask
from cartoolkit.routing.probing.measurements import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartoolkit.routing.probing.measuring import ProbeOptions
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["measured_apart"]

_PROGRAM = (sys.executable, "-m", "cartoolkit.routing.probing.child")
_SILENCE = 600.0  # seconds; one load, or one prompt on a slow machine, takes less
_TAIL = 8192
_LONGEST_COMPLAINT = 300


def measured_apart(
    model: ModelSchema,
    options: ProbeOptions,
    report: Callable[[str, int, int], None],
    *,
    silence: float = _SILENCE,
    program: Sequence[str] = _PROGRAM,
) -> Probe:
    """Measure a model whose weights lie on this disk, in a process of its own.

    Args:
        model: the row.
        options: what to measure.
        report: told what is going on, how much of it is done, and how much there is.
        silence: seconds after which a process that says nothing is taken to hang, and ended.
        program: what is started.

    Raises:
        ProbeFailed: the process crashed, was ended, hung, or says what went wrong in it.
    """
    task = ProbeTask(model=model, options=options).model_dump_json().encode()
    doing = "it started"
    with tempfile.TemporaryFile() as complaints, _child(program, complaints) as child:
        watch = _Watch(child, silence)
        for message in _messages(child, task, watch):
            if "probe" in message:
                return Probe.model_validate(message["probe"])
            if "error" in message:
                raise ProbeFailed(
                    f"{model.id} could not be measured: {message['error']}", hint=message["hint"]
                )
            report(*message["progress"])
            doing = f"it was at {message['progress'][0]}"
        how = watch.verdict or _how_it_ended(child.wait(), complaints)
    raise ProbeFailed(f"{model.id} could not be measured: its process {how}, while {doing}.", hint=_hint(how))


@contextmanager
def _child(program: Sequence[str], complaints: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(  # noqa: S603 - our own module
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def _messages(child: subprocess.Popen[bytes], task: bytes, watch: _Watch) -> Iterator[dict[str, Any]]:
    assert child.stdin is not None
    assert child.stdout is not None
    # One that ended at once is told of by how it ended.
    with suppress(BrokenPipeError):
        child.stdin.write(task)
        child.stdin.close()
    try:
        for line in child.stdout:
            watch.heard()
            # The last line of one that was killed may be torn.
            with suppress(ValueError):
                yield json.loads(line)
    finally:
        watch.stop()


class _Watch:
    """Ends a process of which nothing is heard.

    Attributes:
        verdict: that it was ended, as a clause; empty if it was not.
    """

    def __init__(self, child: subprocess.Popen[bytes], silence: float) -> None:
        self._child = child
        self._silence = silence
        self.verdict = ""
        self._timer = self._new_timer()

    def _new_timer(self) -> threading.Timer:
        timer = threading.Timer(self._silence, self._give_up)
        timer.daemon = True
        timer.start()
        return timer

    def heard(self) -> None:
        """It is alive."""
        self._timer.cancel()
        self._timer = self._new_timer()

    def stop(self) -> None:
        """Nothing more is expected of it."""
        self._timer.cancel()

    def _give_up(self) -> None:
        self.verdict = f"said nothing for {self._silence:g} s and was ended"
        self._child.kill()


def _how_it_ended(code: int, complaints: IO[bytes]) -> str:
    """What became of a process, as a clause."""
    if code < 0:
        with suppress(ValueError):
            name = signal.Signals(-code).name
            is_killed = name == "SIGKILL"
            return (
                "was ended (SIGKILL), as systems do when memory runs out"
                if is_killed
                else f"crashed ({name})"
            )
    said = _last_line(complaints)
    return f"ended with exit code {code}" + (f" and the words {said!r}" if said else "")


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0, 2)
    complaints.seek(max(0, complaints.tell() - _TAIL))
    lines = complaints.read().decode(errors="replace").splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last if len(last) <= _LONGEST_COMPLAINT else last[: _LONGEST_COMPLAINT - 1] + "…"


def _hint(how: str) -> str | None:
    if "memory" in how:
        return "Close other engines and programs, or take a smaller model or a quantized version of it."
    return "Another version of the engine's library may do; `cartoolkit doctor` says what works here."
