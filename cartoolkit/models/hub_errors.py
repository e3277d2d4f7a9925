"""What huggingface_hub raises, in this package's words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidCheckpoint, MissingDependency, ModelNotFound, NetworkUnavailable
from cartoolkit.models.download import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hub_errors_explained", "require_hub_library"]


def require_hub_library() -> None:
    """Check that huggingface_hub can be imported.

    Raises:
        MissingDependency: it cannot.
    """
    try:
        import huggingface_hub  # noqa: F401 (only whether it can be imported)
    except ImportError as exc:
        raise MissingDependency(
            "Models from the Hugging Face hub need the package huggingface_hub, which is not installed.",
            hint="Install it with: pip install 'huggingface_hub>=1.0'",
        ) from exc


@contextmanager
def hub_errors_explained(name: str) -> Iterator[None]:
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
            f"The hub's {name} has no such file, or no config.json, so it is not a model to load."
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
