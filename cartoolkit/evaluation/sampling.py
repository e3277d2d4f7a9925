"""A part of the questions, of every relation about equally many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cartoolkit.retrieval import LabelledQuestion

__all__ = ["sample_questions"]


def sample_questions(
    questions: Iterable[LabelledQuestion],
    size: int | None = None,
    *,
    kind: str | None = None,
    split: str | None = None,
    seed: int = 0,
) -> list[LabelledQuestion]:
    """Draw questions without repetition, equally many of each relation as far as it has them.

    Args:
        questions: to draw from.
        size: how many; None for all.
        kind: only these, see `LabelledQuestion`.
        split: only these.
        seed: of the draw; equal seeds draw equal samples.

    Returns:
        In the order in which they were given.

    Raises:
        InvalidRequest: there are fewer than `size`.
    """
    fitting = [q for q in questions if kind in (None, q.kind) and split in (None, q.split)]
    if size is None:
        return fitting
    if not 0 < size <= len(fitting):
        raise InvalidRequest(f"{size} questions were asked for; there are {len(fitting)} to draw from.")
    rng = np.random.default_rng(seed)
    relations: dict[str, list[int]] = {}
    for place, question in enumerate(fitting):
        relations.setdefault(question.relation, []).append(place)
    shares = _shares([len(each) for each in relations.values()], size)
    chosen = [
        place
        for places, share in zip(relations.values(), shares, strict=True)
        for place in rng.permutation(places)[:share]
    ]
    return [fitting[place] for place in sorted(chosen)]


def _shares(available: list[int], size: int) -> list[int]:
    """How many to take of each, as equal as possible.

    >>> _shares([10, 2, 10], 12)
    [5, 2, 5]
    """
    shares = [0] * len(available)
    while (left := size - sum(shares)) > 0:
        open_places = [i for i, have in enumerate(available) if shares[i] < have]
        each = max(1, left // len(open_places))
        for i in open_places[:left]:
            shares[i] += min(each, available[i] - shares[i])
    return shares
