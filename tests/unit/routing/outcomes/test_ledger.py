"""The ledger: what was acknowledged is there, what was torn is set aside, and both are said."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cartoolkit.errors import LedgerError
from cartoolkit.routing.outcomes import ledger as module
from cartoolkit.routing.outcomes.ledger import MAX_ROW, Ledger, OutcomeHistory
from cartoolkit.routing.outcomes.records import Completion, Verdict

HEADER = b'{"kind":"outcome ledger","version":1}\n'


def done(trace_id, **about):
    return Completion(
        **{"trace_id": trace_id, "model_id": "lab/small:q4", "task": "chat", "time": 1, **about}
    )


def trace_ids(contents):
    return [row.trace_id for row in contents.rows]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "deep" / "outcomes.jsonl")


# Writing and reading


def test_rows_come_back_as_they_were_written(ledger):
    rows = [
        done("a", latency_ms=0.1 + 0.2, usd=1e-9, prompt_tokens=3, completion_tokens=4),
        done("b", outcome="failure", reason="timeout"),
        Verdict(trace_id="a", accepted=False, time=2.5, confidence=1 / 3),
    ]
    ledger.append(rows[0])
    ledger.append(*rows[1:])
    contents = ledger.read()
    assert contents.rows == tuple(rows)
    assert (contents.torn, contents.damaged, contents.open_bytes) == (0, (), 0)
    assert contents.end == ledger.path.stat().st_size


def test_the_file_is_lines_of_json_that_anybody_can_read(ledger):
    ledger.append(done("a", usd=0.5))
    first, second = ledger.path.read_bytes().splitlines(keepends=True)
    assert first == HEADER
    about = {"model_id": "lab/small:q4", "task": "chat", "time": 1.0, "outcome": "success", "reason": ""}
    assert json.loads(second) == {
        "kind": "completion",
        "trace_id": "a",
        **about,
        "usd": 0.5,
        "usd_is_estimate": False,
    }


def test_a_ledger_that_nobody_wrote_to_is_empty(ledger):
    assert ledger.read().rows == ()
    assert not ledger.path.parent.exists()


def test_reading_on_gives_what_is_new(ledger):
    ledger.append(done("a"))
    end = ledger.read().end
    assert ledger.read(end).rows == ()
    ledger.append(done("b"))
    assert trace_ids(ledger.read(end)) == ["b"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_the_owner_can_read_it(ledger):
    ledger.append(done("a"))
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_the_longest_row_fits(ledger):
    count, amount = 2**53 - 1, 1.2345678901234567e-300
    row = done("é".encode().hex() * 50, model_id="m" * 200, task="t" * 40, time=1.2345678901234567e300)
    row = row.model_copy(update={"prompt_tokens": count, "completion_tokens": count})
    row = row.model_copy(update={"latency_ms": amount, "usd": amount})
    ledger.append(row)
    assert len(ledger.path.read_bytes()) - len(HEADER) < MAX_ROW / 4
    assert ledger.read().rows == (row,)


# Torn and damaged lines

ROW = b'{"kind":"completion","trace_id":"t","model_id":"lab/small:q4","task":"chat","time":1.0}\n'


@pytest.mark.parametrize("length", [1, 20, len(ROW) - 1])
def test_a_torn_row_is_set_aside_and_said(ledger, capsys, length):
    ledger.append(done("a"))
    with ledger.path.open("ab") as file:
        file.write(ROW[:length])
    before = ledger.read()
    assert (trace_ids(before), before.open_bytes) == (["a"], length)
    ledger.append(done("b"))
    after = ledger.read()
    assert (trace_ids(after), after.torn, after.damaged, after.open_bytes) == (["a", "b"], 1, (), 0)
    assert f"{length} bytes" in capsys.readouterr().out


def test_a_writer_that_dies_while_it_sets_a_torn_row_aside_does_no_harm(ledger):
    ledger.append(done("a"))
    for length in range(1, len(b"#torn\n")):
        with ledger.path.open("ab") as file:
            file.write(ROW[:20] + b"#torn\n"[:length])
        ledger.append(done(f"b{length}"))
    contents = ledger.read()
    assert trace_ids(contents) == ["a", "b1", "b2", "b3", "b4", "b5"]
    assert (contents.torn, contents.damaged) == (5, ())


def test_a_reader_in_the_middle_of_a_write_sees_whole_rows_and_reads_on_later(ledger):
    ledger.append(done("a"))
    with ledger.path.open("ab") as file:
        file.write(ROW[:30])
        file.flush()
        early = ledger.read()
        file.write(ROW[30:])
    assert trace_ids(early) == ["a"]
    assert trace_ids(ledger.read(early.end)) == ["t"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"\0" * 300, "JSON"),
        (b"\0" * 3 * MAX_ROW, "JSON"),
        (b'{"kind":"wish","trace_id":"a"}', "wish"),
        (ROW.strip().replace(b'"time":1.0', b'"time":-1'), "completion.time"),
        (ROW.strip().replace(b"}", b',"prompt":"hello"}'), "completion.prompt"),
    ],
)
def test_a_damaged_line_is_reported_with_its_place_and_the_others_count(ledger, line, fault):
    ledger.append(done("a"))
    at = ledger.path.stat().st_size
    with ledger.path.open("ab") as file:
        file.write(line + b"\n")
    ledger.append(done("b"))
    contents = ledger.read()
    assert trace_ids(contents) == ["a", "b"]
    assert [damage.at for damage in contents.damaged] == [at]
    assert fault in contents.damaged[0].fault
    assert contents.end == ledger.path.stat().st_size


def test_a_long_torn_piece_is_measured_to_its_beginning(ledger, capsys):
    ledger.append(done("a"))
    with ledger.path.open("ab") as file:
        file.write(b"\0" * (2 * MAX_ROW + 17))
    assert ledger.read().open_bytes == 2 * MAX_ROW + 17
    ledger.append(done("b"))
    assert f"{2 * MAX_ROW + 17} bytes" in capsys.readouterr().out
    assert (trace_ids(ledger.read()), ledger.read().torn) == (["a", "b"], 1)


# Files that are something else


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"my dissertation\n", "is not an outcome ledger: it begins with b'my dissertation"),
        (b'{"kind":"outcome ledger","version":12}\n', "version 12"),
        (b"x", "is not an outcome ledger"),
    ],
)
def test_another_file_is_refused_and_left_as_it_is(ledger, content, said):
    ledger.path.parent.mkdir()
    ledger.path.write_bytes(content)
    for use in (ledger.read, lambda: ledger.append(done("a"))):
        with pytest.raises(LedgerError, match=said):
            use()
    assert ledger.path.read_bytes() == content


def test_an_empty_file_becomes_a_ledger(ledger):
    ledger.path.parent.mkdir()
    ledger.path.touch()
    assert ledger.read().rows == ()
    ledger.append(done("a"))
    assert trace_ids(ledger.read()) == ["a"]


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LedgerError, match="cannot be written to"):
        Ledger(tmp_path / "file" / "outcomes.jsonl").append(done("a"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(tmp_path / "folder").read(start=0)


def test_a_disk_that_fills_up_is_an_error_and_the_next_row_is_written_well(ledger, monkeypatch):
    def fill(file, data):
        file.write(data[:10])
        raise OSError(28, "No space left on device")

    ledger.append(done("a"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "_write", fill)
        with pytest.raises(LedgerError, match="No space left"):
            ledger.append(done("b"))
    ledger.append(done("b"))
    assert trace_ids(ledger.read()) == ["a", "b"]


def test_a_lock_that_is_not_let_go_is_an_error(ledger, monkeypatch):
    from filelock import FileLock

    monkeypatch.setattr(module, "_PATIENCE", 0.02)
    ledger.append(done("a"))
    with FileLock(f"{ledger.path}.lock"), pytest.raises(LedgerError, match="another process"):
        ledger.append(done("b"))
    assert trace_ids(ledger.read()) == ["a"]


# Killed writers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_writers_killed_two_hundred_times_lose_no_acknowledged_row(tmp_path):
    program = Path(__file__).with_name("killed_writers.py")
    run = [sys.executable, str(program), str(tmp_path), "200", "7"]
    subprocess.run(run, check=True, timeout=150)

    ledger = Ledger(tmp_path / "outcomes.jsonl")
    contents = ledger.read()
    acknowledged = (tmp_path / "acknowledged").read_text().split()
    found = trace_ids(contents)
    assert len(acknowledged) > 200
    assert set(acknowledged) <= set(found)
    assert len(found) == len(set(found))
    # A row is whole or absent: its price is a function of its number.
    assert all(row.usd == int(row.trace_id.removeprefix("trace-")) / 7 for row in contents.rows)
    assert contents.damaged == ()
    # Of about 100 writers that died over a row, one in some hundred wrote none of it.
    assert contents.torn > 80
    said = (tmp_path / "said").read_text().count("is set aside")
    assert said <= contents.torn  # whoever was killed before it could say so left it unsaid
    ledger.append(done("after"))
    assert trace_ids(ledger.read()) == [*found, "after"]


# History


def test_a_history_counts_what_another_wrote(tmp_path):
    path = tmp_path / "outcomes.jsonl"
    one, other = OutcomeHistory(path), OutcomeHistory(path)
    assert one.record(done("a")) == "booked"
    assert other.record(Verdict(trace_id="a", accepted=False, time=2)) == "booked"
    assert one.record(Verdict(trace_id="a", accepted=True, time=3)) == "judged before"
    other.refresh()
    assert one.tracker.profiles == other.tracker.profiles
    total = OutcomeHistory(path).tracker.profile("lab/small:q4").total
    assert (total.success_count, total.fail_count) == (0, 1)


def test_a_history_says_what_it_cannot_read(ledger, capsys):
    ledger.append(done("a"))
    with ledger.path.open("ab") as file:
        file.write(b"scratch\n")
    OutcomeHistory(ledger)
    assert "1 line(s) cannot be read" in capsys.readouterr().out


def test_a_history_whose_file_was_removed_says_so(ledger):
    history = OutcomeHistory(ledger)
    for name in "abc":
        history.record(done(name))
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="was replaced or removed"):
        history.refresh()


def test_threads_share_a_history(ledger):
    history = OutcomeHistory(ledger)
    bookings = []

    def write(thread):
        bookings.extend(history.record(done(f"{thread}-{number}")) for number in range(5))

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bookings == ["booked"] * 20
    assert history.tracker.profile("lab/small:q4").total.calls == 20


def test_a_place_where_no_file_can_be_locked_is_one_that_cannot_be_written_to(ledger, monkeypatch):
    def unable(*_, **__):
        raise NotImplementedError("FileSystem does not appear to support flock")

    monkeypatch.setattr("filelock.FileLock.acquire", unable)
    with pytest.raises(LedgerError, match="does not appear to support flock"):
        ledger.append(done("a"))
