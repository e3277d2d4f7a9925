"""A corpus on disk: compressed JSON, the same bytes for the same corpus."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cartoolkit.errors import InvalidIndex
from cartoolkit.retrieval.folders import Document
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.questions import LabelledQuestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["read_corpus", "write_corpus"]

FORMAT = "cartoolkit-corpus"
VERSION = 1
MAX_BYTES = 2_000_000_000  # a small file must not unpack to more than a machine holds

T = TypeVar("T")


def write_corpus(
    path: Path,
    name: str,
    passages: Sequence[Passage],
    questions: Sequence[LabelledQuestion],
    documents: Sequence[Document],
) -> Path:
    """Write the file whole, under its final name only when it is complete."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "passages": _columns(Passage, passages),
        "questions": _columns(LabelledQuestion, questions),
        "documents": [[each.path, each.digest, len(each.passages)] for each in documents],
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    packed = gzip.compress(text.encode(), mtime=0)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(packed)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).chmod(0o644)
    return Path(file.name).replace(path)


def read_corpus(
    path: Path,
) -> tuple[str, tuple[Passage, ...], tuple[LabelledQuestion, ...], tuple[Document, ...]]:
    """Name, passages, questions and documents of the file at `path`.

    Raises:
        InvalidIndex: it is not a corpus, is damaged, or of a newer version.
    """
    content = _content(path)
    if content.get("format") != FORMAT:
        raise InvalidIndex(f"{path} is not a corpus.", hint="Give the path of a file that Corpus.save wrote.")
    if content.get("version") != VERSION:
        raise InvalidIndex(
            f"{path} is a corpus of version {content.get('version')!r}, not {VERSION}.",
            hint="Update cartoolkit, or delete the file and read the documents again.",
        )
    try:
        passages = tuple(_objects(Passage, content["passages"]))
        questions = tuple(_objects(LabelledQuestion, content["questions"]))
        return str(content["name"]), passages, questions, _documents(content["documents"], passages)
    except (KeyError, TypeError, ValueError) as exc:
        raise _damaged(path, exc) from exc


def _content(path: Path) -> dict[str, Any]:
    try:
        with gzip.open(path) as file:
            packed = file.read(MAX_BYTES)
        content = json.loads(packed)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as exc:
        raise _damaged(path, exc) from exc
    return content if isinstance(content, dict) else {}


def _damaged(path: Path, exc: Exception) -> InvalidIndex:
    return InvalidIndex(
        f"{path} is not a corpus, or is damaged: {type(exc).__name__}: {exc}.",
        hint="Delete it; from_folder reads the documents again.",
    )


def _columns(kind: type, objects: Sequence[Any]) -> dict[str, list[Any]]:
    """By field instead of by object: the names stand there once, and like lies beside like."""
    rows = [asdict(each) for each in objects]
    return {field.name: [row[field.name] for row in rows] for field in fields(kind)}


def _objects(kind: type[T], columns: dict[str, list[Any]]) -> Iterable[T]:
    rows = zip(*(columns[field.name] for field in fields(kind)), strict=True)  # pyright: ignore[reportArgumentType]
    return [kind(*(tuple(each) if isinstance(each, list) else each for each in row)) for row in rows]


def _documents(entries: list[Any], passages: tuple[Passage, ...]) -> tuple[Document, ...]:
    documents, start = [], 0
    for path, digest, count in entries:
        documents.append(Document(path, digest, passages[start : start + count]))
        start += count
    if entries and start != len(passages):
        raise ValueError("the documents do not add up to the passages")
    return tuple(documents)
