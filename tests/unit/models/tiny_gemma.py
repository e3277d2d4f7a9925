"""A random seven-layer Gemma 3 as GGUF, float32, written with gguf-py; a window of eight tokens.

Six layers see the window, the last one everything, so that a text of twenty tokens uses both.
"""

from pathlib import Path

import gguf
import numpy as np

HIDDEN, INNER, LAYERS, HEADS, HEAD, WINDOW = 64, 96, 7, 2, 32, 8
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
SPACE = "\u2581"
CONTROLS = ["<pad>", "<eos>", "<bos>", "<unk>", "<end_of_turn>"]
USERS = ["\n", "\n\n", "  ", "   ", "<td>"]
WORDS = ["he", "th", "the", f"{SPACE}the", f"{SPACE}t", "er", "her", "ther", "aa", "aaa", "aaaa", "ca", "cat"]
LETTERS = [*"aceht rn<d>".replace(" ", SPACE)]


def vocabulary() -> list[tuple[str, int, float]]:
    """Token, kind and score; a word's score is its place, as in the real file."""
    words = [*WORDS, *dict.fromkeys(LETTERS)]
    return [
        *((token, CONTROL, -1000.0) for token in CONTROLS),
        *((token, USER, -1000.0) for token in USERS),
        *((f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)),
        *((word, NORMAL, -float(place)) for place, word in enumerate(words)),
    ]


def tensors() -> dict[str, np.ndarray]:
    """GGUF names and float32 values; norms lie around one, as llama.cpp stores them."""
    rng = np.random.default_rng(3)
    wide = HEADS * HEAD
    layer = {
        "attn_q": (wide, HIDDEN),
        "attn_k": (HEAD, HIDDEN),
        "attn_v": (HEAD, HIDDEN),
        "attn_output": (HIDDEN, wide),
        "ffn_gate": (INNER, HIDDEN),
        "ffn_up": (INNER, HIDDEN),
        "ffn_down": (HIDDEN, INNER),
        "attn_norm": (HIDDEN,),
        "ffn_norm": (HIDDEN,),
        "post_attention_norm": (HIDDEN,),
        "post_ffw_norm": (HIDDEN,),
        "attn_q_norm": (HEAD,),
        "attn_k_norm": (HEAD,),
    }
    shapes = {"token_embd": (len(vocabulary()), HIDDEN), "output_norm": (HIDDEN,)}
    shapes |= {f"blk.{n}.{kind}": shape for n in range(LAYERS) for kind, shape in layer.items()}
    return {
        f"{name}.weight": rng.normal(1.0 if len(shape) == 1 else 0.0, 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_gemma(path: Path, *, extra: dict[str, object] | None = None, left_out: str = "") -> Path:
    """Write the tiny model; `extra` keys are added as text, whole numbers, truths or decimals."""
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_sliding_window(WINDOW)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    _add_tokenizer(writer, left_out)
    for key, value in (extra or {}).items():
        _add_key(writer, key, value)
    for name, values in tensors().items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_key(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, str(value))


def _add_tokenizer(writer: gguf.GGUFWriter, left_out: str) -> None:
    tokens, kinds, scores = zip(*vocabulary(), strict=True)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_scores(scores)
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    if left_out != "add_bos_token":
        writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
