"""Scores a `RouterTable` anew whenever its settings move, or its router has learnt, and shows the result."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import TYPE_CHECKING

from cartoolkit.routing.chooser import EXPECTED_OUTPUT
from cartoolkit.ui.latest import Latest
from cartoolkit.ui.router_known import baselines_of, known_of
from cartoolkit.ui.router_state import Around, Known, Settings, decisions_of, router_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.routing import Router
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.ui._router_protocol import BaselineRow, Detail, RouterState
    from cartoolkit.ui.refusal import Refusal
    from cartoolkit.ui.router_view import RouterView

__all__ = ["Scorer"]

# Between 33 and 50 ms: fluid to the eye, and far below what the notebook's channel can carry.
_INTERVAL = 0.04
_NO_MODELS = "There is no model to choose from. Add one: router.add(…)."
_LONG_ANSWER = (
    f"Route counts on at most {EXPECTED_OUTPUT} tokens of an answer, however many it allows; "
    "the table counts on as many as are set."
)


class Scorer:
    """Keeps what the reader has set, and the view true to it.

    Scores come at once, and what takes longer when nothing newer waits: what would change the choice, and
    the baselines.

    Args:
        router: what knows the models.
        settings: as they stand at first.
        view: where the state is shown.
        refusal: where an error is explained.
        beside: answers and what is going on, at this moment.
        on_settled: called when all is told.
    """

    def __init__(
        self,
        router: Router,
        settings: Settings,
        view: RouterView,
        refusal: Refusal,
        *,
        beside: Callable[[], Around],
        on_settled: Callable[[], object],
    ) -> None:
        self._router = router
        self._view = view
        self._refusal = refusal
        self._beside = beside
        self._on_settled = on_settled
        self._settings = settings
        self._known = Known()
        self._probes: tuple[Probe, ...] = ()
        self._baselines: tuple[BaselineRow, ...] = ()
        self._stale = True
        self._orders = self._seq = 0
        self._lock = threading.RLock()
        self._latest = Latest(self._work, "cartoolkit-score")

    @property
    def settings(self) -> Settings:
        """What the reader has set."""
        return self._settings

    @property
    def decisions(self) -> dict[str, Decision]:
        """Every model under every workload, as the settings stand, by the mean worth."""
        return decisions_of(self._settings, self._known)

    def change(self, change: Callable[[Settings], Settings], *, learn: bool = False) -> None:
        """Change the settings and score anew; whatever `change` raises leaves them as they are.

        Args:
            change: makes the new settings of the present ones.
            learn: the router is to be asked again as well.
        """
        with self._lock:
            before, self._settings = self._settings, change(self._settings)
            # Spend limits are the router's, and whether a call fits into them goes by its lengths.
            is_limited = self._router.spending.limits.is_set and before.demand != self._settings.demand
        self.ask(learn=learn or is_limited)

    def ask(self, *, learn: bool = False) -> None:
        """Score anew on a thread, with what the router knows by now if `learn`."""
        self._stale |= learn
        with self._lock:
            self._orders += 1
        self._latest.ask(self._orders)

    def score(self) -> None:
        """Score anew, and wait for it."""
        self._work(self._orders)

    def tell(self) -> None:
        """Show the answers and what is going on as they are now; the scores stay."""
        with self._lock:
            if (state := self._view.state) is not None:
                self._show(state)

    def _work(self, order: int) -> None:
        with self._refusal.explaining("scoring"):
            self._learn()
            settings, known = self._settings, self._known
            decisions = decisions_of(settings, known)
            settings = self._selecting(settings, decisions)
            state = router_state(settings, known, decisions, seq=0, beside=self._around(), with_changes=False)
            with self._lock:
                _keep_changes(state["detail"], self._view.state)
                self._show(state)
            if order != self._orders:
                time.sleep(_INTERVAL)
                return
            self._baselines = tuple(baselines_of(known, decisions, self._probes))
            self._show(router_state(settings, known, decisions, seq=0, beside=self._around()), keep=True)
            self._on_settled()

    def _learn(self) -> None:
        if self._stale:
            self._stale = False
            self._probes = self._router.probes
            settings = self._settings
            self._known = known_of(self._router, settings.task, self._probes, settings.demand)

    def _selecting(self, settings: Settings, decisions: dict[str, Decision]) -> Settings:
        """With a cell to tell: where there is none yet, or its model has gone, the first of its workload."""
        ids = {model.id for model in self._known.models}
        workload = settings.selected[0] if settings.selected else settings.profiles[0].name
        if settings.selected is not None and settings.selected[1] in ids:
            return settings
        candidates = decisions[workload].candidates
        selected = (workload, candidates[0].model.id if candidates else "")
        with self._lock:
            if self._settings.selected == settings.selected:
                self._settings = dataclasses.replace(self._settings, selected=selected)
        return dataclasses.replace(settings, selected=selected)

    def _around(self) -> Around:
        notices = [] if self._known.models else [_NO_MODELS]
        if self._settings.demand.output_tokens > EXPECTED_OUTPUT:
            notices.append(_LONG_ANSWER)
        return dataclasses.replace(self._beside(), baselines=self._baselines, notices=tuple(notices))

    def _show(self, state: RouterState, *, keep: bool = False) -> None:
        with self._lock:
            self._seq += 1
            # As they are now: an answer may have ended since the scores of this state were begun.
            beside = self._beside()
            now = {**state, "seq": self._seq, "runs": list(beside.runs), "busy": beside.busy}
            self._view.show(now, keep=keep)  # pyright: ignore[reportArgumentType]


def _keep_changes(detail: Detail | None, before: RouterState | None) -> None:
    """What would change the choice stays until it is known anew, so that the page does not jump."""
    old = before["detail"] if before else None
    if detail is not None and old is not None and detail["title"] == old["title"]:
        detail["changes"] = old["changes"]
