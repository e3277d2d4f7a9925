"""What a `RouterTable` learns from its router: rows, machine, evidence, and how simpler choices would do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cartoolkit.ui.router_state import Known, titles_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cartoolkit.intents import Task
    from cartoolkit.routing import Router
    from cartoolkit.routing.choice.decision import Decision
    from cartoolkit.routing.choice.situation import Demand
    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.ui._router_protocol import BaselineRow

__all__ = ["baselines_of", "known_of"]


def known_of(
    router: Router, task: Task, probes: tuple[Probe, ...] = (), demand: Demand | None = None
) -> Known:
    """What the router knows at this moment.

    Args:
        router: what is asked.
        task: whose calls count first.
        probes: the measurements that hold.
        demand: the lengths that spend limits are held against.
    """
    return Known(
        models=tuple(router.models),
        machine=router.machine(demand),
        evidence=router.evidence(task),
        strategy=router.strategy,
        notes={probe.model_id: f"probed {_day(probe.measured_at)}" for probe in probes},
    )


def baselines_of(
    known: Known, decisions: Mapping[str, Decision], probes: tuple[Probe, ...]
) -> list[BaselineRow]:
    """Rows under the table: the choices of each workload, and simpler ones, on the held-out questions."""
    if not known.models:
        return []
    from cartoolkit.routing.simulation.baseline_rows import baseline_rows
    from cartoolkit.routing.simulation.baselines import baselines

    titles = titles_of(known.models)
    rows = baseline_rows(
        baselines(probes, decisions), list(decisions), name=lambda model_id: titles.get(model_id, model_id)
    )
    return [
        {"name": row["name"], "note": row["note"], "cells": [{**cell} for cell in row["cells"]]}
        for row in rows
    ]


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
