"""The decoder over mlx-lm: any language model that mlx-lm can load, on Apple's GPUs and on CPUs."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
from cartoolkit.engine.decoders.mlx_ahead import NextToken
from cartoolkit.engine.decoders.mlx_cache import MlxCache
from cartoolkit.engine.decoders.mlx_config import text_settings
from cartoolkit.engine.decoders.mlx_precision import precision
from cartoolkit.engine.decoders.mlx_window import layer_caches
from cartoolkit.errors import EngineClosed
from cartoolkit.trace import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    import mlx.core as mx
    import numpy as np
    from mlx import nn
    from transformers import PreTrainedTokenizerBase

    from cartoolkit.chat import ChatTemplate
    from cartoolkit.models import Checkpoint

__all__ = ["MlxDecoder"]

# MLX on a CPU reads a prompt no faster than it writes, some 16 tokens a second; a GPU reads thousands.
_PREFILL_CHUNK = {"cpu": 8, "gpu": 512}
_UNKNOWN_CONTEXT = 4096
# How often mlx-lm itself gives buffers back that MLX keeps for re-use, in tokens.
_TIDY_EVERY = 256


class MlxDecoder:
    """One model of mlx-lm behind the decoder contract (`cartoolkit.engine.decoder`).

    MLX binds what it computes to the thread that asked, so loading, reading and closing belong to one.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        config: dict[str, Any],
        *,
        name: str = "",
        weights_hash: str = "",
        tokenizer_hash: str = "",
    ) -> None:
        """Wrap a model that is loaded already.

        Args:
            model: with mlx-lm's calling convention, `model(ids [1, n], cache=…) -> logits [1, n, vocab]`.
            tokenizer: of transformers; `mlx_lm.load` wraps one and keeps it as `_tokenizer`.
            config: as `mlx_lm.load(…, return_config=True)` gives it.
            name: what to call it; by default the config's model type.
            weights_hash: of the weights, for the trace.
            tokenizer_hash: of the tokenizer, for the trace.
        """
        import mlx.core as mx

        self._tokenizer = HFTokenizer(tokenizer)
        self._device = mx.default_device().type.name
        new_caches, window = layer_caches(model, config)
        self._cache = MlxCache(new_caches, self.prefill_chunk)
        self._next = NextToken()
        context = text_settings(config).get("max_position_embeddings") or _UNKNOWN_CONTEXT
        self.info = ModelInfo(
            name=name or config.get("model_type", ""),
            engine="mlx",
            device=self._device,
            dtype=precision(model, config),
            context_length=min(context, window or context),
            vocab_size=_row_length(model),
            weights_hash=weights_hash,
            tokenizer_hash=tokenizer_hash,
        )
        self.eos_ids = self._tokenizer.eos_ids(
            SimpleNamespace(**config), SimpleNamespace(**text_settings(config))
        )
        # Last: a decoder that was not made to its end has nothing to close.
        self._model: nn.Module | None = model

    @classmethod
    def load(cls, checkpoint: Checkpoint, *, dtype: str | None = None, quantize: str | None = None) -> Self:
        """Load a checkpoint that `cartoolkit.models` has looked at.

        Args:
            checkpoint: a folder in Hugging Face's or MLX's layout.
            dtype: `float32`, `bfloat16` or `float16`; None keeps what the checkpoint has.
            quantize: `int8` or `int4`, to pack matrices while loading; None leaves them as they are.

        Raises:
            MissingDependency: mlx or mlx-lm is not installed.
            InvalidCheckpoint: mlx-lm does not know the architecture or packing, or cannot read the files.
            InvalidRequest: no such dtype or quantization, or the checkpoint is packed already.
            NotEnoughMemory: the weights do not fit.
        """
        from cartoolkit.engine.decoders.mlx_loading import loading_errors

        with loading_errors(checkpoint):
            return cls._read_in(checkpoint, dtype, quantize)

    @classmethod
    def _read_in(cls, checkpoint: Checkpoint, dtype: str | None, quantize: str | None) -> Self:
        # A frame of its own, which an error can let go of with the model in it.
        from cartoolkit.engine.decoders.mlx_loading import load_checkpoint

        model, tokenizer, config = load_checkpoint(checkpoint, dtype=dtype, quantize=quantize)
        return cls(
            model,
            tokenizer,
            config,
            name=checkpoint.name,
            weights_hash=checkpoint.fingerprint,
            tokenizer_hash=checkpoint.tokenizer_hash or "",
        )

    # Tokens

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to token ids."""
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def encode_continuation(self, text: str) -> list[int]:
        """Text that continues another to token ids."""
        return self._tokenizer.encode_continuation(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Token ids to text, control tokens left out."""
        return self._tokenizer.decode(ids)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for."""
        return self._tokenizer.token_bytes(token_id)

    @property
    def special_ids(self) -> frozenset[int]:
        """Every control token."""
        return self._tokenizer.special_ids

    @property
    def chat_template(self) -> ChatTemplate | None:
        """The model's own template, if it has one."""
        return self._tokenizer.chat_template

    # Logits

    @property
    def prefill_chunk(self) -> int:
        """Prompt tokens a forward, between two looks at the mailbox."""
        return _PREFILL_CHUNK.get(self._device, 512)

    def begin_prompt(self, ids: Sequence[int], *, repeatable: bool = False) -> int:
        """Keep what the cache shares with `ids`; returns how many of them need not be read again."""
        self._give_up_next()
        return self._cache.keep_prefix_of(ids, repeatable=repeatable)

    def prefill(self, ids: Sequence[int], pos: int) -> None:
        """Read `ids` at `pos`, the end of the cache. Errors as for `forward`."""
        import mlx.core as mx

        self._check(ids, pos)
        self._give_up_next()
        self._compute(mx.array([list(ids)]))
        # MLX computes what is asked for: without the logits, neither the last layer's output nor the head.
        mx.eval(self._state())
        self._cache.extend(ids)
        mx.clear_cache()

    def forward(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """Read `ids` at `pos`, the end of the cache; raw logits after the last one, float32 [vocab].

        Raises:
            ValueError: `pos` is not where the cache ends, or an id has no row in the model.
            EngineClosed: after `close`.
        """
        if len(ids) > 1:
            # The head of a large vocabulary costs as much as some layers; only the last row is wanted.
            self.prefill(ids[:-1], pos)
        return self._forward_one(ids[-1], pos + len(ids) - 1)

    def _forward_one(self, token_id: int, pos: int) -> np.ndarray:
        import mlx.core as mx
        import numpy as np

        self._check([token_id], pos)
        rows = self._next.take(token_id)
        if rows is None:
            rows = self._compute(mx.array([[token_id]]))
        mx.async_eval(rows, self._state())
        self._lay_out_next()
        mx.eval(rows)
        self._cache.extend([token_id])
        if pos % _TIDY_EVERY == 0:
            mx.clear_cache()
        return np.array(rows, copy=False)[-1]

    def forward_all(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `forward`, with the raw logits after each of `ids`, float32 [len(ids), vocab]."""
        import mlx.core as mx
        import numpy as np

        self._check(ids, pos)
        self._give_up_next()
        rows = self._compute(mx.array([list(ids)]))
        mx.eval(rows, self._state())
        self._cache.extend(ids)
        mx.clear_cache()
        return np.array(rows, copy=False)

    def _check(self, ids: Sequence[int], pos: int) -> None:
        if self._model is None:
            raise EngineClosed(f"{self.info.name} was closed; load it again.")
        if pos != len(self._cache.token_ids):
            raise ValueError(f"forward at position {pos}, but the cache ends at {len(self._cache.token_ids)}")
        strangers = [i for i in ids if not 0 <= i < self.info.vocab_size]
        if strangers:
            # MLX would read whatever lies behind the embeddings.
            raise ValueError(f"the model has rows for {self.info.vocab_size:,} ids, not for {strangers[0]}")

    def _compute(self, ids: mx.array) -> mx.array:
        """Logits float32 [n, vocab] of ids [1, n], not yet carried out; numpy has no bfloat16."""
        import mlx.core as mx

        assert self._model is not None
        return self._model(ids, cache=self._cache.tensors)[0].astype(mx.float32)

    def _state(self) -> list[Any]:
        return [layer.state for layer in self._cache.tensors]

    def _lay_out_next(self) -> None:
        try:
            self._next.lay_out(self._compute, self._cache.tensors)
        except Exception:  # noqa: BLE001 - it belongs to the next token, which may never be asked for
            self._give_up_next()

    def _give_up_next(self) -> None:
        self._cache.tensors = self._next.give_up(self._cache.tensors)

    def clear_kv_cache(self) -> None:
        """Forget everything that was read."""
        self._give_up_next()
        self._cache.clear()

    def close(self) -> None:
        """Release weights and cache, also what MLX keeps for re-use."""
        import mlx.core as mx

        self._give_up_next()
        self._model = None
        self._cache.release()
        mx.clear_cache()

    def __del__(self) -> None:
        # When Python ends nothing can be imported any more, and all memory goes anyway.
        with contextlib.suppress(ImportError):
            if getattr(self, "_model", None) is not None:
                self.close()


def _row_length(model: nn.Module) -> int:
    """How many logits a token has; found from shapes alone, since MLX computes only what is looked at."""
    import mlx.core as mx

    return model(mx.array([[0]])).shape[-1]
