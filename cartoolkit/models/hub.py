"""A checkpoint from the Hugging Face hub: the local copy if there is one, else a download of safe files."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, MissingDependency, ModelNotFound, NetworkUnavailable
from cartoolkit.models import cache
from cartoolkit.models.checkpoint import Checkpoint, inspect_checkpoint
from cartoolkit.models.config import CONFIG_FILE, read_config
from cartoolkit.models.download import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["from_hub", "is_hub_name"]

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# Weights as numbers, settings and tokenizer; never *.bin (pickle) or *.py (code).
SAFE_FILES = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "vocab.txt", "merges.txt")
ANSWER_SECONDS = 8.0
NOT_NEEDED = ("*/*", "consolidated*.safetensors", "adapter_*")


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form `owner/model`."""
    return NAME.fullmatch(name) is not None and len(name) <= 96


def from_hub(name: str, *, progress: bool = True) -> Checkpoint:
    """The checkpoint `owner/model`: what the local hub cache has is used as it is, and costs no connection.

    Otherwise `config.json` is downloaded and judged first, the free space is asked for, and only then
    the weights come.

    Args:
        name: such as `HuggingFaceTB/SmolLM2-360M-Instruct`.
        progress: show the download's progress bars.

    Raises:
        ModelNotFound: the hub has no such model, or does not show it to this user.
        NetworkUnavailable: it is not (wholly) in the local cache, and the hub cannot be reached.
        InvalidCheckpoint: it is there, and must not or cannot be loaded.
        NotEnoughSpace: the disk is too small; asked before the weights are downloaded.
        MissingDependency: huggingface_hub is not installed.
    """
    _require_hub_library()
    return _from_local_cache(name) or _download(name, progress=progress)


def _require_hub_library() -> None:
    try:
        import huggingface_hub  # noqa: F401 (only whether it can be imported)
    except ImportError as exc:
        raise MissingDependency(
            "Models from the Hugging Face hub need the package huggingface_hub, which is not installed.",
            hint="Install it with: pip install 'cartoolkit[torch]'",
        ) from exc


def _from_local_cache(name: str) -> Checkpoint | None:
    """What an earlier download left; None if that is nothing, or not the whole checkpoint."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = _snapshot(name, local_files_only=True)
    except LocalEntryNotFoundError:
        return None
    if not (folder / CONFIG_FILE).exists():
        return None
    read_config(folder)  # a config that is refused today is not worth a download
    try:
        return inspect_checkpoint(folder, name=name)
    except InvalidCheckpoint:
        return None


def _download(name: str, *, progress: bool) -> Checkpoint:
    from huggingface_hub import HfApi, constants, hf_hub_download

    with _hub_errors_explained(name):
        # The one question that the library asks only once: file requests are repeated for 23 s.
        HfApi().model_info(name, timeout=ANSWER_SECONDS)
        read_config(Path(hf_hub_download(name, CONFIG_FILE)).parent)
        wanted = _snapshot(name, dry_run=True, tqdm_class=_silent_bar())
        space = sum(file.file_size or 0 for file in wanted if file.will_download)
        target = Path(constants.HF_HUB_CACHE)
        cache.require_space(space, target)
        with cache.disk_errors_explained(target):
            folder = _snapshot(name, **({} if progress else {"tqdm_class": _silent_bar()}))
    return inspect_checkpoint(folder, name=name)


def _snapshot(name: str, **options: Any) -> Any:  # noqa: ANN401 (a folder, or a list with dry_run)
    from huggingface_hub import snapshot_download

    result = snapshot_download(
        name, allow_patterns=list(SAFE_FILES), ignore_patterns=list(NOT_NEEDED), **options
    )
    return Path(result) if isinstance(result, str) else result


def _silent_bar() -> type:
    from tqdm import tqdm

    class Silent(tqdm):
        def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(settings | {"disable": True}))

    return Silent


@contextmanager
def _hub_errors_explained(name: str) -> Iterator[None]:
    """Translate what huggingface_hub raises, most specific first."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as exc:
        raise ModelNotFound(
            f"{name} exists on the hub, and may only be downloaded after its terms were accepted.",
            hint="Accept them on the model's page, then log in with `hf auth login`.",
        ) from exc
    except errors.RepositoryNotFoundError as exc:
        raise ModelNotFound(
            f"The hub has no model {name!r}, or does not show it without a login.",
            hint="Check the spelling; for a private model, log in with `hf auth login`.",
        ) from exc
    except errors.RemoteEntryNotFoundError as exc:
        raise InvalidCheckpoint(
            f"The hub's {name} has no config.json, so it is not a model to load."
        ) from exc
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, errors.DryRunError) as exc:
        raise _unreachable(name, exc) from exc
    except Exception as exc:
        if not _is_transport_error(exc):
            raise
        raise _unreachable(name, exc) from exc


def _is_transport_error(exc: Exception) -> bool:
    # The hub library's HTTP client has changed twice; its own name for itself has not mattered here.
    return isinstance(exc, ConnectionError | TimeoutError) or type(exc).__module__.split(".")[0] in {
        "httpx",
        "httpx2",
        "httpcore",
        "requests",
    }


def _unreachable(name: str, exc: Exception) -> NetworkUnavailable:
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return NetworkUnavailable(
            f"{name} is not wholly in the local hub cache, and HF_HUB_OFFLINE forbids to download it.",
            hint="Unset HF_HUB_OFFLINE and start Python again, or use a model that is there.",
        )
    return NetworkUnavailable(
        f"{name} is not in the local hub cache, and the Hugging Face hub cannot be reached ({_reason(exc)}).",
        hint="Check the connection, or use the default model, which needs no hub.",
    )


def _reason(exc: BaseException) -> str:
    """The innermost cause in one line: the connection's own words, not the library's advice."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    lines = str(exc).strip().splitlines()
    return redact(lines[0]) if lines else type(exc).__name__
