"""The live table of models and workloads. Its browser half is `widgets/src/router_view.ts`."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import anywidget
import traitlets

from cartoolkit.ui._router_protocol import PROTOCOL_VERSION, Ready, RouterUpdate, parse_router_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.ui._router_protocol import RouterMessage, RouterState

__all__ = ["RouterView"]

_STATIC = Path(__file__).parent / "static"
_log = logging.getLogger(__name__)


class RouterView(anywidget.AnyWidget):
    """Shows a state and hands on what a reader does; it decides nothing.

    Attributes:
        snapshot: the last state that was kept, which a saved notebook shows.
        state: the last one that was shown; None before the first.
    """

    _esm = _STATIC / "index.js"
    view = traitlets.Unicode("router").tag(sync=True)
    snapshot = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)

    def __init__(self, handler: Callable[[RouterMessage], object] | None = None) -> None:
        """Show nothing yet.

        Args:
            handler: gets every message from the browser but `ready`. It is called on the kernel's thread and
                must not block.
        """
        super().__init__()
        self.state: RouterState | None = None
        self._handler = handler
        self._sending = threading.Lock()
        self.on_msg(self._receive)

    def show(self, state: RouterState, *, keep: bool = False) -> None:
        """Show a state, and keep it for a saved notebook if `keep`."""
        with self._sending:
            self.state = state
            if self.comm is None:  # closed
                return
            self._tell(state)
            if keep:
                self.snapshot = dict(state)

    def close(self) -> None:
        """Take the view out of the notebook."""
        super().close()
        # anywidget keeps every view for as long as the process lives; what it handed on to must not be kept.
        self._handler = self.state = self.snapshot = None

    def _tell(self, state: RouterState) -> None:
        self.send(dict(RouterUpdate(type="update", v=PROTOCOL_VERSION, state=state)))

    def _receive(self, _widget: object, content: object, _buffers: object) -> None:
        try:
            message = parse_router_message(content)
        except ValueError as error:
            _log.warning("%s", error)
            return
        if isinstance(message, Ready):
            # Also a view that has this state is told: it hears that a kernel is there.
            if (state := self.state) is not None:
                self._tell(state)
        elif (handler := self._handler) is not None:
            try:
                handler(message)
            except Exception:  # noqa: BLE001 - it is the owner's, and must not go up into the kernel
                _log.exception("a message from the browser could not be followed")
