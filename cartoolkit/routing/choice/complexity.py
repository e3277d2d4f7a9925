"""How much a prompt asks for: simple, medium, code or complex, by rules that a person can follow.

Code is noticed in any language of people, by its marks. The words that show a complex prompt are English;
prompts in other languages are judged by length and form alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cartoolkit.routing.choice.situation import counted, estimate_tokens

if TYPE_CHECKING:
    from cartoolkit.intents import Capability, Task

__all__ = ["Assessment", "Complexity", "assess", "capability_for", "task_for"]

Complexity = Literal["simple", "medium", "code", "complex"]

SHORT = 24
"""Tokens up to which a prompt without any mark is simple."""

LONG = 600
"""Tokens above which a prompt is complex."""

MANY_PARTS = 3
"""Questions or listed items from which on a prompt is complex."""

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
# Possessive quantifiers keep each line linear: a prompt is anybody's text.
_CODE_LINE = re.compile(
    r"""^[ \t]*+(
        (async[ ]++)?def[ ]++\w++\(.*
        |class[ ]++\w++.*:
        |from[ ]++[\w.]++[ ]++import[ ].*
        |import[ ]++[\w.]++(;|[ ]as[ ].*)?
        |\#include[ ]*+[<"].*
        |(pub[ ]++)?fn[ ]++\w.*
        |func(tion)?[ ]++\w*+\(.*
        |(const|let|var)[ ]++\w++[ ]*+=.*
        |(public|private|static)[ ]++\w.*[({;]
        |SELECT[ ].+[ ]FROM[ ].*
        |[^=(\n]*+[=(].*;[ \t]*+
        |.*\{[ \t]*+
        |\}[;,)]*+[ \t]*+
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_CODE_WORDS = re.compile(
    r"""\b(?:
        debug|refactor|compiles?|traceback|stack[ ]trace|segfault|unit[ ]tests?|regex|regular[ ]expression
        |source[ ]code|sql[ ]query
        |(?:python|javascript|typescript|rust|java|bash|shell|sql|c\+\+)
            [ ](?:function|script|program|code|query|class|method)
        |(?:write|implement|fix|review)[ ](?:an?|the|this|my)[ ](?:\w+[ ])?
            (?:function|script|program|class|method|code|bug)
    )(?!\w)""",
    re.VERBOSE,
)
_COMPLEX_WORDS = re.compile(
    r"\b(prove|proof|derive|step[ -]by[ -]step|analy[sz]e|compare|contrast|evaluate|critique|trade[ -]?offs?|"
    r"pros and cons|explain why|justify|design a|design an|plan a|plan an|strategy|in detail|"
    r"what would happen|consequences of|optimi[sz]e)\b"
)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_QUESTION = re.compile(r"[?？؟]+")


@dataclass(frozen=True, slots=True)
class Assessment:
    """How much a prompt asks for.

    Attributes:
        complexity: see `Complexity`.
        because: the mark that decided, in one clause.
    """

    complexity: Complexity
    because: str


def assess(prompt: str) -> Assessment:
    """Judge a prompt; the first rule that applies decides.

    1. *code*: a fenced block; two lines that look like code; or words such as ``refactor``.
    2. *complex*: words such as ``prove`` or ``compare``; three questions or listed items; above 600 tokens.
    3. *simple*: up to 24 tokens.
    4. *medium*: everything else.

    >>> assess("What is the capital of France?").complexity
    'simple'
    >>> assess("Compare the two proposals.").because
    "it says 'compare'"
    """
    lowered = prompt.lower()
    length = estimate_tokens(prompt)
    if because := _code_mark(prompt, lowered):
        return Assessment("code", because)
    if because := _complex_mark(prompt, lowered, length):
        return Assessment("complex", because)
    if length <= SHORT:
        return Assessment("simple", f"it has about {counted(length)} and no other mark")
    return Assessment("medium", f"it has about {counted(length)} and no other mark")


def _code_mark(prompt: str, lowered: str) -> str:
    if len(_FENCE.findall(prompt)) >= 2:
        return "it holds a fenced block"
    if len(list(_CODE_LINE.finditer(prompt))) >= 2:
        return "lines of it look like code"
    found = _CODE_WORDS.search(lowered)
    return f"it says {found[0]!r}" if found else ""


def _complex_mark(prompt: str, lowered: str, length: int) -> str:
    if found := _COMPLEX_WORDS.search(lowered):
        return f"it says {found[0]!r}"
    if (questions := len(_QUESTION.findall(prompt))) >= MANY_PARTS:
        return f"it asks {questions} questions"
    if (items := len(_LIST_ITEM.findall(prompt))) >= MANY_PARTS:
        return f"it lists {items} items"
    return f"it has about {counted(length)}" if length > LONG else ""


def task_for(complexity: Complexity) -> Task:
    """The task that a prompt of that complexity is taken for, where nobody said which it is."""
    if complexity == "code":
        return "code"
    return "reasoning" if complexity == "complex" else "chat"


def capability_for(task: Task) -> Capability:
    """What a model should be able to do for a task; chat and extraction ask for nothing special."""
    if task == "chat" or task == "extract":  # noqa: PLR1714 - so that the type checker sees what is left
        return "generate"
    return task
