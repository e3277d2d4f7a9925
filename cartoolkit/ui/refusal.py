"""Where a widget says why something was not done."""

from __future__ import annotations

import contextlib
import html
import logging
from typing import TYPE_CHECKING

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.errors import CartoolkitError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Refusal"]

_log = logging.getLogger(__name__)


class Refusal(W.HTML):
    """An error's sentence and what to do about it; hidden while there is none."""

    def __init__(self) -> None:
        super().__init__(layout=W.Layout(display="none"))

    @contextlib.contextmanager
    def explaining(self, what: str) -> Iterator[None]:
        """Show errors here instead of losing them in the kernel; `what` names the work in its log."""
        try:
            yield
        except CartoolkitError as error:
            self.explain(str(error), error.hint)
        except Exception as error:  # noqa: BLE001 - shown in the widget
            _log.exception("%s failed", what)
            advice = "This is a fault of cartoolkit; please report it."
            self.explain(f"{type(error).__name__}: {error}", advice)

    def explain(self, message: str, hint: str | None = None) -> None:
        """Say why something was not done, and what to do."""
        advice = f"<br>{html.escape(hint)}" if hint else ""
        self.value = (
            '<div role="alert" style="border-left:3px solid #b42318;padding:4px 10px;line-height:1.5;'
            f'white-space:pre-wrap"><b>{html.escape(message)}</b>{advice}</div>'
        )
        self.layout.display = None

    def clear(self) -> None:
        """Hide it."""
        self.layout.display = "none"
