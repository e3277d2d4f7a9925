"""How long a model is expected to take: to its first token, and to a whole answer.

What its row says::

    start        = 0 if it is remote or in memory already, else load_ms (+ download)
    first token  = ttft_ms + 1000 · prompt_tokens / prefill_tokens_per_second
    answer       = 1000 · output_tokens / tokens_per_second

What is not known is replaced by a constant of this module, and the result is marked as assumed; only an
unknown prefill speed adds nothing, which is what a provider's own latency includes.

What recent answers took, n of them and 50 at most, joins it by numbers of observations::

    first token  = (k · row + n · seen) / (k + n)
    answer       = (k · row + n · output_tokens · pace) / (k + n)

k is the number of observations behind the row's figure, 5 where it is not said, and 1 where the figure is
assumed. `pace` is the mean time of a token after the first. `seen` is the mean time to the first token; it
belongs to prompts of a mean length p. For a longer prompt the row's prefill speed adds what the further
tokens take. For a shorter one, where that speed is known and so a prompt's length tells, the mean is reduced
by (128 + prompt_tokens) / (128 + p), as if a first token took as long as 128 more tokens of the prompt. So a
figure that is slower never makes a model faster. An answer whose first token was not timed says nothing here:
what it took cannot be divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.routing.choice.situation import NO_EVIDENCE, Evidence
from cartoolkit.routing.rows.figures import Basis, Figure, weakest

if TYPE_CHECKING:
    from cartoolkit.routing.choice.situation import Demand, Machine
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["Expected", "Part", "expected_latency", "shown_ms"]

ASSUMED_TTFT_MS = 1000.0
ASSUMED_TOKENS_PER_SECOND = 20.0
ASSUMED_LOAD_MS = 5000.0
"""For weights of unknown size; see also `ASSUMED_READ_MB_PER_SECOND`."""

ASSUMED_READ_MB_PER_SECOND = 500.0
"""Weights read from a disk and made ready."""

ASSUMED_DOWNLOAD_MB_PER_SECOND = 10.0
ASSUMED_DOWNLOAD_MS = 600_000.0
"""For weights of unknown size."""

ROW_OBSERVATIONS = 5
"""How many observations a figure of the row is worth that does not say from how many it comes."""

ASSUMED_OBSERVATIONS = 1
"""The same for a figure that is assumed."""

FIXED_TOKENS = 128
"""So many tokens of a prompt take as long as what every first token takes, where a prompt is shorter."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the time that is expected.

    Attributes:
        name: `download`, `load`, `first token`, `prompt` or `answer`.
        ms: milliseconds.
        basis: how sure it is.
        seen_ms: what earlier answers alone let expect; None if there are none.
        row_ms: what the row alone lets expect.
        row_basis: how sure that is.
        observations: how many the row's figure counts as, and how many answers were observed.
        note: where `seen_ms` comes from, where it is not a plain mean; "" where it is.
    """

    name: str
    ms: float
    basis: Basis
    seen_ms: float | None = None
    row_ms: float = 0.0
    row_basis: Basis = "assumed"
    observations: tuple[int, int] = (0, 0)
    note: str = ""

    @property
    def shown(self) -> str:
        """It as words that can be computed: `first token (5 × 600 declared + 20 × 300 observed) / 25`."""
        if self.seen_ms is None:
            return f"{self.name} {shown_ms(self.ms)} {self.basis}"
        row, seen = self.observations
        row_part = f"{row} × {shown_ms(self.row_ms)} {self.row_basis}"
        return f"{self.name} ({row_part} + {seen} × {shown_ms(self.seen_ms)} observed) / {row + seen}"

    def joined(self, seen_ms: float, answers: int, row: int, note: str = "") -> Part:
        """This part with what `answers` observed answers took, where the row counts as `row` of them."""
        together = (row * self.ms + answers * seen_ms) / (row + answers)
        basis = "measured" if answers > row else self.basis
        counts = (row, answers)
        return Part(self.name, together, basis, seen_ms, self.ms, self.basis, counts, note)


@dataclass(frozen=True, slots=True)
class Expected:
    """A time that is expected, with its parts, in the order in which they pass."""

    parts: tuple[Part, ...]

    @property
    def ms(self) -> float:
        """Milliseconds, all parts together."""
        return sum(part.ms for part in self.parts)

    @property
    def basis(self) -> Basis:
        """That of the least sure part."""
        bases: list[Basis] = [part.basis for part in self.parts]
        return weakest(*bases)

    @property
    def shown(self) -> str:
        """The parts as in `load 1,000 assumed + first token 240 declared`; their notes stand after a `;`."""
        notes = (part.note for part in self.parts if part.note)
        return "; ".join((" + ".join(part.shown for part in self.parts), *notes))

    def __str__(self) -> str:
        return f"{self.ms:,.0f} ms ({self.shown})"


def expected_latency(
    model: ModelSchema,
    demand: Demand,
    machine: Machine,
    *,
    first_token: bool,
    evidence: Evidence = NO_EVIDENCE,
) -> Expected:
    """How long `model` is expected to take for `demand`.

    Args:
        model: the row.
        demand: the length of prompt and answer.
        machine: what is loaded already.
        first_token: to the first token alone, not to the end of the answer.
        evidence: what earlier answers took.
    """
    parts = [*_start(model, machine), *_first_token(model, demand, evidence)]
    if not first_token:
        parts.append(_answer(model, demand, evidence))
    return Expected(tuple(parts))


def _start(model: ModelSchema, machine: Machine) -> list[Part]:
    """What passes before a model can begin to read."""
    if not model.is_local or model.source.kind == "local_server" or model.id in machine.loaded:
        return []
    size = model.cost.size_mb
    load = size and 1000 * size.value / ASSUMED_READ_MB_PER_SECOND
    parts = [_known("load", model.performance.load_ms, ASSUMED_LOAD_MS if load is None else load)]
    if model.weights_ready or not model.downloads_weights:
        return parts
    fetch = ASSUMED_DOWNLOAD_MS if size is None else 1000 * size.value / ASSUMED_DOWNLOAD_MB_PER_SECOND
    return [Part("download", fetch, "assumed"), *parts]


def _first_token(model: ModelSchema, demand: Demand, evidence: Evidence) -> list[Part]:
    """The time to the first token, and that to read the prompt; one part where answers were observed."""
    figure = model.performance.ttft_ms or model.performance.latency_p50_ms
    prefill = model.performance.prefill_tokens_per_second
    parts = [_known("first token", figure, ASSUMED_TTFT_MS)]
    if prefill is not None:
        parts.append(Part("prompt", *_at_speed(demand.prompt_tokens, prefill)))
    if evidence.ttft_ms is None or not evidence.started:
        return parts
    together = Part("first token", sum(part.ms for part in parts), Expected(tuple(parts)).basis)
    seen, note = _seen_at(evidence.ttft_ms, evidence.prompt_tokens, demand.prompt_tokens, prefill)
    return [together.joined(seen, evidence.started, _observations(figure), note)]


def _seen_at(seen: float, of: float | None, prompt: int, prefill: Figure | None) -> tuple[float, str]:
    """A mean time to the first token, of prompts of `of` tokens, for a prompt of `prompt`; and its sum."""
    if prefill is None or of is None or prompt == of:
        return seen, ""
    if prompt > of:
        longer = prompt - of
        at = seen + 1000 * longer / prefill.value
        return (
            at,
            f"{shown_ms(at)} = {shown_ms(seen)} + 1,000 × {longer:,.6g} more tokens / {prefill.value:,.6g}",
        )
    at = seen * (FIXED_TOKENS + prompt) / (FIXED_TOKENS + of)
    return (
        at,
        f"{shown_ms(at)} = {shown_ms(seen)} × ({FIXED_TOKENS} + {prompt:,}) / ({FIXED_TOKENS} + {of:,.6g})",
    )


def _answer(model: ModelSchema, demand: Demand, evidence: Evidence) -> Part:
    """The time to write the answer."""
    figure = model.performance.tokens_per_second
    speed = figure or Figure(value=ASSUMED_TOKENS_PER_SECOND, basis="assumed")
    part = Part("answer", *_at_speed(demand.output_tokens, speed))
    if evidence.ms_per_token is None or not evidence.paced:
        return part
    seen = demand.output_tokens * evidence.ms_per_token
    note = f"{shown_ms(seen)} = {demand.output_tokens:,} × {evidence.ms_per_token:,.6g}"
    return part.joined(seen, evidence.paced, _observations(figure), note)


def _observations(figure: Figure | None) -> int:
    """How many observed answers a figure of the row outweighs."""
    if figure is None or figure.basis == "assumed":
        return ASSUMED_OBSERVATIONS
    return figure.n or ROW_OBSERVATIONS


def _known(name: str, figure: Figure | None, otherwise: float) -> Part:
    return Part(name, otherwise, "assumed") if figure is None else Part(name, figure.value, figure.basis)


def _at_speed(tokens: int, speed: Figure) -> tuple[float, Basis]:
    return 1000 * tokens / speed.value, speed.basis


def shown_ms(value: float) -> str:
    """Milliseconds as they are shown: a tenth where there are few of them."""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"
