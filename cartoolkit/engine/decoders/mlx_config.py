"""A checkpoint's config in the words of mlx-lm, whose model classes know fewer words than transformers.

mlx-lm drops every setting that a model class does not name and puts its own default in place of what is
missing, without a word. Both give a model that runs and answers with other logits than it was trained to.
So what transformers would set is written out here, and what mlx-lm cannot do is found out.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

__all__ = ["completed", "text_settings", "window_of_layers"]

_Config = dict[str, Any]


def completed(config: _Config) -> _Config:
    """`config` with what transformers' class of this model sets beyond it, also in older words.

    Args:
        config: what `config.json` says, which stays as it is.

    Returns:
        A new dict; equal to `config` where transformers does not know the model type.
    """
    known = _known_to_transformers(config)
    if known is None:
        return dict(config)
    full = {**known, **config}
    if isinstance(config.get("text_config"), dict):
        inner = {**known.get("text_config", {}), **config["text_config"]}
        full["text_config"] = _with_older_words(inner)
    return _with_older_words(full)


def _known_to_transformers(config: _Config) -> _Config | None:
    from transformers import CONFIG_MAPPING

    try:
        known = CONFIG_MAPPING[config["model_type"].lower()].from_dict(deepcopy(config))
    except KeyError:
        # The newest model types are often in one library only; then mlx-lm's own reading is all there is.
        return None
    return {name: getattr(known, name, None) for name in known.attribute_map} | known.to_dict()


def _with_older_words(config: _Config) -> _Config:
    """The settings that transformers 5 has renamed, under both names; what is there already stays."""
    return {**_older_rope(config), **_older_pattern(config), **_older_widths(config), **config}


def _older_rope(config: _Config) -> _Config:
    """`rope_theta`, `rope_scaling` and Gemma's local frequency, out of `rope_parameters`."""
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict):
        return {}
    of_full = rope.get("full_attention", rope)
    older = {key: of_full[key] for key in ("rope_theta", "partial_rotary_factor") if key in of_full}
    if (kind := of_full.get("rope_type", "default")) != "default":
        older["rope_scaling"] = {**of_full, "type": kind}
    if local := rope.get("sliding_attention"):
        older["rope_local_base_freq"] = local["rope_theta"]
    return older


def _older_pattern(config: _Config) -> _Config:
    """Every how many layers one sees the whole text, the others a window or a recurrent state."""
    kinds = config.get("layer_types")
    if not isinstance(kinds, list) or "full_attention" not in kinds:
        return {}
    period = kinds.index("full_attention") + 1
    regular = all((kind == "full_attention") == (i % period == period - 1) for i, kind in enumerate(kinds))
    return {"sliding_window_pattern": period, "full_attention_interval": period} if regular else {}


def _older_widths(config: _Config) -> _Config:
    # LFM2 named the width of its blocks apart; it has always been that of the model.
    return {"block_dim": config["hidden_size"]} if "hidden_size" in config else {}


def text_settings(config: _Config) -> _Config:
    """The part that describes the language model: `text_config` where there are several, else all of it."""
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def window_of_layers(config: _Config) -> list[int | None]:
    """How many tokens each layer sees, None for all of them; empty where the config does not tell.

    >>> window_of_layers({"num_hidden_layers": 2, "sliding_window": 8})
    [8, 8]
    >>> kinds = ["sliding_attention", "full_attention"]
    >>> window_of_layers({"num_hidden_layers": 2, "sliding_window": 8, "layer_types": kinds})
    [8, None]
    """
    settings = text_settings(config)
    layers, window = settings.get("num_hidden_layers"), settings.get("sliding_window")
    kinds = settings.get("layer_types")
    if settings.get("use_sliding_window") is False:
        window = None
    if isinstance(kinds, list):
        return [window if kind == "sliding_attention" else None for kind in kinds]
    return [window] * layers if isinstance(layers, int) else []
