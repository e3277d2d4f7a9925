"""How each engine opens a checkpoint: what was asked for, what is chosen for the rest, and its decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.engine.choosing import Wishes
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.models import Checkpoint
    from cartoolkit.models.engines import EngineName

__all__ = ["Opening", "prepare_opening", "refuse_meaningless"]


@dataclass(frozen=True, slots=True)
class Opening:
    """A decoder about to be made.

    Attributes:
        key: what distinguishes it from another one of the same checkpoint.
        why_device: a few words for the line that `load` prints.
        why_dtype: likewise.
        load: makes the decoder.
    """

    key: tuple[str, ...]
    why_device: str
    why_dtype: str
    load: Callable[[], Decoder]


def prepare_opening(engine: EngineName, checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    """Settle device and precision; nothing is loaded yet.

    Raises:
        MissingDependency: the engine's library is not installed.
        InvalidRequest: it has no such device, dtype or quantization.
    """
    refuse_meaningless(engine, wishes)
    return _PREPARE[engine](checkpoint, wishes)


def refuse_meaningless(engine: EngineName, wishes: Wishes) -> None:
    """Refuse a setting that the engine has no use for, rather than pass over it.

    Raises:
        InvalidRequest: with the setting, its value and the reason.
    """
    for name, reason in _MEANINGLESS[engine].items():
        value = getattr(wishes, name)
        if value is not None:
            raise InvalidRequest(f"{name}={value!r} means nothing to the {engine} engine: {reason}.")


_MEANINGLESS: dict[EngineName, dict[str, str]] = {
    "torch": {"context_length": "its cache grows with the text"},
    "mlx": {"context_length": "its cache grows with the text"},
    "gguf": {
        "dtype": "a GGUF file is used in its own precision",
        "quantize": "a GGUF file is used as it is; choose one of the size you want",
    },
}


def _torch(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.torch_decoder import TorchDecoder, require_torch

    require_torch()
    from cartoolkit.engine.decoders.torch_device import choose_device, choose_dtype

    device, why_device = choose_device(wishes.device)
    dtype, why_dtype = choose_dtype(device, wishes.dtype)
    return Opening(
        (str(device), str(dtype), str(wishes.quantize)),
        why_device,
        why_dtype,
        lambda: TorchDecoder.load(checkpoint, device=device, dtype=dtype, quantize=wishes.quantize),
    )


def _mlx(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
    from cartoolkit.models import admit

    admit(checkpoint, "mlx")
    import mlx.core as mx

    device = mx.default_device().type.name
    if wishes.device not in (None, device):
        raise InvalidRequest(f"device {wishes.device!r} is not MLX's; it computes on: {device}.")
    return Opening(
        (str(wishes.dtype), str(wishes.quantize)),
        "asked for" if wishes.device else "MLX's own choice",
        "asked for" if wishes.dtype or wishes.quantize else "as stored",
        lambda: MlxDecoder.load(checkpoint, dtype=wishes.dtype, quantize=wishes.quantize),
    )


def _gguf(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder
    from cartoolkit.engine.decoders.llama_cpp_library import require_llama_cpp

    library = require_llama_cpp()
    on_gpu, why = _gguf_device(wishes.device, has_gpu=library.llama_supports_gpu_offload())
    return Opening(
        (str(on_gpu), str(wishes.context_length)),
        why,
        "as the file has it",
        lambda: LlamaCppDecoder.load(checkpoint, context_length=wishes.context_length, on_gpu=on_gpu),
    )


def _gguf_device(wanted: str | None, *, has_gpu: bool) -> tuple[bool, str]:
    if wanted is None:
        return has_gpu, "llama.cpp was built for it" if has_gpu else "llama.cpp was built without a GPU"
    if wanted == "cpu":
        return False, "asked for"
    if wanted.split(":")[0] not in ("gpu", "cuda", "metal", "mps", "vulkan", "rocm"):
        raise InvalidRequest(f"device must be 'cpu' or 'gpu' for the gguf engine; got {wanted!r}.")
    if not has_gpu:
        raise InvalidRequest(
            f"device {wanted!r} is not available: this llama-cpp-python was built for the processor only.",
            hint="Install it anew with CMAKE_ARGS set for your GPU, such as -DGGML_CUDA=on.",
        )
    return True, "asked for"


_PREPARE: dict[EngineName, Callable[[Checkpoint, Wishes], Opening]] = {
    "torch": _torch,
    "mlx": _mlx,
    "gguf": _gguf,
}
