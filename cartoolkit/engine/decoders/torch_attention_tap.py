"""Where a model of transformers looks: the weights of its last attention layer, taken as it computes them.

Only attention written out step by step (``eager``) has weights that can be looked at; the fused kernels
never form them. `output_attentions` would hold those of all layers for every token of a chunk, so a hook
takes one row from the one layer that counts. Which one that is, the model says in a trial over a few tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cartoolkit.engine.decoders.torch_errors import is_out_of_memory
from cartoolkit.errors import ForwardFailed, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import torch
    from transformers import PreTrainedModel

__all__ = ["AttentionTap"]


class AttentionTap:
    """Lets a model attend step by step, and keeps where the last token that it read looked.

    Args:
        model: in evaluation mode, where it will stay; it is changed.
        trial: eight ids or so that a text may have.
        context_length: tokens of the longest text.

    Raises:
        InvalidRequest: the model does not give its attention away, or its last layer does not see all of a
            text.
    """

    def __init__(self, model: PreTrainedModel, trial: Sequence[int], context_length: int) -> None:
        self._row: torch.Tensor | None = None
        name = type(model).__name__
        if model.config._attn_implementation != "eager":  # noqa: SLF001 - has no public name
            model.set_attn_implementation("eager")
        layer = _last_attention(model, trial)
        if layer is None:
            raise InvalidRequest(
                f"attention='eager' does not go with {name}: transformers gives no attention weights for it.",
                hint=_HINT,
            )
        window = _window(model, layer)
        if window is not None and window < context_length:
            raise InvalidRequest(
                f"attention='eager' does not go with {name}: its last layer sees {window:,} tokens only, not "
                "the whole text.",
                hint=_HINT,
            )
        self._hook = layer.register_forward_hook(self._keep)

    def close(self) -> None:
        """Look no longer; the model goes on attending step by step."""
        self._hook.remove()
        self._row = None

    def _keep(self, _layer: torch.nn.Module, _inputs: object, output: tuple[torch.Tensor, ...]) -> None:
        # In half precision the sum of a mean over many heads would lose what little is left.
        self._row = output[1][0, :, -1].float().mean(dim=0)

    def row(self, length: int) -> np.ndarray:
        """Mean over the heads of the last token's weights, float32 [length].

        Args:
            length: of the text that has been read.

        Raises:
            ForwardFailed: the last forward was over a text of another length.
        """
        row = self._row
        if row is None or len(row) != length:
            seen = "nothing" if row is None else f"{len(row):,} tokens"
            raise ForwardFailed(
                f"the model's last layer looked at {seen} in a forward that ended at {length:,} tokens, so "
                "what its attention belongs to is not known.",
                hint="Load the model without attention='eager'.",
            )
        return row.cpu().numpy()


_HINT = "Leave attention out; only policies such as 'dragin' need it."


def _last_attention(model: PreTrainedModel, trial: Sequence[int]) -> torch.nn.Module | None:
    """The module whose weights are those that transformers calls the last layer's; None if there is none."""
    import torch

    seen: list[tuple[torch.nn.Module, torch.Tensor]] = []

    def look(module: torch.nn.Module, _inputs: object, output: Any) -> None:  # noqa: ANN401 - any module's
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if isinstance(weights, torch.Tensor) and weights.shape[-2:] == (len(trial), len(trial)):
            seen.append((module, weights))

    modules = cast("torch.nn.Module", model).modules()
    hooks = [module.register_forward_hook(look) for module in modules]
    try:
        # Some form them only when asked; in a text nobody will ask.
        _forward(model, trial)
        plain = list(seen)
        told = _forward(model, trial, output_attentions=True).get("attentions") or ()
    except Exception as error:
        # Each architecture refuses what it cannot do in its own words.
        if is_out_of_memory(error):
            raise
        return None
    finally:
        for hook in hooks:
            hook.remove()
    same = [module for module, weights in plain if told and _equal(weights, told[-1])]
    return same[-1] if same else None


def _equal(ours: torch.Tensor, told: torch.Tensor | None) -> bool:
    import torch

    return told is not None and ours.shape == told.shape and torch.equal(ours, told)


def _forward(model: PreTrainedModel, ids: Sequence[int], **options: bool) -> Any:  # noqa: ANN401
    import torch

    with torch.inference_mode():
        known = cast("Any", model)
        return known(input_ids=torch.tensor([list(ids)], device=model.device), use_cache=False, **options)


def _window(model: PreTrainedModel, layer: torch.nn.Module) -> int | None:
    """How many tokens back a layer looks; None for all of them. transformers' own cache knows."""
    from cartoolkit.engine.decoders.torch_layers import growing_cache

    layers = growing_cache(model.config).layers
    place = getattr(layer, "layer_idx", None)
    held = layers[place] if isinstance(place, int) and place < len(layers) else (layers or [None])[-1]
    return getattr(held, "sliding_window", None)
