"""From the bytes of a document to its text: plain text, Markdown, HTML and PDF."""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import MissingDependency, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READERS", "Block", "read_document"]

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 8192
FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n.*?\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_CONTAINERS = (
    "address article aside blockquote body caption dd details div dl dt fieldset figcaption figure footer "
    "form header hr html li main nav ol p pre section summary table tbody tfoot thead tr ul"
)
BLOCKS = frozenset({*_CONTAINERS.split(), *HEADINGS})
UNSEEN = ("script", "style", "template", "noscript", "head", "svg", "math", "iframe", "object")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a document that passages do not cross.

    Attributes:
        text: its text.
        title: of the document and, where it has headings, of the section: "Atoms › Mass".
        page: counted from 1, of a document with pages.
        line: of the block's first character, counted from 1, of a document with lines.
    """

    text: str
    title: str
    page: int | None = None
    line: int | None = None


def read_document(name: str, content: bytes) -> list[Block]:
    """The text of a document.

    Args:
        name: the file's name; its ending chooses the reader (`READERS`).
        content: the whole file.

    Returns:
        Blocks that hold text, in order.

    Raises:
        UnreadableDocument: the file is binary, damaged or locked, no text is in it, or its kind is unknown.
        MissingDependency: the reader's library is not installed.
    """
    path = PurePath(name)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableDocument(f"no reader for {path.suffix or 'a file without ending'}")
    blocks = [block for block in reader(path.stem, content) if block.text.strip()]
    if not blocks:
        raise UnreadableDocument("no text in it")
    return blocks


def decode(content: bytes) -> str:
    r"""Text of unknown encoding: by its byte order mark, as UTF-8, else by the most plausible guess.

    Line ends become ``\n``.

    Raises:
        UnreadableDocument: the content is binary, or no encoding fits.
        MissingDependency: it is not UTF-8, and charset-normalizer is not installed.
    """
    mark = next((name for start, name in BYTE_ORDER_MARKS if content.startswith(start)), None)
    if mark is None and b"\0" in content[:SAMPLE]:
        raise UnreadableDocument("binary")
    try:
        text = content.decode(mark or "utf-8")
    except UnicodeDecodeError as exc:
        if mark:
            raise UnreadableDocument(f"damaged {mark} text") from exc
        text = _guessed(content)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _guessed(content: bytes) -> str:
    best = _library("charset_normalizer").from_bytes(content).best()
    if best is None:
        raise UnreadableDocument("binary, or an unknown encoding")
    return str(best)


def read_text(stem: str, content: bytes) -> list[Block]:
    """The whole file as one block."""
    return [Block(decode(content), stem, line=1)]


def read_markdown(stem: str, content: bytes) -> list[Block]:
    """A block for each heading, with the headings above it in its title; the markup stays as it is."""
    text = decode(content)
    # Without the lines of the front matter, but with their number.
    text = FRONT_MATTER.sub(lambda found: "\n" * found.group().count("\n"), text)
    lines = text.split("\n")
    outline = _Outline(stem)
    blocks, start = [], 0
    for first, after, level, heading in _markdown_headings(text):
        blocks.append(Block("\n".join(lines[start:first]), outline.title, line=start + 1))
        outline.enter(level, heading)
        start = after
    blocks.append(Block("\n".join(lines[start:]), outline.title, line=start + 1))
    return blocks


def _markdown_headings(text: str) -> list[tuple[int, int, int, str]]:
    """First line, line after, level and text of each heading that is not inside a list, a quote or code."""
    tokens = _library("markdown_it", "markdown-it-py").MarkdownIt("commonmark").parse(text)
    return [
        (*token.map, int(token.tag[1]), " ".join(inline.content.split()))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


class _Outline:
    """The headings above a place in a document."""

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._levels: list[tuple[int, str]] = []

    def enter(self, level: int, heading: str) -> None:
        above = [each for each in self._levels if each[0] < level]
        self._levels = [*above, (level, heading)] if heading else above

    @property
    def title(self) -> str:
        return " › ".join(heading for _, heading in self._levels) or self._stem


def read_html(stem: str, content: bytes) -> list[Block]:
    """A block for each heading; a line for each paragraph, list item and table row."""
    bs4 = _library("bs4", "beautifulsoup4")
    soup = bs4.BeautifulSoup(content, "html.parser")
    name = " ".join(soup.title.get_text().split()) if soup.title else ""
    for tag in soup.find_all(UNSEEN):
        tag.decompose()
    outline = _Outline(name or stem)
    blocks, gathered = [], []
    for kind, line in _html_lines(soup, bs4):
        if kind in HEADINGS:
            blocks.append(Block("\n".join(gathered), outline.title))
            outline.enter(int(kind[1]), " ".join(line.split()))
            gathered = []
        else:
            gathered.append(line)
    return [*blocks, Block("\n".join(gathered), outline.title)]


def _html_lines(soup: Any, bs4: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """Name of the block element and text, for each run of text inside the same block element."""
    runs: list[tuple[Any, list[str]]] = []
    for node in soup.descendants:
        if isinstance(node, bs4.Tag):
            piece = {"br": "\n", "td": " ", "th": " "}.get(node.name)
        else:
            piece = str(node) if type(node) in {bs4.NavigableString, bs4.CData} else None
        if piece is None:
            continue
        block = next((each for each in node.parents if each.name in BLOCKS), soup)
        if not runs or runs[-1][0] is not block:
            runs.append((block, []))
        in_pre = block.name == "pre" or isinstance(node, bs4.Tag)
        runs[-1][1].append(piece if in_pre else re.sub(r"\s+", " ", piece))
    lines = [(block.name, "".join(pieces).replace("\xa0", " ").strip(" \n")) for block, pieces in runs]
    return [
        (name, line if name == "pre" else re.sub(r" {2,}", " ", line)) for name, line in lines if line.strip()
    ]


def read_pdf(stem: str, content: bytes) -> list[Block]:
    """A block for each page, as far as the file says in which order its letters are read."""
    pypdf = _library("pypdf")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        locked = reader.is_encrypted and not reader.decrypt("")
        blocks = [] if locked else _pages(reader, stem)
    except Exception as exc:
        # Of a broken file anything may come out of a parser: KeyError, RecursionError, zlib.error …
        raise UnreadableDocument(f"damaged: {type(exc).__name__}: {exc}") from exc
    if locked:
        raise UnreadableDocument("locked by a password")
    if not any(block.text.strip() for block in blocks):
        raise UnreadableDocument("no text in it; its pages may be pictures")
    return blocks


def _pages(reader: Any, stem: str) -> list[Block]:  # noqa: ANN401
    title = str((reader.metadata and reader.metadata.title) or "").strip() or stem
    return [Block(page.extract_text(), title, page=at) for at, page in enumerate(reader.pages, start=1)]


def _library(module: str, package: str = "") -> Any:  # noqa: ANN401 (loaded on first use)
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as exc:
        raise MissingDependency(
            f"{package or module.replace('_', '-')} is not installed, which this kind of document needs.",
            hint="pip install 'cartoolkit[retrieval]'",
        ) from exc


READERS: dict[str, Callable[[str, bytes], list[Block]]] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
}
