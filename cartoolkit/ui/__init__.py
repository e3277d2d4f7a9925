"""The notebook widgets."""

from cartoolkit.ui.inspector import Inspector
from cartoolkit.ui.run_view import RunView

__all__ = ["Inspector", "RunView"]
