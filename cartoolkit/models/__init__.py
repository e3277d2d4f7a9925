"""Which weights: the catalog, fetching, and a checkpoint's outside, read before anything is loaded."""

from __future__ import annotations

from cartoolkit.models.cache import cache_dir
from cartoolkit.models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry, find
from cartoolkit.models.checkpoint import Checkpoint, inspect_checkpoint
from cartoolkit.models.fetch import fetch
from cartoolkit.models.resolve import resolve

__all__ = [
    "CATALOG",
    "DEFAULT_MODEL",
    "CatalogEntry",
    "Checkpoint",
    "cache_dir",
    "fetch",
    "find",
    "inspect_checkpoint",
    "resolve",
]
