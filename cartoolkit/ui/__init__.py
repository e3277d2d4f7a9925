"""The notebook widgets."""

from cartoolkit.ui.flare_view import FlareView
from cartoolkit.ui.inspector import Inspector
from cartoolkit.ui.router_table import RouterTable
from cartoolkit.ui.run_view import RunView

__all__ = ["FlareView", "Inspector", "RouterTable", "RunView"]
