"""Reading the prompt in chunks, with a look outside between two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.engine.events import STOP, Ending, Prefilled, Scored
from cartoolkit.engine.forwards import forward, forward_all, prefill, translated
from cartoolkit.engine.inspection import token_logprobs
from cartoolkit.errors import DecodeTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.events import Reply

    _Reading = Generator[Prefilled | Scored, Reply, np.ndarray | Ending]

__all__ = ["read", "read_and_score"]


def read(decoder: Decoder, prompt: Sequence[int], late: Callable[[], bool], *, repeatable: bool) -> _Reading:
    """Read what the cache does not hold yet; the logits after the last token, or why it ended early."""
    with translated():
        reused = done = decoder.begin_prompt(prompt, repeatable=repeatable)
    logits = np.empty(0, np.float32)
    while True:
        if (yield Prefilled(done, len(prompt), reused)) == STOP:
            return Ending("stopped", "by the user")
        if done == len(prompt):
            return logits
        chunk = _next_chunk(decoder, prompt, done, late)
        if done + len(chunk) < len(prompt):
            prefill(decoder, chunk, done)
        else:
            logits = forward(decoder, chunk, done)
        done += len(chunk)


def read_and_score(decoder: Decoder, prompt: Sequence[int], late: Callable[[], bool]) -> _Reading:
    """As `_read`, with the logprob of every prompt token. It needs every row, so nothing is re-used."""
    with translated():
        decoder.clear_kv_cache()
        decoder.begin_prompt(prompt)
    done, rows, scores = 0, np.empty((0, 0), np.float32), np.full(len(prompt), np.nan, np.float32)
    while True:
        if done == len(prompt):
            yield Scored(scores)
        if (yield Prefilled(done, len(prompt), 0)) == STOP:
            return Ending("stopped", "by the user")
        if done == len(prompt):
            return rows[-1]
        chunk = _next_chunk(decoder, prompt, done, late)
        rows = forward_all(decoder, chunk, done)
        following = prompt[done + 1 : done + 1 + len(chunk)]
        scores[done + 1 : done + 1 + len(following)] = token_logprobs(rows[: len(following)], following)
        done += len(chunk)


def _next_chunk(
    decoder: Decoder, prompt: Sequence[int], done: int, late: Callable[[], bool]
) -> Sequence[int]:
    if late():
        raise DecodeTimeout(
            f"the time limit passed while the prompt was being read: {done:,} of {len(prompt):,} tokens.",
            hint="Raise time_limit, shorten the prompt, or use a faster device.",
        )
    return prompt[done : done + decoder.prefill_chunk]
