"""Letting go of what an error's traceback holds: a notebook keeps the last error, and with it the model."""

from __future__ import annotations

import traceback

__all__ = ["release_frames"]


def release_frames(error: BaseException) -> None:
    """Clear the locals in the tracebacks of `error` and of all that it came from.

    Frames that still run are left as they are, so what is to go must not be among their locals.
    """
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        cause = left.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            traceback.clear_frames(cause.__traceback__)
            left += [cause.__cause__, cause.__context__]
