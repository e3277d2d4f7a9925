"""The outside of a safetensors file: its header, read and checked without touching a weight.

The format (see the safetensors README): eight bytes with the header's length, little-endian; the header,
a JSON object of tensor name to dtype, shape and place; then the tensors, one after the other, without gaps.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Tensor", "read_header", "read_json_object"]

MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors library itself
LENGTH_BYTES = 8
BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where one tensor lies in its file.

    Attributes:
        name: its name in the checkpoint.
        dtype: in safetensors' words, such as `F32` or `BF16`.
        shape: its sides.
        begin: first byte, counted from the end of the header.
        end: one past the last byte.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def read_header(path: Path) -> list[Tensor]:
    """The tensors of a safetensors file, in the order of their bytes.

    Raises:
        InvalidCheckpoint: the file is cut off, not safetensors, or its header contradicts itself.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = _header_length(path, file.read(LENGTH_BYTES), size)
            text = file.read(length)
    except OSError as exc:
        raise InvalidCheckpoint(f"{path} cannot be read: {exc.strerror or exc}.") from exc
    entries = parse_json_object(text, f"the header of {path}")
    entries.pop("__metadata__", None)
    tensors = sorted((_tensor(path, *item) for item in entries.items()), key=lambda t: (t.begin, t.end))
    _check_gapless(path, tensors, size - LENGTH_BYTES - length)
    return tensors


def _header_length(path: Path, prefix: bytes, size: int) -> int:
    if len(prefix) < LENGTH_BYTES:
        raise _cut_off(path, f"it has {size} bytes, fewer than the smallest safetensors file")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER:
        raise InvalidCheckpoint(
            f"{path} is not a safetensors file: it claims a header of {length:,} bytes,"
            f" and {MAX_HEADER:,} is the limit."
        )
    if LENGTH_BYTES + length > size:
        raise _cut_off(path, f"its header should take {length:,} bytes, and the file has {size:,}")
    return length


def _cut_off(path: Path, why: str) -> InvalidCheckpoint:
    return InvalidCheckpoint(
        f"{path} is cut off: {why}.", hint="Delete it and fetch or copy the checkpoint again."
    )


def _tensor(path: Path, name: str, entry: object) -> Tensor:
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(begin), int(end)]} if (
            0 <= begin <= end and all(type(side) is int and side >= 0 for side in shape)
        ):
            tensor = Tensor(name, dtype, tuple(shape), begin, end)
        case _:
            raise InvalidCheckpoint(
                f"{path} describes the tensor {shown(name)} as {shown(entry)}, which makes no sense."
            )
    bits = BITS.get(
        dtype
    )  # a dtype of tomorrow is let through: whether it can be loaded is the library's matter
    if bits is not None and tensor.elements * bits != (end - begin) * 8:
        raise InvalidCheckpoint(
            f"{path} gives the tensor {shown(name)} {end - begin:,} bytes,"
            f" which is not the size of {dtype} {shown(list(shape))}."
        )
    return tensor


def _check_gapless(path: Path, tensors: list[Tensor], room: int) -> None:
    place = 0
    for tensor in tensors:
        if tensor.begin != place:
            raise InvalidCheckpoint(
                f"{path} places the tensor {shown(tensor.name)} at byte {tensor.begin:,},"
                f" and {place:,} is where it must begin."
            )
        place = tensor.end
    if place > room:
        raise _cut_off(path, f"its tensors take {place:,} bytes, and {room:,} are there")
    if place < room:
        raise InvalidCheckpoint(f"{path} has {room - place:,} bytes that belong to no tensor.")


def read_json_object(path: Path, *, limit: int) -> dict[str, Any]:
    """The JSON object in a file of at most `limit` bytes.

    Raises:
        InvalidCheckpoint: it is larger, cannot be read, or is something else.
    """
    try:
        with path.open("rb") as file:
            text = file.read(limit + 1)
    except OSError as exc:
        raise InvalidCheckpoint(f"{path} cannot be read: {exc.strerror or exc}.") from exc
    if len(text) > limit:
        raise InvalidCheckpoint(f"{path} is larger than {limit / 1e6:g} MB, which no such file needs to be.")
    return parse_json_object(text, str(path))


def parse_json_object(text: bytes, what: str) -> dict[str, Any]:
    """The JSON object in `text`, which a message calls `what`.

    Raises:
        InvalidCheckpoint: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidCheckpoint(f"{_capital(what)} is not JSON: {exc}.") from exc
    if not isinstance(value, dict):
        raise InvalidCheckpoint(f"{_capital(what)} must be a JSON object, and is {shown(value)}.")
    return value


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def shown(value: object) -> str:
    """`repr`, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
