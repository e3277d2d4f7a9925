"""What is looked up, and what a look-up finds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["Hit", "Passage"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be found, short enough to stand in a prompt.

    Attributes:
        id: unique in its corpus; adding another passage of the same id replaces this one.
        text: what is searched, and what enters the prompt.
        source: where it comes from, for a reader to look up: a path, an address, a book.
        title: of the document it is part of; shown, and searched where the retriever can.
        page: page of the document, counted from 1, or None where there are none.
        line: first line of the passage in the document, counted from 1, or None.
    """

    id: str
    text: str
    source: str = ""
    title: str = ""
    page: int | None = None
    line: int | None = None

    @property
    def location(self) -> str:
        """The source with page or line, such as ``notes/atoms.md:12`` or ``paper.pdf, p. 3``."""
        if self.page is not None:
            return f"{self.source}, p. {self.page}"
        return f"{self.source}:{self.line}" if self.line is not None else self.source

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the text alone: equal for equal texts, whatever their ids."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a query found.

    Attributes:
        id: the passage's id; two hits of one id are the same passage.
        text: the passage's text.
        score: how well it fits, greater is better. Comparable within one answer of one retriever,
            not between retrievers.
        source: where the passage comes from, with page or line.
        title: of the document.
    """

    id: str
    text: str
    score: float
    source: str = ""
    title: str = ""

    @classmethod
    def of(cls, passage: Passage, score: float) -> Hit:
        """`passage` as it was found."""
        return cls(passage.id, passage.text, float(score), passage.location, passage.title)
