"""Whether choosing is worth it: policies on traffic, and choices on held-out questions."""

__all__: list[str] = []
