"""Weight-only int8: every matrix as 8-bit numbers with one scale for each output, activations as they were.

It halves the memory of the weights, and what has to be read of them for every token. In time torch's int8
kernel is about level with its own bfloat16 kernel (see `torch_matmul`) where the memory is idle, and ahead
where others use it too.

torchao offers the same packing, but without a compiler it unpacks the whole matrix for every token, which
takes twice as long as not packing at all; hence torch's kernel directly, `aten::_weight_int8pack_mm`, which
torchao's compiled path is lowered to as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from cartoolkit.errors import InvalidRequest, MissingDependency

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from cartoolkit.models import Checkpoint

__all__ = ["check_quantize", "quantize_linears", "quantized_bytes"]

# Smaller ones (the routers of mixtures, mostly) decide more than they weigh.
_SMALLEST = 64 * 64


def check_quantize(quantize: str | None, device: torch.device) -> None:
    """Check that such a quantization exists and that this torch computes with it on `device`.

    Raises:
        InvalidRequest: it is not None or `int8`.
        MissingDependency: this torch lacks the kernel.
    """
    if quantize is None:
        return
    if quantize != "int8":
        raise InvalidRequest(f"quantize must be 'int8' for the torch engine; got {quantize!r}.")
    import torch

    from cartoolkit.engine.decoders.torch_int8_linear import few_rows_times_int8

    try:
        row = torch.ones(1, 64, dtype=torch.bfloat16, device=device)
        few_rows_times_int8(row, row.expand(64, 64).to(torch.int8), row[0])
    except (AttributeError, RuntimeError) as error:
        raise MissingDependency(
            f"quantize='int8' needs a kernel that torch {torch.__version__} lacks on {device}: {error}",
            hint="Leave quantize out, or take another version of torch.",
        ) from error


def quantized_bytes(checkpoint: Checkpoint, loaded: int) -> int:
    """About how many of `loaded` bytes of weights are left: the embedding whole, a byte for all else."""
    rows, columns = (checkpoint.config.get(name) or 0 for name in ("vocab_size", "hidden_size"))
    if not checkpoint.parameters:
        return loaded
    embedding = rows * columns * loaded // checkpoint.parameters
    return embedding + max(checkpoint.parameters - rows * columns, 0)


def quantize_linears(model: PreTrainedModel) -> int:
    """Replace the linear layers of `model` by packed ones; returns how many.

    The output layer stays where it shares its weights with the embedding, which must stay as it is: packed
    it would take memory, not save it. Experts that are kept as one block of three dimensions stay as well.
    """
    import torch

    from cartoolkit.engine.decoders.torch_int8_linear import Int8Linear

    shared = {id(part.weight) for part in model.modules() if isinstance(part, torch.nn.Embedding)}
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if _pays(child) and id(child.weight) not in shared
    ]
    for parent, name, child in found:
        bias = cast("torch.Tensor | None", child.bias)
        setattr(parent, name, Int8Linear.packed(_matrix(child), bias))
    return len(found)


def _pays(layer: torch.nn.Module) -> bool:
    import torch
    from transformers.pytorch_utils import Conv1D

    # The exact classes only: a subclass computes something of its own.
    return type(layer) in (torch.nn.Linear, Conv1D) and _matrix(layer).numel() >= _SMALLEST


def _matrix(layer: torch.nn.Module) -> torch.Tensor:
    """The weights [out, in] of a linear layer, which GPT-2's kind keeps the other way round."""
    from transformers.pytorch_utils import Conv1D

    weight = cast("torch.Tensor", layer.weight)
    return weight.T if isinstance(layer, Conv1D) else weight
