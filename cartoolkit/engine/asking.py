"""Asks a retriever, whatever it does: raise, hang, or return what is no passage."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import CartoolkitError
from cartoolkit.retrieval import Failed, Found, Hit, TookTooLong

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.retrieval import LookUp, Report, Searcher

__all__ = ["ask"]

_TICK = 0.05
_LONGEST = 300


def ask(searcher: Searcher, look_up: LookUp, *, cancelled: Callable[[], bool]) -> Report | None:
    """Look something up on a thread of its own, which is left behind if it does not return in time.

    Args:
        searcher: what to ask.
        look_up: what to ask it.
        cancelled: asked twenty times a second; True ends the wait.

    Returns:
        What came of it; None if it was cancelled.
    """
    reports: list[Report] = []
    done = threading.Event()

    def search() -> None:
        try:
            reports.append(Found(_hits(searcher.search(look_up.query, look_up.k), look_up.k)))
        except CartoolkitError as error:
            reports.append(Failed(_short(str(error))))
        except BaseException as error:  # noqa: BLE001 - it is somebody else's, and the answer must go on
            reports.append(Failed(_short(f"{type(error).__name__}: {error}")))
        finally:
            done.set()

    threading.Thread(target=search, name="cartoolkit-look-up", daemon=True).start()
    limit = math.inf if look_up.timeout_s is None else look_up.timeout_s
    deadline = time.monotonic() + limit
    while not done.wait(min(_TICK, max(deadline - time.monotonic(), 0))):
        if cancelled():
            return None
        if time.monotonic() >= deadline:
            return TookTooLong(limit)
    return reports[0]


def _hits(found: Any, k: int) -> tuple[Hit, ...]:  # noqa: ANN401 - whatever a retriever of somebody's returns
    if isinstance(found, str | bytes) or not hasattr(found, "__iter__"):
        raise TypeError(f"search() returned {type(found).__name__}, not a list of hits")
    return tuple(_hit(each) for each in list(found)[:k])


def _hit(found: Any) -> Hit:  # noqa: ANN401
    """As plain values, so that a trace can be saved with it."""
    if not isinstance(text := getattr(found, "text", None), str) or not hasattr(found, "id"):
        raise TypeError(f"search() returned a list with {type(found).__name__}, which has no id and text")
    score = float(getattr(found, "score", math.nan))
    source, title = (_valid(str(getattr(found, name, "") or "")) for name in ("source", "title"))
    return Hit(_valid(str(found.id)), _valid(text), score, source, title)


def _valid(text: str) -> str:
    """Without lone surrogates, which no file and no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
