"""Policies side by side on questions with known answers, as a job that can be interrupted and goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import CartoolkitError, EngineBusy, EngineClosed, InvalidRequest, PromptTooLong
from cartoolkit.evaluation.arms import INSTRUCTION, Setup, arms_of, digest_of, source_of
from cartoolkit.evaluation.evaluation import Evaluation
from cartoolkit.evaluation.journal import Journal
from cartoolkit.evaluation.runs import empty_cache, failed_run, measured_run, regraded
from cartoolkit.notices import say
from cartoolkit.retrieval import Corpus, as_searcher

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from cartoolkit.evaluation.arms import Arm
    from cartoolkit.evaluation.runs import Answers
    from cartoolkit.retrieval import LabelledQuestion, Policy, Searcher

__all__ = ["POLICIES", "evaluate"]

POLICIES = ("none", "upfront", "seed", "flare", "rollback")
"""What is compared unless something else is named."""


def evaluate(
    engine: Answers,
    retriever: Searcher | Callable[[str], str | None],
    questions: Iterable[LabelledQuestion],
    policies: Sequence[str | Policy] = POLICIES,
    *,
    folder: str | os.PathLike[str] | None = None,
    corpus: Corpus | None = None,
    instruction: str = INSTRUCTION,
    max_tokens: int = 48,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - as `Engine.generate` takes them
) -> Evaluation:
    """Let every policy answer every question, greedily and each from an empty cache, and compare them.

    What is done is on the disk at once. An interrupt ends the job with what there is; the same call goes on
    from there, also after the process was killed. A run that fails is a row with its error, and is tried
    again by the next call.

    Args:
        engine: what answers; an `Engine`, or anything that generates like one.
        retriever: what is asked.
        questions: with known answers, such as ``demo_corpus().questions``. A given start of an answer is
            used; `dataclasses.replace(question, start="")` takes it away.
        policies: policies, names of presets, ``upfront+`` before such a name, or ``oracle``.
        folder: where runs are kept, created if need be; one folder may hold several evaluations. None
            keeps nothing.
        corpus: where the oracle finds the right passages; the retriever, if it is a `Corpus`.
        instruction: the system message of every question; empty for none.
        max_tokens: of an answer.
        progress: show a bar.
        settings: fields of `GenerateParams` or `GenerateRequest`; greedy with seed 0 unless they say
            otherwise.

    Returns:
        All runs, also of earlier calls with the same arguments.

    Raises:
        InvalidRequest: an unknown policy or setting, two arms of one name, or no question.
        EngineBusy: another session is running on the engine.
    """
    searcher = as_searcher(retriever)
    if corpus is None and isinstance(retriever, Corpus):
        corpus = retriever
    asked = list(dict.fromkeys(questions))
    if not asked:
        raise InvalidRequest("there is no question to evaluate on.")
    arms = arms_of(policies, with_oracle=corpus is not None)
    greedy = {"temperature": 0.0, "seed": 0, "candidates": 1, "max_tokens": max_tokens}
    passages = source_of(corpus) if corpus is not None else ""
    setup = Setup(engine.info, source_of(searcher), passages, instruction, greedy | settings)
    about = setup.about()
    # Keys first: an unknown setting or passage is found before anything runs.
    keys = {(arm.name, place): arm.key(each, setup) for arm in arms for place, each in enumerate(asked)}
    with Journal(Path(folder) if folder is not None else None, digest_of(about), about) as journal:
        if journal.unreadable:
            say(f"{journal.unreadable} damaged lines in {folder} are left out; their runs are made again.")
        job = _Job(engine, setup, arms, asked, keys, searcher, corpus, journal)
        complete = job.work(progress=progress)
        evaluation = job.evaluation(about)
    if not complete:
        say(f"Interrupted after {len(evaluation.runs)} of {len(keys)} runs; the same call goes on from here.")
    return evaluation


class _Job:
    """The runs that are wanted, and those that are there."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        engine: Answers,
        setup: Setup,
        arms: Sequence[Arm],
        questions: Sequence[LabelledQuestion],
        keys: dict[tuple[str, int], str],
        retriever: Searcher,
        corpus: Corpus | None,
        journal: Journal,
    ) -> None:
        self._engine, self._setup, self._journal = engine, setup, journal
        self._retriever, self._corpus = retriever, corpus
        self._wanted = [
            (keys[arm.name, place], arm, question) for place, question in enumerate(questions) for arm in arms
        ]
        self._arms = tuple(arm.name for arm in arms)

    def work(self, *, progress: bool) -> bool:
        """Make the runs that are missing; whether it came to the end."""
        from tqdm.auto import tqdm

        missing = [each for each in self._wanted if not self._is_done(each[0])]
        done = len(self._wanted) - len(missing)
        with tqdm(desc="Evaluating", total=len(self._wanted), initial=done, disable=not progress) as bar:
            try:
                for key, arm, question in missing:
                    # Two arms may be the same policy under two names.
                    if not self._is_done(key) and not self._run(key, arm, question):
                        return False
                    bar.update()
            except KeyboardInterrupt:
                return False
        return True

    def _is_done(self, key: str) -> bool:
        run = self._journal.runs.get(key)
        return run is not None and not run.error

    def _run(self, key: str, arm: Arm, question: LabelledQuestion) -> bool:
        """Answer one question; False if the user interrupted it."""
        empty_cache(self._engine)
        begun = time.perf_counter()
        try:
            result = self._engine.generate(
                self._setup.request(question),
                retrieval=arm.policy,
                retriever=arm.searcher(question, self._retriever, self._corpus),
            )
        except (EngineBusy, EngineClosed):
            raise
        except CartoolkitError as error:
            if isinstance(error, InvalidRequest) and not isinstance(error, PromptTooLong):
                raise
            self._journal.add(key, failed_run(arm.name, question, error, seconds=_since(begun)))
            return True
        if result.stop_reason == "stopped":
            return False
        self._journal.add(key, measured_run(arm.name, question, result.trace, seconds=_since(begun)))
        return True

    def evaluation(self, about: dict[str, Any]) -> Evaluation:
        """What there is, in the order in which it was asked for, under the names that arms have now."""
        runs = self._journal.runs
        rows = [(runs[key], arm, question) for key, arm, question in self._wanted if key in runs]
        return Evaluation(
            tuple(regraded(run, question, arm.name) for run, arm, question in rows),
            self._arms,
            about,
            wanted=len(self._wanted),
        )


def _since(begun: float) -> float:
    return time.perf_counter() - begun
