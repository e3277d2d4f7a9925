"""How each engine opens a checkpoint: what was asked for, what is chosen for the rest, and its decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from cartoolkit.engine.choosing import Wishes
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.models import Checkpoint
    from cartoolkit.models.engines import EngineName

__all__ = [
    "Opening",
    "prepare_opening",
    "refuse_meaningless",
    "refuse_missing_device",
    "require_known_attention",
]


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
    refuse_meaningless(engine, wishes, permissions=False)
    refuse_missing_device(engine, wishes.device, ask_library=False)
    return _PREPARE[engine](checkpoint, wishes)


def refuse_meaningless(engine: EngineName, wishes: Wishes, *, permissions: bool = True) -> None:
    """Refuse a setting that the engine has no use for, rather than pass over it.

    Args:
        engine: what the settings are for.
        wishes: the settings.
        permissions: also refuse what is merely allowed; where the engine is not named, that is for
            whichever can use it.

    Raises:
        InvalidRequest: with the setting, its value and the reason.
    """
    refusals = _MEANINGLESS[engine] | (_NEEDLESS[engine] if permissions else {})
    for name, reason in refusals.items():
        value = getattr(wishes, name)
        if value is not None and value is not False:
            raise InvalidRequest(f"{name}={value!r} means nothing to the {engine} engine: {reason}.")


_MEANINGLESS: dict[EngineName, dict[str, str]] = {
    "torch": {"context_length": "its cache grows with the text"},
    "mlx": {
        "context_length": "its cache grows with the text",
        "attention": "it does not say where the model looks",
    },
    "gguf": {
        "attention": "it does not say where the model looks",
        "dtype": "a GGUF file is used in its own precision",
        "quantize": "a GGUF file is used as it is; choose one of the size you want",
    },
}
_NEEDLESS: dict[EngineName, dict[str, str]] = {
    "torch": {},
    "mlx": {
        "allow_pickle": "it reads safetensors only",
        "trust_remote_code": "it runs no code that comes with a checkpoint",
    },
    "gguf": {
        "allow_pickle": "it reads GGUF files only",
        "trust_remote_code": "a GGUF file brings no code",
    },
}


def refuse_missing_device(engine: EngineName, wanted: str | None, *, ask_library: bool = True) -> None:
    """Refuse a device that the engine does not have here; None, its own choice, is never refused.

    Args:
        engine: whose device it would be.
        wanted: as in `load`.
        ask_library: import the engine's library, which must be usable, and ask it what is there; False
            goes by the device's name alone.

    Raises:
        InvalidRequest: with the device and what there is instead.
    """
    if wanted is None:
        return
    names = _DEVICE_NAMES[engine]
    if str(wanted).split(":", maxsplit=1)[0] not in names:
        raise InvalidRequest(
            f"device must be {' or '.join(map(repr, names))} for the {engine} engine; got {wanted!r}."
        )
    if ask_library:
        _DEVICE[engine](wanted)


def _torch_device(wanted: str | None) -> tuple[torch.device, str]:
    from cartoolkit.engine.decoders.torch_device import choose_device

    return choose_device(wanted)


def _mlx_device(wanted: str | None) -> tuple[str, str]:
    import mlx.core as mx

    device = mx.default_device().type.name
    if wanted not in (None, device):
        raise InvalidRequest(
            f"device {wanted!r} is not available: MLX computes on its default device, here {device!r}.",
            hint=f"Leave device out, or take another engine for {wanted!r}.",
        )
    return device, "asked for" if wanted else "MLX's own choice"


def _gguf_device(wanted: str | None) -> tuple[bool, str]:
    from cartoolkit.engine.decoders.llama_cpp_library import require_llama_cpp

    has_gpu = require_llama_cpp().llama_supports_gpu_offload()
    if wanted is None:
        return has_gpu, "llama.cpp was built for it" if has_gpu else "llama.cpp was built without a GPU"
    if wanted not in _DEVICE_NAMES["gguf"]:
        raise InvalidRequest(f"device must be 'cpu' or 'gpu' for the gguf engine; got {wanted!r}.")
    if wanted == "gpu" and not has_gpu:
        raise InvalidRequest(
            "device 'gpu' is not available: this llama-cpp-python was built for the processor only.",
            hint="Install it anew with CMAKE_ARGS set for your GPU, such as -DGGML_CUDA=on.",
        )
    return wanted == "gpu", "asked for"


_DEVICE_NAMES: dict[EngineName, tuple[str, ...]] = {
    "torch": ("cpu", "cuda", "mps"),
    "mlx": ("cpu", "gpu"),
    "gguf": ("cpu", "gpu"),
}
_DEVICE: dict[EngineName, Callable[[str | None], tuple[object, str]]] = {
    "torch": _torch_device,
    "mlx": _mlx_device,
    "gguf": _gguf_device,
}


def _torch(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.torch_decoder import TorchDecoder, require_torch

    require_torch()
    from cartoolkit.engine.decoders.torch_device import choose_dtype

    device, why_device = _torch_device(wishes.device)
    dtype, why_dtype = choose_dtype(device, wishes.dtype)
    return Opening(
        (str(device), str(dtype), str(wishes.quantize), str(wishes.attention)),
        why_device,
        why_dtype,
        lambda: TorchDecoder.load(
            checkpoint, device=device, dtype=dtype, quantize=wishes.quantize, attention=wishes.attention
        ),
    )


def require_known_attention(attention: object) -> None:
    """Refuse a kind of attention that no engine can be asked for.

    Raises:
        InvalidRequest: with the kind that there is.
    """
    if attention not in (None, "eager"):
        raise InvalidRequest(
            f"attention must be 'eager' or None; got {attention!r}.",
            hint="Other kinds of attention never form the weights that could be looked at.",
        )


def _mlx(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.mlx_decoder import MlxDecoder
    from cartoolkit.models import admit

    admit(checkpoint, "mlx")
    _, why_device = _mlx_device(wishes.device)
    return Opening(
        (str(wishes.dtype), str(wishes.quantize)),
        why_device,
        "asked for" if wishes.dtype or wishes.quantize else "as stored",
        lambda: MlxDecoder.load(checkpoint, dtype=wishes.dtype, quantize=wishes.quantize),
    )


def _gguf(checkpoint: Checkpoint, wishes: Wishes) -> Opening:
    from cartoolkit.engine.decoders.llama_cpp_decoder import LlamaCppDecoder

    on_gpu, why = _gguf_device(wishes.device)
    return Opening(
        (str(on_gpu), str(wishes.context_length)),
        why,
        "as the file has it",
        lambda: LlamaCppDecoder.load(checkpoint, context_length=wishes.context_length, on_gpu=on_gpu),
    )


_PREPARE: dict[EngineName, Callable[[Checkpoint, Wishes], Opening]] = {
    "torch": _torch,
    "mlx": _mlx,
    "gguf": _gguf,
}
