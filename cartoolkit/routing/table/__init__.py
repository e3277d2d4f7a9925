"""Models and workloads in one table: as a frame, as a figure, as a still page."""

__all__: list[str] = []
