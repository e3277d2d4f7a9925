"""How a model of transformers reads on from what it has read, tried out on a few tokens.

Not every architecture goes on from a cache as its own forward over the whole text would. Some keep a cache
of a kind of their own, some go on right only token by token, some have none, and a few ignore what they are
given without a word. So each way is tried once, when a model is loaded, against the model's forward without
a cache; the first that agrees is taken. It costs about as much as four tokens.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cartoolkit.engine.decoders.torch_errors import is_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch
    from transformers import PreTrainedModel
    from transformers.utils.generic import ModelOutput

    from cartoolkit.engine.decoders.torch_cache import CacheKind, TorchCache

    _Empty = Callable[[CacheKind], TorchCache]

__all__ = ["Reading", "TorchReader"]

# The name is changing from `past_key_values` to `cache`, one architecture after another.
_OURS = ("cache", "past_key_values")
_OWN = (*_OURS, "cache_params", "state")
# How far logits may move, as a part of the largest: rounding alone in this precision stays well below.
_TOLERANCE = {"torch.float32": 1e-3}
_REDUCED_TOLERANCE = 0.15


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read on.

    Attributes:
        cache: `ours`, which the decoder makes and can crop; `own`, which the model makes and nobody can crop;
            `none`, where the whole text is read anew for every token.
        in_chunks: whether several tokens may follow at once on what is cached, or one by one only.
    """

    cache: CacheKind
    in_chunks: bool


_WAYS = (
    Reading("ours", in_chunks=True),
    Reading("ours", in_chunks=False),
    Reading("own", in_chunks=True),
    Reading("own", in_chunks=False),
)
_ANEW = Reading("none", in_chunks=True)


class TorchReader:
    """Calls a model's forward so that it goes on from a cache, in the way that is right for this model.

    Attributes:
        reading: the way that was chosen.
        vocab_size: length of a row of logits.
    """

    def __init__(self, model: PreTrainedModel, trial: Sequence[int], empty: _Empty) -> None:
        """Try the ways out.

        Args:
            model: in evaluation mode, where it will stay.
            trial: eight ids or so that a text may have.
            empty: makes an empty cache of a kind.
        """
        self._model = model
        parameters = set(inspect.signature(model.forward).parameters)
        self._ours = next((name for name in _OURS if name in parameters), None)
        self._own = [name for name in _OWN if name in parameters]
        self._can_drop_rows = "logits_to_keep" in parameters
        self.reading = _ANEW
        whole = self.read(trial, empty("none"), rows=1)
        self.vocab_size = whole.shape[-1]
        self.reading = self._first_that_agrees(trial, whole, empty)

    def _first_that_agrees(self, trial: Sequence[int], whole: torch.Tensor, empty: _Empty) -> Reading:
        limit = _TOLERANCE.get(str(self._model.dtype), _REDUCED_TOLERANCE) * float(whole.abs().max())
        for way in _WAYS:
            if self._distance(way, trial, whole, empty) <= limit and self._is_exact(way, trial, whole, empty):
                return way
        return _ANEW

    def _is_exact(self, way: Reading, trial: Sequence[int], whole: torch.Tensor, empty: _Empty) -> bool:
        """Whether nothing is lost between chunks.

        A recurrent state that is dropped can show little in few tokens, so it is held against the rounding
        that single tokens have.
        """
        if not way.in_chunks or (way.cache == "ours" and not empty("ours").has_recurrent_state):
            return True
        rounding = self._distance(Reading(way.cache, in_chunks=False), trial, whole, empty)
        return self._distance(way, trial, whole, empty) <= 4 * rounding + 1e-5 * float(whole.abs().max())

    def _distance(self, way: Reading, trial: Sequence[int], whole: torch.Tensor, empty: _Empty) -> float:
        """Largest difference in the last row when `trial` is read in portions; infinite if that fails."""
        if way.cache == "ours" and self._ours is None:
            return float("inf")
        self.reading, rows, third = way, whole, len(trial) // 3
        try:
            cache = empty(way.cache)
            for ids in (trial[:third], trial[third:-1], trial[-1:]):
                rows = self.read(ids, cache, rows=1)
                cache.extend(ids)
        except Exception as error:
            # Each architecture refuses a cache that it does not know in its own words.
            if is_out_of_memory(error):
                raise
            return float("inf")
        return float((rows - whole).abs().max())

    def read(self, ids: Sequence[int], cache: TorchCache, *, rows: int) -> torch.Tensor:
        """Read `ids` behind what `cache` holds; its tensors are changed, its ids are the caller's to extend.

        Returns:
            The last `rows` rows of raw logits, float32 [rows, vocab], on the CPU.
        """
        import torch

        with torch.inference_mode():
            if self.reading.cache == "none":
                return self._anew([*cache.token_ids, *ids], rows)
            if self.reading.in_chunks or not cache.token_ids:
                return self._on(ids, cache, rows)
            single = [self._on([token], cache, 1, start=i) for i, token in enumerate(ids)]
            return torch.cat(single[-rows:])

    def _anew(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        return self._rows(self._call(ids, {"use_cache": False}, rows), rows)

    def _on(self, ids: Sequence[int], cache: TorchCache, rows: int, *, start: int = 0) -> torch.Tensor:
        options: dict[str, Any] = {"use_cache": True}
        if self.reading.cache == "ours":
            options[cast("str", self._ours)] = cache.tensors
            return self._rows(self._call(ids, options, rows), rows)
        is_first = not cache.token_ids and not start
        output = self._call(ids, options | (cache.own if not is_first else {}), rows)
        cache.own = self._own_of(output)
        return self._rows(output, rows)

    def _own_of(self, output: ModelOutput) -> dict[str, Any]:
        """What the model gave back to be given again, under the name that its forward knows."""
        given = next(output[name] for name in _OWN if output.get(name) is not None)
        return {next((n for n in self._own if output.get(n) is not None), self._own[0]): given}

    def _call(self, ids: Sequence[int], options: dict[str, Any], rows: int) -> ModelOutput:
        import torch

        if self._can_drop_rows:
            options["logits_to_keep"] = rows
        model = cast("Any", self._model)
        return model(input_ids=torch.tensor([list(ids)], device=model.device), **options)

    def _rows(self, output: ModelOutput, rows: int) -> torch.Tensor:
        import torch

        return output["logits"][0, -rows:].to("cpu", torch.float32)
