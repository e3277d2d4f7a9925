"""How long a model is expected to take: to its first token, and to a whole answer.

::

    start        = 0 if it is remote or in memory already, else load_ms (+ download)
    first token  = start + ttft_ms + 1000 · prompt_tokens / prefill_tokens_per_second
    whole answer = first token + 1000 · output_tokens / tokens_per_second

What is not known is replaced by a constant of this module, and the result is marked as assumed; only an
unknown prefill speed adds nothing, which is what a provider's own latency includes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.routing.figures import Basis, Figure, weakest

if TYPE_CHECKING:
    from cartoolkit.routing.schema import ModelSchema
    from cartoolkit.routing.situation import Demand, Machine

__all__ = ["Expected", "expected_latency"]

ASSUMED_TTFT_MS = 1000.0
ASSUMED_TOKENS_PER_SECOND = 20.0
ASSUMED_LOAD_MS = 5000.0
"""For weights of unknown size; see also `ASSUMED_READ_MB_PER_SECOND`."""

ASSUMED_READ_MB_PER_SECOND = 500.0
"""Weights read from a disk and made ready."""

ASSUMED_DOWNLOAD_MB_PER_SECOND = 10.0
ASSUMED_DOWNLOAD_MS = 600_000.0
"""For weights of unknown size."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A time that is expected, with its parts.

    Attributes:
        parts: name, milliseconds and basis of each, in the order in which they pass.
    """

    parts: tuple[tuple[str, float, Basis], ...]

    @property
    def ms(self) -> float:
        """Milliseconds, all parts together."""
        return sum(ms for _, ms, _ in self.parts)

    @property
    def basis(self) -> Basis:
        """That of the least sure part."""
        bases: list[Basis] = [basis for _, _, basis in self.parts]
        return weakest(*bases)

    @property
    def shown(self) -> str:
        """The parts in words, such as `load 1,000 assumed + first token 240 declared`."""
        return " + ".join(f"{name} {ms:,.0f} {basis}" for name, ms, basis in self.parts)

    def __str__(self) -> str:
        return f"{self.ms:,.0f} ms ({self.shown})"


def expected_latency(model: ModelSchema, demand: Demand, machine: Machine, *, first_token: bool) -> Expected:
    """How long `model` is expected to take for `demand`.

    Args:
        model: the row.
        demand: the length of prompt and answer.
        machine: what is loaded already.
        first_token: to the first token alone, not to the end of the answer.
    """
    speed = model.performance
    parts = _start(model, machine)
    parts.append(("first token", *_known(speed.ttft_ms or speed.latency_p50_ms, ASSUMED_TTFT_MS)))
    if speed.prefill_tokens_per_second is not None:
        parts.append(("prompt", *_at_speed(demand.prompt_tokens, speed.prefill_tokens_per_second)))
    if not first_token:
        assumed = Figure(value=ASSUMED_TOKENS_PER_SECOND, basis="assumed")
        parts.append(("answer", *_at_speed(demand.output_tokens, speed.tokens_per_second or assumed)))
    return Expected(tuple(parts))


def _start(model: ModelSchema, machine: Machine) -> list[tuple[str, float, Basis]]:
    """What passes before a model can begin to read."""
    if not model.is_local or model.source.kind == "local_server" or model.id in machine.loaded:
        return []
    size = model.cost.size_mb
    load = size and 1000 * size.value / ASSUMED_READ_MB_PER_SECOND
    parts = [("load", *_known(model.performance.load_ms, ASSUMED_LOAD_MS if load is None else load))]
    if model.weights_ready or not model.downloads_weights:
        return parts
    fetch = ASSUMED_DOWNLOAD_MS if size is None else 1000 * size.value / ASSUMED_DOWNLOAD_MB_PER_SECOND
    return [("download", fetch, "assumed"), *parts]


def _known(figure: Figure | None, otherwise: float) -> tuple[float, Basis]:
    return (otherwise, "assumed") if figure is None else (figure.value, figure.basis)


def _at_speed(tokens: int, speed: Figure) -> tuple[float, Basis]:
    return 1000 * tokens / speed.value, speed.basis
