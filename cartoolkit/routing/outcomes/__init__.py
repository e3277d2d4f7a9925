"""What became of calls: written down, counted, and heeded by breakers and spend limits."""

__all__: list[str] = []
