"""What every engine must offer: tokens in, logits out. Engines never sample.

The contract follows the token-level trait of the local backend this toolkit grew from: encode, decode,
`begin_prompt`, `forward`, end tokens, context length, clearing the cache.

The cache is addressed by token ids. `begin_prompt(ids)` keeps what the cache shares with `ids` and says
how much that is; a new turn, a branch, a rollback and a restart are then the same call with other ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from cartoolkit.chat import ChatTemplate
    from cartoolkit.trace import ModelInfo

__all__ = ["AttentiveDecoder", "Decoder", "common_prefix"]


class Decoder(Protocol):
    """One loaded model with its tokenizer and its cache; used by one thread at a time."""

    @property
    def info(self) -> ModelInfo:
        """Which weights, where, in which precision."""
        ...

    @property
    def chat_template(self) -> ChatTemplate | None:
        """How the model was trained to see a conversation; None for a base model."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """Every token id that ends an answer."""
        ...

    @property
    def special_ids(self) -> frozenset[int]:
        """Every control token; their bytes are names, not text of the answer."""
        ...

    @property
    def prefill_chunk(self) -> int:
        """How many prompt tokens to read between two looks at the mailbox."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to token ids; names of control tokens in the text become those tokens."""
        ...

    def encode_continuation(self, text: str) -> list[int]:
        """Text that continues another to token ids, without a space that texts may begin with."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Token ids to text, control tokens left out."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for, wherever it occurs."""
        ...

    def begin_prompt(self, ids: Sequence[int], *, repeatable: bool = False) -> int:
        """Keep the cached tokens that `ids` starts with; at most len(ids) - 1, so that a logit row follows.

        Args:
            ids: what will be read.
            repeatable: keep only tokens whose cache entries are bit for bit those of a fresh read in chunks
                of `prefill_chunk`.

        Returns:
            How many of `ids` need not be read again.
        """
        ...

    def prefill(self, ids: Sequence[int], pos: int) -> None:
        """Read `ids` at position `pos`, which must be where the cache ends; nobody asks for the logits."""
        ...

    def forward(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `prefill`, with the raw logits after the last one.

        Returns:
            float32 [vocab]; may be a view that the next read overwrites, so whoever keeps it copies it.
        """
        ...

    def forward_all(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `forward`, with the raw logits after each of `ids`, float32 [len(ids), vocab]."""
        ...

    def clear_kv_cache(self) -> None:
        """Forget everything that was read."""
        ...

    def close(self) -> None:
        """Release the model's memory; the decoder cannot be used afterwards."""
        ...


class AttentiveDecoder(Decoder, Protocol):
    """A decoder that also says where its model looks; its `info.attention` is not empty."""

    def attention(self) -> np.ndarray:
        """Of the last token that was read: last layer, mean over the heads.

        Returns:
            float32 [tokens in the cache], its own position included, 1 in all; the caller's to keep.
        """
        ...


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    limit = min(len(a), len(b))
    return next((i for i in range(limit) if a[i] != b[i]), limit)
