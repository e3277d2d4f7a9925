"""Attention of one new token on a CPU, with query heads grouped by the key/value head that they share.

torch's CPU kernel works through the query heads one by one and reads the keys again for each. With the heads
of a group as rows of one small matrix it reads them once: for 9 heads over 3 and 1000 cached tokens in
bfloat16 0.14 ms instead of 0.99 ms a layer, with the same sums.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["group_heads"]

_NAME = "cartoolkit_grouped_sdpa"


def group_heads(model: PreTrainedModel) -> bool:
    """Let `model` attend in groups where its attention can be exchanged; returns whether it does now.

    Only this model is changed. One that attends in its own way, or whose code asks for `sdpa` by name,
    stays as it is.
    """
    if model.device.type != "cpu" or not _is_exchangeable(model):
        return False
    _register()
    model.set_attn_implementation(_NAME)
    return True


def _is_exchangeable(model: PreTrainedModel) -> bool:
    configs = (model.config, model.config.get_text_config(decoder=True))
    if any(config._attn_implementation != "sdpa" for config in configs):  # noqa: SLF001 - has no public name
        return False
    # transformers decides by the source as well whether a model's attention can be exchanged.
    return model._can_set_attn_implementation() and not _asks_for_sdpa(model)  # noqa: SLF001 - likewise


def _asks_for_sdpa(model: PreTrainedModel) -> bool:
    names = {type(part).__module__ for part in model.modules() if hasattr(part, "config")}
    return any('"sdpa"' in inspect.getsource(sys.modules[name]) for name in names)


def _register() -> None:
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(_NAME, _grouped_sdpa)
    ALL_MASK_ATTENTION_FUNCTIONS.register(_NAME, sdpa_mask)


def _grouped_sdpa(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,  # noqa: ANN401 - whatever an architecture hands on
) -> tuple[torch.Tensor, None]:
    """As `sdpa` of transformers.

    Args:
        module: the attention layer.
        query: [batch, heads, new, dim].
        key: [batch, groups, tokens, dim].
        value: [batch, groups, tokens, dim of values].
        attention_mask: None where every token is seen.
        options: `scaling` and what else there is.

    Returns:
        [batch, new, heads, dim of values], and no weights.
    """
    from torch.nn.functional import scaled_dot_product_attention
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    batch, heads, new, dim = query.shape
    groups = key.shape[1]
    is_plain = attention_mask is None and options.get("position_bias") is None and not module.training
    if new > 1 or heads == groups or not is_plain:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    rows = query.view(batch, groups, heads // groups, dim)
    out = scaled_dot_product_attention(rows, key, value, scale=options.get("scaling"))
    return out.view(batch, 1, heads, value.shape[-1]), None
