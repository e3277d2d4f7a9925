"""Passages that belong together, with questions about them if there are any."""

from __future__ import annotations

import hashlib
import html
import json
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cartoolkit.notices import say
from cartoolkit.retrieval.chunks import CHUNK_OVERLAP, CHUNK_SIZE
from cartoolkit.retrieval.corpus_file import read_corpus, write_corpus
from cartoolkit.retrieval.folders import MAX_BYTES, Document, FolderReader, Skipped, find_documents
from cartoolkit.retrieval.fts5 import FTSRetriever

if TYPE_CHECKING:
    from cartoolkit.retrieval.passages import Hit, Passage
    from cartoolkit.retrieval.questions import LabelledQuestion

__all__ = ["Corpus"]

MOST_NAMED = 10


@dataclass(frozen=True)
class Corpus:
    """Passages, and what is known about them. It can be searched itself, by words.

    Attributes:
        name: what it is called.
        passages: all of them, with distinct ids.
        questions: with known answers, for measuring; empty for one's own documents.
        documents: what was read, if it comes from a folder.
        skipped: files of the folder that could not be read, and why.
    """

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[LabelledQuestion, ...] = ()
    documents: tuple[Document, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @classmethod
    def from_folder(
        cls,
        folder: Path | str,
        *,
        cache: Path | str | None = None,
        previous: Corpus | None = None,
        size: int = CHUNK_SIZE,
        overlap: int = CHUNK_OVERLAP,
        max_bytes: int = MAX_BYTES,
        quiet: bool = False,
    ) -> Corpus:
        """Read a folder of text, Markdown, HTML and PDF files, and those below it.

        Hidden files are left out, links are followed once, files of other kinds are ignored. A file that
        is too large, binary, damaged or locked is skipped, and named in the line that is printed.

        Args:
            folder: where the documents are.
            cache: a file that remembers what was read. Files whose content has not changed are not parsed
                again, those that are gone leave the corpus. Made on first use.
            previous: an earlier corpus of this folder, for the same purpose without a file.
            size: the longest passage, in characters.
            overlap: at most so many characters are repeated from the passage before, as whole sentences.
            max_bytes: larger files are skipped.
            quiet: no progress bar and no line.

        Raises:
            InvalidRequest: there is no such folder, or the sizes make no sense.
            InvalidIndex: the file at `cache` is not a corpus, or is damaged.
        """
        path = Path(folder).expanduser().absolute()
        if previous is None and cache is not None and Path(cache).exists():
            previous = cls.load(cache)
        known = {document.path: document for document in previous.documents} if previous else {}
        corpus = cls._read(FolderReader(path, size, overlap, max_bytes), known, quiet=quiet)
        if cache is not None and corpus != previous:
            corpus.save(cache)
        if not quiet:
            say(news(corpus, known))
        return corpus

    @classmethod
    def _read(cls, reader: FolderReader, known: dict[str, Document], *, quiet: bool) -> Corpus:
        from tqdm.auto import tqdm

        total = len(find_documents(reader.folder))
        read = list(tqdm(reader.read(known), desc="Reading documents", total=total, disable=quiet))
        documents = tuple(each for each in read if isinstance(each, Document))
        return cls(
            reader.folder.name,
            tuple(passage for document in documents for passage in document.passages),
            documents=documents,
            skipped=tuple(each for each in read if isinstance(each, Skipped)),
        )

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote.

        Raises:
            InvalidIndex: the file is not a corpus, is damaged, or of a newer version.
        """
        name, passages, questions, documents = read_corpus(Path(path))
        return cls(name, passages, questions, documents)

    def save(self, path: Path | str) -> Path:
        """Write everything but `skipped` to one file of compressed JSON; equal corpora, equal bytes."""
        return write_corpus(Path(path), self.name, self.passages, self.questions, self.documents)

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of passages and questions; results from corpora of different digests do not compare."""
        content = [[asdict(each) for each in part] for part in (self.passages, self.questions)]
        packed = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(packed.encode()).hexdigest()

    @cached_property
    def _index(self) -> FTSRetriever:
        index = FTSRetriever()
        index.add(self.passages)
        return index

    def search(self, query: str, k: int = 3) -> list[Hit]:
        """The best passages by words; the index is built in memory on first use. See `FTSRetriever`."""
        return self._index.search(query, k)

    def __len__(self) -> int:
        return len(self.passages)

    def __getitem__(self, passage_id: str) -> Passage:
        """The passage of this id."""
        return self._by_id[passage_id]

    @cached_property
    def _by_id(self) -> dict[str, Passage]:
        return {passage.id: passage for passage in self.passages}

    def __repr__(self) -> str:
        asked = f", {len(self.questions)} questions" if self.questions else ""
        return f"Corpus({self.name!r}, {len(self.passages)} passages{asked})"

    def _repr_html_(self) -> str:
        counts = Counter(question.kind for question in self.questions)
        rows = [("passages", len(self)), *((f"questions: {kind}", count) for kind, count in counts.items())]
        if self.documents:
            rows.insert(0, ("documents", len(self.documents)))
        rows += [(f"skipped: {each.path}", each.reason) for each in self.skipped]
        cells = "".join(
            f"<tr><td>{html.escape(str(a))}</td><td>{html.escape(str(b))}</td></tr>" for a, b in rows
        )
        return f"<b>{html.escape(self.name)}</b><table>{cells}</table>"


def news(corpus: Corpus, known: dict[str, Document]) -> str:
    """One line on a folder that was read: what there is, what was parsed, what was left out."""
    parts = [f"{len(corpus.documents)} documents, {len(corpus)} passages"]
    if known:
        unchanged = sum(known.get(each.path) is each for each in corpus.documents)
        gone = len(known.keys() - {each.path for each in corpus.documents})
        parts.append(f"{unchanged} unchanged, {len(corpus.documents) - unchanged} read, {gone} gone")
    if corpus.skipped:
        named = [f"{each.path} ({each.reason})" for each in corpus.skipped[:MOST_NAMED]]
        more = len(corpus.skipped) - len(named)
        parts.append("skipped " + ", ".join(named) + (f" and {more} more" if more else ""))
    return f"{corpus.name}: " + "; ".join(parts) + "."
