"""What a caller wants to have looked up, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval import Never, as_searcher
from cartoolkit.retrieval.presets import as_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.requests import GenerateParams
    from cartoolkit.retrieval import Policy, Searcher
    from cartoolkit.trace import ModelInfo

__all__ = ["Look", "plan_retrieval"]

_DEFAULT = "rollback"


@dataclass(frozen=True, slots=True)
class Look:
    """A policy and where it looks things up; no `searcher` for one that never does."""

    policy: Policy
    searcher: Searcher | None

    def describe(self) -> dict[str, Any]:
        """For `TraceHeader.retrieval`."""
        name = type(self.searcher).__name__ if self.searcher is not None else ""
        size = len(self.searcher) if hasattr(self.searcher, "__len__") else None  # pyright: ignore[reportArgumentType]
        return {"policy": self.policy.describe(), "retriever": name, "passages": size}


def plan_retrieval(
    retrieval: str | Policy | None,
    retriever: Searcher | Callable[[str], str | None] | None,
    params: GenerateParams,
    model: ModelInfo,
) -> Look | None:
    """What to look up and where; None if nothing was said of it.

    Args:
        retrieval: a policy or the name of a preset; None with a retriever means ``rollback``.
        retriever: anything with `search(query, k)`, or a function from query to text.
        params: of the request.
        model: what will answer.

    Raises:
        InvalidRequest: an unknown policy, no retriever or none that can search, settings of the request that
            do not go with look-ups, or a policy that needs to know where the model looks, which not every
            engine says.
    """
    if retrieval is None and retriever is None:
        return None
    policy = as_policy(_DEFAULT if retrieval is None else retrieval, "retrieval")
    never = isinstance(policy.trigger, Never)
    if retriever is None:
        if policy.pre_retrieve or not never:
            raise InvalidRequest(
                f"the policy {policy.name!r} looks things up, but there is no retriever.",
                hint="Pass retriever=: a function from query to text, or a retriever such as "
                "cartoolkit.retrieval.demo_retriever().",
            )
        return Look(policy, None)
    if params.prompt_logprobs:
        raise InvalidRequest(
            "prompt_logprobs=True does not go with retrieval, whose look-ups change the prompt.",
            hint="Score the prompt in a request of its own, without retrieval.",
        )
    if not params.inspect and not never and (policy.trigger.reads_numbers or policy.query.reads_numbers):
        raise InvalidRequest(
            f"inspect=False does not go with the policy {policy.name!r}, which decides by the numbers of the "
            "tokens.",
            hint="Leave inspect out, or use retrieval='upfront'.",
        )
    if policy.trigger.reads_attention or policy.query.reads_attention:
        _require_attention(policy, model)
    return Look(policy, as_searcher(retriever))


def _require_attention(policy: Policy, model: ModelInfo) -> None:
    if model.attention:
        return
    if model.engine == "torch":
        raise InvalidRequest(
            f"the policy {policy.name!r} decides by attention, and {model.name} was loaded without it.",
            hint="Load it with cartoolkit.load(…, attention='eager').",
        )
    raise InvalidRequest(
        f"the policy {policy.name!r} decides by attention, which the {model.engine} engine does not say.",
        hint="Load the model with cartoolkit.load(…, engine='torch', attention='eager'), or take another "
        "policy such as 'flare' or 'rollback'.",
    )
