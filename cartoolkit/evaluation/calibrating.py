"""Finds a threshold: the model answers without look-ups, and the trigger is replayed at every threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.arms import INSTRUCTION, Setup
from cartoolkit.evaluation.calibration import Calibration, ScoreLine, SweepLine
from cartoolkit.evaluation.matching import grade
from cartoolkit.evaluation.runs import empty_cache
from cartoolkit.evaluation.sampling import sample_questions
from cartoolkit.evaluation.scores import CONTROL, SCORES, doubt_scores, mean_probability
from cartoolkit.evaluation.statistics import (
    auroc,
    auroc_interval,
    calibration_error,
    detection,
    reliability,
)
from cartoolkit.retrieval import Policy, Recording, preset, simulate
from cartoolkit.retrieval.questions import LabelledQuestion
from cartoolkit.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartoolkit.evaluation.runs import Answers
    from cartoolkit.retrieval import Corpus
    from cartoolkit.trace import ModelInfo

__all__ = ["calibrate", "closed_book"]

Rule = Literal["recall", "youden", "f1"]

_PROBABILITIES = tuple(round(0.05 * i, 2) for i in range(1, 20))
_NATS = tuple(round(0.25 * i, 2) for i in range(1, 21))
_UNIT = {"EntropyAbove": _NATS, "EntropyAttention": _NATS, "EntropyTrend": _NATS}
_TENTHS = [i / 10 for i in range(1, 10)]


def calibrate(
    source: Answers | Sequence[Trace],
    questions: Iterable[LabelledQuestion | str],
    policy: str | Policy = "rollback",
    *,
    right: Sequence[bool] | None = None,
    size: int | None = None,
    rule: Rule = "recall",
    recall: float = 0.95,
    thresholds: Sequence[float] | None = None,
    corpus: Corpus | None = None,
    instruction: str = INSTRUCTION,
    max_tokens: int = 48,
    seed: int = 0,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - as `Engine.generate` takes them
) -> Calibration:
    """Find the threshold at which a policy's trigger finds the answers that are wrong.

    The model answers every question without looking anything up. Whether the trigger would have fired on an
    answer is then replayed at every threshold, which needs no model. Questions for calibrating must not be
    those that are reported on: use ``split="calibration"`` of a corpus for the one, ``"test"`` for the other.

    Rules:

    - ``recall``: the strictest threshold that still fires on at least `recall` of the wrong answers, since a
      doubt that is overlooked costs an answer and a false alarm only a look-up.
    - ``youden``: the largest recall less false alarms: wrong and right answers weigh the same, however many
      there are of each.
    - ``f1``: the largest harmonic mean of precision and recall; where most answers are wrong, this is close
      to firing always.

    Args:
        source: an engine, or traces of answers without look-ups, one a question.
        questions: with known answers; with `right` also plain texts.
        policy: a preset's name or a policy, whose trigger has a threshold.
        right: whether each answer is right, where questions do not say it; for traces only.
        size: draw so many questions, of each relation about equally many; for engines only.
        rule: how the threshold is chosen; of equally good ones the strictest.
        recall: for the rule of this name, 0 to 1.
        thresholds: to be tried, ascending. Steps of 0.05 for probabilities, of 0.25 nats for entropies.
        corpus: where the questions come from; its hash is kept with the result.
        instruction: the system message of every question, as in `evaluate`.
        max_tokens: of an answer.
        seed: of the sample and of the intervals.
        progress: show a bar.
        settings: fields of `GenerateParams` or `GenerateRequest`; greedy unless they say otherwise.

    Raises:
        InvalidRequest: the policy's trigger has no threshold; traces, questions and labels are not equally
            many; or there is nothing to calibrate on.
        EngineError: the model failed.
    """
    wanted = preset(policy) if isinstance(policy, str) else policy
    _refuse_unfit(wanted, rule, recall)
    asked = list(questions)
    about: dict[str, Any] = {"instruction": instruction, "seed": seed}
    if isinstance(source, Sequence):
        traces = _checked(source, asked)
    else:
        if right is not None:
            raise InvalidRequest("right goes with traces; an engine's answers are graded by the questions.")
        asked = sample_questions(_labelled(asked), size, seed=seed)
        traces = closed_book(
            source, asked, instruction=instruction, max_tokens=max_tokens, progress=progress, **settings
        )
    labels = _labels(traces, asked, right)
    about |= _provenance(traces, asked, corpus)
    return _measure(
        wanted, traces, asked, labels, rule=rule, recall=recall, thresholds=thresholds, seed=seed, about=about
    )


def closed_book(
    engine: Answers,
    questions: Iterable[LabelledQuestion],
    *,
    instruction: str = INSTRUCTION,
    max_tokens: int = 48,
    progress: bool = True,
    **settings: Any,  # noqa: ANN401 - as `Engine.generate` takes them
) -> list[Trace]:
    """Answers without look-ups, asked as `calibrate` and `evaluate` ask: several policies can use them.

    Args:
        engine: what answers.
        questions: what is asked.
        instruction: the system message of every question.
        max_tokens: of an answer.
        progress: show a bar.
        settings: fields of `GenerateParams` or `GenerateRequest`; greedy unless they say otherwise.

    Raises:
        EngineError: the model failed.
        KeyboardInterrupt: the user stopped it.
    """
    from tqdm.auto import tqdm

    greedy = {"temperature": 0.0, "seed": 0, "candidates": 1, "max_tokens": max_tokens}
    setup = Setup(engine.info, "", "", instruction, greedy | settings)
    traces = []
    for question in tqdm(list(questions), desc="Answering without look-ups", disable=not progress):
        empty_cache(engine)
        result = engine.generate(setup.request(question))
        if result.stop_reason == "stopped":
            raise KeyboardInterrupt
        traces.append(result.trace)
    return traces


def _refuse_unfit(policy: Policy, rule: str, recall: float) -> None:
    if not hasattr(policy.trigger, "threshold"):
        raise InvalidRequest(
            f"the policy {policy.name!r} has no threshold: its trigger is {type(policy.trigger).__name__}.",
            hint="Calibrate one whose trigger goes by doubt: seed, flare, rollback.",
        )
    if rule not in ("recall", "youden", "f1"):
        raise InvalidRequest(f"rule must be 'recall', 'youden' or 'f1'; got {rule!r}.")
    if not 0 < recall <= 1:
        raise InvalidRequest(f"recall must be above 0 and up to 1; got {recall!r}.")


def _checked(traces: Sequence[Trace], questions: Sequence[object]) -> list[Trace]:
    if len(traces) != len(questions):
        raise InvalidRequest(f"{len(traces)} traces do not go with {len(questions)} questions.")
    if not traces or not all(isinstance(each, Trace) for each in traces):
        raise InvalidRequest("calibrate() needs an engine, or a list of at least one Trace.")
    return list(traces)


def _labelled(questions: Sequence[LabelledQuestion | str]) -> list[LabelledQuestion]:
    labelled = [each for each in questions if isinstance(each, LabelledQuestion)]
    if not labelled or len(labelled) < len(questions):
        raise InvalidRequest(
            "questions with known answers are needed to tell wrong answers from right ones.",
            hint="Use LabelledQuestion, such as demo_corpus().questions, or traces with right=[…].",
        )
    return labelled


def _labels(
    traces: Sequence[Trace], questions: Sequence[LabelledQuestion | str], right: Sequence[bool] | None
) -> np.ndarray:
    if right is None:
        pairs = zip(traces, _labelled(questions), strict=True)
        return np.array([grade(trace.text, question).match for trace, question in pairs])
    if len(right) != len(traces):
        raise InvalidRequest(f"{len(right)} labels do not go with {len(traces)} traces.")
    return np.asarray(right, bool)


def _provenance(
    traces: Sequence[Trace], questions: Sequence[LabelledQuestion | str], corpus: Corpus | None
) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": traces[0].header.versions,
        "params": traces[0].header.params,
        "corpus": {"name": corpus.name, "digest": corpus.digest} if corpus is not None else None,
        "questions": [each if isinstance(each, str) else each.id for each in questions],
    }


def _measure(
    policy: Policy,
    traces: Sequence[Trace],
    questions: Sequence[LabelledQuestion | str],
    right: np.ndarray,
    *,
    rule: Rule,
    recall: float,
    thresholds: Sequence[float] | None,
    seed: int,
    about: dict[str, Any],
) -> Calibration:
    tried = sorted(thresholds or _UNIT.get(type(policy.trigger).__name__, _PROBABILITIES))
    texts = [each if isinstance(each, str) else each.text for each in questions]
    sweep = _sweep(policy, [Recording.of(each) for each in traces], texts, right, tried)
    line, said = _choose(sweep, rule, recall, rising=_fires_more_when_higher(policy))
    bins = reliability([mean_probability(each) for each in traces], right)
    return Calibration(
        policy=policy.describe(),
        model=_one_model(traces),
        threshold=line.threshold if line else math.nan,
        rule=said,
        count=len(traces),
        right=float(right.mean()),
        sweep=tuple(sweep),
        scores=tuple(_score_lines(traces, questions, ~right, seed)),
        reliability=tuple(bins),
        calibration_error=calibration_error(bins),
        about=about,
    )


def _one_model(traces: Sequence[Trace]) -> ModelInfo:
    models = {each.header.model.model_dump_json() for each in traces}
    if len(models) > 1:
        raise InvalidRequest(f"the traces are of {len(models)} models; confidence does not compare.")
    return traces[0].header.model


def _sweep(
    policy: Policy,
    recordings: Sequence[Recording],
    questions: Sequence[str],
    right: np.ndarray,
    thresholds: Sequence[float],
) -> list[SweepLine]:
    lines = []
    for threshold in thresholds:
        tried = policy.changed(threshold=threshold)
        counts = np.array([
            sum(not each.upfront for each in simulate(recording, tried, question).look_ups)
            for recording, question in zip(recordings, questions, strict=True)
        ])  # fmt: skip
        found = detection(counts > 0, ~right)
        lines.append(SweepLine(float(threshold), **found._asdict(), look_ups=float(counts.mean())))
    return lines


def _fires_more_when_higher(policy: Policy) -> bool:
    """A probability below the threshold fires, an entropy above it."""
    return type(policy.trigger).__name__ not in _UNIT


def _choose(
    sweep: Sequence[SweepLine], rule: Rule, recall: float, *, rising: bool
) -> tuple[SweepLine | None, str]:
    """The line that the rule picks, and the rule in words."""
    strictest_first = list(sweep) if rising else list(reversed(sweep))
    if rule == "recall":
        said = f"is the strictest that fires on at least {recall:.0%} of the wrong answers"
        return next((line for line in strictest_first if line.recall >= recall), None), said
    said = "has the largest F1" if rule == "f1" else "has the largest recall less false alarms (Youden's J)"
    known = [line for line in strictest_first if not math.isnan(getattr(line, rule))]
    return max(known, key=lambda line: getattr(line, rule), default=None), said


def _score_lines(
    traces: Sequence[Trace], questions: Sequence[LabelledQuestion | str], wrong: np.ndarray, seed: int
) -> list[ScoreLine]:
    scores = [doubt_scores(each) for each in traces]
    lengths = np.array([each[CONTROL] for each in scores])
    alike = np.searchsorted(np.quantile(lengths, _TENTHS), lengths)
    relations = ["" if isinstance(each, str) else each.relation for each in questions]
    lines = []
    for name in SCORES:
        values = [each[name] for each in scores]
        area = auroc_interval(values, wrong, seed=seed)
        within = auroc(values, wrong, alike), auroc(values, wrong, relations)
        lines.append(ScoreLine(name, *area, *within))
    return lines
