"""The live view of a run that looks things up. Its browser half is `widgets/src/flare_view.ts`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import traitlets

from cartoolkit.errors import CartoolkitError
from cartoolkit.retrieval.simulation import Recording, Simulation, simulate
from cartoolkit.ui._protocol import BesideRow, Parts, SupposedLookUp, WhatIf
from cartoolkit.ui.latest import Latest
from cartoolkit.ui.run_view import RunView

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartoolkit.engine import Session
    from cartoolkit.retrieval import Policy

__all__ = ["FlareRunView"]

_log = logging.getLogger(__name__)


class FlareRunView(RunView):
    """A run view that also shows which look-ups a policy would make, and other runs of the same question."""

    view = traitlets.Unicode("flare").tag(sync=True)

    def __init__(self, session: Session | None = None, **traits: Any) -> None:  # noqa: ANN401
        self._policy: Policy | None = None
        self._what_if: WhatIf | None = None
        self._recorded: tuple[Session, Recording] | None = None
        self._beside: Callable[[Session | None], list[BesideRow]] | None = None
        self._on_pick: Callable[[int], object] | None = None
        self._said: Parts = {}
        self._replays = Latest(self._replay, "cartoolkit-what-if")
        super().__init__(session, **traits)

    def close(self) -> None:
        """Take the view out of the notebook and forget the run and what stands beside it."""
        super().close()
        self._recorded = self._beside = self._on_pick = None

    def show(self, session: Session, *, selected: int | None = None) -> None:
        """Follow a session; what a policy would have done is told when it has ended."""
        with self._sending:
            self._what_if, self._said = None, {}
            super().show(session, selected=selected)

    # What a policy would do

    def suppose(self, policy: Policy) -> None:
        """Show which look-ups `policy` would make over the run shown, and over those shown next."""
        self._policy = policy
        self._replays.ask(policy)

    def simulation(self, policy: Policy) -> Simulation | None:
        """What `policy` would do over the run shown; None where there is none.

        Raises:
            InvalidRequest: the run carries no numbers that the policy needs.
        """
        session = self._session
        return None if session is None else self._simulate(session, policy)

    def _simulate(self, session: Session, policy: Policy) -> Simulation:
        thinking = session.trace.prompt_text.rstrip().endswith("<think>")
        return simulate(self._recording(session), policy, session.header.prompt, thinking=thinking)

    def _recording(self, session: Session) -> Recording:
        """Made once for a run that has ended."""
        known = self._recorded
        if known is not None and known[0] is session:
            return known[1]
        recording, ended = Recording.of(session.trace), session.done
        if ended:
            self._recorded = session, recording
        return recording

    def _replay(self, policy: Policy) -> None:
        session = self._session
        if session is None or policy is not self._policy:
            return
        try:
            supposed = self._supposed(session, policy)
        except CartoolkitError as error:
            _log.info("no replay of this run: %s", error)
            supposed = None
        except Exception:  # noqa: BLE001 - a trigger may be the user's own
            _log.exception("a replay failed")
            supposed = None
        with self._sending:
            if self._follows(session):
                self._what_if = supposed
                self._send_update(session)

    def _supposed(self, session: Session, policy: Policy) -> WhatIf:
        runs = not session.done
        simulation = self._simulate(session, policy)
        settings = policy.settings()
        return WhatIf(
            threshold=float(settings["threshold"]) if "signal" in settings else None,
            policy=policy.name,
            look_ups=[
                SupposedLookUp(at=at, trigger_steps=list(look_up.trigger_steps), reason=look_up.reason)
                for look_up, at in zip(simulation.look_ups, simulation.at, strict=True)
            ],
            runs=runs,
        )

    def _take_snapshot(self, session: Session) -> None:
        # The session is done, and the last message has told so; the replay comes after it, not before.
        if self._policy is not None and self._follows(session):
            self._replay(self._policy)
        super()._take_snapshot(session)

    # Other runs of the same question

    def on_pick(self, handler: Callable[[int], object]) -> None:
        """Call `handler` with the number of the row that a reader wants to see; it must not block."""
        self._on_pick = handler

    def show_beside(self, rows: Callable[[Session | None], list[BesideRow]] | None) -> None:
        """Show other runs beside this one: `rows` is asked with the session shown at every message."""
        self._beside = rows
        self.tell()

    def tell(self, *, keep: bool = False) -> None:
        """Send what has changed beside the run; `keep`: put it into the snapshot as well."""
        with self._sending:
            if (session := self._session) is None:
                return
            self._send_update(session)
        if keep and session.done:
            super()._take_snapshot(session)

    def _pick_row(self, row: int) -> None:
        rows = self._beside(self._session) if self._beside else []
        if self._on_pick is None or row >= len(rows):
            super()._pick_row(row)
            return
        try:
            self._on_pick(row)
        except Exception:  # noqa: BLE001 - it is the owner's, and must not go up into the kernel
            _log.exception("showing a run of the comparison failed")

    def _more_parts(self, session: Session, *, whole: bool) -> Parts:
        now: Parts = {}
        if self._what_if is not None:
            now["what_if"] = self._what_if
        if self._beside is not None:
            now["beside"] = self._beside(session)
        before, self._said = self._said, now
        return now if whole else Parts(**{n: p for n, p in now.items() if p != before.get(n)})  # pyright: ignore[reportArgumentType]
