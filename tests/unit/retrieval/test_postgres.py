"""PostgreSQL and pgvector on a real server: scores, plans, changes, and tables that are not ours."""

import math
import threading

import numpy as np
import psycopg
import pytest
from embedders import Letters

from cartoolkit.errors import InvalidIndex, InvalidRequest, RetrieverFailed
from cartoolkit.retrieval import postgres, postgres_table
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.postgres import MAX_ROWS, PostgresRetriever, folded, weighted

TEXTS = {
    "iron": "Iron iron iron, metal",
    "gold": "gold metal",
    "mine": "Miners were mining silver in mines",
    "food": "Café crème",
}
PASSAGES = [Passage(key, text, source=f"{key}.txt", page=2) for key, text in TEXTS.items()]


@pytest.fixture
def retriever(postgres_address, table):
    with PostgresRetriever(postgres_address, table) as made:
        made.add(PASSAGES)
        yield made


@pytest.fixture
def with_vectors(postgres_address, table):
    with PostgresRetriever(postgres_address, table, embedder=Letters()) as made:
        yield made


def ids(hits):
    return [hit.id for hit in hits]


# Words


def test_scores_follow_the_documented_formula(retriever):
    # ts_rank of one word with weight 1 is the sum of 1/i² over its places, divided by π²/6; normalization 1
    # divides by log2(length + 1) (PostgreSQL 16, tsrank.c). "iron" stands in one passage of four, "metal"
    # in two.
    idf_iron, idf_metal = math.log(1 + 3.5 / 1.5), math.log(1 + 2.5 / 2.5)
    iron = idf_iron * (1 + 1 / 4 + 1 / 9) / 1.64493406685 / math.log2(5)
    hits = {hit.id: hit.score for hit in retriever.search("metal of iron", 9)}
    assert hits == pytest.approx(
        {
            "iron": iron + idf_metal / 1.64493406685 / math.log2(5),
            "gold": idf_metal / 1.64493406685 / math.log2(3),
        },
        rel=1e-6,
    )


def test_endings_case_and_accents_do_not_matter(retriever):
    assert ids(retriever.search("MINE")) == ["mine"]
    assert ids(retriever.search("cafe CREME")) == ["food"]
    assert ids(retriever.search("cafe\u0301")) == ["food"]
    retriever.add([Passage("korean", "한국어 문서"), Passage("hindi", "हिन्दी भाषा"), Passage("other", "हि")])
    assert ids(retriever.search("한국어")) == ["korean"]
    assert ids(retriever.search("हिन्दी")) == ["hindi"]


def test_function_words_find_nothing_and_cost_nothing(retriever):
    assert retriever.search("what is the of") == []
    assert ids(retriever.search("what is the gold of the")) == ["gold"]


def test_titles_are_searched(retriever):
    retriever.add([Passage("1", "It is soft.", title="Gallium")])
    assert [(hit.id, hit.title) for hit in retriever.search("gallium")] == [("1", "Gallium")]


def test_words_that_are_everywhere_are_left_out_only_in_a_large_table(retriever, monkeypatch):
    monkeypatch.setattr(postgres, "MAX_ROWS", 20)
    common = [Passage(f"{i:02}", f"shared usual filler{i % 7}") for i in range(25)]
    retriever.add([*common, Passage("a", "shared usual nugget"), Passage("b", "nugget nugget ore")])
    assert ids(retriever.search("shared usual nugget ore", 9)) == ["b", "a"]
    # Nothing but common words: still an answer, from the first of them by id.
    assert ids(retriever.search("shared usual nowhere", 4)) == ["00", "01", "02", "03"]
    assert retriever.search("nowhere") == []


def test_the_rarest_words_are_kept_up_to_the_limit():
    half = MAX_ROWS // 2
    counts = [("usual", MAX_ROWS + 1), ("half", half), ("rare", 1), ("other", half), ("nowhere", 0)]
    assert list(weighted(counts, MAX_ROWS + 1)) == ["half", "rare"]
    assert list(weighted(counts, MAX_ROWS)) == ["usual", "half", "rare", "other"]
    assert weighted(counts, MAX_ROWS + 1)["rare"] == pytest.approx(math.log(1 + (MAX_ROWS + 0.5) / 1.5))


def test_the_longest_text_fits_whatever_its_characters(retriever):
    # Two characters of four bytes a word, all words distinct: the most that a tsvector can be asked to hold.
    many = " ".join(chr(0x10428 + i % 40) + chr(0x20000 + i // 40) for i in range(100_000))
    retriever.add([Passage("many", many)])
    assert ids(retriever.search(many[:5])) == ["many"]


def test_folding_keeps_what_is_not_an_accent():
    assert folded("Ὀδύσσεια Ёлка naïve ﬁx") == "οδυσσεια елка naive ﬁx".replace("ﬁ", "fi")
    assert folded("'; DROP TABLE passages --") == "drop table passages"


# Vectors


def test_meaning_alone_ranks_by_cosine(with_vectors):
    with_vectors.add([Passage("a", "aaa"), Passage("b", "bbb"), Passage("ab", "ab")])
    (vector,) = Letters()(["aab"])
    hits = with_vectors._server.run(lambda cursor: with_vectors._by_meaning(cursor, vector, 3))
    cosine = {"ab": 3 / math.sqrt(10), "a": 2 / math.sqrt(5), "b": 1 / math.sqrt(5)}
    assert ids(hits) == ["ab", "a", "b"]
    assert {hit.id: hit.score for hit in hits} == pytest.approx(cosine, abs=0.02)


def test_words_and_meaning_are_fused_by_their_ranks(with_vectors):
    with_vectors.add([Passage("word", "zinc hhh"), Passage("near", "aabaab"), Passage("far", "ggg")])
    # By words only "word" is found. By letters "near" is first, the others share little.
    hits = with_vectors.search("zinc aab", 3)
    assert ids(hits)[0] == "word"
    by_id = {hit.id: hit.score for hit in hits}
    assert by_id["near"] == pytest.approx(1 / 61)
    assert by_id["word"] in (pytest.approx(1 / 61 + 1 / 62), pytest.approx(1 / 61 + 1 / 63))


def test_every_passage_can_be_found_beyond_what_the_index_looks_at(with_vectors, monkeypatch):
    monkeypatch.setattr(postgres, "MAX_EF", 60)
    letters = np.random.default_rng(0).choice(list("abcdefgh"), (150, 12))
    with_vectors.add([Passage(f"{i:04}", "".join(row)) for i, row in enumerate(letters)])
    # For so few, the planner would not use the index.
    with_vectors._server.run(lambda cursor: cursor.execute("SET enable_seqscan = off"))
    (vector,) = Letters()(["abcd"])

    def nearest(k):
        return with_vectors._server.run(lambda cursor: with_vectors._by_meaning(cursor, vector, k))

    assert [len(nearest(k)) for k in (40, 60, 100, 5_000)] == [40, 60, 100, 150]
    with_vectors.delete(f"{i:04}" for i in range(140))
    assert ids(nearest(5)) == ids(nearest(10))[:5]
    assert len(nearest(20)) == 10


def test_the_indexes_are_used(with_vectors, admin):
    with_vectors.add([Passage(str(i), f"w{i} {'abcdefgh'[i % 8]}") for i in range(600)])
    admin.execute("ANALYZE passages")
    admin.execute("SET enable_seqscan = off")
    vector = postgres._literal(Letters()(["abc"])[0])
    plan = admin.execute(
        with_vectors._table.statement("EXPLAIN" + postgres.BY_INDEX), {"vector": vector, "near": 19, "k": 3}
    ).fetchall()
    assert "passages_embedding" in str(plan)
    plan = admin.execute("EXPLAIN SELECT id FROM passages WHERE words @@ 'w7'::tsquery").fetchall()
    assert "passages_words" in str(plan)


def test_only_what_changed_is_embedded(with_vectors):
    with_vectors.add(PASSAGES)
    seen = with_vectors.embedder.seen
    before = list(seen)
    with_vectors.add([*PASSAGES, Passage("new", "text", title="Title")])
    assert seen[len(before) :] == ["Title\ntext"]


def test_vectors_of_another_model_are_refused(with_vectors, postgres_address, table):
    with pytest.raises(InvalidRequest, match="vectors of letters, which do not compare with those of others"):
        PostgresRetriever(postgres_address, table, embedder=Letters("others"))
    with_vectors.add(PASSAGES)
    shorter = PostgresRetriever(postgres_address, table, embedder=Letters(letters="abc"))
    for action in (lambda: shorter.search("gold"), lambda: shorter.add([Passage("x", "new")])):
        with pytest.raises(InvalidRequest, match=r"shape \[1, 3\], where \[1, 8\] is kept"):
            action()
    shorter.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_a_vector_without_direction_is_refused_and_nothing_is_written(with_vectors, value):
    with_vectors.embedder = lambda texts: np.full((len(texts), 8), value, np.float32)
    with_vectors.embedder.name = "letters"
    with pytest.raises(InvalidRequest, match="no direction"):
        with_vectors.add(PASSAGES)
    assert len(with_vectors) == 0


def test_a_table_with_vectors_can_be_read_by_words_but_not_added_to_without_its_embedder(
    with_vectors, postgres_address, table
):
    with_vectors.add(PASSAGES)
    with PostgresRetriever(postgres_address, table) as words:
        assert ids(words.search("gold")) == ["gold"]
        with pytest.raises(InvalidRequest, match="no embedder"):
            words.add([Passage("x", "new")])
        words.add(PASSAGES)
        assert words.delete(["gold"]) == 1


def test_passages_without_vectors_cannot_be_searched_by_meaning(retriever, postgres_address, table):
    with pytest.raises(InvalidRequest, match="without vectors"):
        PostgresRetriever(postgres_address, table, embedder=Letters())
    retriever.delete(TEXTS)
    with PostgresRetriever(postgres_address, table, embedder=Letters()) as empty:
        empty.add(PASSAGES)
        assert ids(empty.search("gold", 1)) == ["gold"]


def test_a_long_vector_is_kept_without_an_index(postgres_address, table, admin):
    class Wide(Letters):
        def __call__(self, texts):
            return np.pad(super().__call__(texts), ((0, 0), (0, postgres_table.MAX_INDEXED_WIDTH)))

    with PostgresRetriever(postgres_address, table, embedder=Wide()) as retriever:
        retriever.add(PASSAGES)
        assert ids(retriever.search("gold", 1)) == ["gold"]
    assert admin.execute("SELECT to_regclass('passages_embedding')").fetchone() == (None,)


def test_a_server_without_pgvector_is_said_to_be_one(postgres_address, table, monkeypatch):
    monkeypatch.setattr(
        postgres_table, "AVAILABLE", postgres_table.AVAILABLE.replace("'vector'", "'vector_of_nobody'")
    )
    monkeypatch.setattr(
        postgres_table, "INSTALLED", postgres_table.INSTALLED.replace("'vector'", "'vector_of_nobody'")
    )
    with pytest.raises(RetrieverFailed, match="no pgvector") as caught:
        PostgresRetriever(postgres_address, table, embedder=Letters())
    assert "search by words" in caught.value.hint
    with PostgresRetriever(postgres_address, table) as words:
        assert len(words) == 0


# The table


@pytest.mark.parametrize(
    "name", ["", "Passages", "1a", "a b", 'a"; DROP TABLE passages; --', "a.b", "é", "a" * 51]
)
def test_a_name_that_is_none_is_refused(postgres_address, name):
    with pytest.raises(InvalidRequest, match="cannot name a table"):
        PostgresRetriever(postgres_address, name)


@pytest.mark.parametrize("name", ["user", "select", "a" * 50])
def test_words_of_sql_and_long_names_are_names(postgres_address, admin, name):
    with PostgresRetriever(postgres_address, name, embedder=Letters()) as retriever:
        retriever.add(PASSAGES)
        assert ids(retriever.search("gold", 1)) == ["gold"]
        PostgresRetriever(postgres_address, name).close()
    admin.execute(f'DROP TABLE "{name}"')


def test_a_table_of_another_program_is_refused_and_left_alone(postgres_address, table, admin):
    admin.execute(f"CREATE TABLE {table} (id text, text text)")
    admin.execute(f"INSERT INTO {table} VALUES ('a', 'b')")
    with pytest.raises(InvalidIndex, match="another program"):
        PostgresRetriever(postgres_address, table)
    assert admin.execute(f"SELECT * FROM {table}").fetchall() == [("a", "b")]


def test_a_newer_table_is_refused(retriever, postgres_address, table, admin):
    admin.execute(f"COMMENT ON TABLE {table} IS 'cartoolkit passages, version 2'")
    with pytest.raises(InvalidIndex, match="version 2"):
        PostgresRetriever(postgres_address, table)


def test_a_table_that_lost_a_column_or_is_gone_is_damaged(retriever, postgres_address, table, admin):
    admin.execute(f"ALTER TABLE {table} DROP COLUMN words")
    with pytest.raises(InvalidIndex, match="lacks words"):
        PostgresRetriever(postgres_address, table)
    with pytest.raises(InvalidIndex, match="damaged"):
        retriever.search("gold")
    admin.execute(f"DROP TABLE {table}")
    with pytest.raises(InvalidIndex, match="damaged"):
        retriever.add([Passage("x", "new")])


def test_who_may_only_read_can_search_and_is_told_when_it_writes(retriever, postgres_address, table, admin):
    admin.execute("DROP ROLE IF EXISTS reader")
    admin.execute("CREATE ROLE reader LOGIN")
    admin.execute(f"GRANT SELECT ON {table} TO reader")
    address = psycopg.conninfo.make_conninfo(postgres_address, user="reader")
    with PostgresRetriever(address, table) as reader:
        assert ids(reader.search("gold")) == ["gold"]
        with pytest.raises(RetrieverFailed, match="permission denied for table passages") as caught:
            reader.delete(["gold"])
        assert "administrator" in caught.value.hint
    admin.execute(f"REVOKE ALL ON {table} FROM reader")
    admin.execute("DROP ROLE reader")


def open_and_add(address, table, name, failures):
    try:
        with PostgresRetriever(address, table, embedder=Letters()) as retriever:
            for i in range(5):
                # The same ids by all, in another order each: without a turn for writers this would deadlock.
                retriever.add([Passage(f"{name}{i}", name), *(Passage(key, f"{name} {i}") for key in name)])
    except Exception as failure:
        failures.append(failure)


def test_many_may_make_and_fill_one_table_at_once(postgres_address, table):
    failures = []
    threads = [
        threading.Thread(target=open_and_add, args=(postgres_address, table, name, failures))
        for name in ("xyz", "zyx", "yxz", "zxy")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with PostgresRetriever(postgres_address, table) as retriever:
        assert len(retriever) == 4 * 5 + 3


def test_a_failing_write_leaves_nothing_behind(retriever, admin, table):
    admin.execute(f"ALTER TABLE {table} ADD CHECK (text <> 'forbidden')")
    with pytest.raises(RetrieverFailed, match="CheckViolation"):
        retriever.add([Passage("a", "whale"), Passage("gold", "whale"), Passage("z", "forbidden")])
    assert retriever.search("whale") == []
    assert ids(retriever.search("gold")) == ["gold"]


def test_readers_do_not_wait_for_a_writer(retriever, postgres_address, table, admin):
    with admin.transaction():
        admin.execute(f"DELETE FROM {table}")
        assert ids(retriever.search("gold")) == ["gold"]


@pytest.mark.parametrize("bad", ["", "\ud800", "a\0b", "ü" * 1_001])
def test_an_id_that_cannot_be_kept_is_refused_and_nothing_is_written(retriever, bad):
    with pytest.raises(InvalidRequest, match="id must be text"):
        retriever.add([Passage("fine", "whale"), Passage(bad, "whale")])
    assert retriever.search("whale") == []
    retriever.add([Passage("ü" * 1_000, "whale")])
    assert ids(retriever.search("whale")) == ["ü" * 1_000]
