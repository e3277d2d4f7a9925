"""From a long text to passages: whole sentences, a little of the last one repeated, nothing lost."""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHUNK_OVERLAP", "CHUNK_SIZE", "chunk_spans"]

CHUNK_SIZE = 600
CHUNK_OVERLAP = 100
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
# A line that was wrapped by hand goes on; one that begins a list item, a table row or a quote does not.
_WRAPPED = re.compile(r"\n(?=[^\S\n]*[^\s*•\-–+|>#\d])")
_WINDOW = 10_000  # the splitter's time grows with the square of what it is given at once


def chunk_spans(text: str, size: int = CHUNK_SIZE, overlap: int = CHUNK_OVERLAP) -> list[tuple[int, int]]:
    """Where the chunks of `text` begin and end.

    A chunk holds as many whole sentences as fit. A sentence longer than a chunk is cut between words, a
    word longer than a chunk between characters. Without overlap the chunks joined are the text.

    Args:
        text: any text.
        size: the longest chunk, in characters.
        overlap: at most so many characters are repeated from the end of the chunk before, as whole
            sentences: an answer that needs two sentences is not always torn apart.

    Returns:
        Pairs (start, end) in order, with ``text[start:end]`` the chunk; none for an empty text.

    Raises:
        InvalidRequest: `size` is below 1, or `overlap` is negative or not below `size`.
    """
    if size < 1 or not 0 <= overlap < size:
        raise InvalidRequest(
            f"Chunks of {size} characters that overlap by {overlap} cannot be made.",
            hint="The size must be at least 1, the overlap at least 0 and smaller than the size.",
        )
    pieces = [piece for span in _sentences(text) for piece in _fitting(text, *span, size)]
    return list(_packed(pieces, size, overlap))


def _packed(pieces: list[tuple[int, int]], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    first = place = 0
    while place < len(pieces):
        while place < len(pieces) and pieces[place][1] - pieces[first][0] <= size:
            place += 1
        start, end = pieces[first][0], pieces[place - 1][1]
        yield start, end
        # What is repeated must leave room for the next piece, else the chunk would hold nothing new.
        room = min(overlap, size - (pieces[place][1] - end)) if place < len(pieces) else 0
        first = place
        while first > 0 and end - pieces[first - 1][0] <= room:
            first -= 1


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of sentences, each with the white space around it; together they are the whole text."""
    ends = [0, *(found.end() for found in _PARAGRAPH.finditer(text)), len(text)]
    for start, end in pairwise(ends):
        for left, right in _fitting(text, start, end, _WINDOW):
            # Same length, so that places in it are places in the text.
            flowing = _WRAPPED.sub(" ", text[left:right])
            yield from pairwise(accumulate(map(len, split_sentences(flowing)), initial=left))


def _fitting(text: str, start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Spans of at most `size` characters that together are `text[start:end]`, cut after white space."""
    while end - start > size:
        cut = _cut(text, start, start + size)
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _cut(text: str, start: int, latest: int) -> int:
    for cut in range(latest, start, -1):
        if text[cut - 1].isspace():
            return cut
    for cut in range(latest, start, -1):
        if not unicodedata.category(text[cut]).startswith("M"):  # a mark stays with its letter
            return cut
    return latest
