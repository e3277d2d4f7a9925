"""What tells two checkpoints apart, at a price that may be paid on every load."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cartoolkit.models.gguf_header import GgufHeader

__all__ = ["sampled", "sampled_gguf", "tokenizer_hash"]

SAMPLES = 64
SAMPLE_BYTES = 4096
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "merges.txt")


def sampled(folder: Path, weight_files: Iterable[Path]) -> str:
    """A hex SHA-256 over `config.json`, and over name, size, header and 64 samples of each weights file.

    It reads about 0.3 MB a file instead of all of it. Training, quantizing or merging changes weights
    everywhere and is seen; a single number changed by hand between two samples is not.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(weight_files):
        _add_samples(digest, path, _safetensors_header(path) if path.suffix == ".safetensors" else 0)
    return digest.hexdigest()


def sampled_gguf(headers: Iterable[GgufHeader]) -> str:
    """As `sampled`, for the files of a GGUF model, whose settings lie in their own headers."""
    digest = hashlib.sha256()
    for header in headers:
        _add_samples(digest, header.path, header.data_begin)
    return digest.hexdigest()


def _safetensors_header(path: Path) -> int:
    """Bytes before the first tensor."""
    with path.open("rb") as file:
        return 8 + int.from_bytes(file.read(8), "little")


def _add_samples(digest: hashlib._Hash, path: Path, header: int) -> None:
    size = path.stat().st_size
    digest.update(f"\0{path.name}\0{size}\0".encode())
    with path.open("rb") as file:
        digest.update(file.read(min(header, size)))
        start, room = file.tell(), size - file.tell() - SAMPLE_BYTES
        for index in range(SAMPLES):
            file.seek(start + max(room, 0) * index // (SAMPLES - 1))
            digest.update(file.read(SAMPLE_BYTES))


def tokenizer_hash(folder: Path) -> str | None:
    """The hex SHA-256 of `tokenizer.json`, or of the older tokenizer files; None if there is none."""
    present = [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]
    if not present:
        return None
    digest = hashlib.sha256()
    for path in present[:1] if present[0].name == "tokenizer.json" else present:
        digest.update(path.read_bytes())
    return digest.hexdigest()
