"""A checkpoint seen from outside: what it is, whether it is whole, and its fingerprint."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, ModelNotFound
from cartoolkit.models import fingerprints
from cartoolkit.models.catalog import CATALOG
from cartoolkit.models.config import CONFIG_FILE, context_length_of, quantization_of, read_config
from cartoolkit.models.gguf_checkpoint import only_gguf_in, read_gguf_model
from cartoolkit.models.record import Record, read_record
from cartoolkit.models.weights import find_weights, formats_in

if TYPE_CHECKING:
    from cartoolkit.models.quantization import Quantization
    from cartoolkit.models.weights import Format

__all__ = ["Checkpoint", "inspect_checkpoint"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that was found whole; none of its weights has been loaded.

    Attributes:
        path: its folder; for GGUF its file, the first one of a split model.
        name: its catalog name, hub name, or the folder's or file's name.
        config: the content of `config.json`; for GGUF the header, in the words of a `config.json`.
        model_type: such as `llama`; for GGUF in llama.cpp's spelling, such as `qwen3moe`.
        architectures: class names in transformers, such as `LlamaForCausalLM`; may be empty.
        weight_files: the weights files, in order.
        weight_bytes: bytes of all tensors together; of the files, for pickles.
        parameters: numbers in all tensors together; packed words for packed safetensors, and 0 for pickles,
            which cannot be looked into without running them.
        dtypes: the dtypes that occur, in the words of safetensors or ggml, sorted; empty for pickles.
        format: `safetensors`, `gguf` or `pickle`.
        quantization: how the weights are packed; None if nothing is declared, which is full precision.
        fingerprint: `sha256:…` of the weights where it was recorded (catalog models), else
            `sampled-sha256:…` over config, header and samples of the weights.
        tokenizer_hash: SHA-256 of `tokenizer.json`, or of the tokenizer in a GGUF header; None without one.
        is_catalog: whether this is an unchanged catalog model.
        licence: SPDX identifier, where it is known.
        allow_pickle: whether pickle files were allowed by name.
        trust_remote_code: whether code that comes with the checkpoint was allowed by name.
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
    format: Format
    quantization: Quantization | None
    fingerprint: str
    tokenizer_hash: str | None
    is_catalog: bool
    licence: str | None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @property
    def context_length(self) -> int | None:
        """Tokens the model can see at once, if its config says so."""
        return context_length_of(self.config)


def inspect_checkpoint(
    path: str | Path,
    *,
    name: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Checkpoint:
    """Read everything about a checkpoint but its weights, and refuse what must not be loaded.

    Whether an engine can use it is another question: `cartoolkit.models.engine_serves`.

    Args:
        path: a folder in the Hugging Face layout, a `.gguf` file, or a folder with one GGUF model alone.
        name: what to call it; by default its catalog name, else the name of the folder or file.
        allow_pickle: accept weights that are only there as pickle files, which can run code when opened.
        trust_remote_code: accept a checkpoint that asks to run code of its own.

    Returns:
        What was found; it takes a few milliseconds, some 25 for a GGUF file.

    Raises:
        ModelNotFound: there is no such folder or file.
        InvalidCheckpoint: it is not a checkpoint, is damaged, or would run code that was not allowed.
    """
    place = absolute(path)
    if place.suffix.lower() == ".gguf" and not place.is_dir():
        return _inspect_gguf(place, name)
    _require_folder(place)
    if formats_in(place) == ("gguf",):
        return _inspect_gguf(only_gguf_in(place), name)
    return _inspect_folder(place, name, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)


def absolute(path: str | Path) -> Path:
    """`path` from the root, with `~` resolved where that user exists."""
    return Path(os.path.expanduser(path)).absolute()  # noqa: PTH111 (Path's own raises for an unknown ~user)


def _inspect_folder(
    folder: Path, name: str | None, *, allow_pickle: bool, trust_remote_code: bool
) -> Checkpoint:
    config = read_config(folder, trust_remote_code=trust_remote_code)
    weights = find_weights(folder, allow_pickle=allow_pickle)
    sampled = fingerprints.sampled(folder, weights.files)
    record = _true_record(folder, sampled)
    return Checkpoint(
        path=folder,
        name=name or (record.name if record else folder.name),
        config=config,
        model_type=config["model_type"],
        architectures=tuple(config.get("architectures") or ()),
        weight_files=weights.files,
        weight_bytes=weights.size,
        parameters=sum(tensor.elements for tensor in weights.tensors),
        dtypes=tuple(sorted({tensor.dtype for tensor in weights.tensors})),
        format=weights.format,
        quantization=quantization_of(folder, config),
        fingerprint=_fingerprint(record, sampled),
        tokenizer_hash=fingerprints.tokenizer_hash(folder),
        is_catalog=record is not None,
        licence=record.licence if record else None,
        allow_pickle=allow_pickle,
        trust_remote_code=trust_remote_code,
    )


def _inspect_gguf(path: Path, name: str | None) -> Checkpoint:
    model = read_gguf_model(path)
    sampled = fingerprints.sampled_gguf(model.headers)
    record = _true_record(model.first.path.parent, sampled)
    return Checkpoint(
        path=model.first.path,
        name=name or (record.name if record else model.stem),
        config=model.config,
        model_type=model.first.architecture,
        architectures=(),
        weight_files=tuple(header.path for header in model.headers),
        weight_bytes=model.weight_bytes,
        parameters=model.parameters,
        dtypes=model.dtypes,
        format="gguf",
        quantization=model.quantization,
        fingerprint=_fingerprint(record, sampled),
        tokenizer_hash=model.first.tokenizer_hash,
        is_catalog=record is not None,
        licence=record.licence if record else model.first.text("general.license"),
    )


def _fingerprint(record: Record | None, sampled: str) -> str:
    return f"sha256:{record.model_sha256}" if record else f"sampled-sha256:{sampled}"


def _require_folder(folder: Path) -> None:
    if not folder.exists():
        raise ModelNotFound(f"There is no folder {folder}.")
    if not folder.is_dir():
        raise InvalidCheckpoint(
            f"{folder} is a file, and a checkpoint is a folder or a .gguf file.",
            hint=f"Give the folder that holds {CONFIG_FILE} and the *.safetensors files.",
        )


def _true_record(folder: Path, sampled: str) -> Record | None:
    """The folder's record, if the folder is still as it was written and the catalog still pins its source."""
    record = read_record(folder)
    if record is None or record.sampled_sha256 != sampled:
        return None
    entry = CATALOG.get(record.name)
    return record if entry is not None and record.matches(entry) else None
