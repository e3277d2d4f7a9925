"""From a checkpoint's folder to a model of transformers on its device."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

from cartoolkit.engine.decoders.torch_errors import free_on
from cartoolkit.engine.decoders.torch_int8 import check_quantize, quantize_linears, quantized_bytes
from cartoolkit.errors import InvalidRequest, MissingDependency
from cartoolkit.models import admit, free_memory, require_memory, weight_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cartoolkit.models import Checkpoint

__all__ = ["check_loadable", "read_checkpoint", "require_torch"]


def require_torch() -> None:
    """Check that torch and transformers can be imported.

    Raises:
        MissingDependency: one of them cannot.
    """
    try:
        import torch  # noqa: F401 - only whether it is there
        import transformers  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise MissingDependency(
            f"the torch engine needs torch and transformers: {error}",
            hint="Install them with: pip install 'cartoolkit[torch]'",
        ) from error
    except AttributeError as error:
        # What is left of an import that was interrupted cannot be imported again in this process.
        raise MissingDependency(
            f"torch was not imported to its end: {error}", hint="Restart the kernel, or start Python anew."
        ) from error


def check_loadable(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, quantize: str | None
) -> int:
    """Refuse what cannot be loaded; arguments and errors as for `TorchDecoder.load`.

    Returns:
        Bytes of the weights where they will stay.
    """
    require_torch()
    admit(checkpoint, "torch")
    check_quantize(quantize, device)
    if quantize is not None and checkpoint.quantization is not None and checkpoint.quantization.is_packed:
        raise InvalidRequest(
            f"{checkpoint.name} is packed already ({checkpoint.quantization}); quantize= packs what is not.",
            hint="Leave quantize out, or take the version of the model that is not quantized.",
        )
    return _require_room(checkpoint, device, dtype, quantize)


def read_checkpoint(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, quantize: str | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model on its device, and its tokenizer; raises whatever torch and transformers raise."""
    tokenizer = _tokenizer(checkpoint)
    model = _model(checkpoint, dtype)
    if quantize is not None:
        quantize_linears(model)
    cast("torch.nn.Module", model).to(device)
    return model, tokenizer


def _require_room(
    checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype, quantize: str | None
) -> int:
    """Check main memory, through which the weights pass, and the device's.

    Returns:
        Bytes of the weights where they will stay.
    """
    loaded = weight_memory(checkpoint, dtype)
    needed = quantized_bytes(checkpoint, loaded) if quantize else loaded
    require_memory(loaded, free_memory(), what=checkpoint.name)
    if device.type == "cuda":
        require_memory(needed, free_on(device), what=checkpoint.name, place=str(device))
    return needed


def _tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(
        checkpoint.path, local_files_only=True, trust_remote_code=checkpoint.trust_remote_code
    )


def _model(checkpoint: Checkpoint, dtype: torch.dtype) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM

    options: dict[str, Any] = {"use_safetensors": checkpoint.format == "safetensors"}
    if checkpoint.format == "pickle":
        # The allowance is for the file, not for what it could run: torch's own unpickler takes tensors only.
        options["weights_only"] = True
    with _no_progress_bar():
        return AutoModelForCausalLM.from_pretrained(
            checkpoint.path,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=checkpoint.trust_remote_code,
            **options,
        )


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Loading takes a second or two; a bar of 272 tensors would outlive it in the notebook."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
