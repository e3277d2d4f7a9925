"""Steps as columns: the one layout that the file, the data frame and the browser share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.trace.step import Candidates, Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cartoolkit.trace.step import Attention

__all__ = ["CANDIDATE_COLUMNS", "FLAGS", "STEP_COLUMNS", "Columns", "columns_of", "step_at"]

Columns = dict[str, np.ndarray]

STEP_COLUMNS: Mapping[str, type[np.generic]] = {
    "token_id": np.int32,
    "logprob": np.float32,
    "rank": np.int32,
    "processed_logprob": np.float32,
    "max_prob": np.float32,
    "entropy": np.float32,
    "varentropy": np.float32,
    "margin": np.float32,
    "rest_mass": np.float32,
    "processed_rest_mass": np.float32,
    "draw": np.float64,
    "elapsed": np.float64,
    "flags": np.uint8,
}
"""Name and dtype of every column with one value a step, shape [n]."""

CANDIDATE_COLUMNS: Mapping[str, type[np.generic]] = {
    "candidate_id": np.int32,
    "candidate_logprob": np.float32,
    "candidate_processed_logprob": np.float32,
    "candidate_removed_by": np.uint8,
}
"""Name and dtype of every column with one value a candidate, shape [n, k]; a missing one has id -1."""

FLAGS = {"incomplete": 1, "special": 2, "forced": 4, "kept": 8}
"""Bits of the `flags` column."""

_PADDING = {"candidate_id": -1, "candidate_logprob": np.nan, "candidate_processed_logprob": np.nan}
_ATTRIBUTES = {
    "candidate_id": "ids",
    "candidate_logprob": "logprobs",
    "candidate_processed_logprob": "processed_logprobs",
    "candidate_removed_by": "removed_by",
}


def columns_of(steps: Sequence[Step]) -> Columns:
    """The steps as arrays: `STEP_COLUMNS` [n], `CANDIDATE_COLUMNS` [n, k]; k is the most that a step has."""
    columns: Columns = {
        name: np.array([getattr(step, name) for step in steps], dtype)
        for name, dtype in STEP_COLUMNS.items()
        if name != "flags"
    }
    columns["flags"] = np.array([_flags(step) for step in steps], np.uint8)
    width = max((len(step.candidates) for step in steps), default=0)
    for name, dtype in CANDIDATE_COLUMNS.items():
        table = np.full((len(steps), width), _PADDING.get(name, 0), dtype)
        for row, step in zip(table, steps, strict=True):
            values = getattr(step.candidates, _ATTRIBUTES[name])
            row[: len(values)] = values
        columns[name] = table
    return columns


def _flags(step: Step) -> int:
    return sum(bit for name, bit in FLAGS.items() if getattr(step, name))


def step_at(
    columns: Columns,
    i: int,
    *,
    text: str,
    token: bytes,
    candidate_texts: Sequence[str] = (),
    attention: Attention | None = None,
) -> Step:
    """The i-th step again; text, bytes and attention are kept apart from the columns."""
    flags = int(columns["flags"][i])
    numbers = {name: columns[name][i].item() for name in STEP_COLUMNS if name not in ("flags", "token_id")}
    present = columns["candidate_id"][i] >= 0
    arrays = {attribute: columns[name][i][present] for name, attribute in _ATTRIBUTES.items()}
    return Step(
        index=i,
        token_id=int(columns["token_id"][i]),
        text=text,
        bytes=token,
        candidates=Candidates(texts=tuple(candidate_texts), **arrays),
        attention=attention,
        **{name: bool(flags & bit) for name, bit in FLAGS.items()},
        **numbers,
    )
