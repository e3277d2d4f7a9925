"""Which model answers: what is known of each, what is asked for, scores, and a choice that explains itself.

::

    router = Router()
    answer = router.generate("Why is the sky blue?", workload="fastest")
    router.feedback(answer, accepted=True)

`schema` and `registry` hold the rows, `intent` what is wanted, `scores` and `selection` the arithmetic,
`decision` the choice, `router` asks and learns. The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit.intents import IntentHint
    from cartoolkit.routing.attempts import Attempt, Routed
    from cartoolkit.routing.breaker import BreakerRules
    from cartoolkit.routing.decision import Decision
    from cartoolkit.routing.intent import Profile
    from cartoolkit.routing.registry import Registry
    from cartoolkit.routing.router import Router
    from cartoolkit.routing.schema import ModelSchema
    from cartoolkit.routing.selection import Deterministic, Thompson
    from cartoolkit.routing.situation import Demand
    from cartoolkit.routing.spending import SpendLimits

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
    "Attempt": "routing.attempts",
    "BreakerRules": "routing.breaker",
    "Decision": "routing.decision",
    "Demand": "routing.situation",
    "Deterministic": "routing.selection",
    "IntentHint": "intents",
    "ModelSchema": "routing.schema",
    "Profile": "routing.intent",
    "Registry": "routing.registry",
    "Routed": "routing.attempts",
    "Router": "routing.router",
    "SpendLimits": "routing.spending",
    "Thompson": "routing.selection",
}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"cartoolkit.{_HOME[name]}"), name)
    raise AttributeError(f"module 'cartoolkit.routing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
