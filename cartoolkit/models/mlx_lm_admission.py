"""What the installed mlx-lm says of an architecture, and MLX of a packing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cartoolkit.models.headers import shown
from cartoolkit.models.quantization import QuantScheme

if TYPE_CHECKING:
    from cartoolkit.models.quantization import Quantization

__all__ = ["why_not"]

MODULE_NAME = re.compile(r"[\w-]{1,80}", re.ASCII)


def why_not(model_type: str, quantization: Quantization | None) -> tuple[str, str] | None:
    """Why mlx-lm cannot load such a model, and what to do; None if it can.

    mlx-lm keeps one module a model type, found by name after its own renaming table: the look-up that its
    loader makes is made here. An affine packing is put to MLX itself, which has kernels for some widths only.
    """
    if not _has_model(model_type):
        return (
            f"mlx-lm {_version()} has no model of the type {shown(model_type)}.",
            "A newer mlx-lm may have it; otherwise use engine='torch'.",
        )
    return _no_kernel(quantization)


def _has_model(model_type: str) -> bool:
    from mlx_lm.utils import _get_classes

    for spelling in dict.fromkeys((model_type.lower(), model_type)):
        if not MODULE_NAME.fullmatch(spelling):
            continue  # the name becomes part of an import
        try:
            _get_classes({"model_type": spelling})
        except (ValueError, AttributeError):  # no such module; or one of its helpers, which is no model
            continue
        return True
    return False


def _no_kernel(quantization: Quantization | None) -> tuple[str, str] | None:
    import mlx.core as mx

    if quantization is None or quantization.scheme is not QuantScheme.AFFINE_GROUP_INT:
        return None
    if quantization.bits is None or quantization.group_size is None:
        return None
    row = mx.zeros((1, 8 * min(quantization.group_size, 4096)))  # lazy: nothing is computed
    try:
        mx.quantize(row, group_size=quantization.group_size, bits=quantization.bits)
    except (ValueError, TypeError) as error:
        said = (str(error).strip().splitlines() or ["ValueError"])[0]
        return (
            f"MLX has no kernel for {quantization} in groups of {quantization.group_size} ({said}).",
            "Use a version of the model that is packed with other settings.",
        )
    return None


def _version() -> str:
    from importlib.metadata import version

    return version("mlx-lm")
