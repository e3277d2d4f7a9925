"""Passages as a data base can hold them, and their vectors, computed in batches and checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    from cartoolkit.retrieval.embeddings import Embedder
    from cartoolkit.retrieval.passages import Passage

__all__ = ["MAX_ID_BYTES", "encodable", "is_storable_id", "storable", "storable_by_id", "vectors_of"]

MAX_ID_BYTES = 2_000  # PostgreSQL's indexes take no key above 2,704 bytes
BATCH = 256
FEW = 64  # texts that are embedded before anybody would look for a bar


def storable(passage: Passage) -> Passage:
    """`passage` as it comes back from a data base; what UTF-8 or a C string cannot hold is replaced."""
    text, source, title = map(encodable, (passage.text, passage.source, passage.title))
    return replace(passage, text=text, source=source, title=title)


def encodable(text: str) -> str:
    r"""`text` with every lone surrogate as a question mark and every NUL as U+FFFD.

    >>> encodable("a\ud800b\0c")
    'a?b\ufffdc'
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable_id(passage_id: str) -> bool:
    r"""Whether a data base can hold this id unchanged.

    >>> is_storable_id("notes.md#3"), is_storable_id(""), is_storable_id("a\0"), is_storable_id("\ud800")
    (True, False, False, False)
    """
    return bool(passage_id) and passage_id == encodable(passage_id) and _bytes(passage_id) <= MAX_ID_BYTES


def storable_by_id(passages: Iterable[Passage]) -> dict[str, Passage]:
    """The passages by id, each as it can be stored; of several with one id the last.

    Raises:
        InvalidRequest: an id is empty, too long, or holds a character that cannot be stored.
    """
    kept: dict[str, Passage] = {}
    for passage in passages:
        if not is_storable_id(passage.id):
            raise InvalidRequest(
                f"A passage's id must be text of 1 to {MAX_ID_BYTES} bytes without NUL or lone surrogates; "
                f"{passage.id[:60]!r} is not.",
                hint="Give every passage an id of its own, such as its path and place.",
            )
        kept[passage.id] = storable(passage)
    return kept


def vectors_of(
    passages: Sequence[Passage], embedder: Embedder, width: int, *, progress: bool = False
) -> np.ndarray:
    """The vectors of titles and texts together, float32 of shape [len(passages), width].

    Raises:
        InvalidRequest: the embedder answered with vectors of another shape, of length 0, or not finite.
    """
    import numpy as np
    from tqdm.auto import tqdm

    texts = [f"{each.title}\n{each.text}" if each.title else each.text for each in passages]
    vectors = np.zeros((len(texts), width), np.float32)
    silent = not progress or len(texts) <= FEW
    with tqdm(total=len(texts), desc="Embedding passages", disable=silent) as bar:
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors[start : start + BATCH] = _checked(embedder, batch, width)
            bar.update(len(batch))
    return vectors


def _checked(embedder: Embedder, texts: list[str], width: int) -> np.ndarray:
    import numpy as np

    vectors = np.asarray(embedder(texts), np.float32)
    if vectors.shape != (len(texts), width):
        raise InvalidRequest(
            f"The embedder {embedder.name} gave vectors of shape {list(vectors.shape)}, where "
            f"{[len(texts), width]} is kept.",
            hint="Use the embedder that the passages were added with, or give this one a place of its own.",
        )
    if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
        raise InvalidRequest(f"The embedder {embedder.name} gave a vector that has no direction.")
    return vectors


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
