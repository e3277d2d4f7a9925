"""llama.cpp through llama-cpp-python: importing it, keeping it quiet, and its log as an error's reason."""

from __future__ import annotations

import ctypes
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["errors_logged", "require_llama_cpp"]

_LIBRARY_LOGGER = "llama-cpp-python"
_log = logging.getLogger(__name__)
_ERROR_LEVEL, _CONTINUED = 3, 5  # ggml_log_level


def require_llama_cpp() -> Any:  # noqa: ANN401 - the module has no types of its own
    """The low-level module, with what it prints cut down to errors unless somebody asked for more.

    Raises:
        MissingDependency: llama-cpp-python is not installed, or its library cannot be loaded.
    """
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingDependency(
            f"the gguf engine needs llama-cpp-python: {error}",
            hint="Install it with: pip install 'cartoolkit[gguf]' (it is compiled, for a few minutes).",
        ) from error
    logger = logging.getLogger(_LIBRARY_LOGGER)
    if logger.level == logging.NOTSET:
        # The library prints every line at this level, hundreds of them for one model.
        logger.setLevel(logging.ERROR)
    return llama_cpp


@contextmanager
def errors_logged(library: Any) -> Iterator[list[str]]:  # noqa: ANN401
    """Collect what llama.cpp logs as an error; the rest goes to Python's log at level DEBUG.

    The library reports a reason nowhere else: a model that cannot be opened is a null pointer.
    """
    lines: list[str] = []
    level_before = [0]

    @library.llama_log_callback
    def listen(level: int, text: bytes, _: object) -> None:
        level = level_before[0] if level == _CONTINUED else level
        level_before[0] = level
        line = text.decode(errors="replace").strip()
        if level == _ERROR_LEVEL and line:
            lines.append(line)
        _log.debug("%s", line)

    usual, data = library.llama_log_callback(), ctypes.c_void_p()
    library.llama_log_get(ctypes.byref(usual), ctypes.byref(data))
    library.llama_log_set(listen, None)
    try:
        yield lines
    finally:
        library.llama_log_set(usual, data)
