"""llama.cpp through llama-cpp-python: importing it, keeping it quiet, and its log as an error's reason."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import MissingDependency
from cartoolkit.models.llama_cpp_log import ERROR, log_captured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.models.llama_cpp_log import LogLine

__all__ = ["reason_logged", "require_llama_cpp"]

_LIBRARY_LOGGER = "llama-cpp-python"


def require_llama_cpp() -> Any:  # noqa: ANN401 - the module has no types of its own
    """The low-level module, begun, and as quiet as with `verbose=False` unless somebody set it otherwise.

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
    with log_captured():
        llama_cpp.llama_backend_init()
    return llama_cpp


def reason_logged(lines: Sequence[LogLine]) -> str:
    """The first of llama.cpp's complaints, which the others follow from, without the place in its source."""
    said = next((line.text.strip() for line in lines if line.level == ERROR and line.text.strip()), "")
    return said.split(": ", 1)[-1].removeprefix("error loading model: ") or "it gave no reason"
