"""Runs on disk: one line of JSON each, written when it is done, so that nothing is run twice.

Requirements it exists to satisfy: a line that was written survives the end of the process at any moment; a
line that was being written then is dropped, not believed; two processes do not write into one folder.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.runs import Run

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

__all__ = ["FILE", "Journal", "Record", "read_journal"]

FILE = "runs.jsonl"
_LOCK = "runs.lock"


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What a journal holds.

    Attributes:
        runs: by setup, then by key; of a key that occurs twice the later one.
        setups: what each setup was, by its id, in the order of their first use.
        unreadable: lines that are no run.
        end: bytes up to the end of the last whole line.
    """

    runs: dict[str, dict[str, Run]]
    setups: dict[str, dict[str, Any]]
    unreadable: int
    end: int


def read_journal(folder: Path) -> Record:
    """Read a journal; an empty one if there is none."""
    path = folder / FILE
    data = path.read_bytes() if path.exists() else b""
    end = data.rfind(b"\n") + 1
    record = Record({}, {}, 0, end)
    unreadable = 0
    for line in data[:end].splitlines():
        try:
            _take(json.loads(line), record)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            unreadable += 1
    return dataclasses.replace(record, unreadable=unreadable)


def _take(entry: dict[str, Any], record: Record) -> None:
    setup = entry.pop("setup")
    if "about" in entry:
        record.setups[setup] = dict(entry["about"])
        return
    key = entry.pop("key")
    known = {field.name for field in dataclasses.fields(Run)}
    record.runs.setdefault(setup, {})[key] = Run(**{n: v for n, v in entry.items() if n in known})


class Journal:
    """Runs of one setup; a context manager that holds the folder meanwhile.

    Args:
        folder: created if there is none; None keeps everything in memory.
        setup: id of what all runs have in common.
        about: what that is, for readers.

    Attributes:
        runs: what is done, by key.
        unreadable: lines that were dropped, because they are damaged.

    Raises:
        InvalidRequest: another process is writing into the folder, or it cannot be written to.
    """

    def __init__(self, folder: Path | None, setup: str, about: dict[str, Any]) -> None:
        self._folder, self._setup, self._about = folder, setup, about
        self._lock: FileLock | None = None
        self.runs: dict[str, Run] = {}
        self.unreadable = 0

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._open(self._folder)
        return self

    def _open(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / _LOCK)
            lock.acquire(timeout=0)
        except Timeout:
            raise InvalidRequest(
                f"another process is writing runs into {folder}.",
                hint="Wait for it, or give another folder.",
            ) from None
        except OSError as error:
            raise InvalidRequest(f"runs cannot be kept in {folder}: {error}.") from error
        self._lock = lock
        record = read_journal(folder)
        self.runs, self.unreadable = record.runs.get(self._setup, {}), record.unreadable
        path = folder / FILE
        if path.exists() and path.stat().st_size > record.end:
            # A line without an end was being written when the process ended.
            os.truncate(path, record.end)
        if self._setup not in record.setups:
            self._write({"setup": self._setup, "about": self._about})

    def add(self, key: str, run: Run) -> None:
        """Keep a run; when this returns it is on the disk."""
        self.runs[key] = run
        self._write({"setup": self._setup, "key": key, **dataclasses.asdict(run)})

    def _write(self, entry: dict[str, Any]) -> None:
        if self._folder is None:
            return
        line = json.dumps(entry, ensure_ascii=True) + "\n"
        with (self._folder / FILE).open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.release()
