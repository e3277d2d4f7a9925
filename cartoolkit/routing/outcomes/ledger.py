"""Outcomes on disk: a file to which rows are only ever added, by any number of processes at once.

Requirements it exists to satisfy: a row whose `append` returned survives the end of the process and a power
cut; a row that was being written then is dropped, not believed, and this is said aloud; the file can be read
at every moment, without a lock; nothing that stands in it is ever changed or cut away.

One row is one line of JSON with a line feed at its end, so a line without one was never acknowledged. Whoever
adds the next row closes such a piece with a mark that says so. The mark ends in the line feed, so a writer
that dies over it leaves again a line without one. The lock is among writers only: it keeps their lines apart,
and the system drops it when its holder dies.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from pydantic import Field, TypeAdapter, ValidationError

from cartoolkit.errors import LedgerError
from cartoolkit.notices import say
from cartoolkit.routing.outcomes.records import Booking, Completion, OutcomeTracker, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_ROW", "Contents", "Damage", "Ledger", "OutcomeHistory"]

VERSION = 1
MAX_ROW = 4096
"""Bytes of a row at most, its line feed included; the fields of a row allow about a quarter of it."""

_FAMILY = b'{"kind":"outcome ledger","version":'
_HEADER = _FAMILY + b"%d}\n" % VERSION
_TORN = b"#torn\n"  # no row ends so
_PATIENCE = 30.0  # seconds to wait for the lock, which is held for one write and one fsync
_POLL = 0.005


_ROW: TypeAdapter[Completion | Verdict] = TypeAdapter(
    Annotated[Completion | Verdict, Field(discriminator="kind")]
)


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that cannot be read.

    Attributes:
        at: bytes before it.
        fault: what is wrong with it.
    """

    at: int
    fault: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a ledger says, from some place on.

    Attributes:
        rows: in the order in which they were written.
        end: bytes up to the end of the last closed line; read on from here.
        torn: lines that a writer's end tore and the next writer closed. No row in them had been acknowledged.
        damaged: every other line that cannot be read.
        open_bytes: of a last line that is not closed: its writer is at work, or has died.
    """

    rows: tuple[Completion | Verdict, ...] = ()
    end: int = 0
    torn: int = 0
    damaged: tuple[Damage, ...] = ()
    open_bytes: int = 0


class Ledger:
    """A file of outcomes.

    Args:
        path: of the file; it and its folder are made by the first row. A lock file stands beside it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def append(self, *rows: Completion | Verdict) -> None:
        """Write rows down; when this returns, all of them are on the disk.

        Raises:
            LedgerError: the file cannot be written to, another process does not let go of it, or it is no
                ledger of this version. Rows may then stand in it or not; writing them once more does no harm.
        """
        data = b"".join(map(_line, rows))
        with self._open() as file:
            if torn := _open_bytes(file):
                data = _TORN + data
            _write(file, data)
            os.fsync(file.fileno())
        if torn:
            say(
                f"{self.path}: a process ended while it wrote a row, which is set aside ({torn} bytes); every"
                " row that had been acknowledged is there."
            )

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """The file, ready for being added to, with the lock held."""
        from filelock import FileLock, Timeout

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{self.path}.lock")
            with lock.acquire(timeout=_PATIENCE, poll_interval=_POLL):
                if not self.path.exists() or not self.path.stat().st_size:
                    self._create()
                with self.path.open("ab+", buffering=0) as file:
                    file.seek(0)
                    self._check(file.read(len(_FAMILY) + 16))
                    yield file
        except Timeout:
            raise LedgerError(
                f"another process has held {self.path}.lock for {_PATIENCE:g} s; nothing was written.",
                hint="End that process, or give another file.",
            ) from None
        except (OSError, NotImplementedError) as error:  # the latter of a file system without locks
            why = getattr(error, "strerror", None) or str(error) or "no file can be locked there"
            raise LedgerError(
                f"outcomes cannot be written to {self.path}: {why}.",
                hint="Free some space there, or give a file that you can write to.",
            ) from error

    def _create(self) -> None:
        """Put a file with nothing but a header into place, whole or not at all."""
        fresh = self.path.with_name(f"{self.path.name}.new")
        # Only its owner needs to know which models are asked, and when.
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEADER)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)
        _sync_folder(self.path.parent)

    def _check(self, start: bytes) -> None:
        """Refuse a file that is something else; `start` is its beginning."""
        if start.startswith(_HEADER):
            return
        if start.startswith(_FAMILY):
            version = start[len(_FAMILY) :].partition(b"}")[0].decode("ascii", "replace")
            raise LedgerError(
                f"{self.path} is an outcome ledger of version {version}; this cartoolkit knows version"
                f" {VERSION}.",
                hint="Update cartoolkit, or give another file.",
            )
        raise LedgerError(
            f"{self.path} is not an outcome ledger: it begins with {start[:20]!r}.",
            hint="Give another file; this one was left as it is.",
        )

    def read(self, start: int = 0) -> Contents:
        """What stands in the file, from byte `start` on, which is 0 or the `end` of an earlier reading.

        No lock is taken, so this never waits and never makes a writer wait.

        Raises:
            LedgerError: the file cannot be read, is no ledger of this version, or is shorter than `start`.
        """
        try:
            size = self.path.stat().st_size if self.path.exists() else 0
            if size < start:
                raise LedgerError(
                    f"{self.path} has {size} bytes and had {start} before: it was replaced or removed.",
                    hint="Begin again with a new OutcomeHistory.",
                )
            if not size:
                return Contents()
            with self.path.open("rb") as file:
                if not start:
                    start = len(_HEADER)
                    self._check(file.read(start))
                file.seek(start)
                return _contents(file, start)
        except OSError as error:
            raise LedgerError(
                f"outcomes cannot be read from {self.path}: {error.strerror or error}."
            ) from error


class OutcomeHistory:
    """A ledger and what its rows add up to; several processes may share the file.

    Rows count in the order in which they stand in the file, whoever wrote them, so that all processes see the
    same history: of two verdicts on one answer all take the first. May be used from several threads.

    Args:
        ledger: a ledger, or the path of one.

    Attributes:
        tracker: all rows that were read so far.

    Raises:
        LedgerError: the file cannot be read.
    """

    def __init__(self, ledger: Ledger | str | Path) -> None:
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self.tracker = OutcomeTracker()
        self._end = 0
        self._lock = threading.RLock()
        self.refresh()

    def record(self, row: Completion | Verdict) -> Booking:
        """Write a row down and count it; see `OutcomeTracker.apply` for what comes back.

        Raises:
            LedgerError: it could not be written down, and does not count.
        """
        with self._lock:
            self.ledger.append(row)
            return next(booking for each, booking in self.refresh() if each == row)

    def refresh(self) -> list[tuple[Completion | Verdict, Booking]]:
        """Count what was added to the file since, by whomever; the rows and what became of them.

        Raises:
            LedgerError: the file cannot be read.
        """
        with self._lock:
            contents = self.ledger.read(self._end)
            self._end = contents.end
            booked: list[tuple[Completion | Verdict, Booking]] = [
                (row, self.tracker.apply(row)) for row in contents.rows
            ]
        if contents.damaged:
            first = contents.damaged[0]
            say(
                f"{self.ledger.path}: {len(contents.damaged)} line(s) cannot be read and do not count; the"
                f" first is at byte {first.at}: {first.fault}."
            )
        return booked


# Lines


def _line(row: Completion | Verdict) -> bytes:
    data = row.model_dump_json(exclude_none=True).encode() + b"\n"
    assert len(data) <= MAX_ROW, "the fields of a row bound its length"
    return data


def _contents(file: BinaryIO, start: int) -> Contents:
    rows: list[Completion | Verdict] = []
    damaged: list[Damage] = []
    end, torn = start, 0
    for line, length in _lines(file):
        if not line.endswith(b"\n"):
            return Contents(tuple(rows), end, torn, tuple(damaged), length)
        if line.endswith(_TORN):
            torn += 1
        else:
            try:
                rows.append(_ROW.validate_json(line))
            except ValidationError as error:
                damaged.append(Damage(end, _fault(error)))
        end += length
    return Contents(tuple(rows), end, torn, tuple(damaged))


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Each line and its length in bytes; a line too long for a row is cut to its end, which is no JSON."""
    length = 0
    while part := file.readline(MAX_ROW):
        length += len(part)
        if part.endswith(b"\n") or len(part) < MAX_ROW:
            yield (part if length <= MAX_ROW else part[-len(_TORN) :]), length
            length = 0
    if length:
        yield b"", length


def _fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def _open_bytes(file: BinaryIO) -> int:
    """Bytes after the last line feed; the header has one."""
    size = place = file.seek(0, os.SEEK_END)
    while place:
        place = max(0, place - MAX_ROW)
        file.seek(place)
        block = file.read(MAX_ROW)
        if b"\n" in block:
            return size - (place + block.rindex(b"\n") + 1)
    return size


def _write(file: BinaryIO, data: bytes) -> None:
    """Write all of it; the file is unbuffered, so one call may write a part."""
    while data:
        data = data[file.write(data) :]


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
