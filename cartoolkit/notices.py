"""What the toolkit says aloud: one line on standard output, in the cell that caused it."""

from __future__ import annotations

__all__ = ["say"]


def say(text: str) -> None:
    """Tell the person at the notebook about a choice that was made for them."""
    print(text, flush=True)
