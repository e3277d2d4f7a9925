"""llama.cpp's log, which is the only place where the library says why it refused something."""

from __future__ import annotations

import ctypes
import logging
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ERROR", "LogLine", "log_captured"]

# GGML_LOG_LEVEL_ERROR and GGML_LOG_LEVEL_CONT of ggml.h; the table in llama-cpp-python's logger is older.
ERROR, _CONTINUED = 4, 5

_log = logging.getLogger(__name__)
# The callback belongs to the whole library: two that take turns would put back each other's, long gone.
_LISTENING = threading.RLock()


class LogLine(NamedTuple):
    """One message, as ggml sent it.

    Attributes:
        level: of `ggml_log_level`; a continued line has that of its beginning.
        text: with its line break.
    """

    level: int
    text: str


@contextmanager
def log_captured() -> Iterator[list[LogLine]]:
    """Collect what llama.cpp logs instead of printing it; afterwards its callback is the one from before.

    Everything also goes to Python's log at level DEBUG. One thread listens at a time, others wait.
    """
    import llama_cpp

    lines: list[LogLine] = []
    usual, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    with _LISTENING:
        # Its stubs know no reference to a function pointer.
        llama_cpp.llama_log_get(cast("Any", ctypes.byref(usual)), cast("Any", ctypes.byref(data)))
        _heard.append(lines)
        llama_cpp.llama_log_set(_listener(), ctypes.c_void_p())
        try:
            yield lines
        finally:
            llama_cpp.llama_log_set(usual, data)
            _heard.pop()


_heard: list[list[LogLine]] = []


@cache
def _listener() -> Any:  # noqa: ANN401 - ctypes
    """The one callback, kept for ever: another thread may be about to call it when it is taken away again."""
    import llama_cpp

    @llama_cpp.llama_log_callback
    def listen(level: int, text: bytes, _: object) -> None:
        line = text.decode("utf-8", "replace")
        for lines in _heard[-1:]:
            lines.append(LogLine(lines[-1].level if level == _CONTINUED and lines else level, line))
        _log.debug("%s", line.rstrip())

    return listen
