"""Drives a policy over an answer: one generator for live engines and for replays of recordings.

Steps go in, decisions come out::

    controller = drive(policy, question)
    decision = next(controller)
    while not isinstance(decision, Finish):
        if isinstance(decision, LookUp):
            report = ...            # Found(hits), Failed(message) or TookTooLong(seconds)
        else:
            if isinstance(decision, ResumeFrom):
                ...                 # new prompt with decision.context, the first decision.keep tokens stay
            report = ...            # the next Step, or Ended(reason) when the loop has no more
        decision = controller.send(report)

Stop strings, end tokens and time limits are the loop's: the controller sees steps as the loop lets them
through and hears of the end by `Ended`. It may answer that with a look-up still (a sentence that ends with
the answer), except where a user or a clock ended it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest
from cartoolkit.retrieval.answer import Answer, Token
from cartoolkit.retrieval.budget import estimate_tokens
from cartoolkit.retrieval.decisions import (
    Ended,
    Failed,
    Finish,
    Found,
    GoOn,
    LookUp,
    ResumeFrom,
    Rewound,
    Supposed,
    Tally,
    TookTooLong,
)
from cartoolkit.retrieval.queries import Situation
from cartoolkit.retrieval.shelf import Shelf
from cartoolkit.trace import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from cartoolkit.retrieval.decisions import Decision, Report
    from cartoolkit.retrieval.passages import Hit
    from cartoolkit.retrieval.policy import Policy
    from cartoolkit.retrieval.triggers import Fire

__all__ = ["drive"]

_OWN_END = ("stop", "length")
"""Ends of an answer after which a sentence may still be written anew; any other is final."""


def drive(
    policy: Policy,
    question: str,
    *,
    context: Iterable[Hit] = (),
    count_tokens: Callable[[str], int] = estimate_tokens,
    thinking: bool = False,
) -> Generator[Decision, Report, None]:
    """Decide about one answer, as the module's example shows.

    Args:
        policy: what decides.
        question: what the user asked, without template.
        context: passages that the prompt holds already.
        count_tokens: of a text, for the budget of the context.
        thinking: the prompt ends inside a ``<think>`` block that it opened.

    Yields:
        What to do next; a `Finish` is the last.

    Raises:
        InvalidRequest: a step carries no numbers that the trigger or the query needs, or a report does not
            fit the decision before it.
    """
    run = _Run(policy, question, Shelf(policy, count_tokens, context), Answer(thinking=thinking))
    decision: Decision = GoOn()
    if policy.pre_retrieve and question.strip():
        decision = yield from _consult(run, run.upfront())
    while not isinstance(decision, Finish):
        report = yield decision
        if isinstance(report, Step):
            decision = yield from _after_step(run, report)
        elif isinstance(report, Ended):
            decision = yield from _after_end(run, report.reason)
        elif isinstance(report, Rewound):
            decision = run.rewind(report.keep)
        else:
            raise InvalidRequest(f"a Step or Ended was due after {type(decision).__name__}; got {report!r}.")
    yield decision


def _after_step(run: _Run, step: Step) -> Generator[Decision, Report, Decision]:
    decision: Decision = GoOn()
    fire = run.take(step)
    if fire and (look_up := run.plan(fire, last=bool(run.full()))):
        decision = yield from _consult(run, look_up)
    if full := run.full():
        return Finish("length", run.tally(), full)
    return decision


def _after_end(run: _Run, reason: str) -> Generator[Decision, Report, Decision]:
    fire = run.judge(run.answer.close()) if reason in _OWN_END else None
    if not fire or not (look_up := run.plan(fire, last=True)):
        return Finish(reason, run.tally())
    decision = yield from _consult(run, look_up)
    return Finish(reason, run.tally(), decision.note) if isinstance(decision, GoOn) else decision


def _consult(run: _Run, look_up: LookUp) -> Generator[Decision, Report, GoOn | ResumeFrom]:
    return run.settle(look_up, (yield look_up))


class _Run:
    """Where one answer stands."""

    def __init__(self, policy: Policy, question: str, shelf: Shelf, answer: Answer) -> None:
        self.answer = answer
        self._policy = policy
        self._budget = policy.budget
        self._question = question
        self._shelf = shelf
        self._fresh: list[Token] = []
        self._asked: set[str] = set()
        self._decoded = self._retrievals = self._fruitless = 0
        self._elapsed = 0.0
        self._quiet_until = 0
        self._accept_sentence = False
        self._supposed_at = -1

    def tally(self) -> Tally:
        return Tally(
            kept=len(self.answer),
            decoded=self._decoded,
            retrievals=self._retrievals,
            fruitless=self._fruitless,
            context_tokens=self._shelf.tokens,
        )

    # Looking at the text

    def take(self, step: Step) -> Fire | None:
        """Take a step; says whether a trigger fires."""
        self._decoded += 1
        # A step taken over from another run has no time: max(x, NaN) is x, but not max(NaN, x).
        self._elapsed = max(self._elapsed, step.elapsed)
        sentences = self.answer.add(step)
        if self._kept_full():
            sentences += self.answer.close()
        if sentences and (fire := self.judge(sentences)):
            return fire
        token = self.answer.tokens[-1]
        if not token.watched:
            return None
        self._fresh.append(token)
        return self._policy.trigger.on_token(self._fresh)

    def judge(self, sentences: list[list[Token]]) -> Fire | None:
        """Show sentences that have ended to the trigger."""
        for sentence in sentences:
            if self._accept_sentence:
                self._accept_sentence = False
            elif any(token.watched for token in sentence) and (
                fire := self._policy.trigger.on_sentence(sentence, self._after(sentence))
            ):
                return fire
        return None

    def _after(self, sentence: list[Token]) -> list[Token]:
        return self.answer.tokens[sentence[-1].position + 1 :]

    def full(self) -> str:
        """Which budget ends the answer here; empty if none does."""
        most = self._budget.max_decoded_tokens
        if most is not None and self._decoded >= most:
            return f"max_decoded_tokens={most}"
        return f"max_kept_tokens={self._budget.max_kept_tokens}" if self._kept_full() else ""

    def _kept_full(self) -> bool:
        most = self._budget.max_kept_tokens
        return most is not None and len(self.answer) >= most

    # Looking things up

    def upfront(self) -> LookUp:
        self._asked.add(self._question.strip())
        return LookUp(
            self._question.strip(),
            self._policy.passages_per_query,
            "before the answer",
            timeout_s=self._timeout(),
            upfront=True,
        )

    def plan(self, fire: Fire, *, last: bool) -> LookUp | None:
        """The look-up that follows from a trigger; None where the budget or a repetition forbids it.

        After the `last` token one is made only if it would drop something.
        """
        if not self._may_look_up():
            return None
        tokens = self.answer.tokens
        situation = Situation(self._question, tokens, fire)
        query = self._policy.query.build(situation).strip() or self._question.strip()
        keep = max(self._policy.resume.keep(tokens, fire), self.answer.forced)
        if not query or query in self._asked or (last and keep == len(tokens)):
            return None
        self._asked.add(query)
        return LookUp(
            query,
            self._policy.passages_per_query,
            fire.reason,
            position=len(tokens),
            keep=keep,
            trigger_steps=tuple(tokens[position].step.index for position in fire.positions),
            timeout_s=self._timeout(),
        )

    def _may_look_up(self) -> bool:
        budget = self._budget
        return (
            self._retrievals < budget.max_retrievals
            and self._fruitless < budget.max_fruitless
            and self._decoded >= self._quiet_until
            and (budget.deadline_s is None or self._elapsed < budget.deadline_s)
            and (budget.max_decoded_tokens is None or self._decoded < budget.max_decoded_tokens)
        )

    def _timeout(self) -> float | None:
        left = None if self._budget.deadline_s is None else self._budget.deadline_s - self._elapsed
        limits = [each for each in (self._budget.lookup_timeout_s, left) if each is not None]
        return min(limits, default=None)

    def settle(self, look_up: LookUp, report: Report) -> GoOn | ResumeFrom:
        """What follows from what came of a look-up."""
        self._fresh.clear()
        if not look_up.upfront:
            self._quiet_until = self._decoded + self._budget.cooldown_tokens
        match report:
            case Found(hits):
                return self._found(look_up, hits)
            case Supposed():
                self._retrievals += not look_up.upfront
                self._supposed_at = self._decoded
                return ResumeFrom(len(self.answer), 0, self._shelf.passages, ())
            case Failed(message):
                return self._in_vain(look_up, f"the look-up failed: {message}", again=True)
            case TookTooLong(seconds):
                return self._in_vain(look_up, f"the look-up took more than {seconds:g} s", again=True)
        raise InvalidRequest(f"an outcome was due after a LookUp; got {report!r}.")

    def _found(self, look_up: LookUp, hits: tuple[Hit, ...]) -> GoOn | ResumeFrom:
        added, note = self._shelf.put(hits)
        if not added:
            return self._in_vain(look_up, note)
        if self._policy.context == "replace":
            # What was found earlier is gone from the prompt, so it may be asked for again.
            self._asked = {look_up.query}
        self._retrievals += not look_up.upfront
        dropped = len(self.answer) - look_up.keep
        self._drop(look_up.keep)
        return ResumeFrom(look_up.keep, dropped, self._shelf.passages, added, note)

    def _in_vain(self, look_up: LookUp, note: str, *, again: bool = False) -> GoOn:
        self._fruitless += 1
        if again:
            self._asked.discard(look_up.query)
        return GoOn(note)

    def rewind(self, keep: int) -> GoOn:
        """Follow a recording that dropped tokens."""
        own = self._supposed_at == self._decoded
        dropped = keep < len(self.answer)
        self.answer.truncate(keep)
        self._fresh.clear()
        self._accept_sentence = own and dropped and self._policy.resume.accepts_next_sentence
        return GoOn()

    def _drop(self, keep: int) -> None:
        if keep < len(self.answer):
            self.answer.truncate(keep)
            self._accept_sentence = self._policy.resume.accepts_next_sentence
