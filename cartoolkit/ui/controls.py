"""The sampler's controls and the buttons around a run view, as plain ipywidgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets as W  # noqa: N812 - short, as its own documentation writes it

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.requests import GenerateParams

__all__ = ["KNOB", "Buttons", "RunPicker", "SamplerControls", "text_button"]

_BUTTON, _GONE, _MORE = "cartoolkit-button", "cartoolkit-gone", "cartoolkit-more"
_ALONE = "cartoolkit-alone"
# What the controls look like beyond their layout; it travels with the buttons.
_STYLE = f"""<style>
.{_GONE} {{opacity: .45}}
.{_GONE}:not(:focus-visible) {{display: none !important}}
.{_BUTTON}:not(.{_GONE}) {{animation: {_BUTTON} .4s}}
@keyframes {_BUTTON} {{from, to {{pointer-events: none}}}}
.{_ALONE} {{visibility: hidden}}
@media (max-width: 600px) {{ .{_ALONE} {{display: none !important}} }}
.cartoolkit-prompt textarea {{
  align-self: stretch; height: auto; font: 14px/1.5 var(--jp-ui-font-family, system-ui, sans-serif);
}}
:has(> .cartoolkit-prompt) {{column-gap: 14px}}
.cartoolkit-controls .widget-label {{text-align: left}}
.cartoolkit-controls .widget-readout {{min-width: 0; width: 44px; text-align: right}}
.cartoolkit-controls:not(:has(.{_MORE}.mod-active)) .{_MORE}-settings {{display: none}}
.{_MORE}.{_MORE} {{
  align-self: flex-start; margin-left: 0; padding: 0 6px 0 4px; background: none; box-shadow: none;
  color: var(--jp-ui-font-color1, inherit);
}}
.{_MORE}.mod-active i {{transform: rotate(90deg)}}
</style>"""
_WIDE = {"description_width": "104px"}
# With continuous updates a slider writes the step nearest to its value back into it as soon as it is shown.
KNOB = {"style": _WIDE, "layout": W.Layout(width="auto"), "continuous_update": False}


class SamplerControls(W.VBox):
    """One control for each setting; `params()` reads them all.

    Attributes:
        temperature, top_k, top_p, seed: always visible.
        min_p, repeat_penalty, max_tokens, stop, new_seed: behind "More settings".
    """

    def __init__(self, params: GenerateParams) -> None:
        self._given = params
        self.temperature = W.FloatSlider(
            params.temperature, min=0, max=max(2, params.temperature), step=0.05,
            description="temperature", readout_format=".2f",
            tooltip="0 always takes the likeliest token; above 1 flattens the distribution.", **KNOB,
        )  # fmt: skip
        self.top_k = W.IntSlider(
            params.top_k, min=0, max=max(100, params.top_k), description="top-k",
            tooltip="Keep the k likeliest tokens; 0 keeps all.", **KNOB,
        )  # fmt: skip
        self.top_p = W.FloatSlider(
            params.top_p, min=min(0.01, params.top_p), max=1, step=0.01,
            description="top-p", readout_format=".2f",
            tooltip="Keep the likeliest tokens that together reach this; 1 keeps all.", **KNOB,
        )  # fmt: skip
        self.min_p = W.FloatSlider(
            params.min_p, min=0, max=1, step=0.01, description="min-p", readout_format=".2f",
            tooltip="Drop tokens below this share of the likeliest one; 0 keeps all.", **KNOB,
        )  # fmt: skip
        self.repeat_penalty = W.FloatSlider(
            params.repeat_penalty, min=min(0.5, params.repeat_penalty), max=max(2, params.repeat_penalty),
            step=0.05, description="repeat penalty", readout_format=".2f",
            tooltip="Above 1 makes tokens that have occurred less likely.", **KNOB,
        )  # fmt: skip
        self.max_tokens = W.BoundedIntText(
            params.max_tokens, min=1, max=max(1_000_000, params.max_tokens), description="max tokens", **KNOB
        )
        self.stop = W.Text(
            _stop_text(params.stop), description="stop string", placeholder="none",
            tooltip="Text that ends the answer; write \\n for a new line.", **KNOB,
        )  # fmt: skip
        seed = params.seed or 0
        self.seed = W.BoundedIntText(seed, min=0, max=max(2**31 - 1, seed), description="seed", **KNOB)
        self.new_seed = W.Checkbox(
            value=params.seed is None, description="new seed for each run", indent=False,
            layout=W.Layout(width="auto", margin="0 0 0 112px"),
        )  # fmt: skip
        # An accordion's header cannot be reached by the keyboard. Opening it is the style's work.
        self.more = W.ToggleButton(
            value=False, description="More settings", icon="caret-right", layout=W.Layout(width="auto")
        ).add_class(_MORE)
        more = W.VBox([self.min_p, self.repeat_penalty, self.max_tokens, self.stop, self.new_seed])
        super().__init__(
            [
                self.temperature,
                self.top_k,
                self.top_p,
                self.seed,
                self.more,
                more.add_class(f"{_MORE}-settings"),
            ],
            layout=W.Layout(width="318px", max_width="100%"),
        )
        self.add_class("cartoolkit-controls")

    def params(self) -> dict[str, Any]:
        """The settings as the controls stand, with those that have no control as they were given."""
        settings = self._given.model_dump()
        for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed"):
            settings[name] = getattr(self, name).value
        # The box holds one string; several that were given stay as long as it is not changed.
        if self.stop.value != _stop_text(self._given.stop):
            settings["stop"] = [self.stop.value.replace("\\n", "\n")] if self.stop.value else []
        return settings


class Buttons(W.HBox):
    """One that starts before and after a run; Pause, Step and Stop while it runs.

    A button that makes no sense any more is gone, except where the keyboard's focus is on it: there it stays,
    dimmed and without effect, until the focus moves on. One that has just come takes no click for a moment,
    or the second click of a double click would hit what has taken the first one's place.

    Args:
        start: what the one that starts says.
        tooltip: what it says in more words.
        beside: buttons shown with it.
    """

    def __init__(
        self, start: str = "Generate", tooltip: str = "Answer the prompt", *, beside: Sequence[W.Button] = ()
    ) -> None:
        self.generate = text_button(start, "play", tooltip, button_style="primary")
        self._beside = tuple(beside)
        self.pause = text_button("Pause", "pause", "Stop before the next token, ready to go on")
        self.step = text_button("Step", "step-forward", "Decode one token, then pause")
        self.stop = text_button("Stop", "stop", "End the answer here and keep what there is")
        style = W.HTML(_STYLE, layout=W.Layout(display="none"))
        super().__init__(
            [style, *self._beside, self.generate, self.pause, self.step, self.stop],
            # As wide as three buttons, so that no line is added when they come.
            layout=W.Layout(flex="1 1 292px", flex_flow="row wrap", justify_content="flex-end"),
        )
        self.show_state("finished")

    @property
    def shown(self) -> list[str]:
        """What the buttons say that make sense now."""
        buttons = (*self._beside, self.generate, self.pause, self.step, self.stop)
        return [button.description for button in buttons if _GONE not in button._dom_classes]  # noqa: SLF001

    def show_state(self, state: str) -> None:
        """Show the buttons that make sense in a session's state."""
        running = state in ("waiting", "prefilling", "running", "looking_up", "paused")
        paused = state == "paused"
        self.pause.description = "Resume" if paused else "Pause"
        self.pause.icon = "play" if paused else "pause"
        for button in (*self._beside, self.generate):
            _show(button, not running)
        for button in (self.pause, self.step, self.stop):
            _show(button, running)


class RunPicker(W.HBox):
    """``‹ 2 / 3 ›``: which of several runs is shown, and the way to the others; nothing while there is one.

    Attributes:
        previous, next: the two buttons; one that leads nowhere is disabled, and while a run goes on both are.
    """

    def __init__(self) -> None:
        self.previous = _arrow("‹", "Show the run before this one")
        self.next = _arrow("›", "Show the run after this one")
        self._place = W.Label(layout=W.Layout(margin="0 2px"))
        super().__init__([self.previous, self._place, self.next], layout=W.Layout(align_items="center"))
        # Its place is kept, except where it would be a line of its own.
        self.add_class(_ALONE)

    @property
    def shown(self) -> str:
        """What it says; empty while there is nothing to pick."""
        return "" if _ALONE in self._dom_classes else self._place.value

    def show_place(self, place: int, total: int, *, running: bool) -> None:
        """Show that run `place` of `total`, counted from 1, is the one on the page."""
        self._place.value = f"{place} / {total}"
        self.previous.disabled = running or place <= 1
        self.next.disabled = running or place >= total
        self.remove_class(_ALONE) if total > 1 else self.add_class(_ALONE)


def _stop_text(stop: list[str]) -> str:
    return " | ".join(stop).replace("\n", "\\n")


def text_button(description: str, icon: str, tooltip: str, **more: str) -> W.Button:
    """A button that says what it does, wide enough for its neighbours not to move."""
    layout = W.Layout(width="auto", min_width="92px")
    button = W.Button(description=description, icon=icon, tooltip=tooltip, layout=layout, **more)
    return button.add_class(_BUTTON)


def _arrow(sign: str, tooltip: str) -> W.Button:
    return W.Button(description=sign, tooltip=tooltip, layout=W.Layout(width="28px", padding="0"))


def _show(button: W.Button, on: bool) -> None:  # noqa: FBT001
    button.remove_class(_GONE) if on else button.add_class(_GONE)
