"""Prompts as people write them, and which of the four kinds each is."""

import time

import pytest

from cartoolkit.intents import CAPABILITIES, TASKS
from cartoolkit.routing.choice.complexity import assess, capability_for, task_for

SHOPPING = """I need:
- green apples;
- sweet pears;
What do I say to the people who sell them, here and in the other towns of the country?"""


@pytest.mark.parametrize(
    "prompt",
    ["Hello", "What is the capital of France?", "Translate 'good morning' to Spanish.", "¿Qué hora es?", ""],
)
def test_a_short_question_is_simple(prompt):
    assert assess(prompt).complexity == "simple"


@pytest.mark.parametrize(
    "prompt",
    [
        "Write an invitation to the eightieth birthday of my grandmother on Saturday, with cake and music.",
        SHOPPING,
    ],
)
def test_a_longer_request_without_other_marks_is_medium(prompt):
    assert assess(prompt).complexity == "medium"


@pytest.mark.parametrize(
    ("prompt", "because"),
    [
        ("What does it do?\n```\nx = 1\n```", "it holds a fenced block"),
        ("def f(x):\n    return x\nclass A:\n    pass", "lines of it look like code"),
        ("int main() {\n  return f(0);\n}", "lines of it look like code"),
        ("SELECT a FROM b\nSELECT c FROM d", "lines of it look like code"),
        ("Please refactor this.", "it says 'refactor'"),
        ("Write a Python function that sorts a list.", "it says 'write a python function'"),
        ("Implement the missing method", "it says 'implement the missing method'"),
        ("Is C++ code faster?", "it says 'c++ code'"),
    ],
)
def test_code_is_noticed_by_its_form_or_by_its_words(prompt, because):
    assessment = assess(prompt)
    assert (assessment.complexity, assessment.because) == ("code", because)


@pytest.mark.parametrize(
    ("prompt", "because"),
    [
        ("Prove that there are infinitely many primes.", "it says 'prove'"),
        ("Explain step by step how rain forms.", "it says 'step by step'"),
        ("Who was he? When? Where?", "it asks 3 questions"),
        ("Do this:\n1. eat\n2. sleep\n3. read", "it lists 3 items"),
        ("word " * 500, "it has about 625 tokens"),
    ],
)
def test_what_asks_for_thought_is_complex(prompt, because):
    assessment = assess(prompt)
    assert (assessment.complexity, assessment.because) == ("complex", because)


@pytest.mark.parametrize(
    "prompt", ["I improved my approval rate.", "A strategyless codebreaker.", "unproven", "Say refactory."]
)
def test_a_word_inside_another_word_is_no_mark(prompt):
    assert assess(prompt).complexity == "simple"


@pytest.mark.parametrize(
    "piece", [" ", "(", "=(;", "import ", "public ", "class ", "SELECT ", "```", "- ", "1. ", "?"]
)
def test_no_prompt_takes_long(piece):
    before = time.perf_counter()
    assess(piece * (200_000 // len(piece)))
    assert time.perf_counter() - before < 1


def test_every_kind_stands_for_a_task_and_every_task_for_a_capability():
    assert [task_for(kind) for kind in ("simple", "medium", "code", "complex")] == [
        "chat",
        "chat",
        "code",
        "reasoning",
    ]
    assert {capability_for(task) for task in TASKS} <= set(CAPABILITIES)
    assert capability_for("extract") == "generate"


def test_one_token_is_not_said_to_be_several():
    assert assess("Why?").because == "it has about 1 token and no other mark"
