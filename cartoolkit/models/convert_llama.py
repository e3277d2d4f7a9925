"""Llama's GGUF files: rows of queries and keys put back in order, and a byte-pair tokenizer.

What the metadata does not say is set in `LLAMA_CONSTANTS` and `PRE_TOKENIZERS`, each with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.models.conversion import CONTROL_TOKEN, NORMAL_TOKEN, Metadata, Recipe, added_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

__all__ = ["LLAMA", "unpermute"]

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


def _config(metadata: Metadata, tied: bool) -> dict[str, Any]:  # noqa: FBT001 - the form of Recipe.config
    metadata.expect("llama.rope.scaling.type", ["none"], default="none")
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
        "rms_norm_eps": metadata.decimal("llama.attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": tied,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


def _restored(name: str, values: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    if ".attn_q." in name:
        return unpermute(values, config["num_attention_heads"])
    if ".attn_k." in name:
        return unpermute(values, config["num_key_value_heads"])
    return values


def unpermute(weight: np.ndarray, heads: int) -> np.ndarray:
    """Undo the row order that llama.cpp gives to query and key weights: float32 [heads * size, columns].

    llama.cpp rotates neighbouring pairs (0, 1), (2, 3), …; Llama checkpoints rotate halves (0, size/2), ….
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def _digits_then_bytes(*, prefix_space: bool) -> PreTokenizer:
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    return Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=prefix_space, use_regex=True)]
    )


# GGUF names its pre-tokenizer; the rule itself stands in llama.cpp's source. For "smollm" it is: each digit
# alone, then GPT-2's pattern. Without the first step, as transformers reads the file, two spaces before a
# digit become two tokens instead of the one that the model was trained on.
PRE_TOKENIZERS: dict[str, Callable[..., PreTokenizer]] = {"smollm": _digits_then_bytes}


def _tokenizer(metadata: Metadata) -> Tokenizer:
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
    tokenizer.add_special_tokens(added_tokens(metadata, known=(NORMAL_TOKEN, CONTROL_TOKEN)))
    return tokenizer


LLAMA = Recipe("Llama", TENSOR_NAMES, _config, _restored, _tokenizer)
