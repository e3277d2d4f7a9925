"""What a caller says about which model should answer: a workload, a task, a hint. Only a router heeds it.

The five workloads and the shape of the hint are those of car-inference; what they weigh stands in
`cartoolkit.routing.choice.intent`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CAPABILITIES", "TASKS", "WORKLOADS", "Capability", "IntentHint", "Task", "Workload", "unknown"]

Capability = Literal[
    "generate", "embed", "rerank", "classify", "code", "reasoning", "summarize", "tool_use",
    "multi_tool_call", "vision", "video_understanding", "audio_understanding", "grounding",
    "speech_to_text", "text_to_speech", "image_generation", "video_generation",
]  # fmt: skip
"""What a model may be able to do."""

CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

Workload = Literal["interactive", "batch", "background", "local_preferred", "fastest"]
"""How a request is weighed; see `cartoolkit.routing.choice.intent.PROFILES`."""

WORKLOADS: tuple[Workload, ...] = get_args(Workload)

Task = Literal["chat", "classify", "summarize", "reasoning", "code", "extract"]
"""What kind of answer is asked for."""

TASKS: tuple[Task, ...] = get_args(Task)


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


def _explained(error: ValidationError) -> str:
    """One sentence for each field that is wrong."""
    sentences: dict[str, str] = {}
    for fault in error.errors():
        field = str(fault["loc"][0])
        sentences.setdefault(field, _sentence(field, fault["type"], fault["input"]))
    return " ".join(sentences.values())


def _sentence(field: str, kind: str, received: object) -> str:
    if kind == "extra_forbidden":
        return unknown("field of an intent", field, IntentHint.model_fields)
    if field == "task":
        return unknown("task", received, TASKS)
    if field == "require":
        return unknown("capability", received, CAPABILITIES)
    allowed = "True or False" if field != "exclude_models" else "a list of ids or names"
    return f"{field} must be {allowed}; got {received!r}."


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence about a name that is not known: what was meant perhaps, and all that there are."""
    names = list(known)
    close = difflib.get_close_matches(str(name), names, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    return f"{name!r} is no {what}.{suggestion} There are: {', '.join(names)}."
