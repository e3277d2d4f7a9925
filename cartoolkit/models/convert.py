"""A catalog model's GGUF file, rewritten once as a folder that every library loads in about a second.

transformers can read a GGUF file too, but needs about 15 s each time, refuses to save what it read and
ignores which pre-tokenizer the file names. So the file is read here with gguf-py, the format's own library:

* weights: the exact dequantised float32 values, under the names and in the row order of Llama checkpoints;
* config and tokenizer: what the file's metadata says. What it does not say is set in `LLAMA_CONSTANTS`,
  `PRE_TOKENIZERS` and `generation_config`, each with its reason, and what is not known here is refused.
"""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cartoolkit.errors import InvalidCheckpoint, MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import numpy as np
    from gguf import GGUFReader, ReaderTensor
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

__all__ = ["convert_gguf"]

TENSOR_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

# GGUF does not record these: they are the same for every plain Llama checkpoint.
LLAMA_CONSTANTS: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "rope_scaling": None,
    "dtype": "float32",  # what the weights file holds, not what the model was trained in
}

LIBRARIES = ("gguf", "safetensors", "tokenizers")
NORMAL_TOKEN, CONTROL_TOKEN = 1, 3  # gguf.TokenType
END_TOKENS = ("<|im_end|>", "<|endoftext|>")


def convert_gguf(
    source: Path, target: Path, *, track: Callable[[Iterable[Any], int], Iterable[Any]] | None = None
) -> dict[str, str]:
    """Write the checkpoint in `source` to the folder `target` as safetensors, config and tokenizer.

    Args:
        source: a GGUF file of the Llama architecture.
        target: an existing, empty folder.
        track: wraps the iteration over (tensors, count), for a progress bar.

    Returns:
        The libraries that did it, name to version.

    Raises:
        InvalidCheckpoint: the file is not GGUF, or holds something this converter does not know.
        MissingDependency: gguf, safetensors or tokenizers is not installed.
    """
    metadata, tensors = _open(source)
    config = llama_config(metadata, tied=all(tensor.name != "output.weight" for tensor in tensors))
    _save_weights(track(tensors, len(tensors)) if track else tensors, config, target)
    build_tokenizer(metadata).save(str(target / "tokenizer.json"))
    _write_json(target / "tokenizer_config.json", tokenizer_config(metadata))
    _write_json(target / "generation_config.json", generation_config(metadata))
    _write_json(target / "config.json", config)
    # safetensors writes files that only their owner can read; a cache may be shared.
    (target / "model.safetensors").chmod((target / "config.json").stat().st_mode)
    return {name: version(name) for name in LIBRARIES}


class Metadata:
    """The key-value part of a GGUF file; a key that is missing is an error that names it."""

    def __init__(self, reader: GGUFReader) -> None:
        self._fields = reader.fields

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (GGUF values are of thirteen types)
        field = self._fields.get(key)
        if field is None:
            raise InvalidCheckpoint(f"The GGUF file does not say {key!r}, which the conversion needs.")
        return field.contents()

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """The value of `key`, or `default`."""
        return self[key] if key in self._fields else default

    def expect(self, key: str, known: Iterable[object], default: object = None) -> None:
        """Refuse a file whose `key` is none of the values the conversion is right for."""
        if (value := self.get(key, default)) not in known:
            raise InvalidCheckpoint(f"The GGUF file says {key} = {value!r}, which cartoolkit cannot convert.")


def require_converter() -> None:
    """Check, before anything is downloaded, that the converter's libraries are installed.

    Raises:
        MissingDependency: one of them is not.
    """
    if missing := missing_libraries():
        raise MissingDependency(
            f"The package {missing[0]} is needed to convert the model, and is not installed.",
            hint="Install it with: pip install 'cartoolkit[torch]'",
        )


def missing_libraries() -> list[str]:
    """The packages that the conversion needs and that are not installed."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def _open(source: Path) -> tuple[Metadata, list[ReaderTensor]]:
    require_converter()
    from gguf import GGUFReader

    try:
        reader = GGUFReader(source)
    except (ValueError, IndexError, OSError) as exc:
        raise InvalidCheckpoint(f"{source.name} cannot be read as a GGUF file: {exc}") from exc
    metadata = Metadata(reader)
    metadata.expect("general.architecture", ["llama"])
    metadata.expect("llama.rope.scaling.type", ["none"], default="none")
    return metadata, reader.tensors


# -- weights ---------------------------------------------------------------------------------------


def _save_weights(tensors: Iterable[ReaderTensor], config: dict[str, Any], target: Path) -> None:
    from safetensors.numpy import save_file

    weights = dict(_weight(tensor, config) for tensor in tensors)
    # transformers refuses a safetensors file that does not say which library's layout it has.
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def _weight(tensor: ReaderTensor, config: dict[str, Any]) -> tuple[str, np.ndarray]:
    """The Llama name and float32 values [rows, columns] (or [n]) of one GGUF tensor."""
    from gguf.quants import dequantize

    name = llama_name(tensor.name)
    values = dequantize(tensor.data, tensor.tensor_type)
    if ".attn_q." in tensor.name:
        values = unpermute(values, config["num_attention_heads"])
    elif ".attn_k." in tensor.name:
        values = unpermute(values, config["num_key_value_heads"])
    return name, values


def llama_name(name: str) -> str:
    """Translate a GGUF tensor name: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`.

    Raises:
        InvalidCheckpoint: plain Llama checkpoints have no such tensor.
    """
    match name.split("."):
        case ["blk", layer, kind, "weight"] if kind in TENSOR_NAMES and layer.isdecimal():
            return f"model.layers.{layer}.{TENSOR_NAMES[kind]}.weight"
        case [kind, "weight"] if kind in TENSOR_NAMES:
            return f"{TENSOR_NAMES[kind]}.weight"
    raise InvalidCheckpoint(f"The GGUF file holds a tensor {name!r}, which a Llama checkpoint does not have.")


def unpermute(weight: np.ndarray, heads: int) -> np.ndarray:
    """Undo the row order that llama.cpp gives to query and key weights: float32 [heads * size, columns].

    llama.cpp rotates neighbouring pairs (0, 1), (2, 3), …; Llama checkpoints rotate halves (0, size/2), ….
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


# -- config ----------------------------------------------------------------------------------------


def llama_config(metadata: Metadata, *, tied: bool) -> dict[str, Any]:
    """The `config.json` of the checkpoint, from the file's metadata and `LLAMA_CONSTANTS`."""
    heads = metadata["llama.attention.head_count"]
    width = metadata["llama.embedding_length"]
    return LLAMA_CONSTANTS | {
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": width,
        "intermediate_size": metadata["llama.feed_forward_length"],
        "num_hidden_layers": metadata["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.get("llama.attention.head_count_kv", heads),
        "head_dim": metadata.get("llama.rope.dimension_count", width // heads),
        "max_position_embeddings": metadata["llama.context_length"],
        "rope_theta": metadata["llama.rope.freq_base"],
        "rms_norm_eps": _shortest(metadata["llama.attention.layer_norm_rms_epsilon"]),
        "tie_word_embeddings": tied,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


def _shortest(value: float) -> float:
    # GGUF keeps 1e-05 as the float32 9.999999747378752e-06; the shortest decimal of that float32 is
    # 1e-05 again, which is what the model's makers published.
    import numpy as np

    return float(str(np.float32(value)))


def generation_config(metadata: Metadata) -> dict[str, Any]:
    """The `generation_config.json`: which tokens begin, pad and end a text.

    The metadata names one end token, `<|im_end|>`, which ends a chat turn. Text that follows no chat
    template ends with `<|endoftext|>` instead; llama.cpp stops there too, so both are listed.
    """
    ends = [metadata["tokenizer.ggml.eos_token_id"]]
    tokens = metadata["tokenizer.ggml.tokens"]
    ends += [tokens.index(token) for token in END_TOKENS if token in tokens]
    return {
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": list(dict.fromkeys(ends)),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


# -- tokenizer -------------------------------------------------------------------------------------


def _digits_then_bytes(*, prefix_space: bool) -> PreTokenizer:
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    return Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=prefix_space, use_regex=True)]
    )


# GGUF names its pre-tokenizer; the rule itself stands in llama.cpp's source. For "smollm" it is: each digit
# alone, then GPT-2's pattern. Without the first step, as transformers reads the file, two spaces before a
# digit become two tokens instead of the one that the model was trained on.
PRE_TOKENIZERS: dict[str, Callable[..., PreTokenizer]] = {"smollm": _digits_then_bytes}


def build_tokenizer(metadata: Metadata) -> Tokenizer:
    """The byte-pair tokenizer that the file describes.

    Raises:
        InvalidCheckpoint: the file names a tokenizer or pre-tokenizer whose rule is not known here.
    """
    from tokenizers import Tokenizer, decoders, models

    metadata.expect("tokenizer.ggml.model", ["gpt2"])
    metadata.expect("tokenizer.ggml.pre", PRE_TOKENIZERS)
    metadata.expect("tokenizer.ggml.add_bos_token", [False], default=False)
    vocabulary = {token: index for index, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    prefix_space = metadata.get("tokenizer.ggml.add_space_prefix", default=False)
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[metadata["tokenizer.ggml.pre"]](prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_control_tokens(metadata))
    return tokenizer


def _control_tokens(metadata: Metadata) -> list[Any]:
    from tokenizers import AddedToken

    kinds = metadata["tokenizer.ggml.token_type"]
    if unknown := set(kinds) - {NORMAL_TOKEN, CONTROL_TOKEN}:
        raise InvalidCheckpoint(
            f"The GGUF file has tokens of the kinds {sorted(unknown)}, which cannot be converted."
        )
    pairs = zip(metadata["tokenizer.ggml.tokens"], kinds, strict=True)
    return [
        AddedToken(token, special=True, normalized=False) for token, kind in pairs if kind == CONTROL_TOKEN
    ]


def tokenizer_config(metadata: Metadata) -> dict[str, Any]:
    """The `tokenizer_config.json`: special tokens by name, and the chat template as the file has it."""
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = {
        kind: metadata.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("bos", "eos", "padding", "unknown")
    }
    names = {kind: tokens[index] for kind, index in ids.items() if index is not None}
    return {
        # A neutral class: a model's own class would rebuild the pre-tokenizer and lose the digit rule.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": metadata["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "bos_token": names.get("bos"),
        "eos_token": names.get("eos"),
        "pad_token": names.get("padding"),
        "unk_token": names.get("unknown"),
        "chat_template": metadata["tokenizer.chat_template"],
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
