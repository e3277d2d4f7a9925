"""What a checkpoint's `config.json` must and must not say before its weights are worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.headers import read_json_object, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["CONFIG_FILE", "Layout", "read_config", "weight_layout"]

CONFIG_FILE = "config.json"
MAX_CONFIG = 10_000_000  # bytes
Layout = Literal["plain", "mlx"]


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_ids(value: object) -> bool:
    ids = value if isinstance(value, list) else [value]
    return all(type(item) is int and item >= 0 for item in ids)


# Only what engines read themselves; the rest is for the library that builds the model.
RULES: dict[str, tuple[Callable[[object], bool], str]] = {
    "model_type": (_is_text, "a name"),
    "architectures": (_are_texts, "a list of names"),
    **dict.fromkeys(
        ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"),
        (_is_count, "a positive whole number"),
    ),
    **dict.fromkeys(
        ("bos_token_id", "eos_token_id", "pad_token_id"), (_are_ids, "a token id or a list of them")
    ),
    "tie_word_embeddings": (lambda value: isinstance(value, bool), "true or false"),
}


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check the `config.json` of a checkpoint folder.

    Raises:
        InvalidCheckpoint: it is missing, not a JSON object, names no model type, has a value of the wrong
            type, asks for code from elsewhere, or describes packed weights.
    """
    path = folder / CONFIG_FILE
    if not path.exists():
        raise InvalidCheckpoint(
            f"{folder} has no config.json, so it is not a checkpoint in the Hugging Face layout.",
            hint="Give the folder that holds config.json and the *.safetensors files.",
        )
    config = read_json_object(path, limit=MAX_CONFIG)
    if config.get("model_type") is None:
        raise InvalidCheckpoint(f"{path} does not say which model_type this is.")
    for key, (is_right, words) in RULES.items():
        value = config.get(key)
        if value is not None and not is_right(value):
            raise InvalidCheckpoint(f"{path} says {key} = {shown(value)}, which must be {words}.")
    _refuse_remote_code(folder, config)
    weight_layout(config, path)
    return config


def _refuse_remote_code(folder: Path, config: dict[str, Any]) -> None:
    tokenizer = folder / "tokenizer_config.json"
    parts = {folder / CONFIG_FILE: config}
    if tokenizer.exists():
        parts[tokenizer] = read_json_object(tokenizer, limit=MAX_CONFIG)
    for path, content in parts.items():
        if content.get("auto_map"):
            raise InvalidCheckpoint(
                f"{path} asks to run code that comes with the checkpoint"
                f" (auto_map = {shown(content['auto_map'])}).",
                hint="cartoolkit runs no downloaded code; use a model that transformers supports by itself.",
            )


def weight_layout(config: dict[str, Any], path: Path) -> Layout:
    """How the weights are stored: `plain` numbers, or packed in MLX's own way, which mlx-lm can read.

    Raises:
        InvalidCheckpoint: they are packed in a way that plain loading would read as garbage.
    """
    packed = config.get("quantization_config") or config.get("quantization")
    if not packed:
        return "plain"
    if isinstance(packed, dict) and {"group_size", "bits"} <= packed.keys() and "quant_method" not in packed:
        return "mlx"
    method = packed.get("quant_method") if isinstance(packed, dict) else packed
    raise InvalidCheckpoint(
        f"{path} says that the weights are packed (quant_method = {shown(method)}); read as plain numbers"
        " they would be garbage.",
        hint="Use the version of the model that is not quantized.",
    )
