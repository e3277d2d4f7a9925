"""A widget that stands in a notebook beside its static twin, and leaves it when it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

from cartoolkit.ui.conductor import close_all

if TYPE_CHECKING:
    from cartoolkit.ui.twin import Twin

__all__ = ["Twinned"]


class Twinned(W.VBox):
    """A column of widgets with a twin; whoever derives from it sets `_twin` before its parts are shown."""

    _twin: Twin

    def close(self) -> None:
        """Take the live view out of the notebook, which leaves the static twin; what runs goes on."""
        for child in self.children:
            close_all(child)
        super().close()

    def freeze(self) -> None:
        """Replace the widget in the notebook by its static twin, which needs no kernel to be read."""
        self._twin.freeze()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        live = super()._repr_mimebundle_(**options) or {}
        return {**live, **self._twin.bundle()}

    def _ipython_display_(self) -> None:
        self._twin.display()
