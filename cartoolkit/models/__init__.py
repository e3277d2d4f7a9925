"""Which weights: the catalog, fetching, and reading a checkpoint's outside before anything is loaded."""

from __future__ import annotations

from cartoolkit.models.cache import cache_dir
from cartoolkit.models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry, find
from cartoolkit.models.fetch import fetch

__all__ = [
    "CATALOG",
    "DEFAULT_MODEL",
    "CatalogEntry",
    "cache_dir",
    "fetch",
    "find",
]
