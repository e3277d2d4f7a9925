"""From a checkpoint folder to a model of mlx-lm, with every failure in this toolkit's words."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.decoders.mlx_config import completed
from cartoolkit.engine.decoders.mlx_precision import bytes_a_weight, cast, check_choice, pack
from cartoolkit.engine.decoders.mlx_window import layer_caches
from cartoolkit.engine.frames import release_frames
from cartoolkit.errors import (
    CartoolkitError,
    InvalidCheckpoint,
    InvalidRequest,
    MissingDependency,
    NotEnoughMemory,
)
from cartoolkit.models.admission import admit
from cartoolkit.models.memory import free_memory, require_memory, weight_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlx import nn
    from transformers import PreTrainedTokenizerBase

    from cartoolkit.models import Checkpoint

__all__ = ["load_checkpoint", "loading_errors", "require_mlx"]

_Loaded = tuple["nn.Module", "PreTrainedTokenizerBase", dict[str, Any]]


def require_mlx() -> None:
    """Check that mlx and mlx-lm can be imported.

    Raises:
        MissingDependency: one of them cannot.
    """
    try:
        import mlx.core  # noqa: F401 - only whether it is there
        import mlx_lm  # noqa: F401 - only whether it is there
    except (ImportError, ValueError, OSError) as error:
        # mlx-lm also fails where it may not set the limit of open files.
        raise MissingDependency(
            f"the mlx engine needs mlx and mlx-lm: {error}",
            hint="Install them with: pip install 'cartoolkit[mlx]'",
        ) from error


def load_checkpoint(checkpoint: Checkpoint, *, dtype: str | None, quantize: str | None) -> _Loaded:
    """The model, its tokenizer and its config; arguments as for `MlxDecoder.load`.

    Called inside `loading_errors`, which gives its errors their words.
    """
    require_mlx()
    admit(checkpoint, "mlx")
    check_choice(dtype, quantize)
    if quantize is not None and checkpoint.quantization is not None and checkpoint.quantization.is_packed:
        raise _packed_already(checkpoint)
    _require_memory(checkpoint, dtype, quantize)
    tokenizer = _load_tokenizer(checkpoint)
    model, config = _load_model(checkpoint)
    layer_caches(model, config)
    if dtype is not None:
        cast(model, dtype)
    if quantize is not None and (settings := pack(model, quantize)):
        config["quantization"] = settings
    _carry_out(model)
    return model, tokenizer, config


def _packed_already(checkpoint: Checkpoint) -> InvalidRequest:
    return InvalidRequest(
        f"{checkpoint.name} is packed already ({checkpoint.quantization}); quantize= packs only what is not.",
        hint="Leave quantize out, or take the version of the model that is not quantized.",
    )


def _require_memory(checkpoint: Checkpoint, dtype: str | None, quantize: str | None) -> None:
    needed = weight_memory(checkpoint, dtype)
    if quantize is not None:
        needed = int(checkpoint.parameters * bytes_a_weight(quantize))
    require_memory(needed, free_memory(), what=checkpoint.name)


def _load_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(checkpoint.path, local_files_only=True)


def _load_model(checkpoint: Checkpoint) -> tuple[nn.Module, dict[str, Any]]:
    """The model with weights that are still on disk, and its whole config."""
    from mlx_lm.utils import load_config, load_model

    full = completed(load_config(checkpoint.path)) | {"model_type": _spelling(checkpoint.model_type)}
    model, config = load_model(checkpoint.path, lazy=True, model_config=full)
    config["eos_token_id"] = _ends(config) + _ends(checkpoint.config)
    return model, config


def _spelling(model_type: str) -> str:
    """The model type as mlx-lm names its module; configs do not all keep to small letters."""
    from mlx_lm.utils import MODEL_REMAPPING

    small = model_type.lower()
    found = importlib.util.find_spec(f"mlx_lm.models.{MODEL_REMAPPING.get(small, small)}")
    return small if found else model_type


def _ends(config: dict[str, Any]) -> list[int]:
    ids = config.get("eos_token_id")
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


def _carry_out(model: nn.Module) -> None:
    """Read the weights, cast and pack them on the way, one at a time, and compute one token for a trial.

    Some kernels are not there for every device and dtype, and this shows only when they are to run.
    """
    import mlx.core as mx
    from mlx.utils import tree_flatten

    for _, value in tree_flatten(model.parameters()):
        mx.eval(value)
    mx.eval(model(mx.array([[0]])))
    mx.clear_cache()


@contextlib.contextmanager
def loading_errors(checkpoint: Checkpoint) -> Iterator[None]:
    """Whatever mlx, mlx-lm and transformers raise over a checkpoint, in one sentence each.

    The error's traceback holds nothing of the model, so long as the frame with this context does not.
    """
    try:
        yield
    except BaseException as error:
        release_frames(error)
        if isinstance(error, CartoolkitError) or not isinstance(error, Exception):
            raise
        # A damaged config runs into whatever line of these libraries looks at it first.
        raise (_no_room if _is_out_of_memory(error) else _unreadable)(checkpoint, error) from error


def _is_out_of_memory(error: Exception) -> bool:
    words = ("out of memory", "unable to allocate", "insufficient memory", "bad_alloc")
    return isinstance(error, MemoryError) or any(said in str(error).lower() for said in words)


def _no_room(checkpoint: Checkpoint, error: Exception) -> NotEnoughMemory:
    needed = checkpoint.weight_bytes / 1e6
    return NotEnoughMemory(
        f"{checkpoint.name} does not fit into memory, its weights are {needed:,.0f} MB: {_first_line(error)}",
        hint="Close other engines (engine.close()), or choose another dtype, quantize='int4', or a smaller "
        "model.",
    )


def _unreadable(checkpoint: Checkpoint, error: Exception) -> InvalidCheckpoint:
    said = _first_line(error)
    hint = (
        "Load it with dtype='float32'."
        if "only supports float32" in said
        else "Check that the folder is complete and that this version of mlx-lm knows "
        f"the architecture {checkpoint.model_type!r}."
    )
    return InvalidCheckpoint(f"{checkpoint.name} could not be loaded by mlx-lm: {said}", hint=hint)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
