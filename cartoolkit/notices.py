"""What the toolkit says aloud: one line on standard output, in the cell that caused it."""

from __future__ import annotations

__all__ = ["in_words", "say"]


def in_words(error: BaseException) -> str:
    """An error's message, or its kind where it has none or cannot say it.

    >>> in_words(ValueError("a value of 3")), in_words(KeyError())
    ('a value of 3', 'KeyError')
    """
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - it is somebody else's, and must not take the place of what it tells
        return f"{type(error).__name__}, whose message cannot be shown"


def say(text: str) -> None:
    """Tell the person at the notebook about a choice that was made for them."""
    print(text, flush=True)
