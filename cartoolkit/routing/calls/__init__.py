"""Asking the chosen model, and the next one if it fails."""

__all__: list[str] = []
