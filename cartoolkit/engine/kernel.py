"""Whether somebody sits at a notebook."""

from __future__ import annotations

import sys

__all__ = ["in_kernel"]


def in_kernel() -> bool:
    """Whether this process is a notebook's kernel; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")
