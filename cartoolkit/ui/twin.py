"""The static twin of a widget: what a saved notebook shows where no kernel answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.display_functions import DisplayHandle

    from cartoolkit.trace import Trace

__all__ = ["Twin"]

_EMPTY = "Nothing has been generated yet. Run the notebook, write a prompt and press Generate."


class _Shown(Protocol):
    """A widget that has a run to show."""

    @property
    def trace(self) -> Trace | None: ...

    @property
    def _repr_mimebundle_(self) -> Callable[..., dict[str, Any]]: ...


class Twin:
    """Puts ``text/html`` and ``text/plain`` beside the live view, and again when a run has ended.

    The twin is written when the widget is displayed, which is before anything has been generated; so
    every display is remembered and updated at the end of a run.
    """

    def __init__(self, widget: _Shown) -> None:
        self._widget = widget
        self._handles: list[DisplayHandle] = []

    def bundle(self) -> dict[str, str]:
        """The run as a page fragment and as text, by MIME type."""
        from cartoolkit.trace.static_html import run_html, run_text

        trace = self._widget.trace
        if trace is None:
            return {"text/html": f"<p>{_EMPTY}</p>", "text/plain": _EMPTY}
        return {"text/html": run_html(trace), "text/plain": run_text(trace)}

    def display(self) -> None:
        """Show the widget with its twin in the running cell."""
        from IPython.display import display

        handle = display(self._widget._repr_mimebundle_(), raw=True, display_id=True)
        if handle is not None:
            self._handles.append(handle)

    def refresh(self) -> None:
        """Write the twin again wherever the widget was displayed."""
        for handle in self._handles:
            handle.update(self._widget._repr_mimebundle_(), raw=True)

    def freeze(self) -> None:
        """Show the twin alone wherever the widget was displayed."""
        for handle in self._handles:
            handle.update(self.bundle(), raw=True)
