"""The controls of the FlareView: which policy, its settings, and those of the sampler that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it
import traitlets

from cartoolkit.retrieval import PRESETS, Never, Policy
from cartoolkit.ui.controls import KNOB, SamplerControls

if TYPE_CHECKING:
    from cartoolkit.requests import GenerateRequest

__all__ = ["FlareControls"]

_MOST_ENTROPY = 8.0


class FlareControls(W.VBox):
    """Chooses a policy; shows those of its settings that it has.

    Attributes:
        current: the policy as the controls stand. Each policy keeps what was set on it while others are
            looked at.
        policy: the dropdown with its names.
        threshold: raw probability, for policies that doubt by probability.
        entropy: nats, for policies that doubt by entropy.
        look_ups: how many may bring something new.
        passages: how many each look-up asks for.
        answer_start: how the answer begins.
        sampler: temperature, seed and all the others (`SamplerControls`), of which three are shown.
    """

    current = traitlets.Instance(Policy)

    def __init__(self, policy: Policy, request: GenerateRequest, *, attention: bool = True) -> None:
        """Build them.

        Args:
            policy: chosen at first; offered beside the presets.
            request: first values of the sampler's controls and of `answer_start`.
            attention: offer presets that ask where the model looked.
        """
        offered = {name: each for name, each in PRESETS.items() if attention or not _reads_attention(each)}
        self._policies = {**offered, policy.name: policy}
        self._loading = False
        self.sampler = SamplerControls(request.params)
        self.policy = W.Dropdown(
            options=list(self._policies), value=policy.name, description="policy",
            tooltip="When to look something up, what to ask, and how to go on.",
            style=KNOB["style"], layout=W.Layout(width="auto"),
        )  # fmt: skip
        self.threshold = W.FloatSlider(
            0.4, min=0, max=1, step=0.01, description="threshold", readout_format=".2f",
            tooltip="Doubt begins below this raw probability; it is the line in the plot.", **_knob(),
        )  # fmt: skip
        self.entropy = W.FloatSlider(
            2, min=0, max=_MOST_ENTROPY, step=0.05, description="threshold", readout_format=".2f",
            tooltip="Doubt begins above this, in nats of entropy.", **_knob(),
        )  # fmt: skip
        self.look_ups = W.IntSlider(
            2, min=0, max=10, description="look-ups",
            tooltip="So many look-ups may bring something new while the answer is written.", **_knob(),
        )  # fmt: skip
        self.passages = W.IntSlider(
            2, min=1, max=10, description="passages", tooltip="How many each look-up asks for.", **_knob()
        )
        self.answer_start = W.Text(
            request.answer_start, description="answer starts", placeholder="as the model likes",
            tooltip="The answer begins with this, and the model goes on from there.", **_knob(),
        )  # fmt: skip
        super().__init__(
            [
                self.policy, self.threshold, self.entropy, self.look_ups, self.passages, self.answer_start,
                self.sampler.temperature, self.sampler.seed, self.sampler.max_tokens,
            ],
            layout=W.Layout(width="318px", max_width="100%"),
        )  # fmt: skip
        self.add_class("cartoolkit-controls")
        self._load(policy)
        self.policy.observe(lambda _: self._load(self._policies[str(self.policy.value)]), "value")
        for knob in (self.threshold, self.entropy, self.look_ups, self.passages):
            knob.observe(lambda _: self._store(), "value")

    def choose(self, policy: Policy) -> None:
        """Put a policy into the dropdown, in the place of one of the same name, and choose it."""
        self._policies[policy.name] = policy
        if policy.name not in self.policy.options:
            self.policy.options = list(self._policies)
        self.policy.value = policy.name
        self._load(policy)

    def named(self, name: str) -> Policy | None:
        """A policy as it was set here; None if there is none of this name."""
        return self._policies.get(name)

    def settings(self) -> dict[str, Any]:
        """What a request needs besides the question."""
        return {**self.sampler.params(), "answer_start": self.answer_start.value}

    @property
    def has_threshold(self) -> bool:
        """Whether the policy doubts by probability."""
        return _doubts_by(self.current) == "threshold"

    def _load(self, policy: Policy) -> None:
        """Show a policy's own settings."""
        self._loading = True
        try:
            if (by := _doubts_by(policy)) is not None:
                _set(getattr(self, by), policy.settings()["threshold"])
            _set(self.look_ups, policy.budget.max_retrievals)
            _set(self.passages, policy.passages_per_query)
            for name, shown in self._uses(policy).items():
                getattr(self, name).layout.display = None if shown else "none"
            self.current = policy
        finally:
            self._loading = False

    @staticmethod
    def _uses(policy: Policy) -> dict[str, bool]:
        writes = not isinstance(policy.trigger, Never)
        return {
            "threshold": _doubts_by(policy) == "threshold",
            "entropy": _doubts_by(policy) == "entropy",
            "look_ups": writes,
            "passages": writes or policy.pre_retrieve,
        }

    def _store(self) -> None:
        """Take over what a reader has set."""
        if self._loading:
            return
        settings: dict[str, Any] = {
            "max_retrievals": self.look_ups.value,
            "passages_per_query": self.passages.value,
        }
        if (by := _doubts_by(self.current)) is not None:
            settings["threshold"] = getattr(self, by).value
        changed = self.current.changed(**settings)
        self._policies[changed.name] = changed
        self.current = changed


def _knob() -> dict[str, Any]:
    """Settings of a control that can be hidden by itself."""
    return {**KNOB, "layout": W.Layout(width="auto")}


def _doubts_by(policy: Policy) -> str | None:
    """The control that holds the policy's threshold: by probability or by entropy; None if it has none."""
    settings = policy.settings()
    if "threshold" not in settings:
        return None
    return "threshold" if "signal" in settings else "entropy"


def _set(knob: Any, value: float) -> None:  # noqa: ANN401 - a slider of either kind
    """Show a value, also one that is further out than people usually go."""
    knob.max = max(knob.max, value)
    knob.value = value


def _reads_attention(policy: Policy) -> bool:
    return policy.trigger.reads_attention or policy.query.reads_attention
