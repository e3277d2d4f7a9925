"""The arms of an evaluation: a policy with a name, what it asks, and what identifies a run of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.chat import with_context
from cartoolkit.errors import InvalidRequest
from cartoolkit.requests import make_request
from cartoolkit.retrieval import Hit, Never, Policy, preset
from cartoolkit.retrieval.layouts import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.requests import GenerateRequest
    from cartoolkit.retrieval import Corpus, LabelledQuestion, Searcher
    from cartoolkit.trace import ModelInfo

__all__ = ["INSTRUCTION", "ORACLE", "Arm", "Setup", "arms_of", "digest_of", "source_of"]

INSTRUCTION = ""
"""The system message of all questions, unless another one is given; empty: what the chat template says.

Asking for one short sentence cost SmolLM2-135M-Instruct a tenth of its right answers."""

ORACLE = "oracle"
"""Name of the arm that has the right passages in its prompt: what the model makes of a perfect look-up."""

FORMAT = 1
"""Raised when runs made before are not to be used again, because what they mean has changed."""

_UPFRONT = "upfront+"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Arm:
    """One policy of an evaluation.

    Attributes:
        name: in tables; every arm has its own.
        policy: what decides.
        is_oracle: it is given the right passages instead of asking for them.
    """

    name: str
    policy: Policy
    is_oracle: bool = False

    @property
    def looks_nothing_up(self) -> bool:
        """Whether no look-up is possible."""
        return not self.policy.pre_retrieve and type(self.policy.trigger) is Never

    def searcher(
        self, question: LabelledQuestion, retriever: Searcher, corpus: Corpus | None
    ) -> Searcher | None:
        """What answers its look-ups for a question."""
        if self.looks_nothing_up:
            return None
        return RightPassages(question, corpus) if self.is_oracle and corpus else retriever

    def key(self, question: LabelledQuestion, setup: Setup) -> str:
        """Hex hash of all that a run of this arm on this question depends on, beside the setup."""
        policy = {name: value for name, value in self.policy.describe().items() if name != "name"}
        passages = question.passages if self.is_oracle else ()
        form = setup.form(question, self.policy.layout)
        return digest_of([policy, question.id, question.kind, question.start, passages, form])


class RightPassages:
    """Answers every query with the passages that hold a question's answer."""

    def __init__(self, question: LabelledQuestion, corpus: Corpus) -> None:
        self._hits = [Hit.of(corpus[each], 1.0) for each in question.passages]

    def search(self, query: str, k: int = 3) -> list[Hit]:  # noqa: ARG002 - whatever is asked
        """The passages, in the order in which they are needed."""
        return self._hits[:k]


@dataclass(frozen=True)
class Setup:
    """What all runs of an evaluation have in common.

    Attributes:
        model: which model answers.
        retriever: what is asked, as `source_of` names it.
        corpus: where the oracle finds its passages, likewise; empty for none.
        instruction: the system message; empty for none.
        settings: of every request, as keywords of `generate`.
    """

    model: ModelInfo
    retriever: str
    corpus: str
    instruction: str
    settings: dict[str, Any]

    def request(self, question: LabelledQuestion) -> GenerateRequest:
        """What is asked."""
        system = [{"role": "system", "content": self.instruction}] if self.instruction else []
        messages = [*system, {"role": "user", "content": question.text}]
        return make_request(messages, answer_start=question.start, **self.settings)

    def form(self, question: LabelledQuestion, layout: str) -> list[dict[str, Any]]:
        """The conversation as it is laid out around a passage, before the model's own template."""
        request = lay_out(self.request(question), ["¶"], layout)
        messages = with_context(request.conversation(), request.context)
        return [message.model_dump(mode="json") for message in messages]

    def about(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        request = make_request("?", **self.settings).model_dump(mode="json", exclude={"prompt", "messages"})
        return {
            "format": FORMAT,
            "model": self.model.model_dump(mode="json"),
            "retriever": self.retriever,
            "corpus": self.corpus,
            "instruction": self.instruction,
            "request": request,
        }


def digest_of(value: object) -> str:
    """Hex hash of a value as canonical JSON; what JSON does not know is taken by its repr."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def arms_of(policies: Sequence[str | Policy], *, with_oracle: bool) -> tuple[Arm, ...]:
    """The arms that a caller named.

    Args:
        policies: policies, names of presets, ``oracle``, or ``upfront+`` before a preset's name, which looks
            the question up first as well.
        with_oracle: there is a corpus in which the right passages can be found.

    Raises:
        InvalidRequest: no such preset, a name that occurs twice, or an oracle without corpus.
    """
    arms = tuple(_arm(each, with_oracle=with_oracle) for each in policies)
    twice = [name for name, count in Counter(arm.name for arm in arms).items() if count > 1]
    if twice or not arms:
        said = f"two policies are called {twice[0]!r}" if twice else "there is no policy to evaluate"
        raise InvalidRequest(
            f"{said}.", hint='Name them: preset("rollback", threshold=0.4).changed(name="rollback .4").'
        )
    return arms


def _arm(given: str | Policy, *, with_oracle: bool) -> Arm:
    if isinstance(given, Policy):
        return Arm(given.name, given)
    if given == ORACLE:
        if not with_oracle:
            raise InvalidRequest(
                "the oracle needs the passages themselves.", hint="Give corpus=…, which holds them."
            )
        # As many as any question needs; no budget may keep one of them out.
        policy = Policy(name=ORACLE, pre_retrieve=True, passages_per_query=8).changed(max_context_tokens=None)
        return Arm(ORACLE, policy, is_oracle=True)
    policy = preset(given.removeprefix(_UPFRONT))
    return Arm(
        given, policy.changed(name=given, pre_retrieve=policy.pre_retrieve or given.startswith(_UPFRONT))
    )


def source_of(retriever: Searcher) -> str:
    """What a retriever is: with the hash of what it holds if it has one, without the address of an object."""
    digest, name = getattr(retriever, "digest", ""), getattr(retriever, "name", "")
    named = f"{type(retriever).__name__} {name!r}" if name else type(retriever).__name__
    return f"{named} {digest[:16]}" if digest else _ADDRESS.sub("", repr(retriever))
