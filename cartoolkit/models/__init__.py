"""Which weights: the catalog, fetching, a checkpoint's outside, and which engine can serve it."""

from __future__ import annotations

from cartoolkit.models.admission import Verdict, admit, checkpoint_served, engine_serves
from cartoolkit.models.cache import cache_dir
from cartoolkit.models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry, find
from cartoolkit.models.checkpoint import Checkpoint, inspect_checkpoint
from cartoolkit.models.engines import ENGINES, EngineName, EngineStatus, engine_status
from cartoolkit.models.fetch import fetch
from cartoolkit.models.memory import free_memory, require_memory, weight_memory
from cartoolkit.models.quantization import Quantization, QuantScheme
from cartoolkit.models.resolve import available_formats, resolve
from cartoolkit.models.weights import Format

__all__ = [
    "CATALOG",
    "DEFAULT_MODEL",
    "ENGINES",
    "CatalogEntry",
    "Checkpoint",
    "EngineName",
    "EngineStatus",
    "Format",
    "QuantScheme",
    "Quantization",
    "Verdict",
    "admit",
    "available_formats",
    "cache_dir",
    "checkpoint_served",
    "engine_serves",
    "engine_status",
    "fetch",
    "find",
    "free_memory",
    "inspect_checkpoint",
    "require_memory",
    "resolve",
    "weight_memory",
]
