"""Rows as a choice sees them: with what was measured here, and with what is true at this moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cartoolkit.engine import Engine
from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.models.catalog import CATALOG, find, suggestion
from cartoolkit.models.checkpoint import inspect_checkpoint
from cartoolkit.models.fetch import is_ready
from cartoolkit.models.resolve import looks_like_path
from cartoolkit.routing.probing.freshness import ENGINE_LIBRARIES
from cartoolkit.routing.probing.measurements import MeasurementStore, with_measurements
from cartoolkit.routing.rows.registry import Registry, as_part, catalog_rows, checkpoint_rows
from cartoolkit.routing.rows.schema import ModelSchema, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    import pandas as pd

    from cartoolkit.models.engines import EngineName
    from cartoolkit.routing.calls.serving import Answerer
    from cartoolkit.routing.probing.measurements import Probe

__all__ = ["Rows", "Shelved", "measured_of", "row_of_engine", "rows_at", "rows_now"]


_THIS_MACHINE = ("127.", "localhost", "[::1]")


class Rows(tuple[ModelSchema, ...]):
    """Several rows; shows itself as a table."""

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """As `Registry.to_frame`: what each is, and the three facts about its readiness."""
        return Registry(self).to_frame()

    def __repr__(self) -> str:
        return f"<{len(self)} models: {', '.join(model.id for model in self) or 'none'}>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(escape=True, na_rep="", border=0)


@dataclass(frozen=True, slots=True)
class Shelved:
    """What is known of the engines behind the rows.

    Attributes:
        weights: hash of the weights of each that is in memory, by id; "" where it does not say.
        lost: ids of those that were handed over and have been closed since.
    """

    weights: Mapping[str, str] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()


def rows_now(models: Iterable[ModelSchema], measurements: MeasurementStore, shelved: Shelved) -> Rows:
    """The rows with what this machine says about them.

    Args:
        models: as they are declared.
        measurements: what was measured here takes the place of what was declared.
        shelved: of the engines that are in memory.
    """
    return Rows(_now(model, measurements, shelved) for model in models)


def measured_of(model: ModelSchema, measurements: MeasurementStore, shelved: Shelved) -> Probe | None:
    """The measurement that holds for what would answer for a row; None if there is none."""
    return measurements.latest(model, weights_hash=shelved.weights.get(model.id) or None)


def _now(model: ModelSchema, measurements: MeasurementStore, shelved: Shelved) -> ModelSchema:
    weights, probe = shelved.weights.get(model.id), measured_of(model, measurements, shelved)
    measured = model if probe is None else with_measurements(model, probe)
    # Whether a server can be asked is told by the environment, not by a connection that was made once.
    if weights is not None and not _is_elsewhere(model):
        return measured.model_copy(update={"weights_ready": True})
    why_not = model.unavailable_because if not model.available else _why_not(model, shelved.lost)
    if why_not:
        return measured.model_copy(update={"available": False, "unavailable_because": why_not})
    return measured.model_copy(update={"weights_ready": model.weights_ready or _has_arrived(model)})


def _why_not(model: ModelSchema, lost: Collection[str]) -> str:
    """Why a row that is declared to be available is not, just now; "" if it is."""
    is_elsewhere = _is_elsewhere(model)
    if model.id in lost and (is_elsewhere or not model.source.location):
        return "its engine was closed"
    if is_elsewhere:
        from cartoolkit.remote import why_unusable

        return why_unusable(model)
    return ""


def _is_elsewhere(model: ModelSchema) -> bool:
    return model.source.kind in {"remote_api", "local_server"}


def _has_arrived(model: ModelSchema) -> bool:
    """Whether a catalog model has been fetched since its row was made."""
    name = model.source.location
    packed = model.source.engine == "gguf"
    return (
        model.source.kind == "catalog"
        and name in CATALOG
        and is_ready(find(name), "gguf" if packed else "safetensors")
    )


def rows_at(place: str | Path) -> list[ModelSchema]:
    """A row for each engine: of a folder with weights, a GGUF file, or a model of the catalog.

    Raises:
        ModelNotFound: there is neither.
        InvalidCheckpoint: what is there is not a checkpoint that may be read.
    """
    if isinstance(place, str) and place.lower() in CATALOG:
        return [row for row in catalog_rows() if row.source.location == place.lower()]
    if isinstance(place, str) and not looks_like_path(place):
        raise ModelNotFound(
            f"There is no model {place!r}: neither in the catalog, nor as a file or folder.",
            hint=f"{suggestion(place)} A model of the hub or of a server is added as a ModelSchema.",
        )
    return checkpoint_rows(inspect_checkpoint(place))


def row_of_engine(answerer: Answerer, registry: Registry, *, taken: Collection[str] = ()) -> ModelSchema:
    """The row that an engine answers for: the one of the same model on the same engine, or a new one.

    Args:
        answerer: the engine.
        registry: the rows there are.
        taken: ids of the rows that have another engine already.

    Raises:
        InvalidRequest: the engine has no name that an id could be made of.
    """
    info = answerer.info
    engines: list[EngineName] = [name for name, called in ENGINE_LIBRARIES.items() if called == info.engine]
    engine = engines[0] if engines else None
    of_engine = (row for row in registry if engine and row.source.engine == engine)
    if same := [row for row in of_engine if row.id not in taken and _name_of(row) == info.name]:
        return same[0]
    if not info.name:
        raise InvalidRequest(
            "the engine's model has no name, so it cannot be told from others.",
            hint="Give the decoder a name: TorchDecoder(model, tokenizer, name='…').",
        )
    stem = f"{as_part(engine or info.engine)}/{as_part(info.name)}"
    names = (stem, f"{stem}:{as_part(info.dtype)}", *(f"{stem}:{n}" for n in range(2, len(registry) + 3)))
    return ModelSchema(
        id=next(name for name in names if name not in registry),
        name=f"{info.name} ({engine or info.engine})",
        capabilities=("generate",),
        context_length=info.context_length or None,
        source=_source_of(answerer, engine),
        weights_ready=True,
        downloads_weights=False,
    )


def _source_of(answerer: Answerer, engine: EngineName | None) -> Source:
    """Of an engine that was handed over. A server's address tells it from others that serve that name."""
    if isinstance(answerer, Engine):
        return Source(kind="folder", engine=engine)
    is_here = answerer.info.device.startswith(_THIS_MACHINE)
    address, model = (str(getattr(answerer, name, "")) for name in ("address", "model"))
    return Source(kind="local_server" if is_here else "remote_api", location=address, model=model)


def _name_of(row: ModelSchema) -> str:
    """What the engine of a row calls the model: such a row is named after it, and says the engine as well."""
    return row.name.removesuffix(f" ({row.source.engine})")
