"""A trace as pandas tables: one row a step, a candidate, or a token of the prompt.

What each column is, raw or processed and in which unit, stands in ``frame.attrs`` under its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cartoolkit.trace.step import STAGES
from cartoolkit.trace.text import token_label

if TYPE_CHECKING:
    from cartoolkit.trace.trace import Trace

__all__ = [
    "CANDIDATES_FRAME",
    "PROMPT_FRAME",
    "STEPS_FRAME",
    "candidates_frame",
    "prompt_frame",
    "steps_frame",
]

STEPS_FRAME = {
    "token_id": "the vocabulary's number of the chosen token",
    "text": "what the token added to the answer; empty for special tokens and inside a character",
    "label": "the token as a name, also where it added nothing",
    "logprob": "raw log-probability of the token, natural log",
    "prob": "raw probability of the token",
    "rank": "place of the token in the raw distribution, 1 is likeliest; 0 if not inspected",
    "processed_logprob": "log of the probability the token was drawn with, natural log",
    "processed_prob": "probability the token was drawn with",
    "surprisal": "-logprob of the token, raw, nats",
    "max_prob": "raw probability of the likeliest token",
    "entropy": "of the raw distribution, nats",
    "varentropy": "variance of the raw surprisal, nats squared",
    "margin": "raw probability of the likeliest token less that of the second",
    "rest_mass": "raw probability of all tokens that are not among the candidates",
    "processed_rest_mass": "the same for the distribution drawn from",
    "candidates": "how many candidates were recorded",
    "removed": "how many of them the sampler removed",
    "draw": "uniform number in [0, 1) that picked the token",
    "elapsed": "seconds from the request to the token",
    "incomplete": "the token ends inside a character",
    "special": "a control token such as the end of a turn",
    "forced": "put there by the caller, not drawn",
    "kept": "False if the token was rolled back later",
}
"""Columns of `steps_frame` and what they hold."""

CANDIDATES_FRAME = {
    "step": "index of the step, as in the table of steps",
    "position": "place among the candidates of the step, 1 is likeliest (raw)",
    "token_id": "the vocabulary's number",
    "text": "as it would have read after the tokens chosen before",
    "logprob": "raw log-probability, natural log",
    "prob": "raw probability",
    "processed_logprob": "log of the probability it could be drawn with, natural log; -inf if removed",
    "processed_prob": "probability it could be drawn with; 0 if removed",
    "removed_by": "sampler stage that removed it; empty if none did",
    "chosen": "True for the token that was chosen",
}
"""Columns of `candidates_frame` and what they hold."""

PROMPT_FRAME = {
    "token_id": "the vocabulary's number",
    "label": "the token as a name; bytes that are no text by themselves as \\xNN",
    "logprob": "raw log-probability of the token after those before it, natural log",
    "surprisal": "-logprob, nats",
}
"""Columns of `prompt_frame` and what they hold."""


def prompt_frame(trace: Trace) -> pd.DataFrame:
    """One row a token of the prompt as the model saw it, indexed by ``position``.

    `logprob` is NaN for the first token, and for all of them unless the run was made with
    `prompt_logprobs=True`. Columns and units: `PROMPT_FRAME`, also in ``frame.attrs``.
    """
    data = {
        "token_id": trace.prompt_ids,
        "label": [token_label(trace.token_bytes[int(i)]) for i in trace.prompt_ids],
        "logprob": trace.prompt_logprobs,
        "surprisal": -trace.prompt_logprobs.astype(np.float64),
    }
    frame = pd.DataFrame(data, index=pd.RangeIndex(len(trace.prompt_ids), name="position"))
    frame.attrs.update(PROMPT_FRAME)
    return frame


def steps_frame(trace: Trace) -> pd.DataFrame:
    """One row a step, in order, indexed by ``step``.

    Recorded columns keep their dtype; `prob`, `processed_prob` and `surprisal` are float64 computed from
    the recorded float32 logarithms. NaN where a step was not inspected. Columns and units:
    `STEPS_FRAME`, also in ``frame.attrs``.
    """
    columns = trace.columns
    present = columns["candidate_id"] >= 0
    logprob = columns["logprob"].astype(np.float64)
    data = {
        **columns,
        "text": trace.texts,
        "label": _step_labels(trace),
        "prob": _exp(logprob),
        "processed_prob": _exp(columns["processed_logprob"]),
        "surprisal": -logprob,
        "candidates": present.sum(axis=1),
        "removed": (present & (columns["candidate_removed_by"] > 0)).sum(axis=1),
        **{name: trace.flag(name) for name in ("incomplete", "special", "forced", "kept")},
    }
    index = pd.RangeIndex(len(trace), name="step")
    frame = pd.DataFrame({name: data[name] for name in STEPS_FRAME}, index=index)
    frame.attrs.update(STEPS_FRAME)
    return frame


def _exp(logprobs: np.ndarray) -> np.ndarray:
    # A file from somebody else may hold logarithms of more than any probability.
    with np.errstate(over="ignore"):
        return np.exp(logprobs.astype(np.float64))


def _step_labels(trace: Trace) -> list[str]:
    ids = trace.columns["token_id"].tolist()
    names = {i: token_label(trace.token_bytes[i]) for i in set(ids)}
    special = trace.flag("special").tolist()
    rows = zip(trace.texts, ids, special, strict=True)
    return [names[i] if is_special else text or names[i] for text, i, is_special in rows]


def candidates_frame(trace: Trace) -> pd.DataFrame:
    """One row a recorded candidate: steps in order, within a step likeliest (raw) first.

    `prob` and `processed_prob` are float64 computed from the recorded float32 logarithms; `removed_by`
    is categorical over `STAGES`. Columns and units: `CANDIDATES_FRAME`, also in ``frame.attrs``.
    """
    columns = trace.columns
    present = columns["candidate_id"] >= 0
    step = np.nonzero(present)[0]
    ids = columns["candidate_id"][present]
    logprob = columns["candidate_logprob"][present]
    processed = columns["candidate_processed_logprob"][present]
    data = {
        "step": step,
        "position": np.cumsum(present, axis=1)[present],
        "token_id": ids,
        "text": [text for i in range(len(trace)) for text in trace.candidate_texts(i)],
        "logprob": logprob,
        "prob": _exp(logprob),
        "processed_logprob": processed,
        "processed_prob": _exp(processed),
        "removed_by": pd.Categorical.from_codes(
            columns["candidate_removed_by"][present], categories=list(STAGES)
        ),
        "chosen": ids == columns["token_id"][step],
    }
    frame = pd.DataFrame({name: data[name] for name in CANDIDATES_FRAME})
    frame.attrs.update(CANDIDATES_FRAME)
    return frame
