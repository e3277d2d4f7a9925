"""What `Retriever` promises, kept by every retriever there is."""

import threading

import pytest
from embedders import Letters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.bm25 import BM25Retriever
from cartoolkit.retrieval.embeddings import EmbeddingRetriever
from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.hybrid import HybridRetriever
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.postgres import PostgresRetriever
from cartoolkit.retrieval.qdrant import QdrantRetriever
from cartoolkit.retrieval.retriever import Retriever

TEXTS = {
    "cat": "bad cat bed",
    "dog": "a dog barked at the moon",
    "both": "dog with cat with dog",
    "moon": "moon moon moon over a silver sea with much else to be said",
}
PASSAGES = [Passage(key, text, source=f"{key}.txt", line=3) for key, text in TEXTS.items()]
BY_WORDS = ["fts", "bm25s", "postgres"]
BY_MEANING = ["embeddings", "qdrant", "qdrant folder"]
BOTH = ["hybrid", "postgres with vectors"]
PERSISTENT = ["fts", "postgres", "postgres with vectors", "qdrant folder"]
SYNTAX = [
    "cat & !dog", "cat | (", "cat:*", "cat <-> dog", "'cat'", "cat'); DROP TABLE passages; --", "cat\\",
    '"cat" AND NOT dog', "%s %(words)s {table}", "cat\0dog", "\ud800 cat", "NEAR(cat dog)", "cat:B",
    "\x01\x02 cat \x7f", "😀 cat",
]  # fmt: skip


@pytest.fixture
def opened(request, tmp_path):
    """Opens retrievers by kind; a kind opened twice is the same place seen by two programs."""
    closing = []
    words = {
        "fts": lambda: FTSRetriever(tmp_path / "index.db"),
        "bm25s": BM25Retriever,
        "embeddings": lambda: EmbeddingRetriever(embedder=Letters()),
        "hybrid": lambda: HybridRetriever([FTSRetriever(), EmbeddingRetriever(embedder=Letters())]),
        "qdrant": lambda: QdrantRetriever(embedder=Letters()),
        "qdrant folder": lambda: QdrantRetriever(tmp_path / "points", embedder=Letters()),
    }

    def postgres(embedder=None):
        address, table = (request.getfixturevalue(name) for name in ("postgres_address", "table"))
        return PostgresRetriever(address, table, embedder=embedder)

    words["postgres"] = postgres
    words["postgres with vectors"] = lambda: postgres(Letters())

    def open_(kind):
        made = words[kind]()
        closing.append(made)
        return made

    yield open_
    for each in closing:
        getattr(each, "close", lambda: None)()


@pytest.fixture(params=[*BY_WORDS, *BY_MEANING, *BOTH])
def retriever(request, opened):
    made = opened(request.param)
    made.add(PASSAGES)
    return made


def ids(hits):
    return [hit.id for hit in hits]


def test_hits_carry_text_source_and_a_score_that_falls(retriever):
    assert isinstance(retriever, Retriever)
    assert len(retriever) == 4
    hits = retriever.search("cat dog moon", 3)
    assert len(hits) == len(set(ids(hits))) == 3
    assert [(hit.text, hit.source, hit.title) for hit in hits] == [
        (TEXTS[hit.id], f"{hit.id}.txt:3", "") for hit in hits
    ]
    assert all(type(hit) is Hit and type(hit.score) is float for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_at_most_k_hits_and_all_there_are_for_a_great_k(retriever):
    assert len(retriever.search("cat dog moon", 1)) == 1
    assert sorted(ids(retriever.search("cat dog moon bad", 1_000_000))) == sorted(TEXTS)
    for k in (0, -1):
        with pytest.raises(InvalidRequest, match=f"k = {k}"):
            retriever.search("cat", k)


@pytest.mark.parametrize("kind", [*BY_WORDS, "qdrant", *BOTH])
def test_hits_of_one_score_come_in_the_order_of_their_ids(opened, kind):
    retriever = opened(kind)
    retriever.add([Passage(key, "cat") for key in sorted(["b", "é", "a", "Z", "10", "9"])])
    assert ids(retriever.search("cat", 4)) == ["10", "9", "Z", "a"]
    assert ids(retriever.search("cat", 9)) == ["10", "9", "Z", "a", "b", "é"]


def test_a_second_passage_of_an_id_replaces_the_first(retriever):
    retriever.add([Passage("dog", "a fish"), Passage("dog", "fed a cat again", title="Fed", page=7)])
    assert len(retriever) == 4
    (hit,) = [hit for hit in retriever.search("cat again", 9) if hit.id == "dog"]
    assert (hit.text, hit.title, hit.source) == ("fed a cat again", "Fed", ", p. 7")
    # Adding what is there already changes nothing.
    before = retriever.search("cat again", 9)
    retriever.add([Passage("dog", "fed a cat again", title="Fed", page=7)])
    assert retriever.search("cat again", 9) == before


def test_deleting_counts_what_was_there_and_ignores_the_rest(retriever):
    assert retriever.delete(["dog", "nobody", "dog"]) == 1
    assert len(retriever) == 3
    assert "dog" not in ids(retriever.search("dog moon cat", 9))
    assert retriever.delete([]) == retriever.delete(["dog", "\0", "\ud800", ""]) == 0
    assert retriever.delete(iter(["cat", "both", "moon"])) == 3
    assert (len(retriever), retriever.search("cat")) == (0, [])


def test_nothing_is_added_when_reading_the_passages_fails(retriever):
    def broken():
        yield Passage("whale", "cat whale")
        raise RuntimeError("the reader broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        retriever.add(broken())
    assert len(retriever) == 4
    retriever.add([])
    retriever.add(iter([Passage("whale", "cat whale")]))
    assert len(retriever) == 5


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_query_finds_nothing(retriever, blank):
    assert retriever.search(blank) == []


@pytest.mark.parametrize("query", SYNTAX)
@pytest.mark.parametrize("kind", [*BY_WORDS, "postgres with vectors", "qdrant"])
def test_operators_in_a_query_are_inert(opened, kind, query):
    retriever = opened(kind)
    retriever.add(PASSAGES)
    found = set(ids(retriever.search(query, 9)))
    if kind in BY_WORDS:
        holders = {key for key, text in TEXTS.items() if set(text.split()) & words_in(query)}
        assert found == holders
    else:
        assert found == (set(TEXTS) if words_in(query) else set())
    assert len(retriever) == 4


def words_in(query):
    """The words of a query of the list above that stand in the passages; all are of plain letters."""
    spaced = "".join(char if char.isalpha() and char.isascii() else " " for char in query).lower()
    kept = set(spaced.split()) & {word for text in TEXTS.values() for word in text.split()}
    return kept or ({"others"} if spaced.split() else set())


@pytest.mark.parametrize("kind", [*BY_WORDS, "qdrant", "qdrant folder", *BOTH])
def test_what_a_store_cannot_hold_is_replaced_and_the_rest_is_kept(opened, kind):
    retriever = opened(kind)
    odd = "anchor a\x01b\x1f\x7f \u202e😀 �\r\n\t' \" \\ $1 %s {0} \0 \ud800 end"
    retriever.add([Passage("a\x01\n/ü#😀", odd, source="s\0\ud800", title="t\0")])
    (hit,) = retriever.search("anchor", 9)
    assert hit.id == "a\x01\n/ü#😀"
    start, end = odd.split(" \0 \ud800 ")
    assert (hit.text.startswith(f"{start} "), hit.text.endswith(f" {end}")) == (True, True)
    assert len(hit.text) == len(odd)


@pytest.mark.parametrize("kind", ["postgres", "postgres with vectors", "qdrant"])
@given(text=st.text(st.characters(), max_size=40))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_query_and_a_passage(opened, kind, text):
    retriever = opened(kind)
    retriever.add([Passage("text", f"anchor {text}", title=text), Passage("other", "zebra")])
    kept = {hit.id: hit.text for hit in retriever.search(f"{text} anchor", 9)}["text"]
    assert kept == "anchor " + "".join(
        "?" if "\ud800" <= char <= "\udfff" else "�" if char == "\0" else char for char in text
    )


@pytest.mark.parametrize("kind", [*BY_WORDS, "postgres with vectors", "qdrant"])
def test_a_text_of_a_megabyte_is_a_passage_and_a_query(opened, kind):
    text = " ".join(f"w{i}" for i in range(150_000))
    assert len(text) > 1_000_000
    retriever = opened(kind)
    retriever.add([Passage("long", text), Passage("longest", "x" * 1_000_000), Passage("short", "bee w7")])
    assert {"long", "short"} <= set(ids(retriever.search("w7", 3)))
    assert next(hit for hit in retriever.search("w7", 3) if hit.id == "long").text == text
    assert "long" in ids(retriever.search(text, 3))


@pytest.mark.parametrize("kind", PERSISTENT)
def test_what_was_added_is_there_when_it_is_opened_again(opened, kind):
    first = opened(kind)
    first.add(PASSAGES)
    expected = first.search("cat dog", 9)
    first.close()
    second = opened(kind)
    assert len(second) == 4
    found = second.search("cat dog", 9)
    assert [(hit.id, hit.text, hit.source) for hit in found] == [
        (hit.id, hit.text, hit.source) for hit in expected
    ]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)


@pytest.mark.parametrize("kind", ["fts", "postgres", "postgres with vectors", "qdrant", "qdrant folder"])
def test_threads_may_search_while_others_write(opened, kind):
    retriever = opened(kind)
    retriever.add(PASSAGES)
    found, failures = [], []

    def write(name):
        for i in range(6):
            retriever.add([Passage(f"{name}{i}", f"gab {name}")])

    def read():
        found.extend("dog" in ids(retriever.search("barked", 99)) for _ in range(12))

    def guarded(action, *values):
        try:
            action(*values)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(write, name)) for name in ("left", "right")]
    threads += [threading.Thread(target=guarded, args=(read,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failures, found) == ([], [True] * 24)
    assert len(retriever) == 16


changes = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["ox yak", "yak zebu zebu", "zebu", "?"]), st.booleans()
    ),
    max_size=8,
)


@pytest.mark.parametrize("kind", ["fts", "postgres", "postgres with vectors", "qdrant"])
@given(changes=changes)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_changes_leaves_what_a_dictionary_holds(opened, kind, changes):
    retriever = opened(kind)
    retriever.delete("abc")
    expected: dict[str, str] = {}
    for key, text, add in changes:
        if add:
            retriever.add([Passage(key, text)])
            expected[key] = text
        else:
            assert retriever.delete([key]) == (expected.pop(key, None) is not None)
    assert len(retriever) == len(expected)
    for word in ("ox", "yak", "zebu"):
        found = {hit.id: hit.text for hit in retriever.search(word, 9)}
        holders = {key: text for key, text in expected.items() if word in text}
        assert found == (holders if kind in BY_WORDS else expected)
