"""In which numbers an MLX model computes, and how to change that."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any
from typing import cast as cast_type

from cartoolkit.errors import InvalidRequest

if TYPE_CHECKING:
    from mlx import nn

__all__ = ["DTYPES", "QUANTIZATIONS", "bytes_a_weight", "cast", "check_choice", "pack", "precision"]

DTYPES = ("float32", "bfloat16", "float16")
QUANTIZATIONS = {"int8": 8, "int4": 4}  # bits
# Weights that share a scale and a bias; MLX has these kernels, the first is its default.
_GROUP_SIZES = (64, 32)


def check_choice(dtype: str | None, quantize: str | None) -> None:
    """Refuse words that are none of ours, before anything is loaded.

    Raises:
        InvalidRequest: not one of `DTYPES`, or not one of `QUANTIZATIONS`.
    """
    if dtype not in {None, *DTYPES}:
        raise InvalidRequest(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}.")
    if quantize not in {None, *QUANTIZATIONS}:
        raise InvalidRequest(f"quantize must be one of {', '.join(QUANTIZATIONS)}; got {quantize!r}.")


def bytes_a_weight(quantize: str) -> float:
    """Of a packed matrix, with a scale and a bias of at most 4 bytes each for a group."""
    return QUANTIZATIONS[quantize] / 8 + 8 / _GROUP_SIZES[0]


def precision(model: nn.Module, config: dict[str, Any]) -> str:
    """Such as `float32`, or `4-bit affine, group 64` for packed weights."""
    if block := config.get("quantization"):
        return f"{block['bits']}-bit {block.get('mode', 'affine')}, group {block['group_size']}"
    return _most_common_dtype(model)


def _most_common_dtype(model: nn.Module) -> str:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    sizes: Counter[str] = Counter()
    for _, value in cast_type("list[tuple[str, mx.array]]", tree_flatten(model.parameters())):
        if mx.issubdtype(value.dtype, mx.floating):
            sizes[str(value.dtype).removeprefix("mlx.core.")] += value.nbytes
    return sizes.most_common(1)[0][0]


def cast(model: nn.Module, dtype: str) -> None:
    """Turn floating-point parameters into `dtype`, but not packed words, nor what a model keeps exact."""
    import mlx.core as mx
    from mlx.utils import tree_map_with_path

    may_cast = getattr(model, "cast_predicate", lambda _: True)
    wanted = getattr(mx, dtype)

    def cast_one(path: str, value: mx.array) -> mx.array:
        floating = mx.issubdtype(value.dtype, mx.floating)
        return value.astype(wanted) if floating and may_cast(path) else value

    model.update(tree_map_with_path(cast_one, model.parameters()))


def pack(model: nn.Module, quantize: str) -> dict[str, Any]:
    """Quantize linear layers and embeddings by MLX's affine scheme, as far as their widths allow.

    Returns:
        What `config["quantization"]` says of such a model; empty if nothing could be packed.
    """
    from mlx import nn

    settings = {"group_size": _GROUP_SIZES[0], "bits": QUANTIZATIONS[quantize], "mode": "affine"}
    own_rule = getattr(model, "quant_predicate", None) or (lambda _path, _module: True)
    groups = set()

    def how(path: str, module: nn.Module) -> bool | dict[str, Any]:
        group = _group_size(module)
        if group is None or not (rule := own_rule(path, module)):
            return False
        groups.add(group)
        return {**settings, "group_size": group, **(rule if isinstance(rule, dict) else {})}

    nn.quantize(model, class_predicate=how)
    return {**settings, "group_size": max(groups)} if groups else {}


def _group_size(module: nn.Module) -> int | None:
    """The largest group that divides a layer's width; None where it cannot be packed."""
    if not hasattr(module, "to_quantized"):
        return None
    width = module["weight"].shape[-1]
    return next((size for size in _GROUP_SIZES if width % size == 0), None)
