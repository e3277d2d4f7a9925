"""The models that the router may choose from: a list that rows are put into and taken out of."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.models.admission import checkpoint_served
from cartoolkit.models.catalog import CATALOG
from cartoolkit.models.engines import ENGINES, engine_status
from cartoolkit.models.fetch import is_ready
from cartoolkit.routing.rows.registry_file import read_rows
from cartoolkit.routing.rows.schema import Cost, Figure, ModelSchema, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pandas as pd

    from cartoolkit.models.catalog import CatalogEntry
    from cartoolkit.models.checkpoint import Checkpoint
    from cartoolkit.models.engines import EngineName

__all__ = ["Registry", "as_part", "catalog_rows", "checkpoint_rows"]


# Of three parts an id is made, each from somebody else's name.
_LONGEST_PART = 60


class Registry:
    """Models by id, in the order in which they came.

    >>> registry = Registry()
    >>> registry.add(ModelSchema(id="acme/large", capabilities=["generate"], source={"kind": "remote_api"}))
    >>> registry.get("acme/large").name
    'large'
    """

    def __init__(self, models: Iterable[ModelSchema] = ()) -> None:
        self._rows: dict[str, ModelSchema] = {}
        for model in models:
            self.add(model)

    @classmethod
    def at_hand(cls) -> Registry:
        """The models of the catalog on every engine, the ones that cannot be used here with the reason."""
        return cls(catalog_rows())

    def add(self, model: ModelSchema, *, replace: bool = False) -> None:
        """Put a model in.

        Args:
            model: the row.
            replace: put it in the place of the one with the same id, if there is one.

        Raises:
            InvalidRequest: the id is taken and `replace` is False, or it is taken by a curated row and the
                new one is a community row, which may not speak for it.
        """
        old = self._rows.get(model.id)
        if old is not None and old.trust_tier == "curated" and model.trust_tier != "curated":
            raise InvalidRequest(f"the id {model.id!r} is that of a curated model; choose another one.")
        if old is not None and not replace:
            raise InvalidRequest(
                f"there is a model {model.id!r} already.",
                hint="Use another id, or add(model, replace=True).",
            )
        self._rows[model.id] = model

    def load(self, path: str | Path, *, replace: bool = False) -> tuple[str, ...]:
        """Put in the models that a JSON or TOML file declares, all of them or none.

        Args:
            path: see `registry_file.read_rows`.
            replace: as for `add`.

        Returns:
            Their ids.

        Raises:
            InvalidRegistry: a row or the file is wrong.
            InvalidRequest: an id is taken.
        """
        grown = Registry(self)
        models = read_rows(path)
        for model in models:
            grown.add(model, replace=replace)
        self._rows = grown._rows
        return tuple(model.id for model in models)

    def remove(self, name: str) -> ModelSchema:
        """Take a model out, by id or name, and return it.

        Raises:
            ModelNotFound: there is none, as for `get`.
        """
        return self._rows.pop(self.get(name).id)

    def get(self, name: str) -> ModelSchema:
        """The model with that id or, where only one model has it, that name.

        Raises:
            ModelNotFound: there is none; the hint names close ones.
            InvalidRequest: several models have that name.
        """
        if isinstance(name, str) and name in self._rows:
            return self._rows[name]
        named = self.named(name)
        if len(named) > 1:
            ids = ", ".join(model.id for model in named)
            raise InvalidRequest(f"{len(named)} models are called {name!r}: {ids}.", hint="Give the id.")
        if not named:
            raise ModelNotFound(f"model not found: {name!r}.", hint=self._suggestion(name))
        return named[0]

    def named(self, name: str) -> tuple[ModelSchema, ...]:
        """All models with that id or name; none if there is none."""
        return tuple(model for model in self if name in (model.id, model.name))

    def _suggestion(self, name: str) -> str:
        if not self._rows:
            return "The registry is empty."
        known = {each for model in self for each in (model.id, model.name)}
        close = difflib.get_close_matches(str(name), sorted(known), n=3, cutoff=0.5)
        start = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
        return f"{start}There are: {', '.join(self._rows)}."

    def __iter__(self) -> Iterator[ModelSchema]:
        return iter(list(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, model_id: object) -> bool:
        return model_id in self._rows

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} models: {', '.join(self._rows) or 'none'}>"

    def to_frame(self) -> pd.DataFrame:
        """One row a model: what it is, and the three facts about its readiness; indexed by id."""
        import pandas as pd

        columns = [
            "name", "capabilities", "context_length", "size", "quantization", "where",
            "available", "weights_ready", "downloads_weights", "because",
        ]  # fmt: skip
        rows = [_cells(model) for model in self]
        return pd.DataFrame(rows, columns=columns, index=pd.Index(list(self._rows), name="model"))


def _cells(model: ModelSchema) -> list[object]:
    return [
        model.name,
        ", ".join(model.capabilities),
        model.context_length,
        model.size_label,
        model.quantization or "",
        "here" if model.is_local else "remote",
        model.available,
        model.weights_ready,
        model.downloads_weights,
        model.unavailable_because,
    ]


def catalog_rows(engines: Iterable[EngineName] = ENGINES) -> list[ModelSchema]:
    """One row for each catalog model on each engine: the same weights are another choice on another engine.

    Nothing is imported, downloaded or loaded for it; an engine whose libraries are found is believed.
    """
    return [_catalog_row(entry, engine) for entry in CATALOG.values() for engine in engines]


def _catalog_row(entry: CatalogEntry, engine: EngineName) -> ModelSchema:
    status = engine_status(engine, try_import=False)
    packed = engine == "gguf"
    stored = entry.source.size if packed else entry.disk_bytes
    quantization = entry.source.packing if packed else None
    return ModelSchema(
        id=f"{engine}/{entry.name}" + (f":{quantization}" if quantization else ""),
        name=f"{entry.title} ({engine})",
        capabilities=("generate",),
        context_length=entry.context_length,
        parameters=entry.parameters,
        quantization=quantization,
        cost=Cost(size_mb=Figure(value=stored / 1e6)),
        source=Source(kind="catalog", location=entry.name, engine=engine),
        tags=(entry.licence,),
        trust_tier="curated",
        available=status.usable,
        unavailable_because=status.why_not,
        weights_ready=is_ready(entry, "gguf" if packed else "safetensors"),
        downloads_weights=True,
    )


def checkpoint_rows(checkpoint: Checkpoint, engines: Iterable[EngineName] = ENGINES) -> list[ModelSchema]:
    """One row for a checkpoint on each engine, such as one in a folder of the caller's own.

    Each engine's library is asked whether it serves the checkpoint, and is imported for that.

    Args:
        checkpoint: as inspected by `cartoolkit.models.inspect_checkpoint`.
        engines: which ones; those that cannot serve it get a row that says why.
    """
    return [_checkpoint_row(checkpoint, engine) for engine in engines]


def _checkpoint_row(checkpoint: Checkpoint, engine: EngineName) -> ModelSchema:
    verdict = checkpoint_served(checkpoint, engine)
    quantization = checkpoint.quantization
    is_packed = quantization is not None and quantization.is_packed
    variant = f":{as_part(quantization.name)}" if quantization is not None and is_packed else ""
    return ModelSchema(
        id=f"{engine}/{as_part(checkpoint.name)}{variant}",
        name=f"{checkpoint.name} ({engine})",
        family=checkpoint.model_type,
        capabilities=("generate",),
        context_length=checkpoint.context_length,
        # Of packed safetensors only the packed words are known.
        parameters=None if is_packed and checkpoint.format != "gguf" else checkpoint.parameters or None,
        quantization=quantization.name if quantization is not None and is_packed else None,
        cost=Cost(size_mb=Figure(value=checkpoint.weight_bytes / 1e6)),
        source=Source(kind="folder", location=str(checkpoint.path), engine=engine),
        tags=(checkpoint.licence,) if checkpoint.licence else (),
        available=bool(verdict),
        unavailable_because=verdict.reason,
        weights_ready=True,
    )


def as_part(name: str) -> str:
    """A name as a part of an id: what an id cannot hold becomes a dash, and a long name is cut."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_LONGEST_PART].strip("-._") or "model"
