"""Which files of a checkpoint folder hold the weights, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.headers import Tensor, read_header, read_json_object, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Format", "Weights", "find_weights", "formats_in"]

Format = Literal["safetensors", "gguf", "pickle"]

SERVED_BY: dict[Format, str] = {
    "gguf": "Use engine='gguf' (pip install 'cartoolkit[gguf]'), or take the same model as safetensors.",
    "safetensors": "Use engine='torch' or engine='mlx', or take a GGUF file of the same model.",
    "pickle": "Use engine='torch' with allow_pickle=True, or take the same model as safetensors.",
}

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLE_FILE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
MAX_INDEX = 100_000_000  # bytes
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights files of a folder.

    Attributes:
        format: `safetensors` or `pickle`.
        files: in order.
        tensors: what their headers say; empty for pickles, which cannot be read without running them.
    """

    format: Format
    files: tuple[Path, ...]
    tensors: tuple[Tensor, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all tensors; for pickles, of the files."""
        if self.tensors:
            return sum(tensor.end - tensor.begin for tensor in self.tensors)
        return sum(path.stat().st_size for path in self.files)


def first_of(wanted: Iterable[Format], there: Sequence[Format]) -> Format | None:
    """The first of the wanted formats that is there; None if none is."""
    return next((one for one in wanted if one in there), None)


def formats_in(folder: Path) -> tuple[Format, ...]:
    """The formats in which `folder` has weights, by the names of its files; safetensors first."""
    found: list[Format] = []
    if (folder / WEIGHTS_FILE).exists() or (folder / INDEX_FILE).exists():
        found.append("safetensors")
    if any(path.suffix.lower() == ".gguf" for path in folder.iterdir()):
        found.append("gguf")
    if (folder / PICKLE_FILE).exists() or (folder / PICKLE_INDEX).exists():
        found.append("pickle")
    return tuple(found)


def find_weights(folder: Path, *, allow_pickle: bool = False) -> Weights:
    """The weights of a folder in the Hugging Face layout; one file goes before shards, as in transformers.

    Raises:
        InvalidCheckpoint: there are none, they are damaged, or they are pickles and those are not allowed.
    """
    if (folder / WEIGHTS_FILE).exists():
        files = [folder / WEIGHTS_FILE]
        tensors = read_header(files[0])
    elif (folder / INDEX_FILE).exists():
        files, tensors = _shards(folder)
    elif allow_pickle and (pickles := _pickles(folder)):
        return Weights("pickle", tuple(pickles))
    else:
        raise _no_weights(folder)
    if not tensors:
        raise InvalidCheckpoint(f"{files[0]} holds no weights.")
    return Weights("safetensors", tuple(files), tuple(tensors))


def _pickles(folder: Path) -> list[Path]:
    if (folder / PICKLE_FILE).exists():
        return [folder / PICKLE_FILE]
    index = folder / PICKLE_INDEX
    return _files_of_index(index, _weight_map(index), ending=".bin") if index.exists() else []


def _no_weights(folder: Path) -> InvalidCheckpoint:
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickles:
        return InvalidCheckpoint(
            f"{folder} has its weights only as a pickle file ({pickles[0]}), and pickle files can run code"
            " when opened.",
            hint="Use a version of the model that comes in safetensors. If you trust whoever made the file,"
            " allow it by name: allow_pickle=True.",
        )
    others = (
        ", ".join(sorted(path.name for path in folder.glob("*.safetensors"))) or "no safetensors file at all"
    )
    return InvalidCheckpoint(
        f"{folder} has neither {WEIGHTS_FILE} nor {INDEX_FILE}; it has {others}.",
        hint="The weights are missing, or this is an adapter, which must be merged into its model first.",
    )


def _shards(folder: Path) -> tuple[list[Path], list[Tensor]]:
    index = folder / INDEX_FILE
    placed = _weight_map(index)
    files = _files_of_index(index, placed, ending=".safetensors")
    found = {path.name: read_header(path) for path in files}
    _check_placed(index, placed, found)
    return files, [tensor for tensors in found.values() for tensor in tensors]


def _weight_map(index: Path) -> dict[str, str]:
    placed = read_json_object(index, limit=MAX_INDEX).get("weight_map")
    if not isinstance(placed, dict) or not placed:
        raise InvalidCheckpoint(f"{index} has no weight_map that says which file holds which tensor.")
    return placed


def _files_of_index(index: Path, placed: dict[str, str], *, ending: str) -> list[Path]:
    """The files that an index names, all of them there."""
    files = [index.parent / name for name in _shard_names(index, placed.values(), ending)]
    missing = [path.name for path in files if not path.exists()]
    if missing:
        raise InvalidCheckpoint(
            f"{index.parent} lacks {len(missing)} of {len(files)} weights files: {', '.join(missing[:5])}.",
            hint="The download was not finished; fetch or copy the missing files.",
        )
    return files


def _shard_names(index: Path, names: Iterable[object], ending: str) -> list[str]:
    """The distinct shard names, sorted; each must be a plain file name, so that none leaves the folder."""
    distinct = set()
    for name in names:
        is_plain = isinstance(name, str) and name.endswith(ending) and not set(name) & set("/\\:\0")
        if not is_plain:
            raise InvalidCheckpoint(
                f"{index} names the weights file {shown(name)}, which is not a file name."
            )
        distinct.add(name)
    return sorted(distinct)


def _check_placed(index: Path, placed: dict[str, str], found: dict[str, list[Tensor]]) -> None:
    there = {name: {tensor.name for tensor in tensors} for name, tensors in found.items()}
    for tensor, name in placed.items():
        if tensor not in there[name]:
            raise InvalidCheckpoint(f"{index} says that {tensor!r} is in {name}, and it is not.")
