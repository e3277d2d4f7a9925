"""Keys: named in a row, read from the environment when they are needed, and never kept or shown."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from cartoolkit.errors import MissingDependency, RemoteError

if TYPE_CHECKING:
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["hidden", "key_from", "require_openai", "why_unusable"]

_INSTALL = "pip install 'cartoolkit[remote]'"


def why_unusable(row: ModelSchema) -> str:
    """Why a model on a server cannot be asked now; empty if it can, and for a model that runs here.

    >>> from cartoolkit.routing.rows.schema import ModelSchema
    >>> why_unusable(ModelSchema(id="acme/large", capabilities=["generate"],
    ...     source={"kind": "remote_api", "key_variable": "ACME_NO_SUCH_KEY"}))
    'no key set: ACME_NO_SUCH_KEY'
    """
    if row.source.kind not in {"remote_api", "local_server"}:
        return ""
    if not _has_openai():
        return f"the package openai is not installed: {_INSTALL}"
    variable = row.source.key_variable
    return f"no key set: {variable}" if variable and not os.environ.get(variable) else ""


def _has_openai() -> bool:
    return importlib.util.find_spec("openai") is not None


def require_openai() -> None:
    """Say how to get the openai library, if it is not there.

    Raises:
        MissingDependency: it is not installed.
    """
    if not _has_openai():
        raise MissingDependency("models on servers need the openai library.", hint=f"{_INSTALL}")


def key_from(variable: str) -> str:
    """The key that an environment variable holds.

    Args:
        variable: its name; empty if the server needs none.

    Raises:
        RemoteError: the variable is not set.
    """
    if not variable:
        return ""
    if not (key := os.environ.get(variable, "").strip()):
        raise RemoteError(
            f"no key set: {variable}.",
            hint=f"Set the environment variable {variable} to the provider's key, or name another one with "
            "key_variable=.",
        )
    return key


def hidden(text: str, key: str) -> str:
    """The text without the key; servers repeat keys that they do not like.

    >>> hidden("Incorrect API key provided: sk-12345678.", "sk-12345678")
    'Incorrect API key provided: [key].'
    """
    return text.replace(key, "[key]") if len(key) >= _SHORTEST else text


# Shorter ones would be found in ordinary words.
_SHORTEST = 6
