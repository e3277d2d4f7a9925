"""A linear layer whose weights are int8 numbers with one scale for each output."""

from __future__ import annotations

from typing import Self

import torch

__all__ = ["Int8Linear", "few_rows_times_int8"]

# Up to so many rows the kernel is faster than unpacking the matrix and multiplying.
_FEW_ROWS = 4


class Int8Linear(torch.nn.Module):
    """x [..., in] to [..., out], in the dtype of x.

    Attributes:
        steps: int8 [out, in].
        scale: [out], in the dtype of x.
        bias: [out], or None.
    """

    steps: torch.Tensor
    scale: torch.Tensor
    bias: torch.Tensor | None

    def __init__(self, steps: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = steps.shape
        self.register_buffer("steps", steps)
        self.register_buffer("scale", scale)
        self.register_buffer("bias", bias)

    @classmethod
    def packed(cls, matrix: torch.Tensor, bias: torch.Tensor | None) -> Self:
        """Round `matrix` [out, in] to 255 steps, the largest weight of each output being the last one."""
        with torch.no_grad():
            wide = matrix.float()
            # Rounded first, so that the steps make good what the scale loses in the dtype of x.
            scale = (wide.abs().amax(1) / 127).clamp(min=torch.finfo(matrix.dtype).tiny).to(matrix.dtype)
            steps = (wide / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8).contiguous()
        return cls(steps, scale, None if bias is None else bias.detach())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        rows = x.reshape(-1, self.in_features)
        if len(rows) <= _FEW_ROWS:
            out = few_rows_times_int8(rows, self.steps, self.scale)
        else:
            out = torch.nn.functional.linear(rows, self.steps.to(rows.dtype)) * self.scale
        if self.bias is not None:
            out = out + self.bias
        return out.view(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """Shown by `print(model)`."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


def few_rows_times_int8(rows: torch.Tensor, steps: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """`rows` [n, in] times int8 `steps` [out, in] times `scale` [out], by torch's kernel for it."""
    return torch.ops.aten._weight_int8pack_mm(rows, steps, scale)  # noqa: SLF001 - has no public name
