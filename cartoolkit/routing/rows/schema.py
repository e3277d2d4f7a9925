"""What is known of a model: what it can do, how fast it is, what it costs, and how we know.

A figure says whether it was *measured* on this machine, *declared* by somebody, or *assumed* by us. What is
not known is None, never 0: a model without a price is unpriced, not free.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from cartoolkit.intents import CAPABILITIES, Capability
from cartoolkit.routing.rows.figures import Basis, Count, Figure, NonNegative, Row, Share, Text
from cartoolkit.routing.rows.pricing import Cost, PricingTier, Rates

__all__ = [
    "CAPABILITIES", "Basis", "Benchmark", "Capability", "Cost", "Figure", "ModelSchema", "Performance",
    "PricingTier", "Rates", "Source", "SourceKind", "TrustTier",
]  # fmt: skip

TrustTier = Literal["curated", "community"]
"""Who vouches for a row: this package, or whoever wrote it."""

SourceKind = Literal["catalog", "folder", "hub", "local_server", "remote_api"]
"""Where a model answers from; all but the last run on this machine."""

_ID = re.compile(
    r"(?P<provider>{part})/(?P<name>{part})(?::{part})?".format(part=r"[A-Za-z0-9][A-Za-z0-9._-]*")
)
_ID_IN_WORDS = "provider/name or provider/name:variant, of letters, digits, '.', '_' and '-'"
LONGEST_ID = 200
"""Characters of an id; it stands in every row of the outcome ledger."""

_FETCHED: tuple[SourceKind, ...] = ("catalog", "hub")
_NEEDS_NO_FILES: tuple[SourceKind, ...] = ("local_server", "remote_api")


class Performance(Row):
    """How fast a model is; each figure may be unknown.

    Attributes:
        ttft_ms: time to the first token of a short prompt, once the model is loaded.
        prefill_tokens_per_second: prompt tokens read a second; what a longer prompt adds to the first token.
        tokens_per_second: answer tokens written a second.
        load_ms: time to load weights that are on this disk.
        latency_p50_ms: a provider's own median latency; stands for `ttft_ms` where that is unknown.
        latency_p99_ms: its 99th percentile; shown, not scored.
    """

    ttft_ms: Figure | None = None
    prefill_tokens_per_second: Figure | None = None
    tokens_per_second: Figure | None = None
    load_ms: Figure | None = None
    latency_p50_ms: Figure | None = None
    latency_p99_ms: Figure | None = None

    @field_validator("prefill_tokens_per_second", "tokens_per_second")
    @classmethod
    def _a_speed_is_above_zero(cls, speed: Figure | None) -> Figure | None:
        if speed is not None and speed.value == 0:
            raise ValueError("a speed must be above 0; leave it out if it is not known")
        return speed


class Benchmark(Row):
    """A score that somebody published.

    Attributes:
        name: of the benchmark.
        score: share that was right, 0 to 1.
        harness: what ran it.
        source_url: where it was published.
        measured_at: when, as it was written there.
        runs: how many runs it is the mean of.
        spread: their standard deviation.
    """

    name: Text
    score: Share
    harness: str | None = None
    source_url: str | None = None
    measured_at: str | None = None
    runs: Count | None = None
    spread: NonNegative | None = None


class Source(Row):
    """Where a model comes from, and where it answers.

    Attributes:
        kind: see `SourceKind`.
        location: a catalog name, a folder, a hub name or an address.
        engine: `torch`, `mlx` or `gguf` for a model that one of our engines runs.
        model: what a server calls it; the id's name if it is left out.
        key_variable: name of the environment variable that holds the key; empty if none is needed. The key
            itself stands in no row.
    """

    kind: SourceKind
    location: str = ""
    engine: Literal["torch", "mlx", "gguf"] | None = None
    model: str = ""
    key_variable: Annotated[str, Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""


class ModelSchema(Row):
    """One model as the router sees it.

    The three facts about readiness differ: a hub model can be usable here and not be downloaded yet; a
    remote one needs no files at all; weights in a folder may lie there, and no engine can serve them.

    Attributes:
        id: `provider/name` or `provider/name:variant`; compared as it is.
        name: what people read; the id's name if it is left out.
        provider: the id's provider if it is left out.
        family: such as `llama`.
        version: such as `2.5`.
        capabilities: what it can do, the main one first.
        context_length: tokens it can see at once; None is unknown.
        parameters: number of weights.
        active_parameters: of these, how many take part in one token, for a mixture of experts.
        quantization: such as `Q4_K_M`; None is full precision or unknown.
        quality: share of right answers on a probe, 0 to 1.
        performance: see `Performance`.
        cost: see `Cost`.
        source: see `Source`.
        tags: free words.
        supported_params: names of the settings that it heeds; empty is unknown.
        benchmarks: what was published about it.
        trust_tier: see `TrustTier`.
        available: it can be used here, perhaps after a download.
        unavailable_because: one clause, where it cannot.
        weights_ready: nothing is missing on this disk; true for a model whose files are not our business.
        downloads_weights: its weights are fetched by us on first use.
    """

    id: Text
    name: Text = ""
    provider: Text = ""
    family: str | None = None
    version: str | None = None
    capabilities: Annotated[tuple[Capability, ...], Field(min_length=1)]
    context_length: Count | None = None
    parameters: Count | None = None
    active_parameters: Count | None = None
    quantization: Text | None = None
    quality: Figure | None = None
    performance: Performance = Field(default_factory=Performance)
    cost: Cost = Field(default_factory=Cost)
    source: Source
    tags: tuple[Text, ...] = ()
    supported_params: tuple[Text, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    trust_tier: TrustTier = "community"
    available: Annotated[bool, Field(strict=True)] = True
    unavailable_because: str = ""
    weights_ready: Annotated[bool, Field(strict=True)] = False
    downloads_weights: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="before")
    @classmethod
    def _fill_in_what_follows(cls, given: Any) -> Any:  # noqa: ANN401
        """Name and provider follow from the id, readiness from the source, where they are not given."""
        if not isinstance(given, dict):
            return given
        parts = _ID.fullmatch(given["id"]) if isinstance(given.get("id"), str) else None
        source = given.get("source")
        kind = source.get("kind") if isinstance(source, dict) else getattr(source, "kind", None)
        follows = {
            "weights_ready": kind in _NEEDS_NO_FILES,
            "downloads_weights": kind in _FETCHED,
        }
        return follows | (parts.groupdict() if parts else {}) | given

    @field_validator("id")
    @classmethod
    def _id_has_its_form(cls, given: str) -> str:
        if not _ID.fullmatch(given):
            raise ValueError(f"must be {_ID_IN_WORDS}")
        if len(given) > LONGEST_ID:
            raise ValueError(f"must have at most {LONGEST_ID} characters")
        return given

    @field_validator("capabilities")
    @classmethod
    def _named_once(cls, given: tuple[Capability, ...]) -> tuple[Capability, ...]:
        if len(set(given)) < len(given):
            raise ValueError("a capability is named twice")
        return given

    @field_validator("quality")
    @classmethod
    def _quality_is_a_share(cls, given: Figure | None) -> Figure | None:
        if given is not None and given.value > 1:
            raise ValueError("must be a share from 0 to 1")
        return given

    @property
    def is_local(self) -> bool:
        """Whether it answers on this machine."""
        return self.source.kind != "remote_api"

    @property
    def size_label(self) -> str:
        """The number of weights as people write it, such as `135M` or `30B (3B active)`; empty if unknown."""
        if self.parameters is None:
            return ""
        active = "" if self.active_parameters is None else f" ({_short(self.active_parameters)} active)"
        return f"{_short(self.parameters)}{active}"


def _short(count: int) -> str:
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return str(count)
