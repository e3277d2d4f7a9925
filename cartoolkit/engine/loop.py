"""The one loop of all engines: read the prompt in chunks, then choose and read token after token.

It is a generator without threads or callbacks. Whoever drives it sends `STOP` instead of nothing to end
it; everything it has to say comes out as events, the last as the generator's return value.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cartoolkit.engine.inspection import inspect_row, token_logprobs
from cartoolkit.engine.sampler import Sampler
from cartoolkit.engine.stops import StopGate
from cartoolkit.errors import CartoolkitError, DecodeTimeout, ForwardFailed
from cartoolkit.trace import Candidates, Step, TextStream, token_label

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.sampler import Processed
    from cartoolkit.requests import GenerateParams

    _Reading = Generator["Prefilled | Scored", str | None, "np.ndarray | Ending"]

__all__ = ["STOP", "Decoded", "Ending", "Prefilled", "Scored", "decode"]

STOP: Final = "stop"
"""Sent into the loop to end it after the event just received."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Prompt tokens in the cache by now, of how many, and how many were there from before."""

    done: int
    total: int
    reused: int


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Raw logprobs of the prompt's own tokens, float32 [prompt]; NaN for the first, which follows nothing."""

    logprobs: np.ndarray


@dataclass(frozen=True, slots=True)
class Decoded:
    """One more token was decoded.

    `steps` are those whose text became certain by it, perhaps none; after a `final` one no token follows.
    """

    steps: tuple[Step, ...]
    final: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the loop ended; see `TraceHeader.stop_reason`. `detail` names the token, string or limit."""

    reason: str
    detail: str


def decode(
    decoder: Decoder,
    prompt: Sequence[int],
    params: GenerateParams,
    *,
    seed: int,
    started: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[Prefilled | Scored | Decoded, str | None, Ending]:
    """Answer a prompt, one event a chunk of prompt and one a token.

    Args:
        decoder: where tokens become logits.
        prompt: ids to read, at least one, fewer than the context window.
        params: how to choose and when to stop; `params.seed` is not looked at.
        seed: of the stream of draws.
        started: when the request was made, on `clock`; now if None.
        clock: seconds.

    Raises:
        ForwardFailed: the model raised; its cache is in an unknown state.
        DecodeTimeout: the time limit passed before the first token.
    """
    writer = _Writer(decoder, prompt, params, seed=seed)
    started = clock() if started is None else started
    deadline = started + (params.time_limit or float("inf"))

    def late() -> bool:
        return clock() > deadline

    if params.prompt_logprobs:
        logits = yield from _read_and_score(decoder, prompt, late)
    else:
        logits = yield from _read(decoder, prompt, late, repeatable=params.repeatable)
    if isinstance(logits, Ending):
        return logits
    room = decoder.info.context_length - len(prompt)
    limit = min(params.max_tokens, room)
    for index in range(limit):
        last = index == limit - 1
        steps, ending = writer.write(logits, elapsed=clock() - started, last=last)
        reply = yield Decoded(steps, final=last or ending is not None)
        ending = ending or _outside_ending(reply, late=late(), params=params)
        if ending:
            break
        if not last:
            logits = _forward(decoder, [writer.last_id], len(prompt) + index)
    else:
        ending = _length_ending(params, room)
    yield from _rest(writer)
    return ending


def _rest(writer: _Writer) -> Generator[Decoded, str | None, None]:
    if steps := writer.flush():
        yield Decoded(steps, final=True)


def _outside_ending(reply: str | None, *, late: bool, params: GenerateParams) -> Ending | None:
    if reply == STOP:
        return Ending("stopped", "by the user")
    if late:
        return Ending("time_limit", f"after {params.time_limit:g} s")
    return None


def _length_ending(params: GenerateParams, room: int) -> Ending:
    if room < params.max_tokens:
        return Ending("length", "the context window is full")
    return Ending("length", f"max_tokens={params.max_tokens}")


def _read(decoder: Decoder, prompt: Sequence[int], late: Callable[[], bool], *, repeatable: bool) -> _Reading:
    """Read what the cache does not hold yet; the logits after the last token, or why it ended early."""
    with _translated():
        reused = done = decoder.begin_prompt(prompt, repeatable=repeatable)
    logits = np.empty(0, np.float32)
    while True:
        if (yield Prefilled(done, len(prompt), reused)) == STOP:
            return Ending("stopped", "by the user")
        if done == len(prompt):
            return logits
        chunk = _next_chunk(decoder, prompt, done, late)
        if done + len(chunk) < len(prompt):
            _prefill(decoder, chunk, done)
        else:
            logits = _forward(decoder, chunk, done)
        done += len(chunk)


def _read_and_score(decoder: Decoder, prompt: Sequence[int], late: Callable[[], bool]) -> _Reading:
    """As `_read`, with the logprob of every prompt token. It needs every row, so nothing is re-used."""
    with _translated():
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
        rows = _forward_all(decoder, chunk, done)
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


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Whatever a decoder raises leaves its state unknown, and is said so."""
    try:
        yield
    except CartoolkitError:
        raise
    except BaseException as error:
        # Also what is no Exception: a panic in a library written in Rust must not end the worker.
        raise ForwardFailed(
            f"the model's forward raised {type(error).__name__}: {error}",
            hint="The model is reloaded on the next call. If it was short of memory, shorten the prompt or "
            "choose a smaller model or dtype.",
        ) from error


def _prefill(decoder: Decoder, ids: Sequence[int], pos: int) -> None:
    with _translated():
        decoder.prefill(ids, pos)


def _forward(decoder: Decoder, ids: Sequence[int], pos: int) -> np.ndarray:
    with _translated():
        logits = decoder.forward(ids, pos)
    return _usable(logits, pos)


def _forward_all(decoder: Decoder, ids: Sequence[int], pos: int) -> np.ndarray:
    with _translated():
        logits = decoder.forward_all(ids, pos)
    return _usable(logits, pos)


def _usable(logits: np.ndarray, pos: int) -> np.ndarray:
    """Logits [vocab] or [n, vocab] as they are, if each row has a finite largest value."""
    if not np.isfinite(logits.max(axis=-1)).all():
        raise ForwardFailed(
            f"the model produced no usable logits in the forward at position {pos} (NaN or infinite).",
            hint="Try dtype='float32'; half precision can overflow in some models.",
        )
    return logits


class _Writer:
    """Turns logits into steps: chooses the token, records the choice, finds the end."""

    def __init__(self, decoder: Decoder, prompt: Sequence[int], params: GenerateParams, *, seed: int) -> None:
        self._decoder = decoder
        self._params = params
        self._sampler = Sampler(params, seed=seed, vocab_size=decoder.info.vocab_size)
        self._seen = list(prompt)
        self._stream = TextStream()
        self._gate = StopGate(params.stop)
        self._index = 0

    @property
    def last_id(self) -> int:
        """The token chosen last."""
        return self._seen[-1]

    def write(
        self, logits: np.ndarray, *, elapsed: float, last: bool
    ) -> tuple[tuple[Step, ...], Ending | None]:
        """Choose a token; the steps that became certain, and the ending if this was the end."""
        processed = self._sampler.process(logits, self._seen)
        token_id, u = self._sampler.draw(processed)
        step = self._step(token_id, logits, processed, draw=u, elapsed=elapsed, last=last)
        self._seen.append(token_id)
        self._index += 1
        if self._ends(token_id):
            return (*self._gate.flush(), step), Ending("stop", f"end token {step.label}")
        steps, stop = self._gate.push(step)
        return tuple(steps), Ending("stop", f"stop string {stop!r}") if stop else None

    def flush(self) -> tuple[Step, ...]:
        """Steps still held back when the answer ended for another reason than a stop string."""
        return tuple(self._gate.flush())

    def _ends(self, token_id: int) -> bool:
        return token_id in self._decoder.eos_ids and not self._params.ignore_eos

    def _step(
        self,
        token_id: int,
        logits: np.ndarray,
        processed: Processed,
        *,
        draw: float,
        elapsed: float,
        last: bool,
    ) -> Step:
        special = token_id in self._decoder.special_ids or token_id in self._decoder.eos_ids
        token = self._decoder.token_bytes(token_id)
        pending = self._stream.pending
        # A control token ends an unfinished character, and so does the last token there is room for.
        text = self._stream.flush() if special else self._stream.feed(token)
        incomplete = bool(self._stream.pending)
        if last:
            text += self._stream.flush()
        return Step(
            index=self._index,
            token_id=token_id,
            text=text,
            bytes=token,
            incomplete=incomplete,
            special=special,
            draw=draw,
            elapsed=elapsed,
            **(self._numbers(token_id, logits, processed, pending) if self._params.inspect else {}),
        )

    def _numbers(self, token_id: int, logits: np.ndarray, processed: Processed, pending: bytes) -> dict:
        """What inspection adds to a step."""
        row = inspect_row(logits, self._params.candidates)
        ids = row.top[: self._params.candidates]
        place = np.flatnonzero(ids == token_id)
        if not len(place):
            ids, place = np.append(ids, token_id), np.array([len(ids)])
        logprobs, drawn = row.logprobs(ids), processed.logprobs(ids)
        chosen = int(place[0])
        candidates = Candidates(
            ids.astype(np.int32),
            tuple(token_label(self._decoder.token_bytes(int(i)), pending) for i in ids),
            logprobs.astype(np.float32),
            drawn.astype(np.float32),
            processed.removed_by(ids),
        )
        return {
            "logprob": float(logprobs[chosen]),
            "rank": row.rank(token_id),
            "processed_logprob": float(drawn[chosen]),
            "max_prob": row.max_prob,
            "entropy": row.entropy,
            "varentropy": row.varentropy,
            "margin": row.margin,
            "candidates": candidates,
            "rest_mass": max(1 - float(np.exp(logprobs).sum()), 0.0),
            "processed_rest_mass": max(1 - float(np.exp(drawn).sum()), 0.0),
        }
