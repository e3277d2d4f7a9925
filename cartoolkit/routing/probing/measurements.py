"""What was measured of a model on a machine, as a row for the router, and kept on disk.

One JSON file a model and machine. It is written aside and then renamed, so a reader sees the old one or the
new one; one that cannot be read is told of and passed over. A measurement is used where it speaks for what
would answer now (see `freshness`): others stay on disk until the same model is probed again on that machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from platformdirs import user_data_path
from pydantic import Field, ValidationError

from cartoolkit.errors import InvalidRequest
from cartoolkit.models.cache import CACHE_VARIABLE, cache_dir
from cartoolkit.notices import say
from cartoolkit.routing.probing.freshness import weights_hash_of, why_stale
from cartoolkit.routing.probing.items import ItemKind, Split  # noqa: TC001 - pydantic reads them
from cartoolkit.routing.probing.machine import MachineIdentity, machine_identity
from cartoolkit.routing.rows.figures import Count, Figure, NonNegative, Row, Text

if TYPE_CHECKING:
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["ItemResult", "MeasurementStore", "Probe", "PromptPoint", "with_measurements"]

LARGEST_FILE = 2_000_000
"""Bytes of a measurement at most; one of all items has some 40,000."""

LONGEST_TEXT = 200
"""Characters that are kept of an answer."""

# Times are said to be doubtful from here on, whichever is more.
_CROWDED_CORES, _CROWDED_SHARE = 0.25, 0.1


class ItemResult(Row):
    """What a model answered to one question, see `probe_items`.

    Attributes:
        id: of the question.
        kind: `facts` or `arithmetic`.
        split: `choice` or `held_out`.
        right: whether the answer was right.
        text: the line that was graded.
        ms: from the request to the end of that line.
        completion_tokens: tokens that were written for it.
    """

    id: Text
    kind: ItemKind
    split: Split
    right: Annotated[bool, Field(strict=True)]
    text: Annotated[str, Field(max_length=LONGEST_TEXT)]
    ms: NonNegative
    completion_tokens: Annotated[int, Field(ge=0, strict=True)]


class PromptPoint(Row):
    """Time to the first token at one prompt length, read into an empty cache.

    Attributes:
        aimed_at: the length that was asked for; a vocabulary may not let it be met.
        prompt_tokens: length of the prompt as the model saw it, the middle one of the repeats.
        ttft_ms: median in milliseconds; an interval where there are six repeats or more, see `timing`.
    """

    aimed_at: Count
    prompt_tokens: Count
    ttft_ms: Figure


class Probe(Row):
    """Everything that was measured of one model on one machine; None is what was not or cannot be measured.

    Attributes:
        version: of this form.
        model_id: of the row.
        measured_at: when it was done, seconds since 1970.
        machine: where.
        engine: library that ran it, such as `llama.cpp`.
        device: such as `cpu`.
        dtype: of the weights while running.
        weights_hash: tells these weights from others; empty where the weights are not here.
        versions: of the libraries that took part.
        load_ms: median time to load, with the files in the system's cache and the libraries imported.
        points: time to the first token at several lengths, the shortest first.
        ttft_ms: of a prompt of no length: where the line through the points meets zero.
        prefill_tokens_per_second: how steep that line is.
        tokens_per_second: median decoding speed without the prefill, nothing recorded but the tokens.
        ram_mb: main memory that weights, cache and work took at most, in millions of bytes.
        quality: share of the `choice` items that were right, with Wilson's interval.
        items: every question of both splits.
        lacking_cores: how many of the cores that it may use other programs had on average, while it was
            timed; None for a server, which computes elsewhere.
        notes: what was left out and why, as sentences.
    """

    version: Literal[1] = 1
    model_id: Text
    measured_at: NonNegative
    machine: MachineIdentity
    engine: str
    device: str
    dtype: str
    weights_hash: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    load_ms: Figure | None = None
    points: tuple[PromptPoint, ...] = ()
    ttft_ms: Figure | None = None
    prefill_tokens_per_second: Figure | None = None
    tokens_per_second: Figure | None = None
    ram_mb: Figure | None = None
    quality: Figure | None = None
    items: tuple[ItemResult, ...] = ()
    lacking_cores: NonNegative | None = None
    notes: tuple[str, ...] = ()

    @property
    def crowding(self) -> str:
        """A sentence, if the machine was too crowded for the times to be trusted."""
        cores = self.machine.cores
        if self.lacking_cores is None or self.lacking_cores < max(_CROWDED_CORES, _CROWDED_SHARE * cores):
            return ""
        return (
            f"Other programs had {self.lacking_cores:.1f} of its {cores} core{'s' * (cores > 1)} while it "
            "was timed; measure again when the machine is quiet."
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Its notes, and its crowding."""
        return (*self.notes, self.crowding) if self.crowding else self.notes

    def __repr__(self) -> str:
        """Its figures, not its 160 answers; `probe_table` shows several beside each other."""
        figures = (
            ("first token", self.ttft_ms, "{:,.0f} ms"),
            ("decoding", self.tokens_per_second, "{:,.1f} tokens/s"),
            ("memory", self.ram_mb, "{:,.0f} MB"),
            ("right", self.quality, "{:.0%}"),
        )
        known = [f"{name} {form.format(figure.value)}" for name, figure, form in figures if figure]
        return f"<Probe of {self.model_id}: {', '.join(known) or 'nothing measured'}>"

    __str__ = __repr__


def with_measurements(model: ModelSchema, probe: Probe) -> ModelSchema:
    """The row with what was measured in the place of what was declared; what was not measured stays.

    Raises:
        InvalidRequest: it is a measurement of another model.
    """
    if probe.model_id != model.id:
        raise InvalidRequest(f"this is a measurement of {probe.model_id!r}, not of {model.id!r}.")
    speeds = ("ttft_ms", "prefill_tokens_per_second", "tokens_per_second", "load_ms")
    measured = {name: figure for name in speeds if (figure := getattr(probe, name)) is not None}
    memory = {} if probe.ram_mb is None else {"ram_mb": probe.ram_mb}
    return model.model_copy(
        update={
            "performance": model.performance.model_copy(update=measured),
            "cost": model.cost.model_copy(update=memory),
            "quality": probe.quality or model.quality,
        }
    )


class MeasurementStore:
    """The measurements in a folder, of this machine and of others that share it."""

    def __init__(self, folder: Path | str | None = None) -> None:
        """Nothing is read or written yet.

        Args:
            folder: where the files lie. None: `measurements` in ``$CARTOOLKIT_CACHE`` if that is set, else in
                the user's data folder.
        """
        self.folder = _usual_folder() if folder is None else Path(folder).expanduser().absolute()
        self._read: dict[Path, tuple[tuple[int, int], Probe | None]] = {}
        self._saved: set[Path] = set()

    def save(self, probe: Probe) -> Path:
        """Keep a measurement, in the place of an older one of the same model on the same machine.

        Returns:
            The file.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self._path(probe.model_id, probe.machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, probe.model_dump_json(indent=1) + "\n")
        self._saved.add(path)
        return path

    def latest(self, model: ModelSchema, *, weights_hash: str | None = None) -> Probe | None:
        """The measurement of a model that holds here and now; None if there is none.

        Args:
            model: the row.
            weights_hash: of the weights that would answer, where an engine has loaded them; None looks at the
                files that the row names. Where neither tells, as of a model that the caller made himself,
                what this store has saved is believed.
        """
        machine = machine_identity()
        path = self._path(model.id, machine)
        if (probe := self._load(path)) is None:
            return None
        weights = weights_hash_of(model) if weights_hash is None else weights_hash
        if weights is None and not probe.weights_hash and path in self._saved:
            weights = ""
        return None if why_stale(probe, model, machine, weights) else probe

    def probes(self) -> list[Probe]:
        """Every measurement that can be read, of whichever machine and however old; the oldest first."""
        paths = sorted(self.folder.glob("*/*.json"))
        return sorted(filter(None, map(self._load, paths)), key=lambda probe: probe.measured_at)

    def _path(self, model_id: str, machine: MachineIdentity) -> Path:
        # Ids may differ in case alone, which not every file system keeps apart.
        digest = hashlib.sha256(model_id.encode()).hexdigest()[:8]
        return self.folder / machine.key / f"{re.sub('[/:]', '-', model_id)}.{digest}.json"

    def _load(self, path: Path) -> Probe | None:
        """A file's measurement, read again only if the file has changed; a bad file is told of once."""
        try:
            status = path.stat()
        except OSError:
            return None
        state = (status.st_size, status.st_mtime_ns)
        known = self._read.get(path)
        if known is None or known[0] != state:
            known = self._read[path] = (state, _parsed(path, status.st_size))
        return known[1]

    def __repr__(self) -> str:
        return f"<MeasurementStore in {self.folder}>"


def _usual_folder() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE, "").strip()
    return (cache_dir() if chosen else user_data_path("cartoolkit")) / "measurements"


def _write_whole(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    aside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def _parsed(path: Path, size: int) -> Probe | None:
    try:
        if size <= LARGEST_FILE:
            return Probe.model_validate_json(path.read_bytes())
        fault = f"it has {size / 1e6:,.1f} MB, and a measurement has at most {LARGEST_FILE / 1e6:.0f} MB"
    except OSError as error:
        fault = error.strerror or type(error).__name__
    except ValidationError as error:
        first = error.errors()[0]
        fault = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
    say(f"The measurement in {path} cannot be used and is passed over: {fault}. Probe the model again.")
    return None
