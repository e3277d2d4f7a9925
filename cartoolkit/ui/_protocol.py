"""The messages between kernel and browser, written once.

Kernel to browser, one kind, `update`: what has changed in a run since the last message. It is
idempotent, so a view that missed some asks with `ready` and is brought up to date by one update that
starts where it stands. Numbers travel as binary columns (`cartoolkit.trace.columns`), one buffer each,
in the order that `steps.columns` names. The same shape, with its buffers inside, is the `snapshot` trait
that a saved notebook keeps.

A run that looks things up drops tokens. They stay, with other flags: a `steps` block may begin before
what a view has, and of the steps that it knows it then takes over flags and texts. The parts `look_ups`,
`retrieved`, `what_if` and `beside` always come whole.

Browser to kernel, three kinds. `ready`: the view shows `steps` steps of run `run` (None: nothing yet).
`branch`: go on from step `step` of run `run`, with `token` there or, where it is None, with a new draw.
`pick`: show the run of row `row` of `beside`.

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
    "LONGEST_PASSAGE",
    "PROTOCOL_VERSION",
    "BesideRow",
    "Branch",
    "BranchPoint",
    "BudgetUsed",
    "ChancePair",
    "Failure",
    "Finish",
    "LookUpRow",
    "Parts",
    "Pick",
    "PolicyInfo",
    "Prefill",
    "Ready",
    "RunInfo",
    "ShownHit",
    "StepsBlock",
    "SupposedLookUp",
    "Update",
    "WhatIf",
    "parse_message",
    "steps_block",
]

PROTOCOL_VERSION = 1
LONGEST_PASSAGE = 2000
"""Characters of a passage that travel; the rest is cut off."""


class BranchPoint(TypedDict):
    """Where a run left another one: its first step that was not taken over, and a sentence about it."""

    at: int
    text: str


class PolicyInfo(TypedDict):
    """The policy that decides about look-ups.

    `trigger` says in plain words when it looks something up; `threshold` is the raw probability below which
    it doubts, None where it doubts by nothing or by something else; `retriever` is what it asks.
    """

    name: str
    trigger: str
    threshold: float | None
    retriever: str


class RunInfo(TypedDict):
    """What ran, with which settings. `prompt` is what the user wrote, not the template around it.

    `vocab_size` is left out where a server has the vocabulary.
    """

    model: str
    engine: str
    device: str
    dtype: str
    context_length: int
    vocab_size: NotRequired[int]
    prompt: str
    params: dict[str, Any]
    branch: NotRequired[BranchPoint]
    policy: NotRequired[PolicyInfo]


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


class ShownHit(TypedDict):
    """A passage that a look-up found.

    `added`: it entered the prompt. `used` are ranges of its text, in characters (code points), whose words
    stand in the answer after the look-up. `text` is at most `LONGEST_PASSAGE` characters; `score` is None
    where it is no finite number.
    """

    id: str
    title: str
    source: str
    score: float | None
    text: str
    added: bool
    used: list[tuple[int, int]]


class ChancePair(TypedDict):
    """Raw probability of a token before and after a look-up, at the place where the new text differs.

    None where the token was not among the recorded candidates. The first pair of a look-up is that of the
    token which was dropped, the second that of the token in its place, if it is another.
    """

    text: str
    before: float | None
    after: float | None


class LookUpRow(TypedDict):
    """A look-up.

    `at`: the step before which it was made, behind all that it dropped. `position`, `keep`, `dropped`: tokens
    of the answer that stood, that stayed, and that went. `outcome`: found, nothing, failed or timeout; `note`
    says more, if there is more to say. `ms`: of the look-up; `prefill_tokens`, `reused_tokens`, `prefill_ms`:
    of reading the prompt again, None where that was not done or is not done yet.
    """

    at: int
    position: int
    keep: int
    dropped: int
    query: str
    reason: str
    trigger_steps: list[int]
    upfront: bool
    outcome: str
    note: str
    hits: list[ShownHit]
    ms: float | None
    prefill_tokens: int | None
    reused_tokens: int | None
    prefill_ms: float | None
    chances: list[ChancePair]


class SupposedLookUp(TypedDict):
    """A look-up that a policy would make: before which step, for the doubt of which steps, and why."""

    at: int
    trigger_steps: list[int]
    reason: str


class WhatIf(TypedDict):
    """Which look-ups a policy would make over the steps of this run.

    `threshold` is None for a policy that doubts by no probability. `runs`: the run is still going on, so
    more may follow.
    """

    threshold: float | None
    policy: str
    look_ups: list[SupposedLookUp]
    runs: bool


class BudgetUsed(TypedDict):
    """What a run has used of what its policy allows.

    `retrievals` of `max_retrievals` look-ups brought something new, `fruitless` ones did not. `decoded`
    tokens, of which `kept` stand. `context_tokens`, of the passages in the prompt, is None while it is not
    known; `max_context_tokens` is None where there is no limit.
    """

    retrievals: int
    max_retrievals: int
    kept: int
    decoded: int
    fruitless: int
    context_tokens: int | None
    max_context_tokens: int | None


class BesideRow(TypedDict):
    """The same question under another policy: what came of it and what it cost.

    `prefilled` counts the prompt tokens that were read, those of re-reads included; `ms` is the time from
    the question to the end. `running`: it is being answered. `failed`: an error's sentence, empty if all
    went well. `shown`: it is the run on the page. A row that waits for its turn has no answer, `ms` None.
    """

    policy: str
    answer: str
    look_ups: int
    decoded: int
    prefilled: int
    ms: float | None
    running: bool
    failed: str
    shown: bool


class Parts(TypedDict):
    """What an `Update` says of look-ups."""

    look_ups: NotRequired[list[LookUpRow]]
    retrieved: NotRequired[list[int]]
    budget: NotRequired[BudgetUsed]
    what_if: NotRequired[WhatIf]
    beside: NotRequired[list[BesideRow]]


class Update(Parts):
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


class Pick(_FromBrowser):
    """Someone wants to see the run of a row of the comparison."""

    type: Literal["pick"]
    row: _Number


_Message = Ready | Branch | Pick
_MESSAGE: TypeAdapter[_Message] = TypeAdapter(Annotated[_Message, Field(discriminator="type")])
_LONGEST_FAULT = 200


def parse_message(content: object) -> Ready | Branch | Pick:
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
