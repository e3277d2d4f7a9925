"""The questions of a probe: fair, split without a leak, and graded as a person would."""

import pytest

from cartoolkit.evaluation.matching import contains_answer
from cartoolkit.routing.probing.items import EXAMPLES, ProbeItem, first_line, is_right, probe_items

FACT = ProbeItem("capital:France", "facts", "choice", "What is the capital of France?", ("Paris",))
SUM = ProbeItem("small-minus:12,5", "arithmetic", "choice", "What is 12 minus 5?", ("7",))


def by_id():
    return {item.id: item for item in probe_items()}


def test_each_split_has_at_least_sixty_questions_and_both_kinds_of_each():
    for split in ("choice", "held_out"):
        kinds = [item.kind for item in probe_items() if item.split == split]
        assert len(kinds) >= 60
        assert min(kinds.count("facts"), kinds.count("arithmetic")) >= 30


def test_every_relation_is_shared_out_evenly():
    relations = {item.relation for item in probe_items()}
    for relation in relations:
        splits = [item.split for item in probe_items() if item.relation == relation]
        assert abs(splits.count("choice") - splits.count("held_out")) <= 1, relation


def test_no_question_is_asked_twice_nor_shown_as_an_example():
    questions = [item.question for item in probe_items()]
    assert len({item.id for item in probe_items()}) == len(set(questions)) == len(questions)
    assert not set(questions) & {question for question, _ in EXAMPLES}


def test_no_sum_is_asked_in_both_orders():
    pairs = [
        (item.relation, frozenset(item.id.partition(":")[2].split(",")))
        for item in probe_items()
        if item.kind == "arithmetic"
    ]
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("item", probe_items(), ids=lambda item: item.id)
def test_its_answer_is_right_and_neither_the_question_nor_an_example_earns_anything(item):
    assert all(is_right(item, answer) for answer in item.answers)
    assert not is_right(item, item.question)
    assert not is_right(item, "")
    assert not any(contains_answer(item.question, answer) for answer in item.answers)


def test_the_results_of_the_sums_are_what_arithmetic_says():
    signs = {"plus": "+", "minus": "-", "times": "*"}
    for item in probe_items():
        if item.kind == "arithmetic":
            _, _, a, word, b = item.question.rstrip("?").split()
            assert eval(f"{a} {signs[word]} {b}") == int(item.answers[0]), item.question


def test_the_draw_is_the_same_everywhere():
    # Written down from CPython 3.11; a measurement of another Python must be of the same questions.
    sums = [item.question for item in probe_items() if item.kind == "arithmetic"]
    assert sums[:3] == ["What is 6 plus 7?", "What is 2 plus 9?", "What is 5 plus 2?"]
    assert sums[-1] == "What is 20 times 9?"


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("Paris", True),
        (" paris.\n\nQ: What is the capital of Spain?", True),
        ("A: The capital of France is Paris.", True),
        ("\n\nParis", True),
        ("France", False),
        ("I do not know\nParis", False),
        ("Parisian", False),
    ],
)
def test_a_fact_is_right_if_it_stands_in_the_first_line(said, right):
    assert is_right(FACT, said) == right


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("7", True),
        ("12 minus 5 is 7.", True),
        ("12-5=7", True),
        ("12 -5 = 7.0", True),
        ("The answer is 7!", True),
        ("-7", False),
        ("12 - 5 = -7", False),
        ("7 or 8", False),
        ("6, 7, 8", False),
        ("17", False),
        ("0.7", False),
        ("12 - 5", False),
        ("seven", False),
    ],
)
def test_a_sum_is_right_if_its_result_is_the_only_number_that_was_not_asked(said, right):
    assert is_right(SUM, said) == right


def test_thousands_may_be_written_with_a_comma():
    item = ProbeItem("times:50,40", "arithmetic", "choice", "What is 50 times 40?", ("2000",))
    assert is_right(item, "2,000")
    assert not is_right(item, "2, 000")


def test_a_base_model_is_shown_the_form_and_left_in_the_middle_of_it():
    text = FACT.text
    assert text.startswith("Q: What is the capital of Ireland?\nA: Dublin\n\nQ: ")
    assert text.endswith("\n\nQ: What is the capital of France?\nA:")


def test_a_chat_model_is_shown_the_same_examples_as_turns():
    turns = [(message.role, message.text()) for message in FACT.conversation]
    assert turns[:2] == [("user", "What is the capital of Ireland?"), ("assistant", "Dublin")]
    assert turns[-1] == ("user", "What is the capital of France?")
    assert len(turns) == 2 * len(EXAMPLES) + 1


def test_nothing_but_empty_lines_is_an_empty_answer():
    assert first_line(" \n\n") == ""
