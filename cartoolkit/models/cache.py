"""Where downloaded models live, and how files get there whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_cache_path

from cartoolkit.errors import ModelError, NetworkUnavailable, NotEnoughSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CACHE_VARIABLE", "cache_dir"]

CACHE_VARIABLE = "CARTOOLKIT_CACHE"
CHUNK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.ENOENT)


def cache_dir() -> Path:
    """The folder that holds downloaded models: `$CARTOOLKIT_CACHE`, else the platform's user cache."""
    chosen = os.environ.get(CACHE_VARIABLE, "").strip()
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("cartoolkit")


def model_dir(name: str) -> Path:
    """The folder in which the catalog model `name` is kept as safetensors once it is converted."""
    return cache_dir() / "models" / name


def gguf_dir(name: str) -> Path:
    """The folder in which the GGUF file of the catalog model `name` is kept, as it was downloaded."""
    return cache_dir() / "gguf" / name


def wheels_dir(name: str) -> Path:
    """The folder in which wheels of the catalog model `name` wait, whole, until all of them are there."""
    return cache_dir() / "wheels" / name


def require_space(needed: int, folder: Path) -> None:
    """Refuse before anything is written if `folder`'s disk cannot hold `needed` bytes.

    Raises:
        NotEnoughSpace: with both sizes in MB and the variable that moves the cache.
    """
    free = shutil.disk_usage(_existing_parent(folder)).free
    if free < needed:
        raise NotEnoughSpace(
            f"The model needs {needed / 1e6:,.0f} MB in {folder}, and that disk has {free / 1e6:,.0f} MB"
            " free; nothing was written.",
            hint=f"Free some space, or set {CACHE_VARIABLE} to a folder on a larger disk.",
        )


def _existing_parent(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


@contextmanager
def disk_errors_explained(folder: Path) -> Iterator[None]:
    """Turn what a file system says, anywhere inside, into one sentence about `folder`.

    Raises:
        NotEnoughSpace: the disk or the user's quota is full.
        ModelError: the folder cannot be written.
    """
    try:
        yield
    except OSError as exc:
        if exc.errno in FULL:
            raise disk_full(folder) from exc
        if exc.errno in NOT_WRITABLE:
            raise ModelError(
                f"The model cannot be kept in {folder}: {exc.strerror} ({exc.filename}).",
                hint=f"Set {CACHE_VARIABLE} to a folder that you can write to.",
            ) from exc
        raise


def disk_full(folder: Path) -> NotEnoughSpace:
    """The error for a disk that filled up while something was being written to `folder`."""
    return NotEnoughSpace(
        f"The disk of {folder} filled up; what had been written there was removed.",
        hint=f"Free some space, or set {CACHE_VARIABLE} to a folder on a larger disk.",
    )


@contextmanager
def exclusive(name: str, *, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock on `name` across processes; the system drops it when its holder dies.

    Args:
        name: what is locked, usually a model's name.
        on_wait: called once if another process holds the lock.
    """
    from filelock import FileLock, Timeout

    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire(poll_interval=0.2)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def workspace(name: str) -> Iterator[Path]:
    """A temporary folder on the cache's own disk, removed on every way out.

    Call it with the lock on `name` held: folders that a killed process left behind are then
    known to be nobody's, and are removed first.
    """
    parent = cache_dir() / "tmp"
    parent.mkdir(parents=True, exist_ok=True)
    for stale in parent.glob(f"{name}.*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_for_next_call(folder: Path) -> Iterator[Path]:
    """A folder that outlives a lost connection and an interruption, and nothing else.

    What is in it was paid for with a download. Once it has been used it is removed, and as well where an
    error says that it is wrong or has filled the disk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except NetworkUnavailable:
        raise
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def settle(path: Path, target: Path) -> None:
    """Give the finished file `path` its final name in one step, and only once the disk has all of it."""
    _flush(path)
    path.replace(target)


def publish(folder: Path, target: Path) -> None:
    """Give the finished `folder` its final name in one step; an older `target` is replaced.

    Both must be on one disk. Readers see the old folder, for an instant none, or the new one.
    """
    for path in folder.iterdir():
        _flush(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.replace(
            folder.with_name(f"{folder.name}.replaced")
        )  # a folder that is not empty cannot be replaced at once
    folder.replace(target)


def _flush(path: Path) -> None:
    # Without this a power cut after the rename may leave files of the right size and no content.
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """The hex SHA-256 of a whole file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()
