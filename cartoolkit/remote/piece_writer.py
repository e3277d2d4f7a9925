"""From pieces to steps: one a token where the server tells tokens, else one a chunk of text."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cartoolkit.engine.stops import StopGate
from cartoolkit.trace import Candidates, Step, TextStream, token_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.remote.pieces import Piece, Told
    from cartoolkit.remote.vocabulary import Vocabulary
    from cartoolkit.requests import GenerateParams

__all__ = ["PieceWriter"]


class PieceWriter:
    """Turns pieces into steps, and finds stop strings.

    The numbers are the server's: raw log-probabilities of the token and of the likeliest ones. What it does
    not tell stays NaN: the entropy of the whole distribution, and the one that the token was drawn from.

    Attributes:
        written: steps so far, held-back ones among them.
        has_chunks: whether one of them is a chunk of text and not a token.
    """

    def __init__(self, vocabulary: Vocabulary, params: GenerateParams) -> None:
        self._vocabulary = vocabulary
        self._most = params.candidates
        self._gate = StopGate(params.stop)
        self._stream = TextStream()
        self.written = 0
        self.has_chunks = False

    def write(self, piece: Piece, *, elapsed: float, room: int | None = None) -> tuple[tuple[Step, ...], str]:
        """The steps whose text became certain, and the stop string that was found, or "".

        Args:
            piece: what came.
            elapsed: seconds from the request to it.
            room: tokens that may still be written, for a server that does not heed the limit; a chunk cannot
                be cut.
        """
        ends = bool(piece.finish) and not piece.text
        steps: list[Step] = []
        for data, told in _tokens(piece)[:room]:
            self.has_chunks |= told is None
            # What comes with the end and adds nothing to the text is the control token that ended it.
            step = self._step(data, told, elapsed=elapsed, special=ends)
            self.written += 1
            certain, stop = ([*self._gate.flush(), step], "") if ends else self._gate.push(step)
            steps += certain
            if stop:
                return tuple(steps), stop
        return tuple(steps), ""

    def flush(self) -> tuple[Step, ...]:
        """Steps held back when the answer ended without a stop string."""
        return tuple(self._gate.flush())

    def _step(self, data: bytes, told: Told | None, *, elapsed: float, special: bool) -> Step:
        pending = self._stream.pending
        text = self._stream.flush() if special else self._stream.feed(data)
        token_id = self._vocabulary.id_of(data)
        return Step(
            index=self.written,
            token_id=token_id,
            text=text,
            bytes=data,
            incomplete=bool(self._stream.pending),
            special=special,
            elapsed=elapsed,
            **({} if told is None else self._numbers(token_id, replace(told, data=data), told, pending)),
        )

    def _numbers(self, token_id: int, chosen: Told, told: Told, pending: bytes) -> dict[str, Any]:
        """What the server tells of the distribution: of `chosen`, which it named as `told`."""
        if math.isnan(chosen.logprob) and not told.others:
            return {}
        others = [other for other in told.others if not math.isnan(other.logprob)]
        known = sorted(others, key=lambda other: -other.logprob)[: self._most]
        place = _place(told, known)
        row = [*known[:place], chosen, *known[place + 1 :]] if place < len(known) else [*known, chosen]
        logprobs = np.array([each.logprob for each in row])
        probs = np.exp(logprobs)
        is_ranked = len(known) > 0 and place < len(known)
        return {
            "logprob": chosen.logprob,
            "rank": place + 1 if is_ranked else 0,
            "max_prob": float(probs[0]) if known else math.nan,
            "margin": float(probs[0] - probs[1]) if len(known) > 1 else math.nan,
            "candidates": self._candidates(token_id, row, min(place, len(row) - 1), pending),
            "rest_mass": max(1 - float(np.nansum(probs)), 0.0),
        }

    def _candidates(self, token_id: int, row: Sequence[Told], place: int, pending: bytes) -> Candidates:
        tokens = [_data(each) for each in row]
        copies = Counter({tokens[place]: 1})
        ids: list[int] = []
        for i, token in enumerate(tokens):
            if i == place:
                ids.append(token_id)
            else:
                ids.append(self._vocabulary.id_of(token, copies[token]))
                copies[token] += 1
        nothing = np.full(len(row), np.nan, np.float32)
        return Candidates(
            np.array(ids, np.int32),
            tuple(token_label(token, pending) for token in tokens),
            np.array([each.logprob for each in row], np.float32),
            nothing,
            np.zeros(len(row), np.uint8),
        )


def _place(told: Told, known: Sequence[Told]) -> int:
    """Where a token stands in the list of the likeliest; its length if it is not there."""
    alike = [i for i, other in enumerate(known) if (other.name, other.data) == (told.name, told.data)]
    return min(alike, key=lambda i: abs(known[i].logprob - told.logprob), default=len(known))


def _data(told: Told) -> bytes:
    return _encoded(told.name) if told.data is None else told.data


def _encoded(text: str) -> bytes:
    # Half a JSON escape is no character; it shows as U+FFFD.
    return text.encode("utf-8", "surrogatepass")


def _tokens(piece: Piece) -> list[tuple[bytes, Told | None]]:
    """The bytes to write, each with what is told of it; None for a chunk of text.

    Bytes that the server tells are the truth. Where it tells none, its way to write tokens must give the
    text, or a single token must be all of it; else nothing can be said of them one by one.
    """
    told, text = piece.tokens, _encoded(piece.text)
    if told and all(each.data is not None for each in told):
        return [(_data(each), each) for each in told]
    if told and b"".join(map(_data, told)) == text:
        return [(_data(each), each) for each in told]
    if len(told) == 1:
        return [(text or (_data(told[0]) if piece.finish else b""), told[0])]
    return [(text, None)] if text else []
