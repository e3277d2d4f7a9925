"""A model measured in a process of its own: whatever becomes of that process, the caller is told."""

import io
import json
import subprocess
import sys
import time

import psutil
import pytest
from model_rows import row
from probe_rows import probe_row

from cartoolkit.errors import NotEnoughMemory, ProbeFailed
from cartoolkit.routing.probing import child as probe_child
from cartoolkit.routing.probing import process as probe_process
from cartoolkit.routing.probing.child import ProbeTask, answer, peak_memory
from cartoolkit.routing.probing.measuring import ProbeOptions
from cartoolkit.routing.probing.process import measured_apart

MODEL = row(
    "gguf/small:q4", "folder", source={"kind": "folder", "location": "/no/such/folder", "engine": "gguf"}
)
PROGRESS = json.dumps({"progress": ["decoding", 1, 7]})


def run(code, *, silence=60.0, heard=None):
    """Let this Python code be the process."""
    heard = [] if heard is None else heard
    return measured_apart(
        MODEL,
        ProbeOptions(),
        lambda *told: heard.append(told),
        silence=silence,
        program=(sys.executable, "-c", code),
    )


def failure(code, **about):
    with pytest.raises(ProbeFailed) as caught:
        run(code, **about)
    return caught.value


def test_the_process_is_given_the_row_and_its_answer_is_the_measurement():
    found = probe_row(device="loom")
    said = json.dumps({"probe": found.model_dump(mode="json")})
    heard = []
    code = (
        "import json, sys\n"
        "task = json.loads(sys.stdin.read())\n"
        "print(json.dumps({'progress': [task['model']['id'], 0, task['options']['repeats']]}))\n"
        f"print({said!r})"
    )
    assert run(code, heard=heard) == found
    assert heard == [("gguf/small:q4", 0, 6)]


def test_what_goes_wrong_in_it_is_said_with_its_hint():
    error = failure(f"print({json.dumps({'error': 'The weights are bent.', 'hint': 'Straighten them.'})!r})")
    assert str(error) == "gguf/small:q4 could not be measured: The weights are bent."
    assert error.hint == "Straighten them."


def test_a_kill_is_told_as_what_systems_do_without_memory():
    error = failure(f"import os\nprint({PROGRESS!r}, flush=True)\nos.kill(os.getpid(), 9)")
    assert str(error) == (
        "gguf/small:q4 could not be measured: its process was ended (SIGKILL), as systems do when memory "
        "runs out, while it was at decoding."
    )
    assert "smaller model" in error.hint


def test_a_crash_is_told_by_its_signal():
    error = failure("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert "its process crashed (SIGSEGV), while it started" in str(error)
    assert "doctor" in error.hint


def test_an_end_without_an_answer_is_told_with_its_last_words():
    error = failure("import sys\nprint('Traceback', file=sys.stderr)\nsys.exit('the loom is stuck')")
    assert "ended with exit code 1 and the words 'the loom is stuck'" in str(error)


def test_last_words_are_cut():
    error = failure("import sys\nsys.exit('x' * 100_000)")
    assert len(str(error)) < 500


def test_an_end_without_any_word_is_told_by_its_code():
    assert "ended with exit code 0, while it started" in str(failure("pass"))


def test_a_process_that_says_nothing_is_ended():
    began = time.monotonic()
    error = failure(f"import time\nprint({PROGRESS!r}, flush=True)\ntime.sleep(60)", silence=1.5)
    assert "said nothing for 1.5 s and was ended, while it was at decoding" in str(error)
    assert time.monotonic() - began < 30


def test_a_torn_line_is_not_an_answer():
    assert "crashed" in str(
        failure("import os\nprint('{\"probe', end='', flush=True)\nos.kill(os.getpid(), 11)")
    )


def test_it_does_not_outlive_a_caller_who_was_interrupted(monkeypatch):
    started = []
    real = subprocess.Popen

    def remembered(*args, **settings):
        started.append(real(*args, **settings))
        return started[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(probe_process.subprocess, "Popen", remembered)
    code = f"import time\nprint({PROGRESS!r}, flush=True)\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        measured_apart(MODEL, ProbeOptions(), interrupt, program=(sys.executable, "-c", code))
    assert started[0].poll() is not None


# -- its far side ----------------------------------------------------------------------------------


def answered(monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(probe_child, "_measured", fails)
    out = io.StringIO()
    answer(ProbeTask(model=MODEL, options=ProbeOptions()), out)
    return json.loads(out.getvalue())


def test_errors_of_ours_and_a_lack_of_memory_are_put_into_words(monkeypatch):
    assert answered(monkeypatch, NotEnoughMemory("It needs 9 GB.", hint="Buy some.")) == {
        "error": "It needs 9 GB.", "hint": "Buy some.", "kind": "NotEnoughMemory",
    }  # fmt: skip
    assert answered(monkeypatch, MemoryError())["error"] == "Python had no memory left"


def test_the_real_process_says_that_a_folder_is_not_there():
    with pytest.raises(ProbeFailed, match="/no/such/folder"):
        measured_apart(MODEL, ProbeOptions(), lambda *_: None)


def test_peak_memory_remembers_what_was_given_back():
    before = psutil.Process().memory_info().rss
    block = bytearray(64_000_000)
    block[::4096] = b"x" * len(block[::4096])
    del block
    # The kernel counts in batches, which may be missing.
    assert peak_memory() >= before + 60_000_000


def test_a_child_s_peak_is_not_its_parent_s():
    """`getrusage` would tell of this process, which has numpy, pydantic and a block of 300 MB."""
    block = bytearray(300_000_000)
    block[::4096] = b"x" * len(block[::4096])
    code = "from cartoolkit.routing.probing.child import peak_memory; print(peak_memory())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(said) < 300_000_000
    del block
