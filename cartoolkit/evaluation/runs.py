"""One question answered under one policy: what came out, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from cartoolkit.evaluation.matching import grade
from cartoolkit.retrieval.events import RETRIEVAL

if TYPE_CHECKING:
    from cartoolkit.engine import Result
    from cartoolkit.retrieval import LabelledQuestion
    from cartoolkit.trace import ModelInfo, Trace

__all__ = ["Answers", "Run", "empty_cache", "failed_run", "kind_of", "measured_run", "regraded"]


class Answers(Protocol):
    """What can be evaluated: an engine, or anything that generates like one."""

    @property
    def info(self) -> ModelInfo:
        """Which model it is."""
        ...

    def generate(self, request: Any = None, **settings: Any) -> Result:  # noqa: ANN401 - as `Engine.generate`
        """Answer and wait for the end."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """One row of an evaluation.

    Attributes:
        policy: name of the arm.
        question: id of the question.
        kind: of the question, see `kind_of`.
        relation: of the question.
        text: the answer.
        stop_reason: why it ended; empty if the run failed.
        error: what went wrong, or empty.
        match: a known answer stands in the text.
        exact: the text is a known answer and nothing else.
        abstained: it says that it does not know, or nothing.
        made_up: the question has no answer in the corpus, and the text gives one that is wrong.
        look_ups: look-ups made, the one before the answer included.
        retrievals: those of them that brought something new.
        fired: look-ups made while the answer was written, so that the trigger fired.
        decoded: tokens decoded, those rolled back included and those of a given start not.
        kept: those of them that stand.
        prefilled: tokens read before the first token and after every look-up.
        reused: tokens that did not have to be read, since they were in the cache.
        seconds: from the request to the end.
    """

    policy: str
    question: str
    kind: str
    relation: str
    text: str = ""
    stop_reason: str = ""
    error: str = ""
    match: bool = False
    exact: bool = False
    abstained: bool = False
    made_up: bool = False
    look_ups: int = 0
    retrievals: int = 0
    fired: int = 0
    decoded: int = 0
    kept: int = 0
    prefilled: int = 0
    reused: int = 0
    seconds: float = 0.0

    @property
    def answerable(self) -> bool:
        """Whether the corpus holds the answer."""
        return self.kind != "unanswerable"


def kind_of(question: LabelledQuestion) -> str:
    """The kind that a table shows: two hops without a given start are "two-hop, free"."""
    free = question.kind == "two-hop" and not question.start
    return "two-hop, free" if free else question.kind


def empty_cache(engine: Answers) -> None:
    """Forget what was read before, so that the cost of a run does not depend on the one before it."""
    decoder = getattr(engine, "decoder", None)
    if decoder is not None:
        decoder.clear_kv_cache()


def measured_run(policy: str, question: LabelledQuestion, trace: Trace, *, seconds: float) -> Run:
    """Read an answer and its cost off its trace."""
    graded = grade(trace.text, question)
    drawn, kept = ~trace.flag("forced"), trace.flag("kept")
    look_ups = [event.data for event in trace.events if event.kind == RETRIEVAL]
    header = trace.header
    return Run(
        policy=policy,
        question=question.id,
        kind=kind_of(question),
        relation=question.relation,
        text=trace.text,
        stop_reason=header.stop_reason,
        match=graded.match,
        exact=graded.exact,
        abstained=graded.abstained,
        made_up=graded.made_up,
        look_ups=len(look_ups),
        retrievals=sum(data.get("outcome") == "found" for data in look_ups),
        fired=sum(not data.get("upfront") for data in look_ups),
        decoded=int(drawn.sum()),
        kept=int((drawn & kept).sum()),
        prefilled=header.prefill_tokens + _total(look_ups, "prefill_tokens"),
        reused=header.reused_tokens + _total(look_ups, "reused_tokens"),
        seconds=round(seconds, 4),
    )


def failed_run(policy: str, question: LabelledQuestion, error: BaseException, *, seconds: float) -> Run:
    """The row of a run that gave no answer."""
    said = f"{type(error).__name__}: {error}"
    return Run(
        policy, question.id, kind_of(question), question.relation, error=said, seconds=round(seconds, 4)
    )


def regraded(run: Run, question: LabelledQuestion, policy: str) -> Run:
    """A run as it is graded now, under the name that its policy has now: neither needs the model again."""
    if run.error:
        return replace(run, policy=policy)
    graded = grade(run.text, question)
    return replace(
        run,
        policy=policy,
        match=graded.match,
        exact=graded.exact,
        abstained=graded.abstained,
        made_up=graded.made_up,
    )


def _total(look_ups: list[dict[str, Any]], name: str) -> int:
    return sum(int(data.get(name) or 0) for data in look_ups)
