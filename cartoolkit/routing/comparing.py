"""A router's models measured and compared: probes, the table of scores, baselines, simulated traffic."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import CartoolkitError, InvalidRequest, SpendLimitExceeded
from cartoolkit.intents import WORKLOADS
from cartoolkit.notices import say
from cartoolkit.routing.calls.calling import may_cost
from cartoolkit.routing.checks import several
from cartoolkit.routing.chooser import Chooser
from cartoolkit.routing.outcomes.scoreboard import scoreboard
from cartoolkit.routing.rows.current import measured_of
from cartoolkit.routing.rows.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from cartoolkit.intents import Task, Workload
    from cartoolkit.routing.choice.intent import Profile
    from cartoolkit.routing.choice.situation import Demand
    from cartoolkit.routing.outcomes.records import Completion, Verdict
    from cartoolkit.routing.probing.measurements import Probe
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.routing.simulation.bandits import TrafficPolicy
    from cartoolkit.routing.simulation.comparison import TrafficSimulation
    from cartoolkit.routing.simulation.traffic import Traffic
    from cartoolkit.routing.table.score_table import ScoreTable

    Report = Callable[[str, int, int], None]

__all__ = ["Comparer"]


class Comparer(Chooser):
    """What a router can say of its models side by side."""

    def probe(self, *models: str, **options: Any) -> pd.DataFrame:  # noqa: ANN401
        """Measure models on this machine, and use what was measured from now on.

        Args:
            models: ids or names; none for every model that runs here and needs no download. Of these, one
                that cannot be measured is told of and left out.
            options: of `probing.probe`, such as `prompt_lengths`, `repeats` or `quality=False`; without
                `progress` a bar shows how far it is.

        Returns:
            One row a model, see `probe_table.probe_frame`. ``.attrs["not_measured"]`` says of each model
            that was left out why.

        Raises:
            ModelNotFound, ProbeFailed: a model that was named is not there or cannot be measured.
            SpendLimitExceeded: somebody bills for its answers, and the router has spend limits, which a probe
                would not keep to.
            InvalidRequest: an option is out of range.
        """
        from cartoolkit.routing.probing.probe_table import probe_frame

        known = Registry(self.models)
        named = [known.get(name) for name in models]
        measured, left_out = [], {}
        for row in named or [row for row in known if row.is_local and row.available and row.weights_ready]:
            try:
                with _progress(row, options) as progress:
                    found = self._probe(row, options | {"progress": progress})
                measured.append(found)
                if found.crowding:
                    say(f"{row.id}: {found.crowding}")
            except CartoolkitError as error:
                if named or isinstance(error, InvalidRequest):
                    raise
                left_out[row.id] = str(error)
                say(f"{row.id} was not measured: {error}")
        frame = probe_frame(measured)
        frame.attrs["not_measured"] = left_out
        return frame

    def _probe(self, row: ModelSchema, options: dict[str, Any]) -> Probe:
        from cartoolkit.routing.probing.probe import probe

        if self.spending.limits.is_set and may_cost(row, 1, 1) != 0:
            raise SpendLimitExceeded(
                f"{row.id} may be billed, and a probe asks it some 200 times, which no spend limit counts.",
                hint="Measure it with a router of the same folder that has no limits.",
            )
        if self._shelf.is_handed_over(row.id):
            with self._shelf.take(row) as engine:
                done = probe(row, engine=engine, **options)
        else:
            self._shelf.make_room(row)
            done = probe(row, **options)
        try:
            self.measurements.save(done)
        except OSError as error:
            say(
                f"The measurement of {row.id} cannot be kept in {self.measurements.folder}: {error.strerror}."
            )
        return done

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The measurements that hold here and now, at most one a model."""
        shelved = self._shelf.shelved
        found = (measured_of(row, self.measurements, shelved) for row in self.registry)
        return tuple(each for each in found if each is not None)

    def score_table(
        self,
        workloads: Iterable[Workload | Profile] = WORKLOADS,
        models: Iterable[str] | None = None,
        *,
        demand: Demand | None = None,
        task: Task = "chat",
    ) -> ScoreTable:
        """Every model under every workload: a frame that shows itself with a bar for each score.

        Args:
            workloads: names, or weights of one's own.
            models: ids or names of the rows to show; None for all. Ranks are always among all of them.
            demand: lengths and bounds; by default 256 tokens each way.
            task: the kind of answer.

        Raises:
            InvalidRequest: there is no such workload, or two have one name.
            ModelNotFound: there is no such model.
        """
        from cartoolkit.routing.table.score_table import score_table_of

        return score_table_of(self, workloads, models, demand=demand, task=task)

    def plot_scores(
        self,
        workloads: Iterable[Workload | Profile] = WORKLOADS,
        models: Iterable[str] | None = None,
        *,
        demand: Demand | None = None,
        task: Task = "chat",
        ax: Axes | None = None,
    ) -> Axes:
        """The score table as a heat map, on `ax` or on new axes; arguments as for `score_table`."""
        return self.score_table(workloads, models, demand=demand, task=task).plot_scores(ax)

    def baselines(
        self,
        workloads: Iterable[Workload] = WORKLOADS,
        demand: Demand | None = None,
        *,
        task: Task = "chat",
    ) -> pd.DataFrame:
        """The router's choices and simpler ones, on held-out questions that the models were probed with.

        Args:
            workloads: names.
            demand: lengths and bounds.
            task: the kind of answer.

        Returns:
            See `baselines.baselines`; empty if fewer than two models have been probed, which is said.
        """
        from cartoolkit.routing.simulation.baselines import baselines

        names = several("workloads", workloads, example="['interactive', 'batch']")
        decisions = {name: self.weigh(workload=name, demand=demand, task=task) for name in names}
        table = baselines(self.probes, decisions)
        if table.empty:
            say(table.attrs["note"])
        return table

    def simulate(
        self,
        traffic: Traffic | Iterable[Completion | Verdict] | pd.DataFrame | None = None,
        policies: Sequence[TrafficPolicy] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> TrafficSimulation:
        """Ways of choosing a model compared on traffic; see `simulating.simulate`, whose `rows` are these.

        Args:
            traffic: such as ``router.history.ledger.read().rows``; None for made-up traffic.
            policies: None for the usual ones, the router's rule among them.
            options: of `simulating.simulate`.
        """
        from cartoolkit.routing.simulation.simulating import simulate

        own: dict[str, Any] = {"rows": self.models, "prior_strength": self.strategy.prior_strength}
        return simulate(traffic, policies, **own | options)

    def scoreboard(self, *, by_task: bool = False) -> pd.DataFrame:
        """What the outcomes say of each model; see `scoreboard.scoreboard`."""
        self.history.refresh()
        return scoreboard(self.history.tracker.profiles.values(), by_task=by_task)


@contextlib.contextmanager
def _progress(row: ModelSchema, options: Mapping[str, Any]) -> Iterator[Report]:
    """What the caller listens with, or a bar that goes away at the end: a probe takes minutes."""
    if (given := options.get("progress")) is not None:
        yield given
        return
    from tqdm.auto import tqdm

    with tqdm(desc=row.id, leave=False) as bar:

        def show(what: str, done: int, total: int) -> None:
            bar.set_postfix_str(what, refresh=False)
            bar.total, bar.n = total, done
            bar.refresh()

        yield show
