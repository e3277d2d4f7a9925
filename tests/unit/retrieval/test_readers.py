"""Text out of documents: encodings, headings, pages, and what is no text at all."""

import contextlib
import random

import pytest
from documents import locked, pdf
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import MissingDependency, UnreadableDocument
from cartoolkit.retrieval.readers import READERS, Block, read_document

UMLAUTS = "Über Größe und Gewicht von Gänseblümchen: Sie blühen häufig, außer im Schatten der Bäume."


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom", "utf-32", "cp1252"],
)
def test_the_encoding_is_found(encoding):
    content = (
        b"\xff\xfe" + UMLAUTS.encode("utf-16-le") if encoding == "utf-16-le-bom" else UMLAUTS.encode(encoding)
    )
    assert read_document("a.txt", content) == [Block(UMLAUTS, "a", line=1)]


def test_line_ends_of_all_systems_are_one():
    assert read_document("a.txt", b"one\r\ntwo\rthree\nfour")[0].text == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    "content", [b"MZ\x90\0\x03\0\0\0", bytes(100), b"\xff\xfea", b"\x00\x00\xfe\xff\xff\xff\xff\xff"]
)
def test_binary_and_damaged_text_is_refused(content):
    with pytest.raises(UnreadableDocument):
        read_document("a.txt", content)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_an_empty_document_is_refused(name, content):
    with pytest.raises(UnreadableDocument, match="no text"):
        read_document(name, content)


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnreadableDocument, match=r"no reader for \.exe"):
        read_document("a.exe", b"text")


def test_markdown_is_cut_at_headings_with_the_path_as_title():
    text = "Before.\n\n# Atoms\n\nSmall.\n\n## Mass\n\nLight.\n\nUnder\n-----\n\nLined.\n\n# Next #\nLast.\n"
    assert read_document("notes.md", text.encode()) == [
        Block("Before.\n", "notes", line=1),
        Block("\nSmall.\n", "Atoms", line=4),
        Block("\nLight.\n", "Atoms › Mass", line=8),
        Block("\nLined.\n", "Atoms › Under", line=13),
        Block("Last.\n", "Next", line=17),
    ]


def test_what_looks_like_a_heading_in_code_or_a_list_is_text():
    text = "# Real\n\n```sh\n# a comment\n```\n\n- # in a list\n\n    # indented\n"
    (block,) = read_document("a.md", text.encode())
    assert block.title == "Real"
    assert "# a comment" in block.text
    assert "# in a list" in block.text


def test_front_matter_is_left_out_and_lines_still_count():
    blocks = read_document("a.md", b"---\ntitle: x\n---\n# Head\n\nBody\n")
    assert blocks == [Block("\nBody\n", "Head", line=5)]


PAGE = """<!DOCTYPE html><html><head><title>Gold &amp;
 Silver</title><style>p {color: red}</style></head><body><nav>Home</nav>
<p>Gold is <b>so</b>ft.</p><p>It&nbsp;melts.</p><script>alert("no")</script><!-- nor this -->
<h1>Price</h1>By <i>weight</i>:<br>high<ul><li>one</li><li>two <p>deep</p> tail</li></ul>
<h2>Table</h2><table><tr><th>a</th><td>1</td></tr><tr><td>b</td><td>2</td></tr></table>
<pre>def f():
    return 1</pre></body></html>"""


def test_html_is_read_as_a_person_sees_it():
    assert read_document("gold.html", PAGE.encode()) == [
        Block("Home\nGold is soft.\nIt melts.", "Gold & Silver"),
        Block("By weight:\nhigh\none\ntwo\ndeep\ntail", "Price"),
        Block("a 1\nb 2\ndef f():\n    return 1", "Price › Table"),
    ]


def test_html_says_its_own_encoding():
    content = f'<meta charset="iso-8859-1"><p>{UMLAUTS}</p>'.encode("latin-1")
    assert read_document("a.htm", content)[0].text == UMLAUTS


def test_deep_html_does_not_end_the_process():
    assert read_document("a.html", b"<div>" * 3000 + b"deep" + b"</div>" * 3000)[0].text == "deep"


def test_pdf_pages_carry_their_number_and_title():
    blocks = read_document("paper.pdf", pdf(["Iron rusts.", "", "Gold does not."], title="Metals"))
    assert blocks == [Block("Iron rusts.", "Metals", page=1), Block("Gold does not.", "Metals", page=3)]
    assert read_document("paper.pdf", pdf(["Iron rusts."]))[0].title == "paper"


def test_a_pdf_of_pictures_or_with_a_password_is_refused():
    with pytest.raises(UnreadableDocument, match="pictures"):
        read_document("a.pdf", pdf(["", ""]))
    with pytest.raises(UnreadableDocument, match="password"):
        read_document("a.pdf", locked(pdf(["secret"]), "key"))
    assert read_document("a.pdf", locked(pdf(["open"]), ""))[0].text == "open"


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_pdf_is_refused_or_read(seed):
    rng = random.Random(seed)
    content = bytearray(pdf(["Iron rusts.", "Gold does not."], title="Metals"))
    for _ in range(rng.randrange(1, 30)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    with contextlib.suppress(UnreadableDocument):
        read_document("a.pdf", bytes(content[: rng.randrange(1, len(content))]))


@pytest.mark.parametrize("suffix", sorted(READERS))
@given(content=st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_refused_or_read(suffix, content):
    try:
        blocks = read_document(f"a{suffix}", content)
    except UnreadableDocument:
        return
    assert all(block.text.strip() for block in blocks)


@pytest.mark.parametrize(
    ("name", "module"),
    [("a.pdf", "pypdf"), ("a.html", "bs4"), ("a.md", "markdown_it"), ("a.txt", "charset_normalizer")],
)
def test_a_missing_reader_says_how_to_get_it(monkeypatch, name, module):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingDependency) as caught:
        read_document(name, "Größe".encode("latin-1"))
    assert "cartoolkit[retrieval]" in caught.value.hint
