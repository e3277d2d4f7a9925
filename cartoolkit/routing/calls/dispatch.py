"""Asking one model after the other until one answers: a loop that knows no engine.

What runs an attempt is passed in. No model is asked twice for one request, and the order is that of the
decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from cartoolkit.errors import AllModelsFailed, EngineError
from cartoolkit.notices import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cartoolkit.routing.calls.attempts import Attempt

__all__ = ["Dispatched", "dispatch"]


@dataclass(frozen=True, slots=True)
class Dispatched:
    """How a request ended that was answered.

    Attributes:
        attempts: every model that was asked, in order.
        answer: the one of them whose answer counts; it has a trace.
    """

    attempts: tuple[Attempt, ...]
    answer: Attempt


def dispatch(models: Iterable[str], attempt: Callable[[str], Attempt], *, pinned: bool = False) -> Dispatched:
    """Ask the models in order until one answers, or one ends the request.

    Args:
        models: ids, the chosen one first; each is asked once, however often it is named.
        attempt: asks one model; what goes wrong is in the attempt that it returns, and not raised.
        pinned: the caller named the one model, and its error is raised as it is.

    Returns:
        The attempts and the answer: the first success, what a stop left, or the first partial answer if
        nobody gave a whole one.

    Raises:
        AllModelsFailed: each was asked, and there is not even a partial answer.
        BaseException: that of an attempt that ends the request, or of the one model that was named.
    """
    tried: list[Attempt] = []
    for model_id in dict.fromkeys(models):
        tried.append(attempt(model_id))
        if tried[-1].is_answer:
            return Dispatched(tuple(tried), tried[-1])
        if tried[-1].ends_the_request:
            break
    last = tried[-1]
    partial = next((each for each in tried if each.has_partial_answer), None)
    # An interrupt hands over what there is; what else ends a request says more than half an answer does.
    if partial is not None and (not last.ends_the_request or last.reason == "cancelled"):
        return Dispatched(tuple(tried), partial)
    if pinned or last.ends_the_request:
        _raise(last, tried[:-1])
    raise AllModelsFailed(
        "No model answered:\n" + "\n".join(f"  {each}" for each in tried), attempts=tried
    ) from last.error


def _raise(last: Attempt, before: Sequence[Attempt]) -> NoReturn:
    """Raise an attempt's error, with a note on what was tried before it."""
    error = last.error or EngineError(last.message, trace=last.trace)
    if last.reason != "cancelled" and not isinstance(error, Exception):
        # What ends a program, raised by a model's code, must not end the caller's.
        error = EngineError(f"{type(error).__name__} was raised: {in_words(error)}", trace=last.trace)
        error.__cause__ = last.error
    if before:
        error.add_note("Tried before it: " + "; ".join(map(str, before)))
    raise error.with_traceback(None)
