"""The messages between kernel and browser, written once.

Kernel to browser, one kind, `update`: what has changed in a run since the last message. It is
idempotent, so a view that missed some asks with `ready` and is brought up to date by one update that
starts where it stands. Numbers travel as binary columns (`cartoolkit.trace.columns`), one buffer each,
in the order that `steps.columns` names. The same shape, with its buffers inside, is the `snapshot` trait
that a saved notebook keeps.

Browser to kernel, two kinds. `ready`: the view shows `steps` steps of run `run` (None: nothing yet).
`branch`: go on from step `step` of run `run`, with `token` there or, where it is None, with a new draw.

The JSON files in `tests/fixtures/protocol` are examples that both halves are tested against; the other
half of this file is `widgets/src/protocol.ts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from cartoolkit.trace.columns import columns_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.trace import Step

__all__ = [
    "PROTOCOL_VERSION",
    "Branch",
    "BranchPoint",
    "Failure",
    "Finish",
    "Prefill",
    "Ready",
    "RunInfo",
    "StepsBlock",
    "Update",
    "parse_message",
    "steps_block",
]

PROTOCOL_VERSION = 1


class BranchPoint(TypedDict):
    """Where a run left another one: its first step that was not taken over, and a sentence about it."""

    at: int
    text: str


class RunInfo(TypedDict):
    """What ran, with which settings. `prompt` is what the user wrote, not the template around it."""

    model: str
    engine: str
    device: str
    dtype: str
    context_length: int
    vocab_size: int
    prompt: str
    params: dict[str, Any]
    branch: NotRequired[BranchPoint]


class Prefill(TypedDict):
    """Prompt tokens: how many are in the cache by now, of how many, and how many were there before."""

    done: int
    total: int
    reused: int


class StepsBlock(TypedDict):
    """Steps `first` to `first + count - 1`; `width` candidates a step at most.

    `texts` are what each token added to the answer, `labels` name it where that is nothing, and
    `candidate_texts` are one list a step. Numbers lie in the message's buffers, one for each name in
    `columns`, little-endian, of shape [count] or [count, width].
    """

    first: int
    count: int
    width: int
    texts: list[str]
    labels: list[str]
    candidate_texts: list[list[str]]
    columns: list[str]


class Finish(TypedDict):
    """How a run ended. Times in milliseconds and tokens per second; None where there is none."""

    stop_reason: str
    stop_detail: str
    completion_tokens: int
    ttft_ms: float | None
    tokens_per_second: float | None


class Failure(TypedDict):
    """An error, in a sentence, and what to do about it."""

    message: str
    hint: str


class Update(TypedDict):
    """What has changed; a part that is not there has not."""

    type: Literal["update"]
    v: int
    run: str
    seq: int
    info: NotRequired[RunInfo]
    state: NotRequired[str]
    prefill: NotRequired[Prefill]
    steps: NotRequired[StepsBlock]
    notices: NotRequired[list[str]]
    finish: NotRequired[Finish]
    failure: NotRequired[Failure]


# Names of runs are ours and short; numbers are those of a 32-bit column.
_Run = Annotated[str, Field(max_length=64)]
_Number = Annotated[int, Field(ge=0, lt=2**31)]


class _FromBrowser(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    v: Literal[1]


class Ready(_FromBrowser):
    """A view has appeared, or has noticed a gap."""

    type: Literal["ready"]
    run: _Run | None
    steps: _Number


class Branch(_FromBrowser):
    """Someone wants to go on from a step with another token, or with a new draw (None)."""

    type: Literal["branch"]
    run: _Run
    step: _Number
    token: _Number | None


_MESSAGE: TypeAdapter[Ready | Branch] = TypeAdapter(Annotated[Ready | Branch, Field(discriminator="type")])
_LONGEST_FAULT = 200


def parse_message(content: object) -> Ready | Branch:
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


def steps_block(steps: Sequence[Step], first: int) -> tuple[StepsBlock, list[bytes]]:
    """Steps as one block of a message, and its buffers."""
    columns = columns_of(steps)
    block = StepsBlock(
        first=first,
        count=len(steps),
        width=columns["candidate_id"].shape[1],
        texts=[step.text for step in steps],
        labels=[step.label for step in steps],
        candidate_texts=[list(step.candidates.texts) for step in steps],
        columns=list(columns),
    )
    return block, [column.astype(column.dtype.newbyteorder("<")).tobytes() for column in columns.values()]
