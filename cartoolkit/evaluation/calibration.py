"""What a labelled sample says about a trigger: which threshold finds the wrong answers, and at what price."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import json
import math
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.errors import InvalidRequest
from cartoolkit.evaluation.statistics import Bin
from cartoolkit.retrieval import Policy, preset
from cartoolkit.trace import ModelInfo, Trace

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cartoolkit.evaluation.runs import Answers

__all__ = ["Calibration", "ScoreLine", "SweepLine"]

FORMAT = "cartoolkit calibration"
VERSION = 1

_SAME = ("name", "engine", "dtype", "weights_hash")


@dataclass(frozen=True, slots=True)
class SweepLine:
    """The trigger at one threshold, over the sample.

    Attributes:
        threshold: of the trigger, in its own unit.
        fired: share of answers on which it fires.
        precision: share of those that are wrong; NaN if it never fires.
        recall: share of the wrong answers on which it fires.
        false_alarms: share of the right answers on which it fires.
        f1: harmonic mean of precision and recall.
        youden: recall less false alarms.
        look_ups: look-ups an answer, if each found something new and changed nothing.
    """

    threshold: float
    fired: float
    precision: float
    recall: float
    false_alarms: float
    f1: float
    youden: float
    look_ups: float


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """How well one number an answer tells wrong answers from right ones.

    Attributes:
        name: see `cartoolkit.evaluation.scores.SCORES`.
        auroc: chance that a wrong answer scores higher than a right one; 0.5 is a coin.
        low: lower end of its 95 % bootstrap interval.
        high: upper end.
        within_length: the same among answers of about the same length (tenths of the sample), so that length
            plays hardly a part; what is left of it shows in the control's own figure.
        within_relation: the same among questions of the same relation.
    """

    name: str
    auroc: float
    low: float
    high: float
    within_length: float
    within_relation: float


@dataclass(frozen=True)
class Calibration:
    """A threshold with the measurements it comes from; made by `calibrate`.

    Attributes:
        policy: what was calibrated, as `Policy.describe` gives it.
        model: on which model and engine, in which precision.
        threshold: what was chosen; NaN if no threshold does what was asked.
        rule: how it was chosen, in words.
        count: questions of the sample.
        right: share that the model answers without looking anything up.
        sweep: every threshold that was tried, ascending.
        scores: AUROC of several scores, answer length among them as the control.
        reliability: mean probability of an answer against the share that is right.
        calibration_error: expected calibration error of that curve.
        about: instruction, settings, sample, corpus and versions.
    """

    policy: dict[str, Any]
    model: ModelInfo
    threshold: float
    rule: str
    count: int
    right: float
    sweep: tuple[SweepLine, ...]
    scores: tuple[ScoreLine, ...]
    reliability: tuple[Bin, ...]
    calibration_error: float
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def chosen(self) -> SweepLine | None:
        """The line of the sweep that was chosen."""
        return next((line for line in self.sweep if line.threshold == self.threshold), None)

    # Using it

    def apply(
        self, policy: str | Policy, model: Answers | Trace | ModelInfo, *, anyway: bool = False
    ) -> Policy:
        """A policy with the threshold that was found.

        Args:
            policy: a preset's name or a policy, whose trigger is the one that was calibrated.
            model: what the policy is for: an engine, a trace of it, or its `ModelInfo`.
            anyway: take the threshold over even where it was measured for something else.

        Raises:
            InvalidRequest: it was measured on another model, engine or precision, or with other settings of
                the trigger, and `anyway` is not set; or the policy's trigger has no such threshold; or no
                threshold was found.
        """
        wanted = preset(policy) if isinstance(policy, str) else policy
        if math.isnan(self.threshold):
            raise InvalidRequest(f"no threshold was found that {self.rule}.", hint="Look at its table().")
        trigger = wanted.describe()["trigger"]
        if trigger["kind"] != self.policy["trigger"]["kind"]:
            raise InvalidRequest(
                f"the threshold was measured for {self.policy['trigger']['kind']}; "
                f"the policy {wanted.name!r} has {trigger['kind']}.",
                hint="Calibrate that policy: its threshold means something else.",
            )
        if not anyway:
            self._refuse_other_trigger(trigger)
            self._refuse_other_model(_info_of(model))
        return wanted.changed(threshold=self.threshold)

    def _refuse_other_trigger(self, trigger: dict[str, Any]) -> None:
        for name, measured in self.policy["trigger"].items():
            if name != "threshold" and trigger.get(name) != measured:
                raise InvalidRequest(
                    f"the threshold was measured with {name}={measured!r}; "
                    f"the policy has {trigger.get(name)!r}.",
                    hint="Calibrate this policy, or pass anyway=True.",
                )

    def _refuse_other_model(self, model: ModelInfo) -> None:
        own = self.model
        for name in _SAME:
            measured, given = getattr(own, name), getattr(model, name)
            if measured != given:
                raise InvalidRequest(
                    f"the threshold was measured on {own.name} ({own.engine}, {own.dtype}); "
                    f"{name} is {given!r} here, not {measured!r}.",
                    hint="Confidence moves with model and precision: calibrate again, or pass anyway=True.",
                )

    # Looking at it

    def table(self) -> pd.DataFrame:
        """One row a threshold; columns as in `SweepLine`."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(line) for line in self.sweep]).set_index("threshold")

    def scores_table(self) -> pd.DataFrame:
        """One row a score; columns as in `ScoreLine`."""
        import pandas as pd

        return pd.DataFrame([dataclasses.asdict(line) for line in self.scores]).set_index("name")

    def plot(self) -> Figure:
        """The trigger over its thresholds, the scores beside answer length, and the reliability curve."""
        from cartoolkit.evaluation.figures import plot_calibration

        return plot_calibration(self)

    def __repr__(self) -> str:
        return (
            f"<Calibration: {self.policy['name']} at {self.threshold:g} on {self.model.name} "
            f"({self.model.engine}, {self.model.dtype}), {self.count} questions>"
        )

    def _repr_html_(self) -> str:
        line = self.chosen
        found = "No threshold does that."
        if line:
            found = (
                f"It fires on {line.recall:.0%} of the wrong answers, {line.false_alarms:.0%} of the right."
            )
        said = f"{repr(self)[1:-1]}. Rule: {self.rule}. {found} Without look-ups {self.right:.0%} are right."
        tables = (each.to_html(float_format="{:.2f}".format, border=0) for each in self._tables())
        return f"<p>{html.escape(said)}</p>{''.join(tables)}"

    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        return self.table(), self.scores_table()

    # Keeping it

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it as JSON; the file appears whole or not at all. Returns its path.

        Raises:
            InvalidRequest: the place cannot be written to.
        """
        target = Path(path)
        content = {"format": FORMAT, "version": VERSION, **dataclasses.asdict(self)}
        content["model"] = self.model.model_dump(mode="json")
        text = json.dumps(_without_nan(content), ensure_ascii=True, indent=1, allow_nan=False)
        aside = target.parent / f".{secrets.token_hex(8)}.part"
        try:
            with aside.open("x", encoding="ascii") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            aside.replace(target)
        except OSError as error:
            raise InvalidRequest(f"the calibration was not saved to {target}: {error}.") from error
        finally:
            with contextlib.suppress(OSError):
                aside.unlink()
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises:
            InvalidRequest: the file is not there, no calibration, damaged, or of a newer version.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError("it says that it is something else")  # noqa: TRY301 - one sentence for all
            if (version := content.pop("version")) != VERSION:
                raise ValueError(f"it is of version {version}, this is {VERSION}")  # noqa: TRY301
            return cls(
                **_numbers(content, ("threshold", "right", "calibration_error"))
                | {
                    "model": ModelInfo(**content["model"]),
                    "sweep": tuple(SweepLine(**_numbers(each)) for each in content["sweep"]),
                    "scores": tuple(ScoreLine(**_numbers(each)) for each in content["scores"]),
                    "reliability": tuple(Bin(**each) for each in content["reliability"]),
                }
            )
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidRequest(
                f"{path} cannot be read as a calibration: {type(error).__name__}: {error}.",
                hint="Calibrate again; it takes the model a few minutes.",
            ) from error


def _info_of(model: Answers | Trace | ModelInfo) -> ModelInfo:
    if isinstance(model, ModelInfo):
        return model
    return model.header.model if isinstance(model, Trace) else model.info


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """NaN as null, which every reader of JSON knows."""
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _numbers(entry: dict[str, Any], names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """The other way round, for fields that are numbers."""
    return {
        name: float("nan") if value is None and (names is None or name in names) else value
        for name, value in entry.items()
    }
