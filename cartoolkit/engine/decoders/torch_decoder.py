"""The decoder over transformers and torch: any causal language model that transformers can load."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Self, cast

from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
from cartoolkit.engine.decoders.torch_cache import TorchCache
from cartoolkit.errors import EngineClosed, EngineError, InvalidCheckpoint, MissingDependency
from cartoolkit.models import admit
from cartoolkit.trace import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from cartoolkit.chat import ChatTemplate
    from cartoolkit.models import Checkpoint

__all__ = ["TorchDecoder", "require_torch"]

# About a quarter of a second of prompt on two CPU cores; a GPU reads more in that time.
_PREFILL_CHUNK = {"cpu": 128, "mps": 512, "cuda": 2048}
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
    ) -> None:
        self._model: PreTrainedModel | None = model.eval()
        self._tokenizer = HFTokenizer(tokenizer)
        self._device = model.device
        self._cache = TorchCache(model.config, self.prefill_chunk)
        self._cache_argument = _cache_argument(model)
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in _parameters(model) else {}
        text_config = model.config.get_text_config(decoder=True)
        self.info = ModelInfo(
            name=name or getattr(model.config, "name_or_path", "") or type(model).__name__,
            engine="torch",
            device=str(model.device),
            dtype=str(model.dtype).removeprefix("torch."),
            context_length=getattr(text_config, "max_position_embeddings", None) or _UNKNOWN_CONTEXT,
            vocab_size=text_config.vocab_size,
            weights_hash=weights_hash,
            tokenizer_hash=tokenizer_hash,
        )
        self.eos_ids = self._tokenizer.eos_ids(model.config, text_config, model.generation_config)

    @classmethod
    def load(cls, checkpoint: Checkpoint, *, device: torch.device, dtype: torch.dtype) -> Self:
        """Load a checkpoint that `cartoolkit.models` has looked at.

        Raises:
            MissingDependency: torch or transformers is not installed.
            InvalidCheckpoint: transformers does not know the architecture or cannot read the files.
            EngineError: the weights do not fit into memory.
        """
        require_torch()
        admit(checkpoint, "torch")
        from transformers import AutoModelForCausalLM, AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(checkpoint.path, local_files_only=True)
            with _no_progress_bar():
                model = AutoModelForCausalLM.from_pretrained(
                    checkpoint.path, dtype=dtype, local_files_only=True, use_safetensors=True
                )
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            if _is_out_of_memory(error):
                raise _no_room(checkpoint, dtype, "this machine") from error
            raise InvalidCheckpoint(
                f"{checkpoint.name} could not be loaded by transformers: {_first_line(error)}",
                hint="Check that the folder is complete and that this version of transformers knows "
                f"the architecture {checkpoint.model_type!r}.",
            ) from error
        try:
            cast("torch.nn.Module", model).to(device)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            raise _no_room(checkpoint, dtype, str(device)) from error
        return cls(
            model,
            tokenizer,
            name=checkpoint.name,
            weights_hash=checkpoint.fingerprint,
            tokenizer_hash=checkpoint.tokenizer_hash or "",
        )

    # Tokens

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Text to token ids."""
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)

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
        return _PREFILL_CHUNK.get(self._device.type, 512)

    def begin_prompt(self, ids: Sequence[int], *, repeatable: bool = False) -> int:
        """Keep what the cache shares with `ids`; returns how many of them need not be read again."""
        return self._cache.keep_prefix_of(ids, repeatable=repeatable)

    def prefill(self, ids: Sequence[int], pos: int) -> None:
        """Read `ids` at `pos`, the end of the cache. Errors as for `forward`."""
        self._forward(ids, pos, self._last_only)

    def forward(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """Read `ids` at `pos`, the end of the cache; raw logits after the last one, float32 [vocab].

        Raises:
            ValueError: `pos` is not where the cache ends.
            EngineClosed: after `close`.
        """
        return self._forward(ids, pos, self._last_only)[-1]

    def forward_all(self, ids: Sequence[int], pos: int) -> np.ndarray:
        """As `forward`, with the raw logits after each of `ids`, float32 [len(ids), vocab]."""
        return self._forward(ids, pos, {})

    def _forward(self, ids: Sequence[int], pos: int, options: dict[str, int]) -> np.ndarray:
        import torch

        if self._model is None:
            raise EngineClosed(f"{self.info.name} was closed; load it again.")
        if pos != len(self._cache.token_ids):
            raise ValueError(f"forward at position {pos}, but the cache ends at {len(self._cache.token_ids)}")
        with torch.inference_mode():
            output = cast("Any", self._model)(
                input_ids=torch.tensor([list(ids)], device=self._device),
                use_cache=True,
                **{self._cache_argument: self._cache.tensors},
                **options,
            )
            rows = output.logits[0].to(torch.float32).cpu().numpy()
        self._cache.extend(ids)
        return rows

    def clear_kv_cache(self) -> None:
        """Forget everything that was read."""
        self._cache.clear()

    def close(self) -> None:
        """Release weights and cache."""
        import torch

        self._model = None
        self._cache.clear()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def require_torch() -> None:
    """Check that torch and transformers can be imported.

    Raises:
        MissingDependency: one of them cannot.
    """
    try:
        import torch  # noqa: F401 - only whether it is there
        import transformers  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise MissingDependency(
            f"the torch engine needs torch and transformers: {error}",
            hint="Install them with: pip install 'cartoolkit[torch]'",
        ) from error
    except AttributeError as error:
        # What is left of an import that was interrupted cannot be imported again in this process.
        raise MissingDependency(
            f"torch was not imported to its end: {error}", hint="Restart the kernel, or start Python anew."
        ) from error


@contextlib.contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Loading takes a second or two; a bar of 272 tensors would outlive it in the notebook."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    words = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, torch.OutOfMemoryError) or any(said in str(error).lower() for said in words)


def _no_room(checkpoint: Checkpoint, dtype: torch.dtype, place: str) -> EngineError:
    needed = checkpoint.parameters * dtype.itemsize
    return EngineError(
        f"{checkpoint.name} does not fit into the memory of {place}: its weights need {needed / 1e6:,.0f} MB "
        f"in {str(dtype).removeprefix('torch.')}.",
        hint="Close other engines (engine.close()), or choose another dtype, device or model.",
    )


def _parameters(model: PreTrainedModel) -> set[str]:
    return set(inspect.signature(model.forward).parameters)


def _cache_argument(model: PreTrainedModel) -> str:
    """The name is changing from `past_key_values` to `cache`, one architecture after another."""
    return "cache" if "cache" in _parameters(model) else "past_key_values"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
