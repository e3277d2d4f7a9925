"""A model that llama.cpp has opened: its memory, its context window and its cache."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.decoders.cached_ids import CachedIds
from cartoolkit.engine.decoders.cores import usable_cores
from cartoolkit.engine.decoders.llama_cpp_library import errors_logged
from cartoolkit.errors import InvalidCheckpoint, InvalidRequest
from cartoolkit.models.memory import free_memory, require_memory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LlamaCppCache", "LlamaCppModel"]

# The cache for the whole window is allocated at once, so a window of 131,072 tokens is not opened unasked.
_USUAL_CONTEXT = 16_384
_CACHE_SHARE = 0.25
_BATCH = 512
_FLOAT16_BYTES = 2


class LlamaCppModel:
    """What llama.cpp allocates for one model, and freeing it, once, from whichever thread comes first.

    Attributes:
        model: `llama_model *`, None before `open` and after `free`.
        context: `llama_context *`, None before `make_context` and after `free`.
        batch: a `llama_batch` with room for `batch_size` tokens.
    """

    batch_size = _BATCH

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self.model: Any = None
        self.context: Any = None
        self.batch: Any = None

    def open(self, path: Path, *, on_gpu: bool) -> None:
        """Map the file's weights.

        Raises:
            InvalidCheckpoint: llama.cpp refuses the file.
        """
        settings = self._library.llama_model_default_params()
        settings.n_gpu_layers = -1 if on_gpu else 0
        with errors_logged(self._library) as said:
            self.model = self._library.llama_model_load_from_file(str(path).encode(), settings)
        if not self.model:
            raise InvalidCheckpoint(
                f"{path} could not be opened by llama.cpp: {_reason(said)}",
                hint="Check that the file is complete, and that this version of llama-cpp-python knows its "
                "architecture and quantization.",
            )

    def make_context(self, wanted: int | None, *, threads: int | None) -> None:
        """Allocate the cache for a window of `wanted` tokens, None for what is usual.

        Raises:
            InvalidRequest: the model was not trained for so many.
            NotEnoughMemory: they do not fit.
            InvalidCheckpoint: llama.cpp refuses.
        """
        settings = self._library.llama_context_default_params()
        settings.n_ctx = self._usual_window() if wanted is None else self._checked_window(wanted)
        settings.n_batch = settings.n_ubatch = _BATCH
        settings.n_threads = settings.n_threads_batch = threads or usable_cores()
        settings.no_perf = True
        # A full cache for sliding windows too, so that it can be cropped anywhere.
        settings.swa_full = True
        with errors_logged(self._library) as said:
            self.context = self._library.llama_init_from_model(self.model, settings)
        if not self.context:
            raise InvalidCheckpoint(
                f"llama.cpp could not make a context of {settings.n_ctx:,} tokens: {_reason(said)}",
                hint="Pass a smaller context_length to load().",
            )
        self.batch = self._library.llama_batch_init(_BATCH, 0, 1)

    def _usual_window(self) -> int:
        """What the model was trained for, as far as a quarter of the free memory holds it; at least 512."""
        trained = self._library.llama_model_n_ctx_train(self.model)
        fitting = int(free_memory() * _CACHE_SHARE) // max(self.cache_bytes_per_token, 1)
        return min(trained, max(min(_USUAL_CONTEXT, fitting), 512))

    def _checked_window(self, wanted: int) -> int:
        trained = self._library.llama_model_n_ctx_train(self.model)
        if not 1 <= wanted <= trained:
            raise InvalidRequest(
                f"context_length must be from 1 to {trained:,}, its training length; got {wanted!r}."
            )
        require_memory(
            wanted * self.cache_bytes_per_token, free_memory(), what=f"The cache for {wanted:,} tokens"
        )
        return wanted

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of one token in the key/value cache: float16 over all layers, an upper bound for hybrids."""
        library, model = self._library, self.model
        width = library.llama_model_n_embd(model) // max(library.llama_model_n_head(model), 1)
        kept = library.llama_model_n_head_kv(model) * width
        return 2 * _FLOAT16_BYTES * kept * library.llama_model_n_layer(model)

    @property
    def window(self) -> int:
        """Tokens that the context really holds."""
        return self._library.llama_n_ctx(self.context)

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

    def free(self) -> None:
        """Release everything; a second call does nothing."""
        model, context, batch = self.model, self.context, self.batch
        self.model = self.context = self.batch = None
        if batch is not None:
            self._library.llama_batch_free(batch)
        if context:
            self._library.llama_free(context)
        if model:
            self._library.llama_model_free(model)


class LlamaCppCache(CachedIds):
    """The context's memory, addressed by the ids that it holds."""

    def __init__(self, library: Any, memory: Any, chunk: int) -> None:  # noqa: ANN401 - ctypes
        self._library = library
        self._memory = memory
        super().__init__(chunk)

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


def _reason(said: list[str]) -> str:
    """The first of llama.cpp's complaints, which the others follow from."""
    return said[0].split(": ", 1)[-1] if said else "it gave no reason"
