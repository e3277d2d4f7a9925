"""What the router knows of each model: rows, their figures and prices, and where they come from."""

__all__: list[str] = []
