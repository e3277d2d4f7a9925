"""From what a person types to a checkpoint on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.models import catalog, hub
from cartoolkit.models.checkpoint import Checkpoint, absolute, inspect_checkpoint
from cartoolkit.models.fetch import fetch
from cartoolkit.models.headers import shown

__all__ = ["resolve"]


def resolve(name_or_path: str | Path | None = None, *, progress: bool = True) -> Checkpoint:
    """Find a model by catalog name, folder or hub name; what is not here yet is fetched.

    A string is tried as a catalog name, then as a folder, then as `owner/model` on the Hugging Face hub.
    A folder that is called like a catalog model is meant with `./` before it.

    Args:
        name_or_path: a name or a folder; None for the default model.
        progress: show progress bars if something must be downloaded.

    Returns:
        The checkpoint, inspected; no weights are loaded. With everything in place it takes milliseconds.

    Raises:
        InvalidRequest: it is neither a string nor a path.
        ModelNotFound: nothing of this name; the message says where it was looked for.
        InvalidCheckpoint: it was found, and must not or cannot be loaded.
        NetworkUnavailable: it would have to be downloaded, and cannot be.
        NotEnoughSpace: it would have to be downloaded, and the disk is too small.
        HashMismatch: the downloaded bytes are not the pinned ones.
        MissingDependency: a library that is needed to fetch it is not installed.
    """
    if isinstance(name_or_path, os.PathLike):
        return _folder(Path(name_or_path))
    if name_or_path is not None and not isinstance(name_or_path, str):
        raise InvalidRequest(
            f"a model is named by a string or a folder; got a {type(name_or_path).__name__}.",
            hint="A model that is loaded already becomes an engine by: "
            "Engine(lambda: TorchDecoder(model, tokenizer))",
        )
    name = (catalog.DEFAULT_MODEL if name_or_path is None else name_or_path).strip()
    if name.lower() in catalog.CATALOG:
        return inspect_checkpoint(fetch(name, progress=progress), name=catalog.find(name).title)
    if looks_like_path(name):
        return _folder(name)
    if hub.is_hub_name(name):
        return hub.from_hub(name, progress=progress)
    raise ModelNotFound(
        f"There is no model {shown(name)}: neither in the catalog, nor as a folder in {Path.cwd()}.",
        hint=catalog.suggestion(name),
    )


def looks_like_path(name: str) -> bool:
    """Whether `name` is meant as a path: by its form, or because something is there."""
    is_form = name.startswith((".", "~", "/", "\\")) or name.lower().endswith((".gguf", ".safetensors"))
    # os.path answers False for a name that no file system allows, where pathlib may raise.
    return is_form or os.path.isabs(name) or (name != "" and os.path.exists(name))  # noqa: PTH117, PTH110


def _folder(path: str | Path) -> Checkpoint:
    path = absolute(path)
    if not path.exists() and path.suffix.lower() != ".gguf":
        raise ModelNotFound(
            f"There is no folder {path}.",
            hint="Check the path; a hub name has the form 'owner/model', without a dot or slash before it.",
        )
    return inspect_checkpoint(path)
