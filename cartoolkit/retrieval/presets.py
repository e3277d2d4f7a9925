"""Policies that have a name."""

from __future__ import annotations

from typing import Any

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.budget import Budget
from cartoolkit.retrieval.dragin import AttendedWords, EntropyAttention
from cartoolkit.retrieval.policy import Policy
from cartoolkit.retrieval.queries import MaskedLookahead, Partial, Question, QuestionAndAccepted
from cartoolkit.retrieval.resume import RegenerateSentence, Restart, RollbackToWord
from cartoolkit.retrieval.triggers import AnyTokenInSentence, ContentTokenBelow, WindowMaxProb

__all__ = ["PRESETS", "as_policy", "preset"]

PRESETS: dict[str, Policy] = {
    "none": Policy(name="none"),
    "upfront": Policy(name="upfront", pre_retrieve=True, query=Question()),
    "seed": Policy(name="seed", trigger=WindowMaxProb(0.4, 3), query=Partial(), resume=Restart()),
    "flare": Policy(
        name="flare",
        trigger=AnyTokenInSentence(0.8),
        query=MaskedLookahead(0.4),
        resume=RegenerateSentence(),
        budget=Budget(max_retrievals=3),
    ),
    "rollback": Policy(
        name="rollback",
        # Function words count: after "Algiers is the capital of Algeria," a doubtful "a" leads away from what
        # was asked. Measured with SmolLM2-135M-Instruct on 50 questions for calibration.
        trigger=ContentTokenBelow(0.6),
        query=QuestionAndAccepted(),
        resume=RollbackToWord(),
        budget=Budget(max_retrievals=3),
    ),
    "dragin": Policy(
        name="dragin",
        trigger=EntropyAttention(1.2),
        query=AttendedWords(25),
        resume=RegenerateSentence(),
        budget=Budget(max_retrievals=3),
        passages_per_query=3,
    ),
}
"""The presets by name: nothing at all; one look-up of the question before the answer; sustained doubt
with a fresh start; FLARE's sentence look-ahead; going back to the word in doubt; and DRAGIN's doubt weighed
by attention, for models on the torch engine that were loaded with ``attention="eager"``."""


def preset(name: str, **settings: Any) -> Policy:  # noqa: ANN401 - each setting has its own type
    """A policy by name, with some of its settings changed.

    Args:
        name: one of `PRESETS`.
        settings: as `Policy.changed` takes them.

    Raises:
        InvalidRequest: no preset of this name, or none of its settings; the hint says what there is.

    >>> preset("rollback", threshold=0.5).trigger.threshold
    0.5
    """
    if name not in PRESETS:
        raise InvalidRequest(
            f"there is no policy {name!r}.", hint=f"Presets are: {', '.join(PRESETS)}; or build a Policy(…)."
        )
    return PRESETS[name].changed(**settings)


def as_policy(given: object, name: str = "policy") -> Policy:
    """What stands where a policy is asked for: one, or the name of a preset.

    Args:
        given: what the caller wrote.
        name: of the argument, for the message.

    Raises:
        InvalidRequest: it is neither, or no preset has this name.
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, str):
        return preset(given)
    raise InvalidRequest(
        f"{name} must be a policy or the name of one; got {given!r}.",
        hint=f"For instance {name}='rollback', or cartoolkit.retrieval.preset('flare', threshold=0.6).",
    )
