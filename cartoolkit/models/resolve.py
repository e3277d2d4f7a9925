"""From what a person types to a checkpoint on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidCheckpoint, InvalidRequest, ModelNotFound
from cartoolkit.models import catalog, convert, hub
from cartoolkit.models.admission import admit
from cartoolkit.models.checkpoint import Checkpoint, absolute, inspect_checkpoint
from cartoolkit.models.fetch import fetch, is_ready
from cartoolkit.models.gguf_checkpoint import only_gguf_in
from cartoolkit.models.headers import shown
from cartoolkit.models.weights import SERVED_BY, first_of, formats_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.models.engines import EngineName
    from cartoolkit.models.weights import Format

__all__ = ["available_formats", "resolve"]


def resolve(
    name_or_path: str | Path | None = None,
    *,
    formats: Sequence[Format] = ("safetensors",),
    progress: bool = True,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    engine: EngineName | None = None,
) -> Checkpoint:
    """Find a model by catalog name, folder, file or hub name; what is not here yet is fetched.

    A string is tried as a catalog name, then as a folder or file, then as `owner/model` on the Hugging Face
    hub. A folder that is called like a catalog model is meant with `./` before it. One GGUF file of a hub
    repository is named `owner/model:Q4_K_M` or `owner/model/file.gguf`.

    Args:
        name_or_path: a name, a folder or a `.gguf` file; None for the default model.
        formats: what the caller can use, best first; the first one in which the model can be had is taken.
        progress: show progress bars if something must be downloaded.
        allow_pickle: also take weights that are there only as pickle files, which can run code when opened.
        trust_remote_code: also take a checkpoint that asks to run code of its own.
        engine: also refuse what this engine cannot serve; weights on the hub are then not downloaded. The
            header of a GGUF file is part of it, so that a GGUF file is judged when it is there.

    Returns:
        The checkpoint, inspected; no weights are loaded. With everything in place it takes milliseconds.

    Raises:
        InvalidRequest: it is neither a string nor a path, or a format does not exist.
        ModelNotFound: nothing of this name; the message says where it was looked for.
        InvalidCheckpoint: it was found, and must not or cannot be loaded, or is in none of `formats`.
        NetworkUnavailable: it would have to be downloaded, and cannot be.
        NotEnoughSpace: it would have to be downloaded, and the disk is too small.
        HashMismatch: the downloaded bytes are not the pinned ones.
        MissingDependency: a library that is needed to fetch it is not installed.
    """
    wanted, name = _wanted(formats, allow_pickle=allow_pickle), _typed(name_or_path)
    allowed = {"allow_pickle": allow_pickle, "trust_remote_code": trust_remote_code}
    if isinstance(name, Path):
        found = _local(name, wanted, **allowed)
    elif name.lower() in catalog.CATALOG:
        found = _from_catalog(catalog.find(name), wanted, progress=progress)
    else:
        found = hub.from_hub(name, wanted, progress=progress, engine=engine, **allowed)
    if engine is not None:
        admit(found, engine)
    return found


def available_formats(name_or_path: str | Path | None = None) -> tuple[Format, ...]:
    """The formats in which a model can be had, the one that costs least first; nothing is downloaded.

    A catalog model can be had as safetensors where the packages that convert it are installed. For a hub
    name that is not in the local cache, the hub is asked for the list of its files.

    Args:
        name_or_path: as for `resolve`.

    Raises:
        InvalidRequest, ModelNotFound, NetworkUnavailable, MissingDependency: as for `resolve`.
        InvalidCheckpoint: there are no weights at all.
    """
    name = _typed(name_or_path)
    if isinstance(name, Path):
        return _formats_of(name)
    if name.lower() in catalog.CATALOG:
        return _catalog_formats(catalog.find(name))
    return hub.formats_on_hub(name)


def _wanted(formats: Sequence[Format], *, allow_pickle: bool) -> tuple[Format, ...]:
    wanted = tuple(formats)
    if not wanted or set(wanted) - set(SERVED_BY):
        raise InvalidRequest(f"formats must be some of {', '.join(SERVED_BY)}; got {shown(formats)}.")
    return wanted if "pickle" in wanted or not allow_pickle else (*wanted, "pickle")


def _typed(name_or_path: str | Path | None) -> str | Path:
    """A path where one is meant, else the name of a catalog entry or of a hub repository.

    Raises:
        InvalidRequest: it is neither a string nor a path.
        ModelNotFound: it has none of the three forms.
    """
    if isinstance(name_or_path, os.PathLike):
        return absolute(Path(name_or_path))
    if name_or_path is not None and not isinstance(name_or_path, str):
        raise InvalidRequest(
            f"a model is named by a string or a folder; got a {type(name_or_path).__name__}.",
            hint="A model that is loaded already becomes an engine by: "
            "Engine(lambda: TorchDecoder(model, tokenizer))",
        )
    name = (catalog.DEFAULT_MODEL if name_or_path is None else name_or_path).strip()
    if name.lower() in catalog.CATALOG:
        return name
    if looks_like_path(name):
        return absolute(name)
    if hub.is_hub_name(name):
        return name
    raise ModelNotFound(
        f"There is no model {shown(name)}: neither in the catalog, nor as a folder in {Path.cwd()}.",
        hint=catalog.suggestion(name),
    )


def looks_like_path(name: str) -> bool:
    """Whether `name` is meant as a path: by its form, or because something is there."""
    # os.path answers False for a name that no file system allows, where pathlib may raise.
    if os.path.isabs(name) or (name != "" and os.path.exists(name)):  # noqa: PTH117, PTH110
        return True
    if name.startswith((".", "~", "/", "\\")):
        return True
    return name.lower().endswith((".gguf", ".safetensors")) and not hub.is_hub_name(name)


# -- catalog ---------------------------------------------------------------------------------------


def _catalog_formats(entry: catalog.CatalogEntry) -> tuple[Format, ...]:
    can_convert = is_ready(entry, "safetensors") or not convert.missing_libraries()
    return ("gguf", "safetensors") if can_convert else ("gguf",)


def _from_catalog(entry: catalog.CatalogEntry, wanted: tuple[Format, ...], *, progress: bool) -> Checkpoint:
    there = _catalog_formats(entry)
    chosen = first_of(wanted, there)
    if chosen is None and "safetensors" in wanted:
        chosen = "safetensors"  # asked for all the same, so that the package that is missing is named
    if chosen is None or chosen == "pickle":
        raise InvalidCheckpoint(
            f"{entry.title} comes as {' and '.join(there)}, not as {' or '.join(wanted)}."
        )
    return inspect_checkpoint(fetch(entry.name, format=chosen, progress=progress), name=entry.title)


# -- folders and files -----------------------------------------------------------------------------


def _local(
    path: Path, wanted: tuple[Format, ...], *, allow_pickle: bool, trust_remote_code: bool
) -> Checkpoint:
    there = _formats_of(path)
    chosen = first_of(wanted, there)
    if chosen is None and there and there != ("pickle",):  # a pickle is refused with its own reason
        raise InvalidCheckpoint(
            f"{path} is there as {' and '.join(there)}, and {' or '.join(wanted)} is asked for.",
            hint=SERVED_BY[there[0]],
        )
    if chosen == "gguf" and path.is_dir():
        path = only_gguf_in(path)
    return inspect_checkpoint(path, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)


def _formats_of(path: Path) -> tuple[Format, ...]:
    if path.is_dir():
        return formats_in(path)
    if path.suffix.lower() == ".gguf":
        return ("gguf",)
    if path.exists():
        return ()
    raise ModelNotFound(
        f"There is no folder {path}.",
        hint="Check the path; a hub name has the form 'owner/model', without a dot or slash before it.",
    )
