"""SQLite FTS5: scores, changes, safety against any text, threads, processes, and files that are not ours."""

import math
import multiprocessing
import re
import sqlite3
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidIndex, InvalidRequest, RetrievalError, RetrieverFailed
from cartoolkit.retrieval import fts5, fts5_file
from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.fts5_query import MAX_ROWS, MAX_WORDS, query_words
from cartoolkit.retrieval.passages import Hit, Passage

TEXTS = {
    "cat": "The cat sat on the mat where the cat slept",
    "dog": "A dog barked at the moon",
    "mine": "Miners were mining silver in mines",
    "both": "Dog with cat with dog",
    "food": "Café crème is served",
}
PASSAGES = [Passage(key, text, source=f"{key}.txt", line=3) for key, text in TEXTS.items()]
SYNTAX = [
    '"', '""', "'", "AND", "OR", "NOT", "NEAR(cat dog, 2)", "cat*", "^cat", "-cat", "text:cat", "title : cat",
    "(cat", "cat)", "((((", "cat AND", "AND cat", "NOT cat", "{text title}: cat", "cat + dog", '"cat',
    "cat\0dog", "\ud800 cat", "'; DROP TABLE passage; --", "%s %(x)s ?", "😀", "\u200b", "a" * 100_000,
    "cat\n\tdog", "１２３", "ß", "İ",
]  # fmt: skip


@pytest.fixture
def retriever():
    with FTSRetriever() as made:
        made.add(PASSAGES)
        yield made


def bm25(documents: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """The formula of SQLite's documentation, with k1 = 1.2 and b = 0.75, over documents cut into words."""
    mean = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for word in query:
        holders = sum(word in words for words in documents.values())
        idf = max(math.log((len(documents) - holders + 0.5) / (holders + 0.5)), 1e-6)
        for key, words in documents.items():
            tf = words.count(word)
            scores[key] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(words) / mean))
    return {key: score for key, score in scores.items() if score > 0}


@pytest.mark.parametrize("query", [["moon"], ["dog", "silver"], ["barked", "moon", "sat"]])
def test_scores_follow_the_published_formula(retriever, query):
    documents = {key: re.findall(r"\w+", text.lower()) for key, text in TEXTS.items()}
    hits = retriever.search(" ".join(query), k=10)
    assert {hit.id: hit.score for hit in hits} == pytest.approx(bm25(documents, query), rel=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_scores_are_those_of_a_plain_fts5_table(retriever):
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, text, tokenize='porter unicode61')")
    plain.executemany("INSERT INTO t VALUES (?, ?)", TEXTS.items())
    expected = plain.execute("SELECT id, -bm25(t) FROM t WHERE t MATCH 'mined OR cat OR dog'").fetchall()
    found = {hit.id: hit.score for hit in retriever.search("mined cat dog", k=10)}
    assert found == pytest.approx(dict(expected), rel=1e-9)


def test_a_hit_carries_text_and_place(retriever):
    (hit,) = retriever.search("moon")
    assert hit == Hit("dog", TEXTS["dog"], hit.score, "dog.txt:3")


def test_endings_case_and_accents_do_not_matter(retriever):
    assert [hit.id for hit in retriever.search("MINE")] == ["mine"]
    assert [hit.id for hit in retriever.search("cafe CREME")] == ["food"]
    assert [hit.id for hit in retriever.search("cafe\u0301")] == ["food"]


def test_marks_do_not_split_a_word():
    with FTSRetriever() as retriever:
        retriever.add([Passage("hindi", "हिन्दी भाषा"), Passage("other", "हि")])
        assert [hit.id for hit in retriever.search("हिन्दी")] == ["hindi"]


def test_titles_are_searched():
    with FTSRetriever() as retriever:
        retriever.add(
            [Passage("1", "It is soft.", title="Gallium"), Passage("2", "It is hard.", title="Boron")]
        )
        (hit,) = retriever.search("gallium")
        assert (hit.id, hit.title) == ("1", "Gallium")


def test_a_second_passage_of_an_id_replaces_the_first(retriever):
    retriever.add([Passage("cat", "A whale sang")])
    assert len(retriever) == len(PASSAGES)
    assert [hit.text for hit in retriever.search("whale")] == ["A whale sang"]
    assert [hit.id for hit in retriever.search("mat slept")] == []


def test_a_deleted_passage_is_not_found(retriever):
    assert retriever.delete(["dog", "nobody", "\ud800"]) == 1
    assert retriever.search("moon") == []
    assert "dog" not in retriever
    assert "cat" in retriever
    assert retriever.delete([]) == 0


def test_after_changes_the_index_is_as_one_built_at_once(retriever):
    retriever.add([Passage("dog", "Nothing of the kind"), Passage("new", "A dog")])
    retriever.delete(["cat", "mine"])
    retriever.add(PASSAGES[:1])
    with FTSRetriever() as fresh:
        fresh.add(retriever.passages())
        for query in ("dog", "cat mat", "the kind of silver"):
            assert retriever.search(query, 9) == fresh.search(query, 9)
    retriever._connection.execute("INSERT INTO word (word, rank) VALUES ('integrity-check', 1)")


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "x y", "y z z", "x x", "z"]), st.booleans()),
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_order_of_changes_leaves_what_a_dictionary_holds(changes):
    expected: dict[str, str] = {}
    with FTSRetriever() as retriever:
        for key, text, add in changes:
            if add:
                retriever.add([Passage(key, text)])
                expected[key] = text
            else:
                assert retriever.delete([key]) == (expected.pop(key, None) is not None)
        assert {each.id: each.text for each in retriever.passages()} == expected
        for word in "xyz":
            assert {hit.id for hit in retriever.search(word, 9)} == {
                k for k, v in expected.items() if word in v
            }
        retriever._connection.execute("INSERT INTO word (word, rank) VALUES ('integrity-check', 1)")


def test_what_is_there_already_is_not_written_again(retriever):
    before = retriever._connection.total_changes
    retriever.add(retriever.passages())
    assert retriever._connection.total_changes == before
    retriever.add([Passage("dog", TEXTS["dog"], source="elsewhere.txt")])
    assert retriever.search("moon")[0].source == "elsewhere.txt"


def test_sync_writes_only_what_differs(retriever):
    wanted = [PASSAGES[0], Passage("dog", "A dog slept"), Passage("new", "lone \ud800 surrogate")]
    assert retriever.sync(wanted) == (2, 3)
    assert {each.id for each in retriever.passages()} == {"cat", "dog", "new"}
    assert retriever.sync(wanted) == (0, 0)


@pytest.mark.parametrize("query", SYNTAX)
def test_syntax_in_a_query_is_words_or_nothing(retriever, query):
    found = {hit.id for hit in retriever.search(query, 9)}
    assert ("cat" in found) == bool(re.search(r"\bcat\b", query))
    assert len(retriever) == len(PASSAGES)


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_query_and_a_passage(text):
    with FTSRetriever() as retriever:
        retriever.add([Passage("text", f"anchor {text}"), Passage("other", "zebra")])
        assert [hit.id for hit in retriever.search(f"{text} anchor", 1)] in (["text"], ["other"])
        (kept,) = (each.text for each in retriever.passages() if each.id == "text")
        assert kept == f"anchor {text}".encode("utf-8", "replace").decode()


@pytest.mark.parametrize("blank", ["", " \n\t", "?!…", "\0"])
def test_a_query_without_words_finds_nothing(retriever, blank):
    assert retriever.search(blank) == []


def test_ten_thousand_words_are_a_query(retriever):
    many = " ".join(f"word{i}" for i in range(10_000))
    assert len(query_words(many)) == MAX_WORDS
    assert [hit.id for hit in retriever.search(f"moon {many}")] == ["dog"]


def test_k_must_be_positive(retriever):
    with pytest.raises(InvalidRequest, match="k = 0"):
        retriever.search("cat", 0)
    assert len(retriever.search("cat dog", 1)) == 1


@pytest.mark.parametrize("bad", ["", "\udcff"])
def test_an_id_that_cannot_be_kept_is_refused_and_nothing_is_written(retriever, bad):
    with pytest.raises(InvalidRequest, match="id"):
        retriever.add([Passage("fine", "whale"), Passage(bad, "whale")])
    assert retriever.search("whale") == []


def test_common_words_are_left_out_only_in_a_large_index():
    with FTSRetriever() as retriever:
        common = [Passage(str(i), f"shared common filler{i % 7}") for i in range(MAX_ROWS + 500)]
        retriever.add([*common, Passage("gold", "shared common nugget"), Passage("two", "nugget nugget ore")])
        assert [hit.id for hit in retriever.search("shared common nugget ore")] == ["two", "gold"]
        # Nothing but common words: still an answer, from the first that match.
        assert len(retriever.search("shared common", 4)) == 4


# The file


def test_a_word_that_occurs_nowhere_does_not_hide_what_common_words_find():
    with FTSRetriever() as retriever:
        retriever.add(Passage(str(i), "shared common filler") for i in range(MAX_ROWS + 500))
        assert len(retriever.search("shared xyzzy", k=3)) == 3


def test_what_was_added_is_there_when_the_file_is_opened_again(tmp_path):
    path = tmp_path / "index.db"
    with FTSRetriever(path) as first:
        first.add(PASSAGES)
        expected = first.search("cat dog", 9)
    with FTSRetriever(path) as second:
        assert len(second) == len(PASSAGES)
        assert second.search("cat dog", 9) == expected


def test_a_closed_index_says_so(tmp_path):
    retriever = FTSRetriever(tmp_path / "index.db")
    retriever.close()
    with pytest.raises(RetrievalError, match="closed"):
        retriever.search("cat")


def test_a_failing_add_leaves_nothing_behind(retriever):
    def broken():
        yield Passage("whale", "A whale sang")
        raise RuntimeError("the reader broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        retriever.add(broken())
    assert retriever.search("whale") == []


@pytest.mark.parametrize(
    "content", [b"plain text", b"SQLite format 4\0" + bytes(100), b"\x89PNG\r\n", bytes(4096)]
)
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(InvalidIndex, match="not an index"):
        FTSRetriever(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE passage (id)")
    before = path.read_bytes()
    with pytest.raises(InvalidIndex, match="another program"):
        FTSRetriever(path)
    assert path.read_bytes() == before


def test_a_newer_index_is_refused(tmp_path):
    path = tmp_path / "index.db"
    FTSRetriever(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {fts5_file.SCHEMA_VERSION + 1}")
    with pytest.raises(InvalidIndex, match="version 2"):
        FTSRetriever(path)


@pytest.mark.parametrize("table", ["passage", "word"])
def test_an_index_that_lost_a_table_is_damaged(tmp_path, table):
    path = tmp_path / "index.db"
    FTSRetriever(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"DROP TABLE {table}")
    with pytest.raises(InvalidIndex, match="damaged"):
        FTSRetriever(path).search("cat")


def raised_by_use(path) -> RetrievalError | None:
    """What the toolkit raises when the file is opened, searched and changed; anything else fails the test."""
    try:
        with FTSRetriever(path) as retriever:
            retriever.search("w1 w50 unknown", 5)
            retriever.passages()
            retriever.add([Passage("new", "w1")])
            retriever.delete(["3"])
    except RetrievalError as error:
        return error
    return None


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_a_truncated_index_gives_an_error_of_ours_or_works(tmp_path, cut):
    path = tmp_path / "index.db"
    with FTSRetriever(path) as retriever:
        retriever.add(Passage(str(i), f"w{i} w{i % 10} common") for i in range(300))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * cut // 100])
    error = raised_by_use(path)
    assert error is None or (str(path) in str(error) and error.hint)


@pytest.mark.parametrize("seed", range(20))
def test_an_index_with_damaged_pages_gives_an_error_of_ours_or_works(tmp_path, seed):
    import random

    path = tmp_path / "index.db"
    with FTSRetriever(path) as retriever:
        retriever.add(Passage(str(i), f"w{i} w{i % 10} common") for i in range(300))
    content = bytearray(path.read_bytes())
    rng = random.Random(seed)
    start = rng.randrange(len(content) - 500)
    content[start : start + 400] = rng.randbytes(400)
    path.write_bytes(content)
    error = raised_by_use(path)
    assert error is None or str(path) in str(error)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RetrieverFailed, match="missing"):
        FTSRetriever(tmp_path / "missing" / "index.db")
    with pytest.raises(RetrievalError):
        FTSRetriever(tmp_path)


# Threads and processes


def test_threads_may_search_while_others_write(tmp_path):
    found = []
    with FTSRetriever(tmp_path / "index.db") as retriever:
        retriever.add(PASSAGES)

        def write(name):
            for i in range(20):
                retriever.add([Passage(f"{name}{i}", f"{name} number{i}")])

        def read():
            found.extend("dog" in {hit.id for hit in retriever.search("moon", 9)} for _ in range(40))

        threads = [threading.Thread(target=write, args=(name,)) for name in ("left", "right")]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 120
        assert len(retriever) == len(PASSAGES) + 40


def write_some(path, name):
    with FTSRetriever(path) as retriever:
        for i in range(15):
            retriever.add([Passage(f"{name}{i}", f"{name} text{i}")])


def test_processes_may_write_to_one_file_and_even_create_it_together(tmp_path):
    path = tmp_path / "index.db"
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=write_some, args=(path, name)) for name in ("left", "right", "middle")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    with FTSRetriever(path) as retriever:
        assert len(retriever) == 45
        assert len(retriever.search("left", 50)) == 15


def test_a_reader_does_not_wait_for_a_writer(tmp_path):
    path = tmp_path / "index.db"
    with FTSRetriever(path) as reader, FTSRetriever(path) as writer:
        reader.add(PASSAGES)
        writer._connection.execute("BEGIN IMMEDIATE")
        writer._connection.execute("DELETE FROM passage")
        assert [hit.id for hit in reader.search("moon")] == ["dog"]
        writer._connection.execute("ROLLBACK")


def test_a_file_that_stays_locked_is_said_to_be(tmp_path):
    path = tmp_path / "index.db"
    with FTSRetriever(path) as first, FTSRetriever(path) as second:
        second._connection.execute("PRAGMA busy_timeout = 50")
        first._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(RetrieverFailed, match="locked"):
            second.add(PASSAGES)
        first._connection.execute("ROLLBACK")
        second.add(PASSAGES)
        assert len(first) == len(PASSAGES)


def search_in_child(retriever, results):
    results.put([hit.id for hit in retriever.search("moon")])


def test_a_forked_child_opens_the_file_anew(tmp_path):
    context = multiprocessing.get_context("fork")
    with FTSRetriever(tmp_path / "index.db") as retriever:
        retriever.add(PASSAGES)
        results = context.Queue()
        child = context.Process(target=search_in_child, args=(retriever, results))
        child.start()
        assert results.get(timeout=60) == ["dog"]
        child.join(60)
        assert [hit.id for hit in retriever.search("moon")] == ["dog"]


def test_the_module_s_columns_are_the_passage_s_fields():
    from dataclasses import fields

    assert fts5.COLUMNS.split(", ") == [field.name for field in fields(Passage)]
