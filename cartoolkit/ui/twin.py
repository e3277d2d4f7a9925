"""The static twin of a widget: what a saved notebook shows where no kernel answers."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.display_functions import DisplayHandle

    from cartoolkit.trace import Trace

__all__ = ["Twin", "still_bundle"]

_EMPTY = "Nothing has been generated yet. Run the notebook, write a {asked} and press {button}."
_LIVE = "application/vnd.jupyter.widget-view+json"
# Where the live view cannot be shown, its output takes no room and no error.
_NOTHING = {"text/html": ""}


def still_bundle(
    trace: Trace | None, *, threshold: float = 0.4, asked: str = "prompt", button: str = "Generate"
) -> dict[str, str]:
    """A run, or that there is none yet, as ``text/html`` and ``text/plain``.

    Args:
        trace: the run.
        threshold: below this raw max probability a token is marked.
        asked: what a reader has to write first.
        button: what a reader has to press then.
    """
    from cartoolkit.retrieval.effects import look_up_effects, retrieved_steps
    from cartoolkit.trace.static_html import run_html, run_text

    if trace is None:
        nothing = _EMPTY.format(asked=asked, button=button)
        return {"text/html": f"<p>{nothing}</p>", "text/plain": nothing}
    used = [effect.used for effect in look_up_effects(trace)]
    page = run_html(trace, threshold=threshold, retrieved=retrieved_steps(trace), used=used)
    return {"text/html": page, "text/plain": run_text(trace, threshold=threshold)}


class _Shown(Protocol):
    """A widget that has a run to show."""

    @property
    def trace(self) -> Trace | None: ...

    @property
    def _repr_mimebundle_(self) -> Callable[..., dict[str, Any]] | None: ...


class Twin:
    """Puts the run as ``text/html`` and ``text/plain`` below the live view, and again when a run has ended.

    It is written when the widget is displayed, which is before anything has been generated; so every
    display is remembered and updated at the end of a run. It is an output of its own: JupyterLab builds a
    live view anew when its output is updated, which loses the reader's place. The widget shows
    `hiding_style` in its page, so that the twin is seen where the live view is not, and only there.

    Args:
        widget: what is displayed.
        still: what it is now, by MIME type; `still_bundle` of its trace unless given.
    """

    def __init__(self, widget: _Shown, still: Callable[[], dict[str, str]] | None = None) -> None:
        self._widget = widget
        self._still = still or (lambda: still_bundle(widget.trace))
        self._class = f"cartoolkit-twin-{secrets.token_hex(4)}"
        self._views: list[DisplayHandle] = []
        self._twins: list[DisplayHandle] = []

    @property
    def hiding_style(self) -> str:
        """HTML that hides this twin while it is part of the page."""
        return f"<style>.{self._class} {{display: none}}</style>"

    def bundle(self) -> dict[str, str]:
        """The run as a page fragment and as text, by MIME type."""
        still = self._still()
        return {**still, "text/html": f'<div class="{self._class}">{still["text/html"]}</div>'}

    def display(self) -> None:
        """Show the widget and its twin in the running cell; of a closed widget the twin alone."""
        if (live := self._widget._repr_mimebundle_) is not None:
            _show({_LIVE: live()[_LIVE], **_NOTHING}, self._views)
        _show(self.bundle(), self._twins)

    def refresh(self) -> None:
        """Write the twin again wherever the widget was displayed."""
        for twin in self._twins:
            twin.update(self.bundle(), raw=True)

    def freeze(self) -> None:
        """Leave the twin alone wherever the widget was displayed."""
        self.refresh()
        for view in self._views:
            view.update(_NOTHING, raw=True)


def _show(bundle: dict[str, Any], shown: list[DisplayHandle]) -> None:
    from IPython.display import display

    handle = display(bundle, raw=True, display_id=True)
    if handle is not None:
        shown.append(handle)
