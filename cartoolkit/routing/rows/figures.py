"""Numbers that say how they are known, and the kinds of number and text that rows are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = ["Basis", "Count", "Figure", "NonNegative", "Row", "Share", "Text", "weakest"]

Basis = Literal["measured", "declared", "assumed"]
"""How a figure is known, the surest first."""

_SURENESS: tuple[Basis, ...] = get_args(Basis)


def weakest(*bases: Basis) -> Basis:
    """The basis of a number that was computed from several: that of its least sure part.

    >>> weakest("measured", "assumed", "declared")
    'assumed'
    """
    return _SURENESS[max(map(_SURENESS.index, bases), default=0)]


class Row(BaseModel):
    """What a file may hold: no other fields than these, and nothing that changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _no_bool(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")  # noqa: TRY004 - pydantic reports only ValueError
    return value


NonNegative = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=1, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Text = Annotated[str, Field(min_length=1, strict=True)]


class Figure(Row):
    """A number with how it is known. In a file a bare number is short for a declared one.

    Attributes:
        value: in the unit of the field that holds it.
        basis: see `Basis`.
        low: lower end of a 95 % interval, where one was measured.
        high: its upper end.
        n: how many observations it comes from, where they were counted.
    """

    value: NonNegative
    basis: Basis = "declared"
    low: NonNegative | None = None
    high: NonNegative | None = None
    n: Count | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_a_bare_number(cls, given: Any) -> Any:  # noqa: ANN401
        if isinstance(given, int | float) and not isinstance(given, bool):
            return {"value": given}
        if not isinstance(given, dict | Figure):
            raise ValueError("must be a number, or a table with 'value' and perhaps 'basis'")  # noqa: TRY004
        return given

    @model_validator(mode="after")
    def _lies_in_its_interval(self) -> Self:
        if self.low is not None and self.low > self.value:
            raise ValueError(f"the interval's low end {self.low:g} is above the value {self.value:g}")
        if self.high is not None and self.high < self.value:
            raise ValueError(f"the interval's high end {self.high:g} is below the value {self.value:g}")
        return self
