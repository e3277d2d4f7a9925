"""The smallest model that llama.cpp runs, written by hand: what the doctor lets it compute."""

from __future__ import annotations

import struct

__all__ = ["TOKENS", "tiny_gguf"]

WIDTH = TOKENS = 32
_ALIGNMENT = 32
_UINT32, _FLOAT32, _STRING = 4, 6, 8  # types of values in the header
_ZERO, _ONE = struct.pack("<f", 0.0), struct.pack("<f", 1.0)


def tiny_gguf() -> bytes:
    """A llama of one layer whose every token is followed by itself: logit sqrt(32) for it, 0 for the others.

    The layer adds nothing, as its matrices are zero, but has to be computed. Row i of the embeddings, which
    are the output matrix too, is the unit vector i, whose root mean square is 1 / sqrt(32); the last norm
    divides by that.

    Source: the GGUF specification, version 3, in the ggml repository (docs/gguf.md).
    """
    values = b"".join(_value(*entry) for entry in _VALUES)
    tensors = list(_tensors())
    described, offset = b"", 0
    for name, shape, content in tensors:
        described += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, offset)
        offset += len(content)  # rows of 32 float32 keep the alignment
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(_VALUES)) + values + described
    return head + bytes(-len(head) % _ALIGNMENT) + b"".join(content for *_, content in tensors)


_VALUES: tuple[tuple[str, int, str | float], ...] = (
    ("general.architecture", _STRING, "llama"),
    ("llama.context_length", _UINT32, WIDTH),
    ("llama.embedding_length", _UINT32, WIDTH),
    ("llama.block_count", _UINT32, 1),
    ("llama.feed_forward_length", _UINT32, WIDTH),
    ("llama.attention.head_count", _UINT32, 1),
    ("llama.attention.layer_norm_rms_epsilon", _FLOAT32, 1e-9),
    ("llama.vocab_size", _UINT32, TOKENS),
    ("tokenizer.ggml.model", _STRING, "no_vocab"),
)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(key: str, kind: int, value: str | float) -> bytes:
    packed = _text(value) if isinstance(value, str) else struct.pack("<I" if kind == _UINT32 else "<f", value)
    return _text(key) + struct.pack("<I", kind) + packed


def _tensors() -> list[tuple[str, tuple[int, ...], bytes]]:
    unit = b"".join(_ONE if row == column else _ZERO for row in range(TOKENS) for column in range(WIDTH))
    matrices = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    norms = ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")
    return [
        ("token_embd.weight", (WIDTH, TOKENS), unit),
        *((f"{name}.weight", (WIDTH,), _ONE * WIDTH) for name in norms),
        *((f"blk.0.{name}.weight", (WIDTH, WIDTH), _ZERO * WIDTH * WIDTH) for name in matrices),
    ]
