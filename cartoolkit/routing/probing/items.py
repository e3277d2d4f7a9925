"""Questions with exact answers: facts that a small model may know, and arithmetic. What a probe grades.

Requirements they exist to satisfy: a base model can answer them, since worked examples show the form; an
answer is right or wrong without a judge; repeating the question earns nothing; a fact stands in one of the
two splits alone, so that a choice made on one may be judged on the other.

A model with a chat template, and one that answers behind an address, is asked in turns, as it is used; one
without is given a text to continue. The worked examples are the same.

Graded is the first line that a model writes. A fact is right if its answer stands in that line as whole words
(`evaluation.matching.contains_answer`), so a sentence around it does no harm. A sum is right if its result is
the only number of the line that the question does not hold.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar

from cartoolkit.evaluation.matching import contains_answer
from cartoolkit.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["EXAMPLES", "ItemKind", "ProbeItem", "Split", "first_line", "is_right", "probe_items"]

ItemKind = Literal["facts", "arithmetic"]
Split = Literal["choice", "held_out"]
_Fact = TypeVar("_Fact")

EXAMPLES = (
    ("What is the capital of Ireland?", "Dublin"),
    ("What is 1 plus 2?", "3"),
    ("What colour is the sky on a clear day?", "Blue"),
    ("What is 6 times 3?", "18"),
)
"""What stands before every question; none of it is asked."""

_SEED = 5
_SUMS_A_RELATION = 16


@dataclass(frozen=True, slots=True)
class ProbeItem:
    """One question.

    Attributes:
        id: its relation and subject, such as `capital:France`.
        kind: `facts` or `arithmetic`.
        split: `choice`, which a router may choose by, or `held_out`, by which that choice is judged.
        question: as it is asked.
        answers: each of them is right.
    """

    id: str
    kind: ItemKind
    split: Split
    question: str
    answers: tuple[str, ...]

    @property
    def relation(self) -> str:
        """What is asked, such as `capital`."""
        return self.id.partition(":")[0]

    @property
    def text(self) -> str:
        """The question after the worked examples, as a text to be continued."""
        return "\n\n".join([*(f"Q: {q}\nA: {a}" for q, a in EXAMPLES), f"Q: {self.question}\nA:"])

    @property
    def conversation(self) -> list[Message]:
        """The question after the worked examples, as turns."""
        shown = [
            message
            for question, answer in EXAMPLES
            for message in (Message(role="user", content=question), Message(role="assistant", content=answer))
        ]
        return [*shown, Message(role="user", content=self.question)]


@cache
def probe_items() -> tuple[ProbeItem, ...]:
    """All questions, the same ones in the same order for every model."""
    return (*_facts(), *_sums(random.Random(_SEED)))  # noqa: S311 - a draw, not a secret


def first_line(text: str) -> str:
    r"""The first line that is not empty, without the mark of an answer.

    >>> first_line("\n A: Paris\n\nQ: What is the")
    'Paris'
    """
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line.removeprefix("A:").strip()


def is_right(item: ProbeItem, text: str) -> bool:
    """Whether a model's text answers a question, as the module says.

    >>> sum_ = ProbeItem("plus:4+5", "arithmetic", "choice", "What is 4 plus 5?", ("9",))
    >>> [is_right(sum_, text) for text in ("9", "4 + 5 = 9.", "It is 8 or 9", "4 5")]
    [True, True, False, False]
    """
    said = first_line(text)
    if item.kind == "facts":
        return any(contains_answer(said, answer) for answer in item.answers)
    known = _numbers(item.question)
    # In "12 -5 = 7" the second number of the question has become a negative one.
    return _numbers(said) - known - {-number for number in known} == set(map(float, item.answers))


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?")


def _numbers(text: str) -> set[float]:
    return {float(number.replace(",", "")) for number in _NUMBER.findall(text)}


# -- facts -----------------------------------------------------------------------------------------


def _facts() -> Iterator[ProbeItem]:
    for relation, (question, facts) in _FACTS.items():
        for split, (subject, answers) in _dealt(facts.items()):
            asked = question.format(subject)
            yield ProbeItem(f"{relation}:{subject}", "facts", split, asked, tuple(answers.split("|")))


def _dealt(facts: Iterable[_Fact]) -> Iterator[tuple[Split, _Fact]]:
    """Every other fact to the other split, so that both hold equally many of each relation."""
    for place, fact in enumerate(facts):
        yield ("held_out" if place % 2 else "choice"), fact


_FACTS: dict[str, tuple[str, dict[str, str]]] = {
    "capital": (
        "What is the capital of {}?",
        {
            "France": "Paris", "Japan": "Tokyo", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin",
            "Russia": "Moscow", "Egypt": "Cairo", "Greece": "Athens", "China": "Beijing|Peking",
            "Canada": "Ottawa", "Australia": "Canberra", "Poland": "Warsaw", "Portugal": "Lisbon",
            "Norway": "Oslo", "Kenya": "Nairobi", "Peru": "Lima", "Hungary": "Budapest", "Turkey": "Ankara",
            "Vietnam": "Hanoi", "Morocco": "Rabat", "Nepal": "Kathmandu", "Latvia": "Riga", "Ghana": "Accra",
            "Uruguay": "Montevideo",
        },
    ),
    "opposite": (
        'What is the opposite of "{}"?',
        {
            "hot": "cold", "up": "down", "big": "small|little|tiny", "day": "night",
            "open": "closed|close|shut", "happy": "sad|unhappy", "fast": "slow", "left": "right",
            "old": "young|new", "full": "empty", "early": "late", "rich": "poor", "dark": "light|bright",
            "deep": "shallow", "ancient": "modern", "victory": "defeat|loss",
        },
    ),
    "next": (
        "What comes right after {}?",
        {
            "Monday in the week": "Tuesday", "March in the year": "April", "the letter B": "C",
            "the number seven": "eight|8", "Friday in the week": "Saturday",
            "August in the year": "September", "the letter M": "N", "the number twelve": "thirteen|13",
            "spring in the year": "summer", "Thursday in the week": "Friday",
            "the number twenty-nine": "thirty|30", "the letter U": "V", "November in the year": "December",
            "the number ninety-nine": "hundred|100",
        },
    ),
    "count": (
        "How many {}?",
        {
            "days are in a week": "seven|7", "minutes are in an hour": "sixty|60",
            "legs does a spider have": "eight|8", "sides does a triangle have": "three|3",
            "hours are in a day": "24|twenty-four", "months are in a year": "twelve|12",
            "centimetres are in a metre": "100|hundred", "seconds are in a minute": "60|sixty",
            "wheels does a bicycle have": "two|2", "metres are in a kilometre": "1000|thousand",
            "strings does a violin have": "four|4", "sides does a hexagon have": "six|6",
            "years are in a century": "100|hundred",
            "players are in a football team on the field": "11|eleven",
        },
    ),
    "general": (
        "{}?",
        {
            "What do bees make": "honey", "Which planet do we live on": "earth",
            "What is frozen water called": "ice", "What gas do we need to breathe": "oxygen",
            "What colour is grass": "green", "Which animal says meow": "cat|cats",
            "Who wrote the play Hamlet": "Shakespeare", "What is the largest ocean": "Pacific",
            "Which metal has the chemical symbol Fe": "iron", "Who painted the Mona Lisa": "Leonardo|Vinci",
            "What is the largest planet of the solar system": "Jupiter",
            "What is the chemical formula of water": "H2O",
            "Which language is spoken in Brazil": "Portuguese",
            "What do plants take from the air": "CO2|carbon",
            "In which country are the pyramids of Giza": "Egypt", "What is a young dog called": "puppy|pup",
        },
    ),
}  # fmt: skip


# -- arithmetic ------------------------------------------------------------------------------------


def _sums(draw: random.Random) -> Iterator[ProbeItem]:
    for relation, (word, lefts, rights) in _SUMS.items():
        sums: dict[tuple[int, int], int] = {}
        while len(sums) < _SUMS_A_RELATION:
            a, b = draw.choice(lefts), draw.choice(rights)
            result = {"plus": a + b, "minus": a - b, "times": a * b}[word]
            if _is_fair(a, b, result) and (a, b) not in sums and (b, a) not in sums:
                sums[a, b] = result
        for split, ((a, b), result) in _dealt(sums.items()):
            question = f"What is {a} {word} {b}?"
            yield ProbeItem(f"{relation}:{a},{b}", "arithmetic", split, question, (str(result),))


def _is_fair(a: int, b: int, result: int) -> bool:
    """Not answered by the question itself, not negative, and none of the examples."""
    return result >= 0 and result not in {a, b} and {a, b} not in ({1, 2}, {6, 3})


_SUMS: dict[str, tuple[Literal["plus", "minus", "times"], range, range]] = {
    "small-plus": ("plus", range(2, 10), range(2, 10)),
    "small-minus": ("minus", range(5, 19), range(2, 10)),
    "plus": ("plus", range(11, 90), range(11, 90)),
    "small-times": ("times", range(2, 10), range(2, 10)),
    "times": ("times", range(11, 30), range(3, 10)),
}
"""Name of a group, its operation, and what its two numbers are drawn from."""
