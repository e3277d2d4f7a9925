"""`cartoolkit.json`: what a catalog model in the cache was made from, kept beside its weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cartoolkit.models.catalog import CatalogEntry

__all__ = ["RECORD_FILE", "Record", "read_record", "write_record"]

RECORD_FILE = "cartoolkit.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a `cartoolkit.json`.

    Attributes:
        format: version of this file's form; another one means: convert again.
        name: the catalog name.
        licence: SPDX identifier of the weights' licence, or its `LicenseRef-…`.
        source_package: the distribution that the checkpoint came in.
        source_version: its version.
        source_sha256: hex digest of the checkpoint as it was downloaded.
        model_sha256: hex digest of `model.safetensors`, or of the GGUF file.
        sampled_sha256: fingerprint by samples of the folder as it was written, to notice later changes.
        converted_with: the libraries that wrote it, name to version; none for a GGUF file.
        files: every other file of the folder, name to bytes.
    """

    format: int
    name: str
    licence: str
    source_package: str
    source_version: str
    source_sha256: str
    model_sha256: str
    sampled_sha256: str
    converted_with: dict[str, str]
    files: dict[str, int]

    def matches(self, entry: CatalogEntry) -> bool:
        """Whether this folder was made from the bytes that `entry` pins, in today's form."""
        return self.format == FORMAT and self.source_sha256 == entry.source.sha256

    def is_complete(self, folder: Path) -> bool:
        """Whether every recorded file is in `folder` with its recorded size."""
        paths = [(folder / name, size) for name, size in self.files.items()]
        return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def read_record(folder: Path) -> Record | None:
    """The record in `folder`; None if there is none, or it is not one of ours."""
    try:
        record = Record(**json.loads((folder / RECORD_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    is_sound = isinstance(record.files, dict) and all(isinstance(size, int) for size in record.files.values())
    return record if is_sound else None


def write_record(record: Record, folder: Path) -> None:
    """Write `record` into `folder`."""
    text = json.dumps(asdict(record), indent=2) + "\n"
    (folder / RECORD_FILE).write_text(text, encoding="utf-8")
