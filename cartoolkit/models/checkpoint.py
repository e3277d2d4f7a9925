"""A checkpoint folder seen from outside: what it is, whether it is whole, and its fingerprint."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, ModelNotFound
from cartoolkit.models import fingerprints
from cartoolkit.models.catalog import CATALOG
from cartoolkit.models.config import CONFIG_FILE, Layout, read_config, weight_layout
from cartoolkit.models.headers import Tensor, read_header, read_json_object, shown
from cartoolkit.models.record import Record, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Checkpoint", "inspect_checkpoint"]

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
MAX_INDEX = 100_000_000  # bytes
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was found whole; none of its weights has been loaded.

    Attributes:
        path: its folder.
        name: its catalog name, hub name, or the folder's name.
        config: the content of `config.json`.
        model_type: such as `llama`.
        architectures: class names in transformers, such as `LlamaForCausalLM`; may be empty.
        weight_files: the safetensors files, in order.
        weight_bytes: bytes of all tensors together.
        parameters: numbers in all tensors together; for packed layouts, packed words.
        dtypes: the dtypes that occur, in safetensors' words, sorted.
        layout: `plain`, or `mlx` for weights that only mlx-lm can unpack.
        fingerprint: `sha256:…` of the weights where it was recorded at conversion (catalog models),
            else `sampled-sha256:…` over config, header and samples of the weights.
        tokenizer_hash: SHA-256 of `tokenizer.json`; None without a tokenizer.
        is_catalog: whether this is an unchanged catalog model.
        licence: SPDX identifier, where it is known.
    """

    path: Path
    name: str
    config: dict[str, Any] = field(repr=False, hash=False)
    model_type: str
    architectures: tuple[str, ...]
    weight_files: tuple[Path, ...] = field(repr=False)
    weight_bytes: int
    parameters: int
    dtypes: tuple[str, ...]
    layout: Layout
    fingerprint: str
    tokenizer_hash: str | None
    is_catalog: bool
    licence: str | None

    @property
    def context_length(self) -> int | None:
        """Tokens the model can see at once, if its config says so."""
        return self.config.get("max_position_embeddings")


def inspect_checkpoint(path: str | Path, *, name: str | None = None) -> Checkpoint:
    """Read everything about a checkpoint folder but its weights, and refuse what must not be loaded.

    Args:
        path: a folder in the Hugging Face layout with safetensors weights.
        name: what to call it; by default its catalog name, else the folder's name.

    Returns:
        What was found; it takes a few milliseconds.

    Raises:
        ModelNotFound: there is no such folder.
        InvalidCheckpoint: the folder is not a checkpoint, is damaged, packed, or would run code.
    """
    folder = absolute(path)
    _require_folder(folder)
    config = read_config(folder)
    files, tensors = _weights(folder)
    sampled = fingerprints.sampled(folder, files)
    record = _true_record(folder, sampled)
    return Checkpoint(
        path=folder,
        name=name or (record.name if record else folder.name),
        config=config,
        model_type=config["model_type"],
        architectures=tuple(config.get("architectures") or ()),
        weight_files=tuple(files),
        weight_bytes=sum(tensor.end - tensor.begin for tensor in tensors),
        parameters=sum(tensor.elements for tensor in tensors),
        dtypes=tuple(sorted({tensor.dtype for tensor in tensors})),
        layout=weight_layout(config, folder / CONFIG_FILE),
        fingerprint=f"sha256:{record.model_sha256}" if record else f"sampled-sha256:{sampled}",
        tokenizer_hash=fingerprints.tokenizer_hash(folder),
        is_catalog=record is not None,
        licence=record.licence if record else None,
    )


def absolute(path: str | Path) -> Path:
    """`path` from the root, with `~` resolved where that user exists."""
    return Path(os.path.expanduser(path)).absolute()  # noqa: PTH111 (Path's own raises for an unknown ~user)


def _require_folder(folder: Path) -> None:
    if folder.suffix.lower() == ".gguf":
        raise InvalidCheckpoint(
            f"{folder} is a GGUF file; this release reads GGUF only for the models of its own catalog.",
            hint="Use the same model as a folder with config.json and *.safetensors files.",
        )
    if not folder.exists():
        raise ModelNotFound(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise InvalidCheckpoint(
            f"{folder} is a file, and a checkpoint is a folder.",
            hint="Give the folder that holds config.json and the *.safetensors files.",
        )


def _true_record(folder: Path, sampled: str) -> Record | None:
    """The folder's record, if the folder is still as it was written and the catalog still pins its source."""
    record = read_record(folder)
    if record is None or record.sampled_sha256 != sampled:
        return None
    entry = CATALOG.get(record.name)
    return record if entry is not None and record.matches(entry) else None


# -- which files hold the weights ------------------------------------------------------------------


def _weights(folder: Path) -> tuple[list[Path], list[Tensor]]:
    """The weights files of `folder` and their tensors; one file goes before shards, as in transformers."""
    if (folder / WEIGHTS_FILE).exists():
        files = [folder / WEIGHTS_FILE]
        tensors = read_header(files[0])
    elif (folder / INDEX_FILE).exists():
        files, tensors = _shards(folder)
    else:
        raise _no_weights(folder)
    if not tensors:
        raise InvalidCheckpoint(f"{files[0]} holds no weights.")
    return files, tensors


def _no_weights(folder: Path) -> InvalidCheckpoint:
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickles:
        return InvalidCheckpoint(
            f"{folder} has its weights only as a pickle file ({pickles[0]}), and pickle files can run code"
            " when opened.",
            hint="Convert it to safetensors, or use a version of the model that comes in safetensors.",
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
    placed = read_json_object(index, limit=MAX_INDEX).get("weight_map")
    if not isinstance(placed, dict) or not placed:
        raise InvalidCheckpoint(f"{index} has no weight_map that says which file holds which tensor.")
    files = [folder / name for name in _shard_names(index, placed.values())]
    missing = [path.name for path in files if not path.exists()]
    if missing:
        raise InvalidCheckpoint(
            f"{folder} lacks {len(missing)} of {len(files)} weights files: {', '.join(missing[:5])}.",
            hint="The download was not finished; fetch or copy the missing files.",
        )
    found = {path.name: read_header(path) for path in files}
    _check_placed(index, placed, found)
    return files, [tensor for tensors in found.values() for tensor in tensors]


def _shard_names(index: Path, names: Iterable[object]) -> list[str]:
    """The distinct shard names, sorted; each must be a plain file name, so that none leaves the folder."""
    distinct = set()
    for name in names:
        is_plain = isinstance(name, str) and name.endswith(".safetensors") and not set(name) & set("/\\:\0")
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
