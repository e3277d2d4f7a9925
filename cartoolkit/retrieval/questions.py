"""Questions whose answers are known, for measuring what a look-up is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Kind", "LabelledQuestion", "Split"]

Kind = Literal["single", "paraphrase", "two-hop", "unanswerable"]
Split = Literal["calibration", "test"]


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, its answers, and where they stand.

    Attributes:
        id: unique in its corpus.
        text: the question as it is put to a model.
        answers: every form that counts as right, the usual one first. Of an unanswerable question: what
            would be right, so that a lucky answer is not called a made-up one.
        kind: "single" (one passage answers it, in nearly its words), "paraphrase" (in other words),
            "two-hop" (one passage names what the other one is about), "unanswerable" (no passage holds it).
        relation: what is asked for, such as "capital"; for two hops "capital>currency".
        passages: ids of the passages that hold the answer, in the order in which they are needed.
        split: "calibration" for choosing thresholds, "test" for reporting. All questions about one fact
            are in the same one.
        start: how an answer begins that names the bridge of a two-hop question, else empty.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: Kind
    relation: str
    passages: tuple[str, ...]
    split: Split
    start: str = ""
