"""Gemma 3's GGUF files (the text-only sizes): norms stored plus one, windows, pieces of SentencePiece.

What the metadata does not say is set in `GEMMA3_CONSTANTS`, as llama.cpp's own source
(`src/models/gemma3.cpp`) and the published `config.json` have it; a size that differs there is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartoolkit.models.conversion import (
    BYTE_TOKEN,
    CONTROL_TOKEN,
    NORMAL_TOKEN,
    USER_DEFINED_TOKEN,
    Metadata,
    Recipe,
    added_tokens,
)

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

__all__ = ["GEMMA3", "merges_of"]

TENSOR_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

LOCAL_FREQUENCY = 10_000.0  # of positions in the layers with a window
WINDOW_PERIOD = 6  # every sixth layer sees the whole text, the others a window
GEMMA3_CONSTANTS: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_activation": "gelu_pytorch_tanh",
    "attention_bias": False,
    "rope_local_base_freq": LOCAL_FREQUENCY,
    "rope_scaling": None,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "dtype": "float32",  # what the weights file holds, not what the model was trained in
}


def _config(metadata: Metadata, tied: bool) -> dict[str, Any]:  # noqa: FBT001 - the form of Recipe.config
    # From 4B on positions are scaled, and there is an eye; the largest scales its queries in another way.
    metadata.expect("gemma3.rope.scaling.type", ["none"], default="none")
    metadata.expect("gemma3.attention.sliding_window_pattern", [WINDOW_PERIOD], default=WINDOW_PERIOD)
    metadata.expect("gemma3.rope.freq_base_swa", [LOCAL_FREQUENCY], default=LOCAL_FREQUENCY)
    metadata.expect("gemma3.final_logit_softcapping", [None])
    size, layers = metadata["gemma3.attention.key_length"], metadata["gemma3.block_count"]
    metadata.expect("gemma3.attention.value_length", [size])
    return GEMMA3_CONSTANTS | {
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "hidden_size": metadata["gemma3.embedding_length"],
        "intermediate_size": metadata["gemma3.feed_forward_length"],
        "num_hidden_layers": layers,
        "num_attention_heads": metadata["gemma3.attention.head_count"],
        "num_key_value_heads": metadata["gemma3.attention.head_count_kv"],
        "head_dim": size,
        "query_pre_attn_scalar": size,
        "max_position_embeddings": metadata["gemma3.context_length"],
        "sliding_window": metadata["gemma3.attention.sliding_window"],
        "layer_types": [_layer_type(layer) for layer in range(layers)],
        "rope_theta": metadata["gemma3.rope.freq_base"],
        "rms_norm_eps": metadata.decimal("gemma3.attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": tied,
        "bos_token_id": metadata["tokenizer.ggml.bos_token_id"],
        "eos_token_id": metadata["tokenizer.ggml.eos_token_id"],
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
    }


def _layer_type(layer: int) -> str:
    return "full_attention" if layer % WINDOW_PERIOD == WINDOW_PERIOD - 1 else "sliding_attention"


def _restored(name: str, values: np.ndarray, _: dict[str, Any]) -> np.ndarray:
    # Gemma multiplies by 1 + weight; llama.cpp adds the one when it writes the file.
    return values - values.dtype.type(1) if name.endswith("norm.weight") else values


def _tokenizer(metadata: Metadata) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    metadata.expect("tokenizer.ggml.model", ["llama"])
    metadata.expect("tokenizer.ggml.add_space_prefix", [False])
    metadata.expect("tokenizer.ggml.add_eos_token", [False], default=False)
    kinds = (NORMAL_TOKEN, CONTROL_TOKEN, USER_DEFINED_TOKEN, BYTE_TOKEN)
    added = added_tokens(metadata, known=kinds)
    tokens = metadata["tokenizer.ggml.tokens"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    unknown = tokens[metadata["tokenizer.ggml.unknown_token_id"]]
    tokenizer = Tokenizer(
        models.BPE(
            vocab=vocabulary, merges=_merges(metadata), unk_token=unknown, fuse_unk=True, byte_fallback=True
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    _begin_with_bos(tokenizer, metadata)
    return tokenizer


SPACE = "\u2581"  # how SentencePiece writes one


def _begin_with_bos(tokenizer: Tokenizer, metadata: Metadata) -> None:
    from tokenizers.processors import TemplateProcessing

    metadata.expect("tokenizer.ggml.add_bos_token", [True])
    index = metadata["tokenizer.ggml.bos_token_id"]
    bos = metadata["tokenizer.ggml.tokens"][index]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, index)]
    )


def _merges(metadata: Metadata) -> list[tuple[str, str]]:
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    rows = zip(tokens, metadata["tokenizer.ggml.scores"], kinds, strict=True)
    return merges_of({token: score for token, score, kind in rows if kind == NORMAL_TOKEN})


def merges_of(pieces: dict[str, float]) -> list[tuple[str, str]]:
    """The merges, first ones first, by which a byte-pair tokenizer finds SentencePiece's pieces.

    SentencePiece joins whichever neighbours make the piece of the highest score (Kudo & Richardson 2018,
    `bpe_model.cc`), and so does llama.cpp: each way to cut a piece into two others is a merge of its rank.

    Args:
        pieces: the piece to its score; the order among equals is that of the mapping.

    >>> merges_of({"ab": -1.0, "abc": -2.0, "a": -3.0, "b": -4.0, "c": -5.0, "bc": -6.0})
    [('a', 'b'), ('ab', 'c'), ('a', 'bc'), ('b', 'c')]
    """
    place = {piece: index for index, piece in enumerate(pieces)}
    ranked = [
        (-score, place[piece[:cut]], place[piece[cut:]])
        for piece, score in pieces.items()
        for cut in range(1, len(piece))
        if piece[:cut] in place and piece[cut:] in place
    ]
    names = list(pieces)
    return [(names[left], names[right]) for _, left, right in sorted(ranked)]


GEMMA3 = Recipe("Gemma 3", TENSOR_NAMES, _config, _restored, _tokenizer)
