"""What a caller wants from the choice: a workload with its weights, a task, requirements, or one model.

The five workloads with their weights and bonuses are those of car-inference. `prefer_quality` and
`high_stakes` have no weights of their own there; theirs are chosen here.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.checks import require_number
from cartoolkit.routing.schema import CAPABILITIES, Capability

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cartoolkit.requests import GenerateRequest
    from cartoolkit.routing.registry import Registry
    from cartoolkit.routing.schema import ModelSchema

__all__ = [
    "PROFILES",
    "TASKS",
    "WORKLOADS",
    "IntentHint",
    "Plan",
    "Profile",
    "Task",
    "Workload",
    "needs_of",
    "plan",
    "profile",
]

Workload = Literal["interactive", "batch", "background", "local_preferred", "fastest"]
"""How a request is weighed; see `PROFILES`."""

WORKLOADS: tuple[Workload, ...] = get_args(Workload)

Task = Literal["chat", "classify", "summarize", "reasoning", "code", "extract"]
"""What kind of answer is asked for."""

TASKS: tuple[Task, ...] = get_args(Task)

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
        if unknown := [name for name in settings if name not in Profile.__slots__]:
            raise InvalidRequest(_unknown("setting of a profile", unknown[0], Profile.__slots__))
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
        raise InvalidRequest(_unknown("workload", name, PROFILES))
    return PROFILES[name]


def _listed(value: Any) -> Any:  # noqa: ANN401 - whatever the caller gave
    return (value,) if isinstance(value, str) else value


class IntentHint(BaseModel):
    """What a caller says about a request, so that it need not name a model.

    Without a hint the workload alone decides. `require` filters; the others shift what is preferred.

    Attributes:
        task: the kind of answer; None lets the prompt tell.
        prefer_local: weigh as `local_preferred`.
        prefer_fast: weigh as `fastest`.
        prefer_quality: weigh quality first.
        high_stakes: weigh quality above everything else, and try nothing out; outranks the preferences.
        require: capabilities that a model must have.
        exclude_models: ids or names of models that must not answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: Task | None = None
    prefer_local: Annotated[bool, Field(strict=True)] = False
    prefer_fast: Annotated[bool, Field(strict=True)] = False
    prefer_quality: Annotated[bool, Field(strict=True)] = False
    high_stakes: Annotated[bool, Field(strict=True)] = False
    require: Annotated[tuple[Capability, ...], BeforeValidator(_listed)] = ()
    exclude_models: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise InvalidRequest(_explained(error)) from None

    def posture(self) -> str | None:
        """The profile that the hint asks for; None leaves it to the workload.

        Raises:
            InvalidRequest: two preferences contradict each other.
        """
        if self.high_stakes:
            return "high_stakes"
        wanted = {
            "prefer_local": ("local_preferred", self.prefer_local),
            "prefer_fast": ("fastest", self.prefer_fast),
            "prefer_quality": ("prefer_quality", self.prefer_quality),
        }
        asked = [name for name, (_, is_set) in wanted.items() if is_set]
        if len(asked) > 1:
            raise InvalidRequest(
                f"{' and '.join(asked)} ask for different weights; a request has one of them.",
                hint="high_stakes=True outranks them all; Profile(…) takes weights of your own.",
            )
        return wanted[asked[0]][0] if asked else None


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

    >>> from cartoolkit.routing.registry import Registry
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


def _explained(error: ValidationError) -> str:
    """One sentence for each field that is wrong."""
    sentences: dict[str, str] = {}
    for fault in error.errors():
        field = str(fault["loc"][0])
        sentences.setdefault(field, _sentence(field, fault["type"], fault["input"]))
    return " ".join(sentences.values())


def _sentence(field: str, kind: str, received: object) -> str:
    if kind == "extra_forbidden":
        return _unknown("field of an intent", field, IntentHint.model_fields)
    if field == "task":
        return _unknown("task", received, TASKS)
    if field == "require":
        return _unknown("capability", received, CAPABILITIES)
    allowed = "True or False" if field != "exclude_models" else "a list of ids or names"
    return f"{field} must be {allowed}; got {received!r}."


def _unknown(what: str, name: object, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    return f"{name!r} is no {what}.{suggestion} There are: {', '.join(names)}."
