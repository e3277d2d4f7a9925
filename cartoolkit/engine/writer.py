"""From logits to steps: chooses the token, records the choice, finds the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cartoolkit.engine.events import Ending
from cartoolkit.engine.forwards import attention
from cartoolkit.engine.inspection import Scratch, inspect_row
from cartoolkit.engine.sampler import Sampler
from cartoolkit.engine.stops import StopGate
from cartoolkit.trace import Attention, Candidates, Step, TextStream, token_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.sampler import Processed
    from cartoolkit.requests import GenerateParams

__all__ = ["Writer", "Written"]

Written = tuple[tuple[Step, ...], Ending | None]


class Writer:
    """Turns logits into steps: chooses the token, records the choice, finds the end."""

    def __init__(self, decoder: Decoder, prompt: Sequence[int], params: GenerateParams, *, seed: int) -> None:
        self._decoder = decoder
        self._params = params
        self._sampler = Sampler(params, seed=seed, vocab_size=decoder.info.vocab_size)
        self._seen = list(prompt)
        self._stream = TextStream()
        self._gate = StopGate(params.stop)
        self._index = 0
        self._labels: dict[int, str] = {}
        self._scratch = Scratch(decoder.info.vocab_size)
        self._prompt: tuple[bytes, ...] | None = None
        if decoder.info.attention and params.inspect:
            self._prompt = tuple(map(decoder.token_bytes, prompt))

    @property
    def last_id(self) -> int:
        """The token chosen last."""
        return self._seen[-1]

    def take(self, step: Step) -> Written:
        """Take a step of another run over: its numbers stay, its text is decoded anew."""
        self._sampler.skip()
        special = step.special
        text = self._stream.flush() if special else self._stream.feed(step.bytes)
        # How the other run ended, and what it held back, does not matter here.
        incomplete = bool(self._stream.pending)
        return self._add(
            replace(step, index=self._index, text=text, incomplete=incomplete, elapsed=float("nan"))
        )

    def write(self, logits: np.ndarray, *, elapsed: float, last: bool, forced: int | None = None) -> Written:
        """Choose a token, or take the one that is `forced`, and record the choice."""
        processed = self._sampler.process(logits, self._seen)
        token_id, u = self._sampler.draw(processed)
        if forced is not None:
            token_id, u = forced, float("nan")
        step = self._step(token_id, logits, processed, draw=u, elapsed=elapsed, last=last)
        return self._add(step if forced is None else replace(step, forced=True))

    def _add(self, step: Step) -> Written:
        """The steps that became certain, and the ending if this was the end."""
        self._seen.append(step.token_id)
        self._index += 1
        if self._ends(step.token_id):
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
            attention=None if self._prompt is None else Attention(attention(self._decoder), self._prompt),
            **(self._numbers(token_id, logits, processed, pending) if self._params.inspect else {}),
        )

    def _label(self, token_id: int, pending: bytes) -> str:
        """How a candidate would read here; the same all over the text but inside a character."""
        if pending:
            return token_label(self._decoder.token_bytes(token_id), pending)
        if token_id not in self._labels:
            self._labels[token_id] = token_label(self._decoder.token_bytes(token_id))
        return self._labels[token_id]

    def _numbers(self, token_id: int, logits: np.ndarray, processed: Processed, pending: bytes) -> dict:
        """What inspection adds to a step."""
        row = inspect_row(logits, self._params.candidates, self._scratch)
        ids = row.top[: self._params.candidates]
        place = np.flatnonzero(ids == token_id)
        if not len(place):
            ids, place = np.append(ids, token_id), np.array([len(ids)])
        logprobs, drawn = row.logprobs(ids), processed.logprobs(ids)
        chosen = int(place[0])
        candidates = Candidates(
            ids.astype(np.int32),
            tuple(self._label(i, pending) for i in ids.tolist()),
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
