"""A policy: when to look something up, what to ask, how to go on, and within which bounds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.budget import Budget
from cartoolkit.retrieval.checks import require_at_least, require_choice
from cartoolkit.retrieval.queries import Query, QuestionAndAccepted
from cartoolkit.retrieval.resume import Resume, RollbackToWord
from cartoolkit.retrieval.triggers import Never, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Policy"]

_PARTS = ("trigger", "query", "resume", "budget")


@dataclass(frozen=True)
class Policy:
    """Everything that decides about look-ups; holds no state, so one policy serves many answers.

    Attributes:
        name: shown in tables.
        pre_retrieve: look the question up before the answer begins.
        trigger: when to look something up while it is written.
        query: what to ask then.
        resume: how much of the answer survives if something new was found.
        budget: what it may cost.
        passages_per_query: how many passages to ask for.
        context: new passages come after the old ones (``append``, by which the prompt up to them stays
            cached) or in their place (``replace``).
        layout: passages before the question (``context_first``) or after it (``question_first``).
    """

    name: str = "custom"
    pre_retrieve: bool = False
    trigger: Trigger = field(default_factory=Never)
    query: Query = field(default_factory=QuestionAndAccepted)
    resume: Resume = field(default_factory=RollbackToWord)
    budget: Budget = field(default_factory=Budget)
    passages_per_query: int = 2
    context: Literal["append", "replace"] = "append"
    layout: Literal["context_first", "question_first"] = "context_first"

    def __post_init__(self) -> None:
        for part, kind in zip(_PARTS, (Trigger, Query, Resume, Budget), strict=True):
            if not isinstance(getattr(self, part), kind):
                raise InvalidRequest(
                    f"{part} must be a {kind.__name__}; got {getattr(self, part)!r}.",
                    hint=f"cartoolkit.retrieval has them; they are made with brackets: {kind.__name__}(…).",
                )
        require_at_least("passages_per_query", self.passages_per_query, 1)
        require_choice("context", self.context, ("append", "replace"))
        require_choice("layout", self.layout, ("context_first", "question_first"))

    def settings(self) -> dict[str, Any]:
        """Every setting by its own name, of the policy and of its parts; `changed` takes the same names.

        Two parts that share a name share the setting; the first one's value is shown.
        """
        return {name: getattr(owner, name) for owner, name in reversed(list(self._owners()))}

    def changed(self, **settings: Any) -> Policy:  # noqa: ANN401 - each setting has its own type
        """This policy with some settings changed, by the names in `settings()`.

        A whole part may be given as well (``trigger=Never()``); settings of a part then apply to it.

        Raises:
            InvalidRequest: this policy has no such setting, or the value is out of range.

        >>> Policy(trigger=Never()).changed(max_retrievals=1).budget.max_retrievals
        1
        """
        own = {f.name for f in dataclasses.fields(self)}
        policy = dataclasses.replace(self, **{n: v for n, v in settings.items() if n in own})
        rest = {n: v for n, v in settings.items() if n not in own}
        known = policy.settings()
        if unknown := [name for name in rest if name not in known]:
            raise InvalidRequest(
                f"{unknown[0]!r} is not a setting of the policy {self.name!r}.",
                hint=f"Its settings are: {', '.join(sorted({*known, *_PARTS}))}.",
            )
        parts = {part: _replaced(getattr(policy, part), rest) for part in _PARTS}
        return dataclasses.replace(policy, **parts)

    def _owners(self) -> Iterator[tuple[Any, str]]:
        """Every object of this policy with the name of one of its settings."""
        for owner in (self, *(getattr(self, part) for part in _PARTS)):
            for each in dataclasses.fields(owner):
                if each.name not in _PARTS:
                    yield owner, each.name

    def describe(self) -> dict[str, Any]:
        """The policy as JSON can hold it: each part as its class and its settings."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _PARTS}
        parts = {part: getattr(self, part) for part in _PARTS}
        return plain | {
            name: {"kind": type(part).__name__, **dataclasses.asdict(part)} for name, part in parts.items()
        }


def _replaced(part: Any, settings: dict[str, Any]) -> Any:  # noqa: ANN401 - any of the four parts
    names = {f.name for f in dataclasses.fields(part)}
    return dataclasses.replace(part, **{n: v for n, v in settings.items() if n in names})
