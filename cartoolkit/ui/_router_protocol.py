"""The messages between a `RouterTable` and its browser half, written once; plain JSON, no buffers.

Kernel to browser, one kind, `update`: the whole state of the table, at most one every 40 ms. The same object
is the `snapshot` trait that a saved notebook keeps. A state with a lower `seq` than the one shown is old.

Browser to kernel. `ready`: the view shows the state with that `seq` (None: nothing yet). `weight`: a weight
or the local bonus of a workload was moved; the kernel rescales the other weights. `question`: a length, a
bound or the task was changed; None takes a bound away. `select`: a cell was chosen, `reset`: all weights go
back, `probe`: measure a model (None: every one that is ready), `verdict`: a thumb for an answer.

The JSON files `router_*.json` in `tests/fixtures/protocol` are examples that both halves are tested against;
the other half of this file is `widgets/src/router_protocol.ts`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

__all__ = [
    "BaselineCell",
    "BaselineRow",
    "Busy",
    "Cell",
    "Change",
    "Detail",
    "DetailLine",
    "FilteredCell",
    "ModelRow",
    "ProbeAsked",
    "Question",
    "QuestionAsked",
    "Ready",
    "Reset",
    "RouterMessage",
    "RouterState",
    "RouterUpdate",
    "RunRow",
    "ScoredCell",
    "Select",
    "Selected",
    "StrategyInfo",
    "TermPart",
    "VerdictGiven",
    "WeightMoved",
    "WorkloadColumn",
    "parse_router_message",
]

PROTOCOL_VERSION = 1
_Basis = Literal["measured", "declared", "assumed"]
_Term = Literal["quality", "latency", "cost"]


class Question(TypedDict):
    """What is asked of the models: lengths in tokens, bounds (None sets none), task and tasks there are."""

    prompt_tokens: int
    output_tokens: int
    max_cost_usd: float | None
    max_latency_ms: float | None
    task: str
    tasks: list[str]


class StrategyInfo(TypedDict):
    """How one is chosen: in a word or two, K of `routing.selection`, and how many draws `wins` comes from."""

    text: str
    prior_strength: float
    draws: int


class WorkloadColumn(TypedDict):
    """A workload with its weights, which sum to 1.

    `changed`: not as it was at first. `first_token`: latency is the time to the first token alone.
    """

    name: str
    title: str
    quality: float
    latency: float
    cost: float
    local_bonus: float
    changed: bool
    first_token: bool


class ModelRow(TypedDict):
    """A model. `basis` is that of the less sure of quality and latency; `note` says more, such as its size.

    `calls` have ended, of which `successes` and `failures` count. `loaded`: it is in memory.
    """

    id: str
    title: str
    where: Literal["local", "remote"]
    basis: _Basis
    note: str
    calls: int
    successes: int
    failures: int
    loaded: bool


class TermPart(TypedDict):
    """A term of a score; `points` are `weight` times `value`."""

    name: _Term
    value: float
    weight: float
    points: float
    basis: _Basis


class ScoredCell(TypedDict):
    """A model that may answer a workload.

    `score` is the sum of the terms' points and `bonus`; `worth` is `reliability` times `score`, and the rank
    goes by it; `wins` is the share of Thompson's draws that it wins. `usd` is None where the price is not
    known, 0 where nobody bills.
    """

    kind: Literal["scored"]
    score: float
    rank: int
    wins: float
    worth: float
    reliability: float
    bonus: float
    latency_ms: float
    usd: float | None
    terms: list[TermPart]


class FilteredCell(TypedDict):
    """A model that may not answer: why, in words, and which filters refused it, in the same order."""

    kind: Literal["filtered"]
    reasons: list[str]
    filters: list[str]


Cell = ScoredCell | FilteredCell


class BaselineCell(TypedDict):
    """What a baseline comes to for a workload, and a sentence about it."""

    text: str
    hint: str


class BaselineRow(TypedDict):
    """A baseline, one cell a workload."""

    name: str
    note: str
    cells: list[BaselineCell]


class Selected(TypedDict):
    """The cell that was chosen, by the names of its column and row."""

    workload: str
    model: str


class DetailLine(TypedDict):
    """A term or the bonus of the chosen cell: what it adds, how sure that is, the arithmetic behind it."""

    name: str
    points: float
    basis: str
    arithmetic: str


class Change(TypedDict):
    """What would let another model be chosen, in a sentence."""

    text: str


class Detail(TypedDict):
    """The chosen cell, told in lines; for a model that is left out there are none, and `sum` says why.

    `sum` is the score, `worth` the reliability and the worth, each as a line that can be computed by hand.
    `fallbacks` are the models in the order in which they would be tried after the first.
    """

    title: str
    lines: list[DetailLine]
    sum: str
    worth: str
    fallbacks: list[str]
    changes: list[Change]


class RunRow(TypedDict):
    """An answer to the latest prompt, or an attempt that failed.

    `text` is at most `LONGEST_ANSWER` characters of it; `story` tells in a sentence how it came to it;
    `verdict` is None until somebody gives one; `outcome` is running, success, failure or inconclusive.
    """

    trace_id: str
    model: str
    text: str
    ms: float | None
    tokens: int
    story: str
    verdict: bool | None
    outcome: str


class Busy(TypedDict):
    """What goes on in the background, and how far it is; `total` 0 where nobody knows."""

    what: str
    done: int
    total: int


class RouterState(TypedDict):
    """Everything that the table shows; `cells` are [model][workload]."""

    v: int
    seq: int
    question: Question
    strategy: StrategyInfo
    workloads: list[WorkloadColumn]
    models: list[ModelRow]
    cells: list[list[Cell]]
    baselines: list[BaselineRow]
    selected: Selected | None
    detail: Detail | None
    runs: list[RunRow]
    busy: Busy | None
    notices: list[str]


class RouterUpdate(TypedDict):
    """The message that carries a state."""

    type: Literal["update"]
    v: int
    state: RouterState


_Name = Annotated[str, Field(min_length=1, max_length=300)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _FromBrowser(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    v: Literal[1]


class Ready(_FromBrowser):
    """A view has appeared, or has missed a state."""

    type: Literal["ready"]
    seq: Annotated[int, Field(ge=0)] | None


class WeightMoved(_FromBrowser):
    """A weight or the local bonus of a workload was moved."""

    type: Literal["weight"]
    workload: _Name
    name: Literal["quality", "latency", "cost", "local_bonus"]
    value: _Share


class QuestionAsked(_FromBrowser):
    """A length, a bound or the task was changed; only a bound may be None."""

    type: Literal["question"]
    name: Literal["prompt_tokens", "output_tokens", "max_cost_usd", "max_latency_ms", "task"]
    value: _Bound | _Name | None


class Select(_FromBrowser):
    """A cell was chosen."""

    type: Literal["select"]
    workload: _Name
    model: _Name


class Reset(_FromBrowser):
    """All weights go back to what they were."""

    type: Literal["reset"]


class ProbeAsked(_FromBrowser):
    """A model shall be measured; None: every one that is ready."""

    type: Literal["probe"]
    model: _Name | None


class VerdictGiven(_FromBrowser):
    """Somebody found an answer right or wrong."""

    type: Literal["verdict"]
    trace_id: _Name
    accepted: bool


RouterMessage = Ready | WeightMoved | QuestionAsked | Select | Reset | ProbeAsked | VerdictGiven
_MESSAGE: TypeAdapter[RouterMessage] = TypeAdapter(Annotated[RouterMessage, Field(discriminator="type")])
_LONGEST_FAULT = 200


def parse_router_message(content: object) -> RouterMessage:
    """Check a message from the browser.

    Raises:
        ValueError: it is none of ours; the text says why.
    """
    try:
        return _MESSAGE.validate_python(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        said = f"{where}: {fault['msg']}"[:_LONGEST_FAULT]
        raise ValueError(f"a message from the browser was refused: {said}") from None
