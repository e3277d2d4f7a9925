"""The decoder over llama.cpp: a GGUF file opened as it is, its raw logits read in place."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Self

import numpy as np

from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.engine.decoders.crowding import CrowdedThreads
from cartoolkit.engine.decoders.llama_cpp_library import require_llama_cpp
from cartoolkit.engine.decoders.llama_cpp_memory import free_on_gpu
from cartoolkit.engine.decoders.llama_cpp_model import LlamaCppCache, LlamaCppModel
from cartoolkit.engine.decoders.llama_cpp_vocabulary import LlamaCppVocabulary
from cartoolkit.errors import EngineClosed, PromptTooLong
from cartoolkit.models import admit
from cartoolkit.models.memory import free_memory, require_memory
from cartoolkit.trace import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cartoolkit.chat import ChatTemplate
    from cartoolkit.models import Checkpoint

__all__ = ["LlamaCppDecoder"]

# A quarter of a second of prompt on two CPU cores; larger ones are read no faster there.
_PREFILL_CHUNK = {"cpu": 64, "gpu": 512}


class LlamaCppDecoder:
    """One GGUF model behind the decoder contract (`cartoolkit.engine.decoder`).

    What a cropped cache gives equals a fresh read as far as llama.cpp's rounding does: bit for bit up to 63
    tokens of quantized weights. Beyond, it computes attention over 64 and more tokens at once in another
    precision than over fewer, and rounds activations to 8 bits: for SmolLM2 in Q4_1, read token by token
    against in chunks, logits moved by up to 0.8 and the distribution by a divergence of up to 0.006 nats.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        dtype: str = "",
        weights_hash: str = "",
        tokenizer_hash: str = "",
        context_length: int | None = None,
        on_gpu: bool = False,
        threads: int | None = None,
    ) -> None:
        """Open a file; `LlamaCppDecoder.load` looks at it first.

        Args:
            path: a GGUF file.
            name: as people know the model.
            dtype: how its weights are stored, such as ``Q4_1``.
            weights_hash: see `ModelInfo`.
            tokenizer_hash: see `ModelInfo`.
            context_length: tokens of prompt and answer; None for what the model was trained with, as far as
                memory allows, at most 16,384.
            on_gpu: put all layers on the graphics card that llama.cpp was built for.
            threads: of the processor, fewer while other programs want its cores; None for all cores that
                this process may use. Their number does not change the numbers.

        Raises:
            InvalidCheckpoint: llama.cpp cannot open the file, for its own reason, or it holds no tokenizer.
            InvalidRequest: `context_length` is not from 1 to the model's training length.
            NotEnoughMemory: the weights or the cache for `context_length` do not fit.
        """
        self.prefill_chunk = _PREFILL_CHUNK["gpu" if on_gpu else "cpu"]
        self._threads = CrowdedThreads(threads or usable_cores())
        self._watched = contextlib.nullcontext if on_gpu else self._threads.watched
        self._library = require_llama_cpp()
        self._opened = LlamaCppModel(self._library)
        # A finalizer runs once, whether somebody closes the decoder or nobody holds it any more.
        self._free = weakref.finalize(self, self._opened.free)
        self._free.atexit = False
        try:
            self._opened.open(path, on_gpu=on_gpu)
            self._opened.require_tokenizer(path)
            self._opened.make_context(context_length, threads=self._threads.count, on_gpu=on_gpu)
        except BaseException:
            self._free()  # the error's traceback would hold the weights
            raise
        self._cache = LlamaCppCache(self._library, self._opened.memory, self.prefill_chunk)
        self._vocabulary = LlamaCppVocabulary(self._library, self._opened)
        self.eos_ids = self._vocabulary.eos_ids
        self.info = ModelInfo(
            name=name or path.stem,
            engine="llama.cpp",
            device="gpu" if on_gpu else "cpu",
            dtype=dtype or self._opened.description,
            context_length=self._opened.window,
            vocab_size=self._vocabulary.size,
            weights_hash=weights_hash,
            tokenizer_hash=tokenizer_hash,
        )

    @classmethod
    def load(cls, checkpoint: Checkpoint, *, context_length: int | None = None, on_gpu: bool = False) -> Self:
        """Load a checkpoint that `cartoolkit.models` has looked at.

        Raises:
            MissingDependency: llama-cpp-python is not installed.
            InvalidCheckpoint: it is no GGUF file, or llama.cpp does not know its architecture.
            NotEnoughMemory: the weights or the cache do not fit.
        """
        require_llama_cpp()
        admit(checkpoint, "gguf")
        if not on_gpu:
            require_memory(checkpoint.weight_bytes, free_memory(), what=checkpoint.name)
        elif free := free_on_gpu():
            require_memory(checkpoint.weight_bytes, free, what=checkpoint.name, place="the graphics card")
        return cls(
            checkpoint.path,
            name=checkpoint.name,
            dtype=checkpoint.quantization.name if checkpoint.quantization else "",
            weights_hash=checkpoint.fingerprint,
            tokenizer_hash=checkpoint.tokenizer_hash or "",
            context_length=context_length,
            on_gpu=on_gpu,
        )

    # Tokens

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to token ids."""
        return self._open_vocabulary.encode(text, add_special_tokens=add_special_tokens)

    def encode_continuation(self, text: str) -> list[int]:
        """Text that continues another to token ids."""
        return self._open_vocabulary.encode_continuation(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Token ids to text, control tokens left out."""
        return self._open_vocabulary.decode(ids)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for."""
        return self._open_vocabulary.token_bytes(token_id)

    @property
    def special_ids(self) -> frozenset[int]:
        """Every control token."""
        return self._open_vocabulary.special_ids

    @property
    def chat_template(self) -> ChatTemplate | None:
        """The template in the file, if it has one."""
        return self._open_vocabulary.chat_template

    @property
    def _open_vocabulary(self) -> LlamaCppVocabulary:
        self._refuse_if_closed()
        return self._vocabulary

    # Logits

    def begin_prompt(self, ids: Sequence[int], *, repeatable: bool = False) -> int:
        """Keep what the cache shares with `ids`; returns how many of them need not be read again."""
        self._refuse_if_closed()
        return self._cache.keep_prefix_of(ids, repeatable=repeatable)

    def prefill(self, ids: Sequence[int], pos: int) -> None:
        """Read `ids` at `pos`, the end of the cache. Errors as for `forward`."""
        self._read(ids, pos, every_row=False)

    def forward(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """Read `ids` at `pos`, the end of the cache; raw logits after the last one, float32 [vocab].

        The array is llama.cpp's own memory, overwritten by the next read and gone after `close`.

        Raises:
            ValueError: `pos` is not where the cache ends, or there are no ids.
            PromptTooLong: they do not fit into the context.
            EngineClosed: after `close`.
            MemoryError: llama.cpp found no memory.
            RuntimeError: llama.cpp failed otherwise; its code is in the message. The cache is as it was
                before, or empty where it cannot be cropped.
        """
        if not len(ids):
            raise ValueError("logits follow a token, and there is none to read")
        self._read(ids, pos, every_row=False)
        return self._row(-1)

    def forward_all(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `forward`, with the raw logits after each of `ids`, float32 [len(ids), vocab]."""
        self._check_place(len(ids), pos)
        rows = np.empty((len(ids), self.info.vocab_size), np.float32)
        # llama.cpp keeps room for the largest number of rows it was ever asked for.
        for first in range(0, len(ids), self.prefill_chunk):
            part = ids[first : first + self.prefill_chunk]
            self._read(part, pos + first, every_row=True)
            for i in range(len(part)):
                rows[first + i] = self._row(i)
        return rows

    def _row(self, index: int) -> np.ndarray:
        pointer = self._library.llama_get_logits_ith(self._opened.context, index)
        return np.ctypeslib.as_array(pointer, (self.info.vocab_size,))

    def _read(self, ids: Sequence[int], pos: int, *, every_row: bool) -> None:
        self._check_place(len(ids), pos)
        try:
            for first in range(0, len(ids), self._opened.batch_size):
                part = ids[first : first + self._opened.batch_size]
                self._fill_batch(part, pos + first, every_row=every_row)
                self._opened.use_threads(self._threads.count)
                with self._watched():
                    code = self._library.llama_decode(self._opened.context, self._opened.batch)
                _check_code(code)
        except BaseException:
            self._cache.forget_unfinished()
            raise
        self._library.llama_synchronize(self._opened.context)
        self._cache.extend(ids)

    def _check_place(self, count: int, pos: int) -> None:
        self._refuse_if_closed()
        if pos != len(self._cache.token_ids):
            raise ValueError(f"forward at position {pos}, but the cache ends at {len(self._cache.token_ids)}")
        if pos + count > self._opened.window:
            raise PromptTooLong(
                f"{count:,} tokens at position {pos:,} do not fit into the context of "
                f"{self._opened.window:,} tokens.",
                hint="Shorten the text, or pass a larger context_length to load().",
            )

    def _fill_batch(self, ids: Sequence[int], pos: int, *, every_row: bool) -> None:
        batch = self._opened.batch
        batch.n_tokens = len(ids)
        for i, token_id in enumerate(ids):
            batch.token[i] = token_id
            batch.pos[i] = pos + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = every_row
        batch.logits[len(ids) - 1] = True

    def clear_kv_cache(self) -> None:
        """Forget everything that was read."""
        self._refuse_if_closed()
        self._cache.clear()

    def close(self) -> None:
        """Release weights and cache; a second call does nothing."""
        self._free()

    def _refuse_if_closed(self) -> None:
        if not self._opened.context:
            raise EngineClosed(f"{self.info.name} was closed; load it again.")


def _check_code(code: int) -> None:
    """Raise what a return value of `llama_decode` means: 0 is success."""
    if code == _NO_MEMORY:
        raise MemoryError("llama.cpp could not allocate what the computation needs")
    if code:
        raise RuntimeError(f"llama_decode ended with code {code}: {_CODES.get(code, 'a fatal error')}")


# From the comment above llama_decode in llama.h, and from what it makes of ggml's own codes.
_NO_MEMORY = -2
_CODES = {
    1: "there is no room for these tokens in the cache",
    2: "it was aborted",
    -1: "the tokens are not ones that this model has",
}
