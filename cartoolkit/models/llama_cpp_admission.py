"""What the installed llama.cpp says of an architecture.

It keeps its architectures in C++ and has no function that lists them. It does say, in its log, that it does
not know one: so it is given a file that holds nothing but an architecture's name, and its answer is compared
with its answer to a name that no architecture has. No word of the message is taken for granted.
"""

from __future__ import annotations

import struct
import tempfile
from functools import cache
from pathlib import Path

from cartoolkit.models.headers import shown
from cartoolkit.models.llama_cpp_log import log_captured

__all__ = ["why_not"]

NEWER = "A newer one may know it; and a GGUF file names it in its own way ('mistral' is 'llama' there)."
NONSENSE = "no-architecture-has-this-name"


def why_not(model_type: str) -> tuple[str, str] | None:
    """Why llama.cpp cannot load such a model, and what to do; None if it can.

    Hugging Face writes `qwen3_moe` where llama.cpp writes `qwen3moe`: both are accepted.
    """
    if any(_knows(spelling) for spelling in _spellings(model_type)):
        return None
    return (
        f"the llama.cpp in llama-cpp-python {_version()} does not know the architecture {shown(model_type)}.",
        f"{NEWER} Otherwise use engine='torch' with the safetensors version of the model.",
    )


def _spellings(model_type: str) -> list[str]:
    word = model_type.lower()
    core = word.removesuffix("_text")
    forms = (
        word,
        core,
        core.replace("_", "-"),
        core.replace("-", "_"),
        core.replace("_", "").replace("-", ""),
    )
    return [form for form in dict.fromkeys(forms) if form and len(form) <= 80 and form.isprintable()]


@cache
def _knows(architecture: str) -> bool:
    return _answer(architecture) != _answer(NONSENSE).replace(NONSENSE, architecture)


def _answer(architecture: str) -> str:
    """Everything llama.cpp logs about a model of that architecture that has nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        path.write_bytes(_bare_gguf(architecture))
        return _log_of_loading(path).replace(str(path), "")


def _log_of_loading(path: Path) -> str:
    import llama_cpp

    with log_captured() as lines:
        llama_cpp.llama_backend_init()
        settings = llama_cpp.llama_model_default_params()
        settings.vocab_only = True
        settings.n_gpu_layers = 0
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        if model:
            llama_cpp.llama_model_free(model)
    return "".join(line.text for line in lines)


def _bare_gguf(architecture: str) -> bytes:
    """A GGUF file of version 3 with no tensors and one key, `general.architecture`."""
    key, value = b"general.architecture", architecture.encode()
    return (
        struct.pack("<4sIQQ", b"GGUF", 3, 0, 1)
        + struct.pack("<Q", len(key))
        + key
        + struct.pack("<IQ", 8, len(value))
        + value
    )


def _version() -> str:
    from importlib.metadata import version

    return version("llama-cpp-python")
