"""Measuring models on this machine, and keeping what was measured."""

__all__: list[str] = []
