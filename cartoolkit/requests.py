"""What a caller asks for: the prompt, and how tokens are chosen.

Validation happens here, before anything runs. A bad value becomes one sentence that names the
field, the allowed range and the value received (`InvalidRequest`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from cartoolkit.errors import InvalidRequest
from cartoolkit.intents import WORKLOADS, IntentHint, Workload
from cartoolkit.messages import Message, Text

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["GenerateParams", "GenerateRequest", "Prompt", "make_request"]

Prompt = str | Sequence[Message | Mapping[str, Any]]


def _number(value: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever the caller gave
    """Accept numpy's numbers as Python's; refuse booleans and text, which would be read as 1 or parsed."""
    value = _scalar(value)
    if isinstance(value, bool | str | bytes):
        raise ValueError("not a number")  # noqa: TRY004 - pydantic turns only ValueError into a report
    return value


def _scalar(value: Any) -> Any:  # noqa: ANN401
    """What numpy, torch and mlx wrap into an array of one."""
    if not hasattr(value, "item"):
        return value
    try:
        return value.item()
    except Exception as error:
        # Each library has its own error for an array of several.
        raise ValueError("not a number") from error


def _integer(value: Any) -> Any:  # noqa: ANN401
    """As `_number`, and whole: 40.0 is taken as 40, 40.5 is refused."""
    value = _number(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _strings(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Float = Annotated[float, BeforeValidator(_number)]
_Int = Annotated[int, BeforeValidator(_integer)]
_NonEmpty = Annotated[str, Field(min_length=1, strict=True)]


def _allowed(text: str) -> dict[str, JsonValue]:
    """The range in words, which an error message repeats."""
    return {"allowed": text}


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, **given: Any) -> None:  # noqa: ANN401
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise InvalidRequest(_explain(error, given)) from None


class GenerateParams(_Settings):
    """How tokens are chosen and when to stop.

    Stages run in this order: repeat penalty, bias, temperature, top-k, top-p, min-p, draw.

    Attributes:
        temperature: divides the logits; 0 takes the likeliest token (greedy).
        top_k: keep the k likeliest tokens; 0 keeps all.
        top_p: keep the smallest set of likeliest tokens whose probability reaches p; 1 keeps all.
        min_p: drop tokens below min_p times the probability of the likeliest; 0 keeps all.
        repeat_penalty: divide (positive) or multiply (negative) the logits of every token that has
            occurred in prompt or answer (Keskar et al. 2019, CTRL); 1 changes nothing.
        logit_bias: token id -> number added to its logit; -inf forbids the token.
        max_tokens: at most this many tokens are generated.
        stop: text that ends the answer; it is cut out of the answer. One string or a list.
        seed: makes the run repeatable; None draws one and records it in the trace.
        repeatable: the same request with the same seed gives the same bits whatever ran before; of the
            cache only whole chunks of an equal prompt are re-used for that. False re-uses all that is
            cached, which is faster in a long conversation and may differ in the last bits. A branch, which
            goes on from what is cached, does that too.
        ignore_eos: go on after the model's end token, as benchmarks need.
        inspect: record the distribution behind every token; False records ids, text and times only.
        prompt_logprobs: record the raw logprob of the prompt's own tokens too; the whole prompt is read
            anew for it.
        candidates: how many candidates to record for each token, besides the chosen one.
        truncate: cut the start of a prompt that does not fit the context window; False refuses it.
        time_limit: seconds after which the answer is ended with what there is; None for no limit.
    """

    temperature: _Float = Field(
        default=0.7, ge=0, allow_inf_nan=False, json_schema_extra=_allowed("a number ≥ 0 (0 is greedy)")
    )
    top_k: _Int = Field(
        default=0, ge=0, json_schema_extra=_allowed("a whole number ≥ 0 (0 keeps all tokens)")
    )
    top_p: _Float = Field(
        default=0.9,
        gt=0,
        le=1,
        allow_inf_nan=False,
        json_schema_extra=_allowed("a number above 0 and up to 1 (1 keeps all tokens)"),
    )
    min_p: _Float = Field(
        default=0.0,
        ge=0,
        le=1,
        allow_inf_nan=False,
        json_schema_extra=_allowed("a number from 0 to 1 (0 keeps all tokens)"),
    )
    # The bounds of penalty and bias keep the arithmetic finite, so that "removed" stays the only -inf.
    repeat_penalty: _Float = Field(
        default=1.0,
        ge=1e-100,
        le=1e100,
        allow_inf_nan=False,
        json_schema_extra=_allowed("a number above 0, from 1e-100 to 1e100 (1 changes nothing)"),
    )
    logit_bias: dict[_Int, _Float] = Field(
        default_factory=dict,
        json_schema_extra=_allowed("a dict of token id (≥ 0) to a number from -1e100 to 1e100, or -inf"),
    )
    max_tokens: _Int = Field(default=512, ge=1, json_schema_extra=_allowed("a whole number ≥ 1"))
    stop: Annotated[list[_NonEmpty], BeforeValidator(_strings)] = Field(
        default_factory=list, json_schema_extra=_allowed("a non-empty string or a list of them")
    )
    seed: _Int | None = Field(
        default=None, ge=0, lt=2**63, json_schema_extra=_allowed("a whole number from 0 to 2**63-1, or None")
    )
    repeatable: bool = Field(default=True, strict=True, json_schema_extra=_allowed("True or False"))
    ignore_eos: bool = Field(default=False, strict=True, json_schema_extra=_allowed("True or False"))
    inspect: bool = Field(default=True, strict=True, json_schema_extra=_allowed("True or False"))
    prompt_logprobs: bool = Field(default=False, strict=True, json_schema_extra=_allowed("True or False"))
    candidates: _Int = Field(
        default=20, ge=1, le=1000, json_schema_extra=_allowed("a whole number from 1 to 1000")
    )
    truncate: bool = Field(default=True, strict=True, json_schema_extra=_allowed("True or False"))
    time_limit: _Float | None = Field(
        default=300.0,
        gt=0,
        allow_inf_nan=False,
        json_schema_extra=_allowed("a number of seconds above 0, or None"),
    )

    @model_validator(mode="after")
    def _biases_are_usable(self) -> Self:
        for token_id, bias in self.logit_bias.items():
            if token_id < 0 or not (-1e100 <= bias <= 1e100 or bias == float("-inf")):
                raise ValueError("logit_bias")
        return self


class GenerateRequest(_Settings):
    """A prompt or a conversation, and the parameters to answer it with.

    Attributes:
        prompt: the user's message; ignored when `messages` is given.
        messages: a conversation, oldest first.
        context: text to ground the answer on; it becomes (or is added to) the system message.
        answer_start: how the answer begins; the model goes on from there. It is part of the answer and
            counts towards `max_tokens`; its tokens are recorded as forced.
        chat_template: wrap the prompt as the model was trained to see a conversation. A prompt that
            already holds the template's own marks, or a model without a template, is left as it is.
        model: id or name of the model that must answer. This and the next two are for a router; an engine
            is one model already, and refuses them.
        workload: how to weigh quality, latency and cost.
        intent: what else is known about the request, see `IntentHint`.
        params: see `GenerateParams`.
    """

    prompt: Text = Field(
        default="", strict=True, json_schema_extra=_allowed("a non-empty string of valid Unicode")
    )
    messages: list[Message] | None = Field(
        default=None, json_schema_extra=_allowed("a non-empty list of messages, each with a role")
    )
    context: Text | None = Field(
        default=None, strict=True, json_schema_extra=_allowed("a string of valid Unicode, or None")
    )
    answer_start: Text = Field(
        default="", strict=True, json_schema_extra=_allowed("a string of valid Unicode")
    )
    chat_template: bool = Field(default=True, strict=True, json_schema_extra=_allowed("True or False"))
    model: _NonEmpty | None = Field(
        default=None, json_schema_extra=_allowed("the id or name of a model, or None")
    )
    workload: Workload | None = Field(
        default=None, json_schema_extra=_allowed(f"one of {', '.join(WORKLOADS)}, or None")
    )
    intent: IntentHint | None = Field(
        default=None, json_schema_extra=_allowed("an IntentHint or a dict of its fields, or None")
    )
    params: GenerateParams = Field(
        default_factory=GenerateParams, json_schema_extra=_allowed("a GenerateParams or a dict")
    )

    @model_validator(mode="after")
    def _something_to_answer(self) -> Self:
        if self.messages is None and not self.prompt.strip():
            raise ValueError("prompt")
        if self.messages is not None and not self.messages:
            raise ValueError("messages")
        return self

    def conversation(self) -> list[Message]:
        """The messages to answer, oldest first, without the context."""
        return self.messages if self.messages is not None else [Message(role="user", content=self.prompt)]


_FIELDS = {**GenerateRequest.model_fields, **GenerateParams.model_fields}


def _sentence(field: str, received: object) -> str:
    info = _FIELDS.get(field)
    extra = info.json_schema_extra if info is not None else None
    allowed = extra["allowed"] if isinstance(extra, dict) else "of another kind"
    return f"{field} must be {allowed}; got {_shown(received)}."


def _shown(value: object) -> str:
    """A value in one short line."""
    try:
        shown = re.sub(r"\s*\n\s*", " ", repr(value))
    except Exception:  # noqa: BLE001 - a value of somebody's own class, or an integer too long to print
        shown = f"a value of type {type(value).__name__}"
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _unknown(keyword: str) -> str:
    close = difflib.get_close_matches(keyword, _FIELDS, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"{keyword!r} is not a setting of a request.{suggestion} Settings are: {', '.join(sorted(_FIELDS))}."
    )


def _field_of(fault: ErrorDetails) -> str:
    """The field at fault; our own validators name it in their text."""
    if fault["loc"]:
        return str(fault["loc"][0])
    return str(fault.get("ctx", {}).get("error", ""))


def _fault_sentence(field: str, fault: ErrorDetails, given: Mapping[str, Any]) -> str:
    if field not in _FIELDS:
        return _unknown(field)
    if isinstance(refusal := fault.get("ctx", {}).get("error"), InvalidRequest):
        return str(refusal)
    place = [str(part) for part in fault["loc"]]
    # A request without any prompt has nothing to show but its other settings.
    sentence = _sentence(field, given.get(field, "" if field == "prompt" else fault["input"]))
    if field == "messages" and len(place) > 1:
        # pydantic names the branch of a union, `str` or `list[...]`, as if it were a place.
        inside = [part for part in place[1:] if part != "str" and "[" not in part]
        sentence += f" Message {' '.join(inside)}: {fault['msg'].removeprefix('Value error, ')}."
    return sentence


def _explain(error: ValidationError, given: Mapping[str, Any]) -> str:
    """One sentence for the deepest fault of each field, which is the one in the form that was meant."""
    sentences: dict[str, str] = {}
    for fault in sorted(error.errors(), key=lambda fault: -len(fault["loc"])):
        # A list of token ids in place of messages has a fault for every one of them.
        if (field := _field_of(fault)) not in sentences:
            sentences[field] = _fault_sentence(field, fault, given)
    return " ".join(sentences.values())


def make_request(
    request: Prompt | GenerateRequest | None = None,
    **settings: Any,  # noqa: ANN401
) -> GenerateRequest:
    """Turn what a caller wrote into a validated request; settings override the request's own.

    Args:
        request: a prompt, a conversation, or a `GenerateRequest`; None if `prompt` or `messages` is
            among the settings.
        settings: any field of `GenerateParams` or `GenerateRequest`.

    Raises:
        InvalidRequest: a field is unknown or out of range; the message names each one.

    >>> make_request("Hello", temperature=0).params.temperature
    0.0
    """
    unknown = [name for name in settings if name not in _FIELDS]
    if unknown:
        raise InvalidRequest(" ".join(_unknown(name) for name in unknown))
    fields = _fields_of(request)
    if "prompt" in settings and "messages" not in settings:
        fields.pop("messages", None)
    params = _as_dict(fields.pop("params", {})) | _as_dict(settings.pop("params", {}))
    tuned = params | {k: v for k, v in settings.items() if k in GenerateParams.model_fields}
    given = fields | {k: v for k, v in settings.items() if k in GenerateRequest.model_fields}
    return GenerateRequest(**given, params=GenerateParams(**tuned))


def _as_dict(params: object) -> dict[str, Any]:
    if isinstance(params, GenerateParams):
        return params.model_dump(exclude_unset=True)
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    raise InvalidRequest(_sentence("params", params))


def _fields_of(request: Prompt | GenerateRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    if isinstance(request, GenerateRequest):
        return {name: getattr(request, name) for name in GenerateRequest.model_fields}
    if isinstance(request, str):
        return {"prompt": request}
    if isinstance(request, Sequence) and not isinstance(request, bytes):
        return {"messages": list(request)}
    raise InvalidRequest(
        f"the prompt must be a string, a list of messages or a GenerateRequest; got {type(request).__name__}."
    )
