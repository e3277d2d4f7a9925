"""The outside of a GGUF file: its header, read and checked without touching a weight.

The format (docs/gguf.md of ggml): `GGUF`, a version, two counts; key-value pairs; one entry a tensor with
name, sides, type and place; then, aligned, the tensors. Everything is little-endian here. No count or length
is believed before the bytes for it are there, and nothing is allocated by what the file claims.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.gguf_types import FILE_TYPES, TYPES
from cartoolkit.models.headers import shown

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["GgufArray", "GgufHeader", "GgufTensor", "read_gguf_header"]

VERSIONS = (2, 3)
MAX_HEADER = 256_000_000  # bytes; a vocabulary of 262,144 tokens with its merges takes about 15 MB
MAX_PAIRS, MAX_TENSORS = 100_000, 1_000_000
MAX_STRINGS = 4_000_000  # in one array; each costs a step of the reader
MAX_NAME, MAX_TEXT = 65_535, 16_000_000  # bytes of a key, and of one text such as a chat template
MAX_SIDES = 4  # GGML_MAX_DIMS
KEPT_ITEMS = 1024  # arrays of numbers up to this length are kept, one number a layer for instance
DEFAULT_ALIGNMENT = 32

_STRING, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True)
class GgufArray:
    """An array of the metadata that was walked over and not kept.

    Attributes:
        count: how many items it has.
        item_type: their GGUF type number; 8 is a string.
    """

    count: int
    item_type: int


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor lies in its file.

    Attributes:
        name: its name in GGUF, such as `blk.0.attn_q.weight`.
        dtype: the ggml type, such as `Q4_K`; `type 99` for one that is not known here.
        shape: its sides, the fastest-moving one first, as GGUF writes them.
        begin: its first byte in the file.
        end: one past its last byte.
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


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says of itself.

    Attributes:
        path: the file.
        version: 2 or 3.
        metadata: key to value: text, number, truth value, a tuple of numbers, or a `GgufArray`.
        tensors: in the order of their bytes.
        data_begin: the first byte of the tensors.
        tokenizer_hash: hex SHA-256 of every `tokenizer.` entry; None if there is none.
    """

    path: Path
    version: int
    metadata: dict[str, Any] = field(repr=False)
    tensors: tuple[GgufTensor, ...] = field(repr=False)
    data_begin: int
    tokenizer_hash: str | None

    @property
    def architecture(self) -> str:
        """Such as `llama`, in llama.cpp's spelling.

        Raises:
            InvalidCheckpoint: the file does not say it; parts of a split model but the first do not.
        """
        word = self.metadata.get("general.architecture")
        if not isinstance(word, str) or not word:
            raise InvalidCheckpoint(f"{self.path} does not say its architecture (general.architecture).")
        return word

    @property
    def name(self) -> str | None:
        """What its makers called it."""
        return self.text("general.name")

    @property
    def file_type(self) -> str | None:
        """What most tensors are, such as `Q4_K_M`; None if the file does not say, or says a newer number."""
        number = self.number("general.file_type")
        return None if number is None else FILE_TYPES.get(number)

    @property
    def context_length(self) -> int | None:
        """Tokens the model was trained to see at once."""
        return self.of_architecture("context_length")

    @property
    def layers(self) -> int | None:
        """How many blocks it has."""
        return self.of_architecture("block_count")

    @property
    def heads(self) -> int | None:
        """Attention heads a layer; None where layers differ."""
        return self.of_architecture("attention.head_count")

    @property
    def embedding_length(self) -> int | None:
        """Width of the hidden state."""
        return self.of_architecture("embedding_length")

    @property
    def vocab_size(self) -> int | None:
        """How many tokens there are."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.count if isinstance(tokens, GgufArray) else self.of_architecture("vocab_size")

    @property
    def parameters(self) -> int:
        """Numbers in all tensors together."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(tensor.end - tensor.begin for tensor in self.tensors)

    def of_architecture(self, key: str) -> int | None:
        """The whole number under `<architecture>.<key>`, if there is one."""
        return self.number(f"{self.architecture}.{key}")

    def number(self, key: str) -> int | None:
        """The whole number under `key`; None if it is missing or something else."""
        value = self.metadata.get(key)
        return value if type(value) is int and value >= 0 else None

    def text(self, key: str) -> str | None:
        """The text under `key`; None if it is missing, empty or something else."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None


def read_gguf_header(path: Path) -> GgufHeader:
    """Read and check everything in a GGUF file that comes before its tensors.

    Versions 2 and 3 are read. It takes about 25 ms for a vocabulary of 49,152 tokens.

    Raises:
        InvalidCheckpoint: the file is cut off, not GGUF, of another version, big-endian, contradicts itself,
            or claims what no such file needs.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size == 0:
                raise _cut_off(path, "it is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _parse(path, _Reader(path, content))
    except OSError as exc:
        raise InvalidCheckpoint(f"{path} cannot be read: {exc.strerror or exc}.") from exc


def _cut_off(path: Path, why: str) -> InvalidCheckpoint:
    return InvalidCheckpoint(f"{path} is cut off: {why}.", hint="Delete it and fetch or copy the file again.")


class _Reader:
    """A place in the file that only moves forward, and never past its end."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self.content = content
        self.size = len(content)
        self.place = 0

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        begin = self.skip(count)
        return self.content[begin : self.place]

    def skip(self, count: int) -> int:
        """Move over `count` bytes; where they begin."""
        begin, end = self.place, self.place + count
        if end > self.size:
            raise _cut_off(self.path, f"its header goes on at byte {begin:,}, and the file has {self.size:,}")
        if end > MAX_HEADER:
            raise self.refused(f"claims a header of more than {MAX_HEADER:,} bytes")
        self.place = end
        return begin

    def scalar(self, code: str) -> Any:  # noqa: ANN401 - struct's codes name the type
        """The next number of a struct code."""
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def text(self, limit: int) -> str:
        """The next string, of at most `limit` bytes."""
        length = self.scalar("Q")
        if length > limit:
            raise self.refused(
                f"has a text of {length:,} bytes at byte {self.place:,}; {limit:,} is the limit"
            )
        return self.bytes(length).decode("utf-8", "replace")

    def count(self, limit: int, least: int, what: str) -> int:
        """The next 64-bit count of things that take at least `least` bytes each."""
        count = self.scalar("Q")
        if count > limit:
            raise self.refused(f"claims {count:,} {what}; {limit:,} is the limit")
        if count * least > self.size - self.place:
            raise _cut_off(self.path, f"it claims {count:,} {what}, and has only {self.size:,} bytes")
        return count

    def refused(self, what: str) -> InvalidCheckpoint:
        """The error for a file that `what`."""
        return InvalidCheckpoint(f"{self.path} is not a GGUF file that can be read: it {what}.")


def _parse(path: Path, reader: _Reader) -> GgufHeader:
    version = _version(reader)
    tensor_count = reader.count(MAX_TENSORS, 24, "tensors")
    pair_count = reader.count(MAX_PAIRS, 13, "key-value pairs")
    metadata, tokenizer = _metadata(reader, pair_count)
    entries = [_entry(reader) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment <= 0 or alignment % 8 or alignment > 1 << 20:
        raise reader.refused(f"says general.alignment = {shown(alignment)}")
    data_begin = _aligned(reader.place, alignment)
    tensors = _placed(reader, entries, data_begin, alignment)
    return GgufHeader(path, version, metadata, tuple(tensors), data_begin, tokenizer)


def _version(reader: _Reader) -> int:
    magic = reader.bytes(4)
    if magic != b"GGUF":
        raise reader.refused(f"begins with {shown(magic)} instead of b'GGUF'")
    version = reader.scalar("I")
    if version and version & 0xFFFF == 0:
        raise reader.refused("is big-endian, and this machine's libraries read little-endian files")
    if version not in VERSIONS:
        raise reader.refused(f"is of version {version}, and versions 2 and 3 are read")
    return version


# -- metadata --------------------------------------------------------------------------------------


def _metadata(reader: _Reader, count: int) -> tuple[dict[str, Any], str | None]:
    """The key-value pairs, and the hash of those that describe the tokenizer."""
    metadata: dict[str, Any] = {}
    digest = hashlib.sha256()
    for _ in range(count):
        begin = reader.place
        key = reader.text(MAX_NAME)
        if key in metadata:
            raise reader.refused(f"has the key {shown(key)} twice")
        metadata[key] = _value(reader, reader.scalar("I"), key)
        if key.startswith("tokenizer."):
            digest.update(reader.content[begin : reader.place])
    has_tokenizer = any(key.startswith("tokenizer.") for key in metadata)
    return metadata, digest.hexdigest() if has_tokenizer else None


def _value(reader: _Reader, kind: int, key: str) -> Any:  # noqa: ANN401 - GGUF values are of thirteen types
    if kind == _STRING:
        return reader.text(MAX_TEXT)
    if kind == _ARRAY:
        return _array(reader, reader.scalar("I"), key)
    if kind not in _SCALARS:
        raise reader.refused(f"gives {shown(key)} the type {kind}, which does not exist")
    value = reader.scalar(_SCALARS[kind])
    return bool(value) if kind == _BOOL else value


def _array(reader: _Reader, kind: int, key: str) -> GgufArray | tuple[Any, ...]:
    if kind == _STRING:
        count = reader.count(MAX_STRINGS, 8, f"texts for {shown(key)}")
        _skip_strings(reader, count)
        return GgufArray(count, kind)
    if kind not in _SCALARS:
        raise reader.refused(f"gives {shown(key)} items of the type {kind}, which an array cannot have")
    width = struct.calcsize("<" + _SCALARS[kind])
    count = reader.count(MAX_HEADER, width, f"numbers for {shown(key)}")
    begin = reader.skip(count * width)
    if count > KEPT_ITEMS:
        return GgufArray(count, kind)
    return struct.unpack(f"<{count}{_SCALARS[kind]}", reader.content[begin : reader.place])


def _skip_strings(reader: _Reader, count: int) -> None:
    """Move over `count` strings; written out, as a vocabulary has a quarter of a million of them."""
    content, place, last = reader.content, reader.place, min(reader.size, MAX_HEADER)
    length_at = struct.Struct("<Q").unpack_from
    for _ in range(count):
        if place + 8 > last:
            place = last + 1
            break
        place += 8 + length_at(content, place)[0]
    reader.skip(place - reader.place)  # says what is wrong if that is past the end


# -- tensors ---------------------------------------------------------------------------------------

_Entry = tuple[str, tuple[int, ...], int, int]


def _entry(reader: _Reader) -> _Entry:
    """Name, sides, type number and offset of the next tensor."""
    name = reader.text(MAX_NAME)
    sides = reader.scalar("I")
    if sides > MAX_SIDES:
        raise reader.refused(f"gives the tensor {shown(name)} {sides:,} sides; {MAX_SIDES} is the limit")
    shape = tuple(reader.scalar("Q") for _ in range(sides))
    return name, shape, reader.scalar("I"), reader.scalar("Q")


def _placed(reader: _Reader, entries: list[_Entry], data_begin: int, alignment: int) -> list[GgufTensor]:
    """The tensors with their byte ranges, each checked against its neighbours and the file's size."""
    entries = sorted(entries, key=lambda entry: entry[3])
    if len({entry[0] for entry in entries}) < len(entries):
        raise reader.refused("has two tensors of one name")
    begins = [data_begin + entry[3] for entry in entries]
    ends = [*begins, reader.size][1:]
    tensors = []
    for (name, shape, kind, offset), begin, room_end in zip(entries, begins, ends, strict=True):
        if offset % alignment:
            raise reader.refused(f"places the tensor {shown(name)} at {offset:,}, which is not aligned")
        dtype, size = _type_and_size(reader, name, shape, kind)
        end = room_end if size is None else begin + size
        if end > room_end or begin > room_end:
            raise _overrun(reader, name, begin, end, room_end)
        tensors.append(GgufTensor(name, dtype, shape, begin, end))
    return tensors


def _overrun(reader: _Reader, name: str, begin: int, end: int, room_end: int) -> InvalidCheckpoint:
    if room_end == reader.size:
        return _cut_off(
            reader.path,
            f"the tensor {shown(name)} takes the bytes {begin:,} to {end:,} of {reader.size:,}",
        )
    return reader.refused(f"places another tensor inside {shown(name)}, at byte {room_end:,}")


def _type_and_size(reader: _Reader, name: str, shape: tuple[int, ...], kind: int) -> tuple[str, int | None]:
    """The ggml type's name, and the tensor's bytes; a type of tomorrow is let through, its size unknown."""
    if kind not in TYPES:
        return f"type {kind}", None
    dtype, block, width = TYPES[kind]
    if shape and shape[0] % block:
        raise reader.refused(f"gives {shown(name)} rows of {shape[0]:,}, no multiple of {dtype}'s {block}")
    return dtype, math.prod(shape) // block * width


def _aligned(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment
