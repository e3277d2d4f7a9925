"""Corpora from folders: what is read, what is read again, what is left out; and their files."""

import gzip
import json
import os
from functools import partial

import pytest
from documents import pdf

from cartoolkit.errors import InvalidIndex, InvalidRequest
from cartoolkit.retrieval import folders
from cartoolkit.retrieval.corpus import Corpus
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.questions import LabelledQuestion

# Without the time: the names of the tests would differ from one process to the next.
packed = partial(gzip.compress, mtime=0)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    (made / "deep" / "er").mkdir(parents=True)
    (made / "a.txt").write_text("Iron rusts. Gold does not.")
    (made / "deep" / "b.md").write_text("# Metals\n\nLead is heavy.\n")
    (made / "deep" / "er" / "c.html").write_text("<p>Tin is light.</p>")
    (made / "d.pdf").write_bytes(pdf(["Zinc is blue."]))
    return made


@pytest.fixture
def reads(monkeypatch):
    """The names of the documents that were parsed."""
    parsed = []

    def counted(name, content):
        parsed.append(name)
        return real(name, content)

    real = folders.read_document
    monkeypatch.setattr(folders, "read_document", counted)
    return parsed


def read(folder, **settings):
    return Corpus.from_folder(folder, quiet=True, **settings)


def test_all_kinds_of_documents_become_passages_with_their_place(folder):
    passages = read(folder).passages
    assert passages == (
        Passage("a.txt#1", "Iron rusts. Gold does not.", "a.txt", "a", line=1),
        Passage("d.pdf#1", "Zinc is blue.", "d.pdf", "d", page=1),
        Passage("deep/b.md#1", "Lead is heavy.", "deep/b.md", "Metals", line=3),
        Passage("deep/er/c.html#1", "Tin is light.", "deep/er/c.html", "c"),
    )
    assert [each.location for each in passages] == ["a.txt:1", "d.pdf, p. 1", "deep/b.md:3", "deep/er/c.html"]


def test_a_corpus_can_be_searched(folder):
    corpus = read(folder)
    (hit,) = corpus.search("heavy")
    assert (hit.id, hit.source, hit.title) == ("deep/b.md#1", "deep/b.md:3", "Metals")
    assert corpus[hit.id].text == hit.text
    assert len(corpus) == 4


def test_lines_of_later_passages_are_counted(folder):
    (folder / "a.txt").write_text("One two.\n\n\nThree four.\nFive six.")
    assert [(each.text, each.line) for each in read(folder, size=12, overlap=0).passages[:3]] == [
        ("One two.", 1), ("Three four.", 4), ("Five six.", 5),
    ]  # fmt: skip


def test_unchanged_documents_are_not_parsed_again(folder, reads, tmp_path):
    cache = tmp_path / "docs.corpus"
    first = read(folder, cache=cache)
    assert len(reads) == 4
    assert read(folder, cache=cache) == first
    assert len(reads) == 4
    (folder / "a.txt").write_text("Iron rusts. Gold never.")
    (folder / "d.pdf").unlink()
    (folder / "new.txt").write_text("Radon glows.")
    os.utime(folder / "deep" / "b.md", (0, 0))  # a new date alone changes nothing
    second = read(folder, cache=cache)
    assert reads[4:] == ["a.txt", "new.txt"]
    assert second == read(folder)  # as read afresh
    assert {each.source for each in second.passages} == {"a.txt", "new.txt", "deep/b.md", "deep/er/c.html"}


def test_an_earlier_corpus_serves_as_well_as_a_file(folder, reads):
    first = read(folder)
    assert read(folder, previous=first).digest == first.digest
    assert len(reads) == 4


def test_other_sizes_read_everything_again(folder, reads):
    read(folder, previous=read(folder), size=300)
    assert len(reads) == 8


def test_what_cannot_be_read_is_named_with_its_reason(folder, capsys):
    (folder / "big.txt").write_text("x" * 2000)
    (folder / "program.txt").write_bytes(b"\x7fELF\0\0\0\1")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 no more")
    (folder / "image.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("hidden")
    (folder / ".git").mkdir()
    (folder / ".git" / "log.txt").write_text("hidden")
    corpus = Corpus.from_folder(folder, max_bytes=1000)
    reasons = {each.path: each.reason for each in corpus.skipped}
    assert set(reasons) == {"big.txt", "program.txt", "broken.pdf"}
    assert reasons["program.txt"] == "binary"
    assert reasons["broken.pdf"].startswith("damaged")
    assert len(corpus) == 4
    said = capsys.readouterr().out
    assert "docs: 4 documents, 4 passages; skipped" in said
    assert "program.txt (binary)" in said


def test_links_are_followed_once_and_loops_end(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far.txt").write_text("Far away.")
    (folder / "loop").symlink_to(folder)
    (folder / "deep" / "up").symlink_to("..")
    (folder / "self").symlink_to("self")
    (folder / "gone.txt").symlink_to("nowhere.txt")
    (folder / "out").symlink_to(outside)
    (folder / "twice.txt").symlink_to("a.txt")
    corpus = read(folder)
    assert sorted(each.source for each in corpus.passages) == [
        "a.txt", "d.pdf", "deep/b.md", "deep/er/c.html", "out/far.txt",
    ]  # fmt: skip


@pytest.mark.timeout(20)
def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.txt")
    assert len(read(folder)) == 4


def test_a_name_that_is_no_unicode_can_be_kept_and_searched(folder, tmp_path):
    try:
        (folder / os.fsdecode(b"na\xefve.txt")).write_text("Radon glows.")
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    corpus = read(folder, cache=tmp_path / "cache")
    assert corpus.search("radon")[0].id == r"na\xefve.txt#1"
    assert Corpus.load(tmp_path / "cache") == corpus


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match="nowhere"):
        read(tmp_path / "nowhere")
    with pytest.raises(InvalidRequest):
        read(__file__)
    (tmp_path / "empty").mkdir()
    assert len(read(tmp_path / "empty")) == 0
    assert read(tmp_path / "empty").search("x") == []


def test_what_happened_to_known_documents_is_said(folder, capsys):
    first = read(folder)
    (folder / "a.txt").write_text("Changed.")
    (folder / "d.pdf").unlink()
    Corpus.from_folder(folder, previous=first)
    assert "docs: 3 documents, 3 passages; 2 unchanged, 1 read, 1 gone." in capsys.readouterr().out


# Its file


def some_corpus() -> Corpus:
    question = LabelledQuestion("q", "What?", ("a", "b"), "single", "r", ("p",), "test")
    return Corpus("name", (Passage("p", "té\ud800xt", "s", "t", 1, None),), (question,))


def test_a_corpus_comes_back_from_its_file_and_gives_the_same_bytes(tmp_path):
    corpus = some_corpus()
    again = Corpus.load(corpus.save(tmp_path / "one"))
    assert again == corpus
    assert again.digest == corpus.digest
    assert again.save(tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_the_digest_is_of_the_content_alone():
    one, passages = some_corpus(), some_corpus().passages
    assert Corpus("other name", passages, one.questions).digest == one.digest
    assert Corpus("name", (*passages, Passage("x", "y")), one.questions).digest != one.digest
    assert Corpus("name", passages).digest != one.digest


@pytest.mark.parametrize(
    "content",
    [
        b"", b"text", packed(b"{"), packed(b"[]"), packed(b"[" * 100_000),
        packed(b"\xff"), packed(b"{}" * 9)[:-3],
        packed(json.dumps({"format": "cartoolkit-corpus", "version": 9}).encode()),
        packed(json.dumps({"format": "cartoolkit-corpus", "version": 1}).encode()),
        packed(json.dumps({"format": "cartoolkit-corpus", "version": 1, "name": "",
                                  "passages": {"id": ["a"]}, "questions": {}, "documents": []}).encode()),
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InvalidIndex, match="file"):
        Corpus.load(path)


def test_markup_in_a_corpus_is_shown_not_run(folder):
    (folder / "<img src=x>.txt").write_bytes(b"\0\0")
    shown = read(folder)._repr_html_()
    assert "<img" not in shown
    assert "&lt;img src=x&gt;.txt" in shown
