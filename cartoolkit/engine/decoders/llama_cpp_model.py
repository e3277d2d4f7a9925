"""A model that llama.cpp has opened: its memory, its context window and its cache."""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.decoders.cached_ids import CachedIds
from cartoolkit.engine.decoders.llama_cpp_library import reason_logged
from cartoolkit.engine.decoders.llama_cpp_memory import free_on_gpu, says_out_of_memory
from cartoolkit.errors import EngineClosed, InvalidCheckpoint, InvalidRequest, NotEnoughMemory
from cartoolkit.models.llama_cpp_log import log_captured
from cartoolkit.models.memory import free_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cartoolkit.models.llama_cpp_log import LogLine

__all__ = ["LlamaCppCache", "LlamaCppModel"]

# The cache for the whole window is allocated at once, so a window of 131,072 tokens is not opened unasked.
_USUAL_CONTEXT = 16_384
_CACHE_SHARE = 0.25
_BATCH = 512
_FLOAT16_BYTES = 2


class LlamaCppModel:
    """What llama.cpp allocates for one model, and freeing it.

    Attributes:
        model: `llama_model *`, None before `open` and after `free`.
        context: `llama_context *`, None before `make_context` and after `free`.
        batch: a `llama_batch` with room for `batch_size` tokens.
        window: how many tokens may be in the context, 0 before `make_context`.
        batch_size: how many tokens the context reads at once; more would end the process.
    """

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self.model: Any = None
        self.context: Any = None
        self.batch: Any = None
        self.window = self.batch_size = 0
        self._using = threading.RLock()

    def open(self, path: Path, *, on_gpu: bool) -> None:
        """Map the file's weights.

        Raises:
            InvalidCheckpoint: llama.cpp refuses the file.
            NotEnoughMemory: the weights do not fit.
        """
        settings = self._library.llama_model_default_params()
        settings.n_gpu_layers = -1 if on_gpu else 0
        with log_captured() as said:
            self.model = self._library.llama_model_load_from_file(os.fsencode(path), settings)
        if not self.model:
            if says_out_of_memory(said):
                raise _no_room(f"{path}, {path.stat().st_size / 1e6:,.0f} MB of weights", said, on_gpu=on_gpu)
            raise InvalidCheckpoint(
                f"{path} could not be opened by llama.cpp: {reason_logged(said)}",
                hint="Check that the file is complete, and that this version of llama-cpp-python knows its "
                "architecture and quantization.",
            )
        if self._library.llama_model_has_encoder(self.model):
            raise InvalidCheckpoint(f"{path} holds an encoder, and a model that continues text is needed.")

    def require_tokenizer(self, path: Path) -> None:
        """Refuse a model without one: llama.cpp ends the process when it is asked for a token.

        Raises:
            InvalidCheckpoint: `path`, which was opened, holds none.
        """
        vocabulary = self._library.llama_model_get_vocab(self.model)
        if self._library.llama_vocab_type(vocabulary) == self._library.LLAMA_VOCAB_TYPE_NONE:
            raise InvalidCheckpoint(
                f"{path} holds no tokenizer.", hint="Convert the model anew, with its tokenizer."
            )

    def make_context(self, wanted: int | None, *, threads: int, on_gpu: bool) -> None:
        """Allocate the cache for a window of `wanted` tokens, None for what is usual.

        Raises:
            InvalidRequest: `wanted` is no number of tokens that the model was trained for.
            NotEnoughMemory: they do not fit.
            InvalidCheckpoint: llama.cpp refuses, or the model does not continue text.
        """
        free = _free(on_gpu=on_gpu)
        window = (
            self._usual_window(free) if wanted is None else self._checked_window(wanted, free, on_gpu=on_gpu)
        )
        with log_captured() as said:
            settings = self._context_settings(window, threads, on_gpu=on_gpu)
            self.context = self._library.llama_init_from_model(self.model, settings)
        if not self.context:
            if says_out_of_memory(said):
                needed = window * self.cache_bytes_per_token / 1e6
                what = f"a context of {window:,} tokens, with {needed:,.0f} MB of cache"
                raise _no_room(what, said, on_gpu=on_gpu)
            raise InvalidCheckpoint(
                f"llama.cpp could not make a context of {window:,} tokens: {reason_logged(said)}",
                hint="Pass a smaller context_length to load().",
            )
        if not self.memory:
            raise InvalidCheckpoint(
                "the model keeps no cache, as one for embeddings; a model that continues text is needed."
            )
        # llama.cpp rounds its context up, and its batch down to the context.
        self.window = window
        self.batch_size = min(_BATCH, self._library.llama_n_batch(self.context))
        self.batch = self._library.llama_batch_init(self.batch_size, 0, 1)

    def use_threads(self, count: int) -> None:
        """Compute with so many threads from now on."""
        self._library.llama_set_n_threads(self.context, count, count)

    def _context_settings(self, window: int, threads: int, *, on_gpu: bool) -> Any:  # noqa: ANN401 - ctypes
        settings = self._library.llama_context_default_params()
        settings.n_ctx = window
        settings.n_batch = settings.n_ubatch = _BATCH
        settings.n_threads = settings.n_threads_batch = threads
        settings.offload_kqv = settings.op_offload = on_gpu
        settings.no_perf = True
        # A full cache for sliding windows too, so that it can be cropped anywhere.
        settings.swa_full = True
        return settings

    def _usual_window(self, free: int | None) -> int:
        """What the model was trained for, as far as a quarter of the free memory holds it; at least 512."""
        usual = min(self._trained_window, _USUAL_CONTEXT)
        if free is None:
            return usual
        fitting = int(free * _CACHE_SHARE) // max(self.cache_bytes_per_token, 1)
        return min(self._trained_window, max(min(usual, fitting), 512))

    def _checked_window(self, wanted: int, free: int | None, *, on_gpu: bool) -> int:
        trained = self._trained_window
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= trained:
            raise InvalidRequest(
                f"context_length must be from 1 to {trained:,}, its training length; got {wanted!r}."
            )
        needed = wanted * self.cache_bytes_per_token
        if free is not None and needed > free:
            raise NotEnoughMemory(
                f"the cache for {wanted:,} tokens needs {needed / 1e6:,.0f} MB of memory, and "
                f"{_place(on_gpu)} has {free / 1e6:,.0f} MB free.",
                hint="Pass a smaller context_length, or close other engines (engine.close()).",
            )
        return wanted

    @property
    def _trained_window(self) -> int:
        return self._library.llama_model_n_ctx_train(self.model)

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of one token in the key/value cache: float16 over all layers, an upper bound for hybrids."""
        library, model = self._library, self.model
        usual = library.llama_model_n_embd(model) // max(library.llama_model_n_head(model), 1)
        width = self._number("attention.key_length", usual) + self._number("attention.value_length", usual)
        # In a hybrid the first layer may have no attention.
        heads = library.llama_model_n_head_kv(model) or library.llama_model_n_head(model)
        return _FLOAT16_BYTES * heads * width * library.llama_model_n_layer(model)

    def _number(self, key: str, otherwise: int) -> int:
        """A count from the header, below the architecture's name."""
        text = self._text(f"{self._text('general.architecture')}.{key}")
        return int(text) if text.isdecimal() else otherwise

    def _text(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(128)
        self._library.llama_model_meta_val_str(self.model, key.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    @property
    def memory(self) -> Any:  # noqa: ANN401 - ctypes
        """The context's key/value cache and recurrent states."""
        return self._library.llama_get_memory(self.context)

    @property
    def description(self) -> str:
        """Size and weight type, in llama.cpp's words."""
        buffer = ctypes.create_string_buffer(128)
        self._library.llama_model_desc(self.model, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the model from being freed by another thread.

        Raises:
            EngineClosed: it was freed already.
        """
        with self._using:
            if not self.model:
                raise EngineClosed("the model was closed; load it again.")
            yield

    def free(self) -> None:
        """Release everything that there is."""
        with self._using:
            model, context, batch = self.model, self.context, self.batch
            self.model = self.context = self.batch = None
        if batch is not None:
            self._library.llama_batch_free(batch)
        if context:
            self._library.llama_free(context)
        if model:
            self._library.llama_model_free(model)


def _free(*, on_gpu: bool) -> int | None:
    """Bytes that are free where the cache will lie; None where nobody knows."""
    # What main memory has free says nothing of a card: there llama.cpp tries, and says if it does not fit.
    return free_on_gpu() if on_gpu else free_memory()


def _place(on_gpu: bool) -> str:  # noqa: FBT001
    return "the graphics card" if on_gpu else "this machine"


def _no_room(what: str, said: Sequence[LogLine], *, on_gpu: bool) -> NotEnoughMemory:
    free = _free(on_gpu=on_gpu)
    has = "" if free is None else f"; {_place(on_gpu)} has {free / 1e6:,.0f} MB free"
    return NotEnoughMemory(
        f"llama.cpp found no memory for {what}: {reason_logged(said)}{has}.",
        hint="Pass a smaller context_length, close other engines (engine.close()), or choose a smaller file"
        + (" or device='cpu'." if on_gpu else "."),
    )


class LlamaCppCache(CachedIds):
    """The context's memory, addressed by the ids that it holds."""

    def __init__(self, library: Any, memory: Any, chunk: int) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self._memory = memory
        super().__init__(chunk)

    def forget_unfinished(self) -> None:
        """After a read that failed halfway: keep what was recorded and nothing else."""
        self._crop(len(self.token_ids))

    def _clear_tensors(self) -> None:
        self._library.llama_memory_clear(self._memory, True)

    def _crop_tensors(self, length: int) -> bool:
        # Recurrent states cannot be cut, and a window that has moved on no longer begins at 0.
        library, memory = self._library, self._memory
        return (
            library.llama_memory_seq_rm(memory, 0, length, -1)
            and library.llama_memory_seq_pos_min(memory, 0) == 0
            and library.llama_memory_seq_pos_max(memory, 0) == length - 1
        )
