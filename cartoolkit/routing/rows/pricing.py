"""What a call costs: rates in USD per million tokens, other ones for long prompts, and the bill."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cartoolkit.routing.rows.figures import Figure, NonNegative, Row

__all__ = ["Cost", "PricingTier", "Rates"]


class Rates(Row):
    """Prices in USD per million tokens; None is unpriced, not free.

    Attributes:
        input_per_mtok: prompt tokens that are read anew.
        output_per_mtok: answer tokens.
        cache_read_input_per_mtok: prompt tokens that the provider finds in its cache.
        cache_write_input_per_mtok: prompt tokens that it puts there.
    """

    input_per_mtok: NonNegative | None = None
    output_per_mtok: NonNegative | None = None
    cache_read_input_per_mtok: NonNegative | None = None
    cache_write_input_per_mtok: NonNegative | None = None

    @property
    def is_priced(self) -> bool:
        """Whether any rate is known."""
        return any(getattr(self, name) is not None for name in Rates.model_fields)


class PricingTier(Rates):
    """Rates that hold for longer prompts; a rate that it leaves out stays as it was.

    Attributes:
        min_prompt_tokens: the shortest prompt that it holds for.
    """

    min_prompt_tokens: Annotated[int, Field(ge=0, strict=True)]


class Cost(Rates):
    """What a model costs: money for remote ones, disk and memory for those that run here.

    Attributes:
        pricing_tiers: other rates for longer prompts, in any order.
        size_mb: weights on disk, in millions of bytes.
        ram_mb: memory while it runs, in millions of bytes.
    """

    pricing_tiers: tuple[PricingTier, ...] = ()
    size_mb: Figure | None = None
    ram_mb: Figure | None = None

    @model_validator(mode="after")
    def _thresholds_differ(self) -> Self:
        thresholds = [tier.min_prompt_tokens for tier in self.pricing_tiers]
        if len(set(thresholds)) < len(thresholds):
            raise ValueError("two pricing_tiers have the same min_prompt_tokens")
        return self

    @property
    def is_priced(self) -> bool:
        """Whether any rate is known, at any prompt length."""
        return super().is_priced or any(tier.is_priced for tier in self.pricing_tiers)

    def rates_at(self, prompt_tokens: int) -> Rates:
        """The rates for a prompt of that length.

        The tier with the highest threshold that is not above the prompt holds, and replaces only the rates
        that it declares.

        >>> cost = Cost(input_per_mtok=1.0, output_per_mtok=4.0,
        ...             pricing_tiers=[{"min_prompt_tokens": 200_000, "input_per_mtok": 2.0}])
        >>> cost.rates_at(250_000).input_per_mtok, cost.rates_at(250_000).output_per_mtok
        (2.0, 4.0)
        """
        reached = [tier for tier in self.pricing_tiers if tier.min_prompt_tokens <= prompt_tokens]
        tier = max(reached, key=lambda tier: tier.min_prompt_tokens, default=None)
        rates = {name: getattr(self, name) for name in Rates.model_fields}
        declared = {name: getattr(tier, name, None) for name in rates}
        return Rates(**rates | {name: rate for name, rate in declared.items() if rate is not None})

    def bill(
        self, prompt_tokens: int, output_tokens: int, *, cached: int = 0, written: int = 0
    ) -> tuple[tuple[str, int, float | None], ...]:
        """What one call is charged for: what it is, how many tokens, and USD per million of them, if known.

        Cached and written tokens are parts of the prompt and are cut to it; without a rate of their own they
        are counted at the rate of the input.

        Args:
            prompt_tokens: of the whole prompt.
            output_tokens: of the answer.
            cached: prompt tokens that the provider is expected to find in its cache.
            written: prompt tokens that it is expected to put there.
        """
        rates = self.rates_at(prompt_tokens)
        cached = min(cached, prompt_tokens)
        written = min(written, prompt_tokens - cached)
        items = (
            ("input", prompt_tokens - cached - written, rates.input_per_mtok),
            ("cached", cached, _first_known(rates.cache_read_input_per_mtok, rates.input_per_mtok)),
            ("written", written, _first_known(rates.cache_write_input_per_mtok, rates.input_per_mtok)),
            ("output", output_tokens, rates.output_per_mtok),
        )
        return tuple(item for item in items if item[1])

    def usd(
        self, prompt_tokens: int, output_tokens: int, *, cached: int = 0, written: int = 0
    ) -> float | None:
        """The price of one call in USD, see `bill`; None where a rate that it needs is not known.

        >>> Cost(input_per_mtok=0.5, output_per_mtok=1.5).usd(2_000, 1_000)
        0.0025
        >>> Cost(input_per_mtok=0.5).usd(2_000, 1_000) is None
        True
        """
        items = self.bill(prompt_tokens, output_tokens, cached=cached, written=written)
        if not self.is_priced or any(rate is None for _, _, rate in items):
            return None
        return sum(tokens * rate for _, tokens, rate in items if rate is not None) / 1e6


def _first_known(*rates: float | None) -> float | None:
    return next((rate for rate in rates if rate is not None), None)
