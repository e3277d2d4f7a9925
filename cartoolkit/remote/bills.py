"""What an answer of a row's model cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cartoolkit.engine import Usage
    from cartoolkit.routing.rows.schema import ModelSchema

__all__ = ["usd_of"]


def usd_of(row: ModelSchema, usage: Usage) -> tuple[float | None, bool]:
    """The bill in USD, and whether it was worked out from the row's prices instead of told by the provider.

    For a model on this machine that has no prices nobody bills, which is 0.0. None is unknown: the row has no
    price for what was used, or the server did not count.

    >>> from cartoolkit.engine import Usage
    >>> from cartoolkit.routing.rows.schema import ModelSchema
    >>> row = ModelSchema(id="acme/large", capabilities=["generate"], source={"kind": "remote_api"},
    ...                   cost={"input_per_mtok": 1.0, "output_per_mtok": 4.0})
    >>> usd_of(row, Usage(prompt_tokens=1000, prefill_tokens=1000, reused_tokens=0, completion_tokens=500))
    (0.003, True)
    """
    if row.is_local and not row.cost.is_priced:
        return 0.0, False
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None, False
    cached = usage.reused_tokens or 0
    usd = row.cost.usd(usage.prompt_tokens, usage.completion_tokens, cached=cached)
    return usd, usd is not None
