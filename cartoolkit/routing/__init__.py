"""Which model answers: what is known of each, what is asked for, scores, and a choice that explains itself.

::

    router = Router()
    answer = router.generate("Why is the sky blue?", workload="fastest")
    router.feedback(answer, accepted=True)

`rows` is what is known of each model, `choice` goes from a request to a decision, `calls` asks the models,
`outcomes` keeps what became of it, `probing` measures, `table` compares, `simulation` judges; `router` joins
them. The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit.intents import IntentHint
    from cartoolkit.routing.calls.attempts import Attempt, Routed
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.routing.choice.intent import Profile
    from cartoolkit.routing.choice.selection import Deterministic, Thompson
    from cartoolkit.routing.choice.situation import Demand
    from cartoolkit.routing.outcomes.breaker import BreakerRules
    from cartoolkit.routing.outcomes.spending import SpendLimits
    from cartoolkit.routing.router import Router
    from cartoolkit.routing.rows.registry import Registry
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = [
    "Attempt",
    "BreakerRules",
    "Decision",
    "Demand",
    "Deterministic",
    "IntentHint",
    "ModelSchema",
    "Profile",
    "Registry",
    "Routed",
    "Router",
    "SpendLimits",
    "Thompson",
]

_HOME = {
    "Attempt": "routing.calls.attempts",
    "BreakerRules": "routing.outcomes.breaker",
    "Decision": "routing.choice.decision",
    "Demand": "routing.choice.situation",
    "Deterministic": "routing.choice.selection",
    "IntentHint": "intents",
    "ModelSchema": "routing.rows.schema",
    "Profile": "routing.choice.intent",
    "Registry": "routing.rows.registry",
    "Routed": "routing.calls.attempts",
    "Router": "routing.router",
    "SpendLimits": "routing.outcomes.spending",
    "Thompson": "routing.choice.selection",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"cartoolkit.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cartoolkit.routing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
