"""A folder of documents, of which only what has changed is read again."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest, MissingDependency, UnreadableDocument
from cartoolkit.retrieval.chunks import CHUNK_OVERLAP, CHUNK_SIZE, chunk_spans
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.readers import READERS, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cartoolkit.retrieval.readers import Block

__all__ = ["Document", "FolderReader", "Skipped", "find_documents"]

MAX_BYTES = 20_000_000
READER_VERSION = 1  # counts up when a reader or the chunking changes what it makes of the same bytes


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    Attributes:
        path: below the folder, with ``/`` between names.
        digest: hex SHA-256 of its bytes and of the settings it was read with.
        passages: what became of it.
    """

    path: str
    digest: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that could not be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads documents into passages.

    Attributes:
        folder: where they are.
        size: the longest passage, in characters.
        overlap: at most so many characters are repeated from the passage before.
        max_bytes: larger files are skipped.
    """

    folder: Path
    size: int = CHUNK_SIZE
    overlap: int = CHUNK_OVERLAP
    max_bytes: int = MAX_BYTES

    def read(self, known: Mapping[str, Document]) -> Iterator[Document | Skipped]:
        """All documents below the folder, in the order of their paths.

        Every file is hashed; one whose hash is that of the known document of the same path is not parsed.

        Args:
            known: documents of an earlier reading, by path.
        """
        for path in find_documents(self.folder):
            yield self.read_one(path, known.get(_name(path, self.folder)))

    def read_one(self, path: Path, known: Document | None = None) -> Document | Skipped:
        """One document: as it is known if it has not changed, else read."""
        name = _name(path, self.folder)
        try:
            if (size := path.stat().st_size) > self.max_bytes:
                return Skipped(name, f"{size / 1e6:,.0f} MB, more than {self.max_bytes / 1e6:,.0f}")
            content = path.read_bytes()
            digest = self._digest(content)
            if known and known.digest == digest:
                return known
            return Document(name, digest, self._passages(name, content))
        except OSError as exc:
            return Skipped(name, exc.strerror or type(exc).__name__)
        except UnreadableDocument as exc:
            return Skipped(name, str(exc))
        except MissingDependency as exc:
            return Skipped(name, f"{exc} {exc.hint}")

    def _digest(self, content: bytes) -> str:
        settings = f"{READER_VERSION} {self.size} {self.overlap}\n"
        return hashlib.sha256(settings.encode() + content).hexdigest()

    def _passages(self, name: str, content: bytes) -> tuple[Passage, ...]:
        pieces = [each for block in read_document(name, content) for each in self._pieces(block)]
        return tuple(
            replace(piece, id=f"{name}#{place}", source=name) for place, piece in enumerate(pieces, start=1)
        )

    def _pieces(self, block: Block) -> Iterator[Passage]:
        for start, end in chunk_spans(block.text, self.size, self.overlap):
            chunk = block.text[start:end]
            text = chunk.strip()
            if any(map(str.isalnum, text)):
                # Of the white space before the text only the part that is in the chunk counts lines.
                before = start + len(chunk) - len(chunk.lstrip())
                line = None if block.line is None else block.line + block.text.count("\n", 0, before)
                yield Passage("", text, title=block.title, page=block.page, line=line)


def find_documents(folder: Path) -> list[Path]:
    """Every file below `folder` that has a reader, sorted by path.

    Hidden files and folders are left out. Links are followed, each real file and folder is entered once.

    Raises:
        InvalidRequest: there is no such folder.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder.", hint="Give the path of a folder with documents.")
    seen: set[tuple[int, int]] = set()
    _is_new(folder, seen)
    return sorted(_walk(folder, seen), key=lambda path: path.relative_to(folder).as_posix())


def _walk(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=True):
        here = Path(parent)
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and _is_new(here / each, seen)
        )
        for name in sorted(names):
            path = here / name
            wanted = path.suffix.lower() in READERS and not name.startswith(".")
            # A pipe or a device would be waited for without end.
            if wanted and _is_regular(path) and _is_new(path, seen):
                yield path


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    key = (found.st_dev, found.st_ino)
    if key in seen:
        return False
    seen.add(key)
    return True


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _name(path: Path, folder: Path) -> str:
    """The path below the folder; bytes that are no Unicode are written as escapes."""
    return os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "backslashreplace")
