"""What a checkpoint's `config.json` must and must not say before its weights are worth a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.headers import read_json_object, shown
from cartoolkit.models.quantization import Quantization

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["CONFIG_FILE", "brings_code", "context_length_of", "quantization_of", "read_config"]

CONFIG_FILE = "config.json"
MODELOPT_FILE = "hf_quant_config.json"  # where NVIDIA's exports say how they are packed
MAX_CONFIG = 10_000_000  # bytes
# Architectures have called it by several names; transformers' own classes map them onto the first.
CONTEXT_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len")
# Where transformers and mlx-lm look for code that comes with the checkpoint.
CODE_KEYS = ("auto_map", "model_file")
PACKINGS = ("quantization", "quantization_config", "compression_config")


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


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
        ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", *CONTEXT_LENGTHS),
        (_is_count, "a positive whole number"),
    ),
    **dict.fromkeys(
        ("bos_token_id", "eos_token_id", "pad_token_id"), (_are_ids, "a token id or a list of them")
    ),
    "tie_word_embeddings": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("text_config", *PACKINGS), (_is_object, "an object")),
}


def read_config(folder: Path, *, trust_remote_code: bool = False) -> dict[str, Any]:
    """Read and check the `config.json` of a checkpoint folder.

    Args:
        folder: in the Hugging Face layout.
        trust_remote_code: let a config pass that asks for code from elsewhere.

    Raises:
        InvalidCheckpoint: it is missing, not a JSON object, names no model type, has a value of the wrong
            type, or asks for code from elsewhere.
    """
    path = folder / CONFIG_FILE
    if not path.exists():
        raise InvalidCheckpoint(
            f"{folder} has no config.json, so it is not a checkpoint in the Hugging Face layout.",
            hint="Give the folder that holds config.json and the *.safetensors files, or a .gguf file.",
        )
    config = read_json_object(path, limit=MAX_CONFIG)
    if config.get("model_type") is None:
        raise InvalidCheckpoint(f"{path} does not say which model_type this is.")
    _check_values(path, config)
    _check_values(path, config.get("text_config") or {}, within="text_config.")
    if not trust_remote_code:
        _refuse_remote_code(folder, config)
    return config


def _check_values(path: Path, values: dict[str, Any], *, within: str = "") -> None:
    for key, (is_right, words) in RULES.items():
        value = values.get(key)
        if value is not None and not is_right(value):
            raise InvalidCheckpoint(f"{path} says {within}{key} = {shown(value)}, which must be {words}.")


def context_length_of(config: dict[str, Any]) -> int | None:
    """Tokens the model can see at once; a model with several parts says it of its text part."""
    for values in (config, config.get("text_config")):
        if isinstance(values, dict):
            for key in CONTEXT_LENGTHS:
                if _is_count(values.get(key)):
                    return values[key]
    return None


def quantization_of(folder: Path, config: dict[str, Any]) -> Quantization | None:
    """How the weights are packed, by `config.json` or by the file that ModelOpt writes beside it."""
    found = Quantization.from_config(config)
    beside = folder / MODELOPT_FILE
    if found is not None or not beside.exists():
        return found
    block = {"quant_method": "modelopt"} | read_json_object(beside, limit=MAX_CONFIG)
    return Quantization.from_config({"quantization_config": block})


def brings_code(config: dict[str, Any], engine: str) -> bool:
    """Whether the checkpoint's own code would build the model, as far as `engine` is concerned."""
    keys = {"torch": ("auto_map",), "mlx": CODE_KEYS}.get(engine, ())
    return any(map(config.get, keys))


def _refuse_remote_code(folder: Path, config: dict[str, Any]) -> None:
    tokenizer = folder / "tokenizer_config.json"
    parts = {folder / CONFIG_FILE: config}
    if tokenizer.exists():
        parts[tokenizer] = read_json_object(tokenizer, limit=MAX_CONFIG)
    for path, content in parts.items():
        for key in filter(content.get, CODE_KEYS):
            raise InvalidCheckpoint(
                f"{path} asks to run code that comes with the checkpoint ({key} = {shown(content[key])}).",
                hint="Use a model that transformers supports by itself. If you trust whoever made it, allow"
                " the code by name: trust_remote_code=True.",
            )
