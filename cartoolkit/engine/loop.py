"""The one loop of all engines: read the prompt, then choose and read token after token.

It is a generator without threads or callbacks. Whoever drives it sends `STOP` instead of nothing to end
it; everything it has to say comes out as events, the last as the generator's return value.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cartoolkit.engine.events import STOP, Decoded, Ending, Event, Taken
from cartoolkit.engine.forwards import forward
from cartoolkit.engine.reading import read, read_and_score
from cartoolkit.engine.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.events import Reply
    from cartoolkit.requests import GenerateParams
    from cartoolkit.trace import Step

__all__ = ["FRESH", "Beginning", "decode"]


@dataclass(frozen=True, slots=True)
class Beginning:
    """How an answer begins that is not drawn from its first token on.

    Attributes:
        taken: steps of another run to begin with; they are not decoded again.
        forced: token ids to put after them, each with the distribution that it was not drawn from.
    """

    taken: tuple[Step, ...] = ()
    forced: tuple[int, ...] = ()


FRESH = Beginning()


def decode(
    decoder: Decoder,
    prompt: Sequence[int],
    params: GenerateParams,
    *,
    seed: int,
    beginning: Beginning = FRESH,
    started: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[Event, Reply, Ending]:
    """Answer a prompt, one event a chunk of prompt and one a token.

    Args:
        decoder: where tokens become logits.
        prompt: ids to read, at least one, fewer than the context window.
        params: how to choose and when to stop; `params.seed` is not looked at.
        seed: of the stream of draws.
        beginning: what the answer begins with; it counts against `max_tokens`.
        started: when the request was made, on `clock`; now if None.
        clock: seconds.

    Raises:
        ForwardFailed: the model raised; its cache is in an unknown state.
        DecodeTimeout: the time limit passed before the first token.
    """
    writer = Writer(decoder, prompt, params, seed=seed)
    started = clock() if started is None else started
    deadline = started + (params.time_limit or float("inf"))

    def late() -> bool:
        return clock() > deadline

    ids = [*prompt, *(step.token_id for step in beginning.taken)]
    if params.prompt_logprobs and not beginning.taken:
        logits = yield from read_and_score(decoder, ids, late)
    else:
        # A branch continues what was decoded token by token, so whole chunks are not asked for.
        repeatable = params.repeatable and not beginning.taken
        logits = yield from read(decoder, ids, late, repeatable=repeatable)
    if isinstance(logits, Ending):
        return logits
    if beginning.taken:
        steps, ending = _take(writer, beginning.taken)
        yield Taken(steps)
        if ending:
            return ending
    room = decoder.info.context_length - len(prompt)
    limit = min(params.max_tokens, room)
    forced = iter(beginning.forced)
    for index in range(len(beginning.taken), limit):
        last = index == limit - 1
        steps, ending = writer.write(logits, elapsed=clock() - started, last=last, forced=next(forced, None))
        reply = yield Decoded(steps, final=last or ending is not None)
        ending = ending or _outside_ending(reply, late=late(), params=params)
        if ending:
            break
        if not last:
            logits = forward(decoder, [writer.last_id], len(prompt) + index)
    else:
        ending = _length_ending(params, room)
    yield from _rest(writer)
    return ending


def _take(writer: Writer, taken: Sequence[Step]) -> tuple[tuple[Step, ...], Ending | None]:
    """The steps of another run as far as this one's stop strings let them through."""
    certain: list[Step] = []
    for step in taken:
        steps, ending = writer.take(step)
        certain.extend(steps)
        if ending:
            return tuple(certain), ending
    return tuple(certain), None


def _rest(writer: Writer) -> Generator[Decoded, Reply, None]:
    if steps := writer.flush():
        yield Decoded(steps, final=True)


def _outside_ending(reply: Reply, *, late: bool, params: GenerateParams) -> Ending | None:
    if reply == STOP:
        return Ending("stopped", "by the user")
    if late:
        return Ending("local_decode_timeout", f"after {params.time_limit:g} s")
    return None


def _length_ending(params: GenerateParams, room: int) -> Ending:
    if room < params.max_tokens:
        return Ending("length", "the context window is full")
    return Ending("length", f"max_tokens={params.max_tokens}")
