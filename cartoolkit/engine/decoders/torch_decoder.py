"""The decoder over transformers and torch: any causal language model that transformers can load."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Literal, Self

from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
from cartoolkit.engine.decoders.torch_attention import group_heads
from cartoolkit.engine.decoders.torch_attention_tap import AttentionTap
from cartoolkit.engine.decoders.torch_cache import TorchCache
from cartoolkit.engine.decoders.torch_errors import forward_errors, loading_errors
from cartoolkit.engine.decoders.torch_loading import check_loadable, read_checkpoint, require_torch
from cartoolkit.engine.decoders.torch_matmul import matmul_for_rows, own_kernel_pays
from cartoolkit.engine.decoders.torch_reading import TorchReader
from cartoolkit.errors import EngineClosed
from cartoolkit.models.config import context_length_of
from cartoolkit.notices import say
from cartoolkit.trace import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cartoolkit.chat import ChatTemplate
    from cartoolkit.models import Checkpoint

__all__ = ["TorchDecoder", "require_torch"]

# About a quarter of a second of prompt on two CPU cores; a GPU reads more in that time.
_PREFILL_CHUNK = {"cpu": 256, "mps": 512, "cuda": 2048}
# Where a text can only be begun in one go, it is begun with as much as this.
_LARGE_CHUNK = 4096
_SINGLES = 16
_UNKNOWN_CONTEXT = 4096


class TorchDecoder:
    """One model of transformers behind the decoder contract (`cartoolkit.engine.decoder`)."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        weights_hash: str = "",
        tokenizer_hash: str = "",
        quantization: str | None = None,
        attention: Literal["eager"] | None = None,
    ) -> None:
        model.eval()
        self._model: PreTrainedModel | None = model
        self._tokenizer = HFTokenizer(tokenizer)
        self._device = model.device
        text_config = model.config.get_text_config(decoder=True)
        context_length = context_length_of(text_config.to_dict()) or _UNKNOWN_CONTEXT
        trial = self._trial(model)
        self._tap = AttentionTap(model, trial, context_length) if attention else None
        group_heads(model)  # which leaves one alone that attends eagerly
        self._kernels = _kernels(model)
        self._reader: TorchReader | None = TorchReader(
            model, trial, functools.partial(TorchCache, model.config, 1)
        )
        self._reading = self._reader.reading
        self._cache = TorchCache(model.config, self._first_chunk, self._reading.cache)
        self.info = ModelInfo(
            name=name or getattr(model.config, "name_or_path", "") or type(model).__name__,
            engine="torch",
            device=str(model.device),
            dtype=quantization or str(model.dtype).removeprefix("torch."),
            context_length=context_length,
            vocab_size=self._reader.vocab_size,
            weights_hash=weights_hash,
            tokenizer_hash=tokenizer_hash,
            attention=attention or "",
        )
        self.eos_ids = self._tokenizer.eos_ids(model.config, text_config, model.generation_config)
        if self._reading.cache == "none":
            say(
                f"{self.info.name}: transformers has no cache for it that gives its own logits; every token "
                "reads the whole text anew."
            )

    def _trial(self, model: PreTrainedModel) -> list[int]:
        """Eight ordinary tokens, far apart in the vocabulary."""
        size = model.config.get_text_config(decoder=True).vocab_size
        wanted = (size * k // 9 for k in range(1, 9))
        return [next(i for i in (*range(at, size), 0) if i not in self.special_ids) for at in wanted]

    @classmethod
    def load(
        cls,
        checkpoint: Checkpoint,
        *,
        device: torch.device,
        dtype: torch.dtype,
        quantize: str | None = None,
        attention: Literal["eager"] | None = None,
    ) -> Self:
        """Load a checkpoint that `cartoolkit.models` has looked at.

        Args:
            checkpoint: a folder; pickles and its own code are used only where it says that they were allowed.
            device: where to compute.
            dtype: in which precision.
            quantize: `int8` to pack the weights while loading; None leaves them as they are.
            attention: `eager` to be able to say where the model looks, see `attention()`; None for speed.

        Raises:
            MissingDependency: torch or transformers is not installed, or lacks what `quantize` needs.
            InvalidRequest: there is no such quantization, the weights are packed already, or the model does
                not give its attention away.
            InvalidCheckpoint: transformers does not know the architecture, cannot read the files or cannot
                compute in this dtype on this device.
            NotEnoughMemory: the weights or a first forward do not fit, with the numbers.
        """
        needed = check_loadable(checkpoint, device, dtype, quantize)
        with loading_errors(checkpoint, device, needed):
            return cls._read_in(checkpoint, device, dtype, quantize, attention)

    @classmethod
    def _read_in(
        cls,
        checkpoint: Checkpoint,
        device: torch.device,
        dtype: torch.dtype,
        quantize: str | None,
        attention: Literal["eager"] | None,
    ) -> Self:
        # A frame of its own, which an error can let go of with the model in it.
        model, tokenizer = read_checkpoint(checkpoint, device, dtype, quantize)
        return cls(
            model,
            tokenizer,
            name=checkpoint.name,
            weights_hash=checkpoint.fingerprint,
            tokenizer_hash=checkpoint.tokenizer_hash or "",
            quantization=quantize,
            attention=attention,
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
    def _first_chunk(self) -> int:
        if self._reading.in_chunks and self._reading.cache != "none":
            return _PREFILL_CHUNK.get(self._device.type, 512)
        return _LARGE_CHUNK

    @property
    def prefill_chunk(self) -> int:
        """Prompt tokens a forward, between two looks at the mailbox."""
        goes_on_in_singles = not self._reading.in_chunks and self._cache.token_ids
        return _SINGLES if goes_on_in_singles else self._first_chunk

    def begin_prompt(self, ids: Sequence[int], *, repeatable: bool = False) -> int:
        """Keep what the cache shares with `ids`; returns how many of them need not be read again."""
        return self._cache.keep_prefix_of(ids, repeatable=repeatable)

    def prefill(self, ids: Sequence[int], pos: int) -> None:
        """Read `ids` at `pos`, the end of the cache. Errors as for `forward`."""
        self._read(ids, pos, rows=1)

    def forward(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """Read `ids` at `pos`, the end of the cache; raw logits after the last one, float32 [vocab].

        Raises:
            ValueError: `pos` is not where the cache ends.
            EngineClosed: after `close`.
            OutOfMemory: with the numbers.
        """
        return self._read(ids, pos, rows=1)[-1]

    def forward_all(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `forward`, with the raw logits after each of `ids`, float32 [len(ids), vocab]."""
        return self._read(ids, pos, rows=len(ids))

    def attention(self) -> np.ndarray:
        """Where the last token that was read looked: last layer, mean over heads, float32 [cached tokens].

        Raises:
            ValueError: the decoder was made without ``attention="eager"``.
            ForwardFailed: the model's attention does not fit what it has read.
        """
        if self._tap is None:
            raise ValueError(f"{self.info.name} was loaded without attention='eager'")
        return self._tap.row(len(self._cache.token_ids))

    def _read(self, ids: Sequence[int], pos: int, *, rows: int) -> np.ndarray:
        if self._reader is None:
            raise EngineClosed(f"{self.info.name} was closed; load it again.")
        held = len(self._cache.token_ids)
        if pos != held:
            raise ValueError(f"forward at position {pos}, but the cache ends at {held}")
        with forward_errors(self._device, held + len(ids)), self._kernels(len(ids)):
            logits = self._reader.read(ids, self._cache, rows=rows)
        self._cache.extend(ids)
        return logits.numpy()

    def clear_kv_cache(self) -> None:
        """Forget everything that was read."""
        self._cache.clear()

    def close(self) -> None:
        """Release weights and cache."""
        import torch

        self._model = self._reader = None
        if self._tap is not None:
            self._tap.close()
        self._cache.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        elif self._device.type == "mps":
            torch.mps.empty_cache()


def _kernels(model: PreTrainedModel) -> Callable[[int], AbstractContextManager[None]]:
    """What to hold during a forward of so many tokens."""
    import torch

    if model.device.type == "cpu" and model.dtype == torch.bfloat16 and own_kernel_pays(model):
        return matmul_for_rows
    return lambda _rows: contextlib.nullcontext()
