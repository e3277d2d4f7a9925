"""How a checkpoint's weights are packed, in one vocabulary for three worlds of names.

MLX declares bits, group size and mode; GGUF names a file type such as `Q4_K_M`; transformers names a
`quant_method` such as `awq`. What matters to an engine is the scheme behind the name: whether it has the
arithmetic that turns these bytes into weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["QuantScheme", "Quantization"]


class QuantScheme(Enum):
    """The arithmetic that unpacks a weight."""

    UNQUANTIZED = "unquantized"
    """One floating-point number a weight."""
    AFFINE_GROUP_INT = "affine group integer"
    """Integers with a scale and a bias for each group of a row: MLX's default."""
    BLOCK_SCALED_FLOAT = "block-scaled float"
    """Small floats with a shared scale a block: mxfp4, mxfp8, nvfp4."""
    K_QUANT_MIXED = "K-quant"
    """GGUF super-blocks of 256 with scales of scales, and different types for different tensors."""
    RTN_BLOCK = "round-to-nearest block"
    """GGUF blocks of integers with a scale and perhaps a minimum; ternary TQ blocks round likewise."""
    UNKNOWN = "unknown"
    """A layout with a name whose arithmetic is not described here."""


# The names that MLX gives to its modes; `affine` is also meant where none is named.
_BLOCK_SCALED_MODES = frozenset({"mxfp4", "mxfp8", "nvfp4"})

_FLOAT_BITS = {
    **dict.fromkeys(("bf16", "bfloat16", "f16", "fp16", "float16", "half"), 16),
    **dict.fromkeys(("f32", "fp32", "float32", "float"), 32),
    **dict.fromkeys(("f64", "fp64", "float64", "double"), 64),
}
_K_QUANT = re.compile(r"q(\d+)_k(?:_(?:xs|s|m|l|xl))?")
_RTN = re.compile(r"t?q(\d+)_[01]")
_CODEBOOK = re.compile(r"iq(\d+)_[a-z]+")
_MX_FILE_TYPE = re.compile(r"(?:mxfp|nvfp)(\d+)(?:_moe)?")


@dataclass(frozen=True, slots=True)
class Quantization:
    """What a checkpoint says about the packing of its weights.

    Attributes:
        name: as it was declared, such as `Q4_K_M`, `awq` or `mxfp4`; `affine` for MLX's default mode.
        scheme: the arithmetic behind the name.
        bits: nominal bits a weight; None where the name does not say it.
        group_size: weights that share a scale; None where it is not said.
        mode: MLX's mode, for weights packed by MLX; else None.
        method: transformers' `quant_method`; None for weights packed by MLX or for GGUF.
        declared: the block of `config.json` that it was read from; takes no part in comparisons.
    """

    name: str
    scheme: QuantScheme
    bits: int | None = None
    group_size: int | None = None
    mode: str | None = None
    method: str | None = None
    declared: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def parse(cls, name: str) -> Self:
        """The quantization of that name, in any case: a dtype, a GGUF type, an MLX mode or a `quant_method`.

        `IQ…` is UNKNOWN: its numbers are places in a codebook, which is neither of GGUF's two schemes here;
        `is_ggml` still tells that llama.cpp is its home. Any other name is UNKNOWN, and is kept as `method`.
        """
        word = name.strip().lower().replace("-", "_")
        if word in _FLOAT_BITS:
            return cls(name, QuantScheme.UNQUANTIZED, _FLOAT_BITS[word])
        for pattern, scheme in (
            (_K_QUANT, QuantScheme.K_QUANT_MIXED),
            (_RTN, QuantScheme.RTN_BLOCK),
            (_CODEBOOK, QuantScheme.UNKNOWN),
            (_MX_FILE_TYPE, QuantScheme.BLOCK_SCALED_FLOAT),
        ):
            if match := pattern.fullmatch(word):
                return cls(name, scheme, _width(match.group(1)))
        return cls(name, QuantScheme.UNKNOWN, method=name.strip().lower())

    @classmethod
    def from_mlx_config(cls, bits: int | None, group_size: int | None, mode: str | None = None) -> Self:
        """What MLX's `quantization` block declares; an unknown width changes nothing about the scheme.

        The scheme follows from the mode alone. No mode is MLX's `affine`; a mode that is none of MLX's four
        is UNKNOWN under its own name.
        """
        mode = (mode or "affine").strip().lower()
        if mode == "affine":
            scheme = QuantScheme.AFFINE_GROUP_INT
        elif mode in _BLOCK_SCALED_MODES:
            scheme = QuantScheme.BLOCK_SCALED_FLOAT
        else:
            scheme = QuantScheme.UNKNOWN
        return cls(mode, scheme, bits, group_size, mode)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self | None:
        """What a `config.json` declares; None if it declares nothing, which means full precision.

        Read are MLX's `quantization`, transformers' `quantization_config` (also inside `text_config`) and
        the older `compression_config`. A block that names no method and no bits is UNKNOWN.
        """
        block = _declared_block(config)
        if block is None:
            return None
        if not isinstance(block, dict):
            return cls(str(block), QuantScheme.UNKNOWN, method=str(block).lower())
        bits, group_size = _count(block.get("bits")), _count(block.get("group_size"))
        method = block.get("quant_method")
        if method is None and ("bits" in block or "mode" in block):
            mode = block.get("mode")
            found = cls.from_mlx_config(bits, group_size, mode if isinstance(mode, str) else None)
            return cls(found.name, found.scheme, bits, group_size, found.mode, declared=block)
        word = str(method or "unnamed").strip().lower()
        scheme = cls.parse(word).scheme if word in _BLOCK_SCALED_MODES else QuantScheme.UNKNOWN
        return cls(word, scheme, bits, group_size, method=word, declared=block)

    @property
    def is_ggml(self) -> bool:
        """Whether the name is one of GGUF's own packed types, `IQ…` and `TQ…` included."""
        word = self.name.strip().lower().replace("-", "_")
        return any(pattern.fullmatch(word) for pattern in (_K_QUANT, _RTN, _CODEBOOK))

    @property
    def is_packed(self) -> bool:
        """Whether a weight is anything but one floating-point number."""
        return self.scheme is not QuantScheme.UNQUANTIZED

    def __str__(self) -> str:
        """The name, with the width where the name does not say it."""
        width = "" if self.bits is None or str(self.bits) in self.name else f" {self.bits}-bit"
        return f"{self.name}{width}"


def _declared_block(config: Mapping[str, Any]) -> object:
    inner = config.get("text_config")
    for place in (config, inner if isinstance(inner, dict) else {}):
        for key in ("quantization", "quantization_config", "compression_config"):
            if place.get(key):
                return place[key]
    return None


def _count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _width(digits: str) -> int | None:
    # A name is text from a file: its digits may be many, and are then no width.
    return int(digits) if len(digits) <= 2 else None
