"""Memory as llama.cpp sees it: what a graphics card has free, and how it says that something did not fit."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any

from cartoolkit.models.llama_cpp_log import ERROR

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cartoolkit.models.llama_cpp_log import LogLine

__all__ = ["free_on_gpu", "says_out_of_memory"]

# enum ggml_backend_dev_type of ggml-backend.h; an integrated one is used where there is no other.
_GPU, _INTEGRATED_GPU = 1, 2
# As ggml's backends (CPU, CUDA, Metal, Vulkan), its allocator, llama.cpp and the C++ library say it.
_WORDS = re.compile(
    r"(failed|unable) to allocate|insufficient memory|out of (\w+ )?memory|not enough (memory|space)"
    r"|failed to reserve memory|allocation failed|bad_alloc|OutOf\w*Memory|cannot allocate memory",
    re.IGNORECASE,
)


def says_out_of_memory(lines: Sequence[LogLine]) -> bool:
    """Whether one of llama.cpp's complaints is about memory."""
    return any(line.level == ERROR and _WORDS.search(line.text) for line in lines)


def free_on_gpu() -> int | None:
    """Bytes that are free on the graphics cards over which llama.cpp spreads a model.

    Returns:
        None where there is no card, its backend does not know, or ggml cannot be asked.
    """
    return _free_on({_GPU}) or _free_on({_INTEGRATED_GPU})


def _free_on(kinds: Collection[int]) -> int | None:
    """The free bytes of all devices of these kinds together; a backend that does not know says 0."""
    try:
        ggml = _ggml()
        devices = [ggml.ggml_backend_dev_get(i) for i in range(ggml.ggml_backend_dev_count())]
        return sum(_free_of(ggml, d) for d in devices if ggml.ggml_backend_dev_type(d) in kinds) or None
    except (ImportError, AttributeError):
        # A private module of llama-cpp-python, and functions that older libraries do not have.
        return None


def _free_of(ggml: Any, device: int) -> int:  # noqa: ANN401 - ctypes
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ggml.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
    return free.value


def _ggml() -> Any:  # noqa: ANN401 - ctypes
    """The library of ggml with the signatures of ggml-backend.h."""
    from llama_cpp._ggml import libggml

    size = ctypes.POINTER(ctypes.c_size_t)
    for name, result, arguments in (
        ("count", ctypes.c_size_t, []),
        ("get", ctypes.c_void_p, [ctypes.c_size_t]),
        ("type", ctypes.c_int, [ctypes.c_void_p]),
        ("memory", None, [ctypes.c_void_p, size, size]),
    ):
        function = getattr(libggml, f"ggml_backend_dev_{name}")
        function.restype, function.argtypes = result, arguments
    return libggml
