"""A person's own rows: models declared in a JSON or TOML file, every fault named by row and field."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from cartoolkit.errors import InvalidRegistry
from cartoolkit.routing.rows.schema import (
    Benchmark,
    Cost,
    Figure,
    ModelSchema,
    Performance,
    PricingTier,
    Source,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

__all__ = ["read_rows", "rows_from"]

LARGEST_FILE = 16_000_000
MOST_FAULTS = 10
_PARTS: tuple[type[BaseModel], ...] = (
    ModelSchema, Performance, Cost, PricingTier, Benchmark, Source, Figure,
)  # fmt: skip


def read_rows(path: str | Path) -> list[ModelSchema]:
    """The models that a file declares, in its order.

    JSON holds a list of objects, or an object with such a list under ``models``; TOML holds ``[[models]]``
    tables. The fields are those of `ModelSchema`. Every row becomes a community row, whatever it says. The
    location of a ``folder`` is looked for from the file's own folder on; if nothing is there, its weights are
    not ready.

    Args:
        path: a file that ends in `.json` or `.toml`.

    Raises:
        InvalidRegistry: the file cannot be read or parsed, or a row is wrong; the message names each fault.
    """
    place = Path(path).expanduser()
    rows = _list_of_rows(_parsed(place), place.name)
    return rows_from([_looked_for(row, place.parent) for row in rows], origin=place.name)


def rows_from(given: object, *, origin: str = "this list") -> list[ModelSchema]:
    """As `read_rows`, for what was parsed already.

    Args:
        given: a list of mappings, or a mapping with such a list under ``models``.
        origin: what to call it in a message.

    Raises:
        InvalidRegistry: a row is wrong; the message names each fault by row and field.
    """
    rows = _list_of_rows(given, origin)
    models: list[ModelSchema] = []
    faults: list[str] = []
    for number, row in enumerate(rows, start=1):
        try:
            models.append(ModelSchema.model_validate({**row, "trust_tier": "community"}))
        except ValidationError as error:
            faults += (f"{_called(number, row)}: {fault}" for fault in _sentences(error))
    faults += _repeated(rows)
    if faults:
        raise InvalidRegistry(_report(origin, faults))
    return models


def _parsed(place: Path) -> object:
    read = {".json": json.loads, ".toml": tomllib.loads}.get(place.suffix.lower())
    if read is None:
        raise InvalidRegistry(f"{place.name!r} is no file of models: its name must end in .json or .toml.")
    try:
        if (size := place.stat().st_size) > LARGEST_FILE:
            raise InvalidRegistry(
                f"{place.name} has {size / 1e6:,.0f} MB, and a file of models has at most "
                f"{LARGEST_FILE / 1e6:.0f} MB."
            )
        return read(place.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidRegistry(f"The file of models {place} cannot be read: {reason}.") from error
    except (ValueError, RecursionError) as error:
        # Both parsers, and the decoder of UTF-8, raise kinds of ValueError that say where.
        raise InvalidRegistry(f"{place.name} is not valid {place.suffix[1:].upper()}: {error}.") from error


def _list_of_rows(given: object, origin: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(given, dict):
        if set(given) != {"models"}:
            named = ", ".join(map(repr, given)) or "nothing"
            raise InvalidRegistry(
                f"{origin} must hold 'models', a list of rows, and nothing else; it holds {named}.",
                hint="In TOML each row begins with [[models]]; in JSON a list of objects will do as well.",
            )
        given = given["models"]
    if not isinstance(given, list):
        raise InvalidRegistry(f"{origin}: 'models' must be a list of rows; it is a {type(given).__name__}.")
    if wrong := [n for n, row in enumerate(given, start=1) if not isinstance(row, dict)]:
        raise InvalidRegistry(f"{origin}, row {wrong[0]}: a row must be a table of fields and values.")
    return given


def _looked_for(row: Mapping[str, Any], base: Path) -> Mapping[str, Any]:
    """A row whose folder is an absolute path, and which says whether something is there."""
    source = row.get("source")
    if not isinstance(source, dict) or source.get("kind") != "folder":
        return row
    location = source.get("location")
    if not isinstance(location, str) or not location:
        return row
    # os.path, which answers False for a name that no file system allows.
    path = os.path.abspath(os.path.join(base, os.path.expanduser(location)))  # noqa: PTH100, PTH111, PTH118
    return {"weights_ready": os.path.exists(path), **row, "source": {**source, "location": path}}  # noqa: PTH110


def _called(number: int, row: Mapping[str, Any]) -> str:
    named = row.get("id")
    if not isinstance(named, str) or not named:
        return f"row {number}"
    return f"row {number} ({named if named.isprintable() and len(named) <= 60 else _shown(named)})"


def _sentences(error: ValidationError) -> Iterator[str]:
    faults = error.errors()
    inner = {fault["loc"][:depth] for fault in faults for depth in range(1, len(fault["loc"]))}
    for fault in faults:
        if fault["loc"] in inner:
            continue  # that a list is too short follows from the entry that was refused
        field = _path(fault["loc"])
        if fault["type"] == "extra_forbidden":
            yield _unknown_field(field, str(fault["loc"][-1]))
        elif fault["type"] == "missing":
            yield f"{field} is missing"
        elif fault["loc"][-1:] == ("key_variable",):
            # Not shown: it may well be the key.
            yield f"{field}: must be the name of an environment variable that holds the key, not the key"
        else:
            yield f"{field + ': ' if field else ''}{_said(fault)}; got {_shown(fault['input'])}"


def _path(place: tuple[int | str, ...]) -> str:
    """Such as `cost.pricing_tiers[2].input_per_mtok`; entries of a list are counted from 1, as rows are."""
    parts = (f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _said(fault: ErrorDetails) -> str:
    said = fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return said.replace("should be", "must be")


def _unknown_field(field: str, last: str) -> str:
    known = sorted({name for part in _PARTS for name in part.model_fields})
    close = difflib.get_close_matches(last, known, n=1)
    return f"{field} is not a field" + (f"; did you mean {close[0]!r}?" if close else "")


def _shown(value: object) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _repeated(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    first: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if isinstance(named := row.get("id"), str) and first.setdefault(named, number) != number:
            yield f"row {number} ({named}): id is that of row {first[named]} already"


def _report(origin: str, faults: list[str]) -> str:
    shown, more = faults[:MOST_FAULTS], len(faults) - MOST_FAULTS
    rest = f"\n  and {more} more" if more > 0 else ""
    many = f"{len(faults)} faults" if len(faults) > 1 else "a fault"
    return f"{origin} has {many}:\n" + "\n".join(f"  {fault}" for fault in shown) + rest
