"""Vectors of texts, kept by the hash of the text so that each is computed once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np

    from cartoolkit.retrieval.embeddings import Embedder

__all__ = ["VectorCache"]

FORMAT = "cartoolkit-vectors-1"
BATCH = 256
FEW = 64  # texts that are embedded before anybody would look for a bar


class VectorCache:
    """The vectors of one embedder, in memory and, if `path` is given, in a safetensors file.

    Args:
        embedder: computes what is missing.
        path: the file; it is written whole after each addition, never changed in place.
        progress: show a bar.

    Raises:
        InvalidIndex: the file is not one of vectors, is damaged, or of another embedder.
    """

    def __init__(self, embedder: Embedder, path: Path | None, *, progress: bool = True) -> None:
        self.embedder = embedder
        self.path = path
        self.progress = progress
        self._lock = threading.RLock()
        self._vectors = read_vectors(path, embedder.name) if path and path.exists() else {}

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed those of `texts` that are not there yet, and keep them."""
        with self._lock:
            missing = {digest: text for text in texts if (digest := _digest(text)) not in self._vectors}
            if not missing:
                return
            self._vectors |= dict(zip(missing, self._embedded(list(missing.values())), strict=True))
            if self.path:
                # Another process may have added some meanwhile; theirs are as good as ours.
                there = read_vectors(self.path, self.embedder.name) if self.path.exists() else {}
                self._vectors = there | self._vectors
                write_vectors(self.path, self.embedder.name, self._vectors)

    def matrix(self, texts: Sequence[str]) -> np.ndarray:
        """The vectors of `texts`, float32 of shape [len(texts), n]; all must have been prepared."""
        import numpy as np

        return np.stack([self._vectors[_digest(text)] for text in texts]).astype(np.float32, copy=False)

    def _embedded(self, texts: list[str]) -> Iterator[np.ndarray]:
        from tqdm.auto import tqdm

        silent = not self.progress or len(texts) <= FEW
        with tqdm(total=len(texts), desc="Embedding passages", disable=silent) as bar:
            for start in range(0, len(texts), BATCH):
                batch = texts[start : start + BATCH]
                yield from self.embedder(batch)
                bar.update(len(batch))


def read_vectors(path: Path, name: str) -> dict[str, np.ndarray]:
    """The vectors in the file at `path`, by the digest of their text.

    Raises:
        InvalidIndex: it is not such a file, is damaged, or holds vectors of another embedder than `name`.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            digests = json.loads(header.get("digests", "null"))
            vectors = file.get_tensor("vectors")
    except (SafetensorError, ValueError, OSError) as exc:
        raise InvalidIndex(f"{path} is not a file of vectors, or damaged: {exc}.", hint=_again(path)) from exc
    if header.get("format") != FORMAT or vectors.ndim != 2 or len(vectors) != len(digests):
        raise InvalidIndex(f"{path} is a safetensors file of another kind.", hint="Give another path.")
    if header.get("embedder") != name:
        raise InvalidIndex(
            f"{path} holds vectors of {header.get('embedder')}, which do not compare with those of {name}.",
            hint="Give each embedder a file of its own.",
        )
    return dict(zip(digests, vectors, strict=True))


def write_vectors(path: Path, name: str, vectors: dict[str, np.ndarray]) -> None:
    """Write the file whole, under its final name only when it is complete."""
    import numpy as np
    from safetensors.numpy import save

    header = {"format": FORMAT, "embedder": name, "digests": json.dumps(list(vectors))}
    content = save({"vectors": np.stack(list(vectors.values()))}, metadata=header)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _again(path: Path) -> str:
    return f"Delete {path.name}; the vectors are computed again."
