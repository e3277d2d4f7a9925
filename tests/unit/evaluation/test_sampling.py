"""Samples: equally many of each relation, the same for a seed, in the order given."""

import pytest
from scripted_engine import question

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation import sample_questions

QUESTIONS = [question(f"{relation}{i}", relation=relation) for i in range(10) for relation in ("a", "b", "c")]


def counts(sample):
    relations = [each.relation for each in sample]
    return {name: relations.count(name) for name in dict.fromkeys(sorted(relations))}


def test_every_relation_gets_its_share():
    assert counts(sample_questions(QUESTIONS, 12)) == {"a": 4, "b": 4, "c": 4}
    assert sum(counts(sample_questions(QUESTIONS, 11)).values()) == 11


def test_what_a_relation_lacks_the_others_give():
    few = [each for each in QUESTIONS if each.relation != "b" or each.id.endswith(("0", "1"))]
    assert counts(sample_questions(few, 12)) == {"a": 5, "b": 2, "c": 5}


def test_a_seed_gives_the_same_sample_in_the_order_given():
    sample = sample_questions(QUESTIONS, 12, seed=3)
    assert sample == sample_questions(QUESTIONS, 12, seed=3)
    assert sample != sample_questions(QUESTIONS, 12, seed=4)
    assert sample == [each for each in QUESTIONS if each in sample]
    assert len(set(sample)) == 12


def test_only_the_wanted_kind_and_split_are_drawn():
    mixed = [*QUESTIONS, question("z", kind="two-hop"), question("y", split="calibration")]
    assert [each.id for each in sample_questions(mixed, kind="two-hop")] == ["two-hop/z"]
    assert [each.id for each in sample_questions(mixed, 1, split="calibration")] == ["single/y"]


@pytest.mark.parametrize("size", [0, 31])
def test_more_than_there_are_is_refused(size):
    with pytest.raises(InvalidRequest, match="there are 30 to draw from"):
        sample_questions(QUESTIONS, size)
