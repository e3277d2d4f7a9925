"""What a caller wants from the choice: a workload with its weights, a task, requirements, or one model.

The five workloads with their weights and bonuses are those of car-inference. `prefer_quality` and
`high_stakes` have no weights of their own there; theirs are chosen here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import IntentHint, Task, Workload, unknown
from cartoolkit.routing.checks import require_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cartoolkit.intents import Capability
    from cartoolkit.requests import GenerateRequest
    from cartoolkit.routing.rows.registry import Registry
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["PROFILES", "Plan", "Profile", "needs_of", "plan", "profile"]

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Profile:
    """How much each term of a score counts.

    Attributes:
        name: of the workload or posture.
        quality: weight of quality, 0 to 1.
        latency: weight of latency, 0 to 1.
        cost: weight of cost, 0 to 1; the three sum to one.
        local_bonus: added to the score of a model that runs on this machine, 0 to 1.
        first_token: latency is the time to the first token alone, not to the whole answer.
        latency_sensitive: somebody waits for the answer.
        explores: a model with few observations may be tried in the place of the best one.
    """

    name: str
    quality: float
    latency: float
    cost: float
    local_bonus: float = 0.0
    first_token: bool = False
    latency_sensitive: bool = False
    explores: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidRequest(f"the name of a profile must be a word; got {self.name!r}.")
        for name in ("quality", "latency", "cost", "local_bonus"):
            require_number(name, getattr(self, name), least=0, most=1)
        if not math.isclose(total := math.fsum(self.weights), 1, abs_tol=_TOLERANCE):
            raise InvalidRequest(
                f"the weights of quality, latency and cost must sum to 1; {self.quality:g} + "
                f"{self.latency:g} + {self.cost:g} = {total:g}."
            )

    @property
    def weights(self) -> tuple[float, float, float]:
        """Those of quality, latency and cost."""
        return self.quality, self.latency, self.cost

    def changed(self, **settings: Any) -> Profile:  # noqa: ANN401 - each setting has its own type
        """This profile with some settings changed, by the names of its attributes.

        Raises:
            InvalidRequest: a name is unknown, a value out of range, or the weights no longer sum to one.

        >>> PROFILES["interactive"].changed(quality=0.6, latency=0.25).weights
        (0.6, 0.25, 0.15)
        """
        if wrong := [name for name in settings if name not in Profile.__slots__]:
            raise InvalidRequest(unknown("setting of a profile", wrong[0], Profile.__slots__))
        return replace(self, **settings)


PROFILES: dict[str, Profile] = {
    each.name: each
    for each in (
        Profile("interactive", 0.45, 0.40, 0.15, 0.00, latency_sensitive=True),
        Profile("batch", 0.60, 0.15, 0.25, 0.08),
        Profile("background", 0.65, 0.05, 0.30, 0.15),
        Profile("local_preferred", 0.55, 0.20, 0.25, 0.20, latency_sensitive=True),
        Profile("fastest", 0.10, 0.85, 0.05, 0.20, first_token=True, latency_sensitive=True),
        # Ours. The weights of prefer_quality are those that car-inference gives to its mode "best".
        Profile("prefer_quality", 0.70, 0.20, 0.10),
        Profile("high_stakes", 0.90, 0.05, 0.05, explores=False),
    )
}
"""The five workloads, then the two postures that only an intent reaches."""


def profile(name: str) -> Profile:
    """The profile of a workload.

    Raises:
        InvalidRequest: there is none of that name.
    """
    if name not in PROFILES:
        raise InvalidRequest(unknown("workload", name, PROFILES))
    return PROFILES[name]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a caller wants, checked: every name is known.

    Attributes:
        profile: the weights.
        task: the kind of answer, where it was said.
        require: capabilities that a model must have.
        excluded: ids of models that must not answer.
        pinned: id of the one model that must answer, without a fallback; None leaves the choice open.
        set_aside: what a hint asked for and something stronger outranked, one clause each.
    """

    profile: Profile
    task: Task | None = None
    require: tuple[Capability, ...] = ()
    excluded: frozenset[str] = frozenset()
    pinned: str | None = None
    set_aside: tuple[str, ...] = ()


def plan(
    registry: Registry,
    *,
    workload: Workload | Profile = "interactive",
    intent: IntentHint | Mapping[str, Any] | None = None,
    model: str | None = None,
) -> Plan:
    """Settle what is wanted, and refuse every name that is not known, before anything runs.

    Args:
        registry: the models there are.
        workload: its name, or weights of the caller's own.
        intent: a hint; what it prefers takes the place of the workload.
        model: id or name of the model that must answer. The hint is then only kept, not followed.

    Raises:
        InvalidRequest: a workload, task, capability or field is unknown, or two preferences contradict.
        ModelNotFound: `model` or a model to exclude is not in the registry.

    >>> from cartoolkit.routing.rows.registry import Registry
    >>> plan(Registry(), intent={"prefer_fast": True}).profile.name
    'fastest'
    """
    chosen = workload if isinstance(workload, Profile) else profile(workload)
    hint = intent if isinstance(intent, IntentHint) else IntentHint(**dict(intent or {}))
    posture = hint.posture()
    excluded = frozenset(m.id for name in hint.exclude_models for m in _all_named(registry, name))
    if model is not None:
        pinned = registry.get(model).id
        aside = tuple(f"{name}, since a model is named" for name in hint.model_fields_set)
        return Plan(chosen, hint.task, pinned=pinned, set_aside=tuple(sorted(aside)))
    return Plan(
        profile=profile(posture) if posture else chosen,
        task=hint.task,
        require=hint.require,
        excluded=excluded,
        set_aside=tuple(_outranked(hint, posture)),
    )


def _all_named(registry: Registry, name: str) -> tuple[ModelSchema, ...]:
    """Every model that a name excludes; an answer reports a name, which several models may share."""
    found = registry.named(name)
    if not found:
        registry.get(name)  # raises, with what is meant perhaps
    return found


def _outranked(hint: IntentHint, posture: str | None) -> Iterable[str]:
    if posture == "high_stakes":
        for name in ("prefer_local", "prefer_fast", "prefer_quality"):
            if getattr(hint, name):
                yield f"{name}, since high_stakes outranks it"


_MEDIA: dict[str, Capability] = {
    "image": "vision",
    "video": "video_understanding",
    "audio": "audio_understanding",
}


def needs_of(request: GenerateRequest) -> tuple[Capability, ...]:
    """The capabilities without which a request cannot be answered: to generate, and to see what it holds."""
    media = {block.type for message in request.messages or [] for block in message.media()}
    return ("generate", *(need for kind, need in _MEDIA.items() if kind in media))
