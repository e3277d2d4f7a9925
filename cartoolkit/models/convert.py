"""A catalog model's GGUF file, rewritten once as a folder that every library loads in about a second.

transformers can read a GGUF file too, but needs about 15 s each time, refuses to save what it read and
ignores which pre-tokenizer the file names. So the file is read here with gguf-py, the format's own library:

* weights: the exact dequantised float32 values, under the names and in the form of the original checkpoint;
* config and tokenizer: what the file's metadata says. What it does not say is set in the architecture's own
  module, with its reason, and what is not known there is refused.
"""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, MissingDependency
from cartoolkit.models.conversion import Metadata, generation_config, tokenizer_config
from cartoolkit.models.convert_gemma3 import GEMMA3
from cartoolkit.models.convert_llama import LLAMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy as np
    from gguf import ReaderTensor

    from cartoolkit.models.conversion import Recipe

__all__ = ["convert_gguf"]

# By the name of the architecture in GGUF.
RECIPES: dict[str, Recipe] = {"llama": LLAMA, "gemma3": GEMMA3}

LIBRARIES = ("gguf", "safetensors", "tokenizers")


def convert_gguf(
    source: Path, target: Path, *, track: Callable[[Iterable[Any], int], Iterable[Any]] | None = None
) -> dict[str, str]:
    """Write the checkpoint in `source` to the folder `target` as safetensors, config and tokenizer.

    Args:
        source: a GGUF file of one of the architectures in `RECIPES`.
        target: an existing, empty folder.
        track: wraps the iteration over (tensors, count), for a progress bar.

    Returns:
        The libraries that did it, name to version.

    Raises:
        InvalidCheckpoint: the file is not GGUF, or holds something this converter does not know.
        MissingDependency: gguf, safetensors or tokenizers is not installed.
    """
    metadata, tensors = _open(source)
    recipe = RECIPES[metadata["general.architecture"]]
    config = recipe.config(metadata, all(tensor.name != "output.weight" for tensor in tensors))
    _save_weights(track(tensors, len(tensors)) if track else tensors, recipe, config, target)
    recipe.tokenizer(metadata).save(str(target / "tokenizer.json"))
    settings = tokenizer_config(metadata, config["max_position_embeddings"])
    _write_json(target / "tokenizer_config.json", settings)
    _write_json(target / "generation_config.json", generation_config(metadata))
    _write_json(target / "config.json", config)
    # safetensors writes files that only their owner can read; a cache may be shared.
    (target / "model.safetensors").chmod((target / "config.json").stat().st_mode)
    return {name: version(name) for name in LIBRARIES}


def require_converter() -> None:
    """Check, before anything is downloaded, that the converter's libraries are installed.

    Raises:
        MissingDependency: one of them is not.
    """
    if missing := missing_libraries():
        raise MissingDependency(
            f"The package {missing[0]} is needed to convert the model, and is not installed.",
            hint="Install it with: pip install 'cartoolkit[torch]'",
        )


def missing_libraries() -> list[str]:
    """The packages that the conversion needs and that are not installed."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def _open(source: Path) -> tuple[Metadata, list[ReaderTensor]]:
    require_converter()
    from gguf import GGUFReader

    try:
        reader = GGUFReader(source)
    except (ValueError, IndexError, OSError) as exc:
        raise InvalidCheckpoint(f"{source.name} cannot be read as a GGUF file: {exc}") from exc
    metadata = Metadata(reader)
    metadata.expect("general.architecture", RECIPES)
    return metadata, reader.tensors


def _save_weights(
    tensors: Iterable[ReaderTensor], recipe: Recipe, config: dict[str, Any], target: Path
) -> None:
    from safetensors.numpy import save_file

    weights = dict(_weight(tensor, recipe, config) for tensor in tensors)
    # transformers refuses a safetensors file that does not say which library's layout it has.
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def _weight(tensor: ReaderTensor, recipe: Recipe, config: dict[str, Any]) -> tuple[str, np.ndarray]:
    """The checkpoint's name and float32 values [rows, columns] (or [n]) of one GGUF tensor."""
    from gguf.quants import dequantize

    name = recipe.name(tensor.name)
    return name, recipe.restored(tensor.name, dequantize(tensor.data, tensor.tensor_type), config)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
