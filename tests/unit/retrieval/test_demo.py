"""The demo corpus: whole, consistent in itself, and right where the world is known."""

from collections import Counter

import pytest

from cartoolkit.errors import InvalidIndex
from cartoolkit.retrieval import demo
from cartoolkit.retrieval.demo import demo_corpus, demo_retriever

RELATIONS = {"symbol", "atomic number", "discovery year", "capital", "currency", "highest point"}
TWO_HOPS = {"capital>currency", "capital>highest point"}


@pytest.fixture(scope="module")
def corpus():
    return demo_corpus()


@pytest.fixture(scope="module")
def questions(corpus):
    return {question.id: question for question in corpus.questions}


def test_ids_are_unique_and_every_passage_named_is_there(corpus):
    ids = {passage.id for passage in corpus.passages}
    assert len(ids) == len(corpus.passages) > 1000
    assert len({question.id for question in corpus.questions}) == len(corpus.questions)
    assert {each for question in corpus.questions for each in question.passages} <= ids


def test_an_answer_stands_in_its_passage(corpus):
    for question in corpus.questions:
        if question.passages:
            text = corpus[question.passages[-1]].text
            assert any(answer in text for answer in question.answers), question.id


def test_what_cannot_be_answered_stands_nowhere_about_its_subject(corpus):
    for question in corpus.questions:
        if question.kind == "unanswerable":
            assert question.passages == ()
            relation, subject = question.id.split("/")[1:]
            texts = [each.text for each in corpus.passages if each.id.endswith(f"/{subject}")]
            assert f"{relation}/{subject}" not in {each.id for each in corpus.passages}
            assert not [
                t for t in texts for answer in question.answers if f" {answer} " in f" {t} ".replace(".", " ")
            ]


def test_the_second_hop_needs_the_first(corpus):
    for question in corpus.questions:
        if question.kind == "two-hop":
            first, second = (corpus[each] for each in question.passages)
            country = first.id.split("/")[1]
            assert second.id.endswith(f"/{country}")
            assert question.start.removesuffix(" is the capital of") in first.text
            assert question.answers[0] not in question.text


def test_each_relation_is_split_thirty_to_seventy(corpus):
    counts = Counter((each.kind, each.relation, each.split) for each in corpus.questions)
    for kind, relation in {(kind, relation) for kind, relation, _ in counts}:
        share = counts[kind, relation, "calibration"] / sum(
            counts[kind, relation, each] for each in ("calibration", "test")
        )
        assert share == pytest.approx(0.3, abs=0.06)
    assert {relation for _, relation, _ in counts} == RELATIONS | TWO_HOPS


def test_all_questions_about_a_fact_are_in_one_split(corpus):
    splits = {}
    for question in corpus.questions:
        fact = question.id.partition("/")[2]
        assert splits.setdefault(fact, question.split) == question.split


def test_there_is_enough_of_each_kind(corpus):
    counts = Counter(each.kind for each in corpus.questions)
    assert counts["single"] >= 700
    assert counts["paraphrase"] == 300
    assert counts["two-hop"] == 120
    assert counts["unanswerable"] == 24


@pytest.mark.parametrize(
    ("fact", "answer"),
    [
        ("symbol/tungsten", "W"), ("symbol/gold", "Au"), ("atomic-number/carbon", "6"),
        ("atomic-number/uranium", "92"),
        ("discovery-year/rubidium", "1861"), ("capital/australia", "Canberra"), ("capital/france", "Paris"),
        ("currency/japan", "Japanese yen"), ("highest-point/tanzania", "Kilimanjaro"),
        ("highest-point/japan", "Mount Fuji"),
    ],
)  # fmt: skip
def test_what_everybody_knows_is_right(questions, corpus, fact, answer):
    question = questions.get(f"single/{fact}") or questions[f"unanswerable/{fact}"]
    assert question.answers[0] == answer


def test_texts_hold_no_markup_and_no_entities(corpus):
    for passage in corpus.passages:
        assert not {"<", ">", "\xa0", "\n"} & set(passage.text)
        assert "&nbsp" not in passage.text
        assert "&amp" not in passage.text
        assert passage.source


def test_disputed_facts_are_left_out(questions, corpus):
    # mendeleev's field says 1766, its prose 1776: neither is told.
    assert "single/discovery-year/hydrogen" not in questions
    assert not [each.id for each in corpus.passages if each.id.endswith("/hydrogen") and "1776" in each.text]
    # Two capitals in one source, one in the other.
    assert "single/capital/bolivia" not in questions


def test_the_index_finds_the_passage_of_nearly_every_plain_question(corpus):
    retriever = demo_retriever()
    plain = [each for each in corpus.questions if each.kind == "single"]
    found = sum(each.passages[0] in {hit.id for hit in retriever.search(each.text, 3)} for each in plain)
    assert found / len(plain) > 0.98


def test_other_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(demo, "FILE_SHA256", "0" * 64)
    demo_corpus.cache_clear()
    with pytest.raises(InvalidIndex, match="not the one"):
        demo_corpus()
    monkeypatch.undo()
    assert len(demo_corpus()) > 1000
