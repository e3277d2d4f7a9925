"""The loop of a run on a server: waits for pieces, makes steps of them, finds the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cartoolkit.engine.events import STOP, Decoded, Ending, Event, Noted, Prefilled, Waiting
from cartoolkit.errors import DecodeTimeout, RemoteError
from cartoolkit.remote.channel import PENDING
from cartoolkit.remote.failures import refusal
from cartoolkit.remote.pieces import Piece
from cartoolkit.trace import Event as TraceEvent
from cartoolkit.trace import ProviderReport

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from cartoolkit.engine.events import Reply
    from cartoolkit.remote.channel import Answer
    from cartoolkit.remote.connection import Connection, Question
    from cartoolkit.remote.piece_writer import PieceWriter
    from cartoolkit.requests import GenerateParams

__all__ = ["converse"]

# Seconds between two looks at the mailbox while nothing comes.
_TICK = 0.05
# Seconds to wait for the count of tokens, which comes after the end.
_FOR_THE_COUNT = 2.0


def converse(
    connection: Connection,
    _prompt: Sequence[int],
    params: GenerateParams,
    *,
    question: Question,
    writer: PieceWriter,
    events: Sequence[TraceEvent] = (),
    started: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Generator[Event, Reply, Ending]:
    """Ask a server and tell what comes, one event a piece.

    Args:
        connection: where the server is.
        params: how long and until what; `stop`, `max_tokens` and `time_limit` hold on this side as well.
        question: what is asked.
        writer: makes steps of the pieces.
        events: of the trace so far; what the server does not do is added.
        started: when the request was made, on `clock`; now if None.
        clock: seconds.

    Raises:
        NetworkUnavailable: the server cannot be reached.
        RemoteError: it answers with an error, breaks its answer off, or sends what is no answer.
        ContentRefused: it refuses the content.
        DecodeTimeout: nothing came in time.
    """
    # The prompt is read elsewhere: nothing is known of its tokens. A pause before the request waits here.
    if (yield Prefilled(0, 0, 0)) == STOP:
        return Ending("stopped", "by the user")
    answer = connection.ask(question)
    started = clock() if started is None else started
    talk = _Talk(connection, answer, params, question, writer, events, started, clock)
    try:
        return (yield from talk.run())
    finally:
        answer.close()


@dataclass(slots=True)
class _Talk:
    """One answer while it comes; see `converse` for the arguments."""

    connection: Connection
    answer: Answer
    params: GenerateParams
    question: Question
    writer: PieceWriter
    events: Sequence[TraceEvent]
    started: float
    clock: Callable[[], float]
    heard: float = field(init=False)
    told: dict[str, Any] = field(default_factory=dict)
    thought: int = 0
    refused: str = ""
    noted: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        self.heard = self.clock()

    def run(self) -> Generator[Event, Reply, Ending]:
        ending: Ending | None = None
        while ending is None:
            piece = self.answer.next(_TICK)
            if not isinstance(piece, Piece):
                ending = (yield from self._wait()) if piece is PENDING else self._broken_off()
                continue
            self.heard = self.clock()
            ending = yield from self._take(piece)
        if ending.reason in {"stop", "length"}:
            self._await_count()
        yield from self._note()
        if steps := self.writer.flush():
            yield Decoded(steps, final=True)
        return ending

    def _wait(self) -> Generator[Event, Reply, Ending | None]:
        if (late := self._late()) is not None:
            return late
        return Ending("stopped", "by the user") if (yield Waiting()) == STOP else None

    def _late(self) -> Ending | None:
        """How it ends if time is up; the clock stands still during a pause, and so does the server's."""
        now, limit, silence = self.clock(), self.params.time_limit, self.connection.timeout
        if limit is not None and now - self.started > limit:
            said = f"after {limit:g} s"
        elif now - self.heard > silence:
            said = f"the server sent nothing for {silence:g} s"
        else:
            return None
        if not self.writer.written:
            raise DecodeTimeout(
                f"{self.connection.place} gave no answer in time: {said}.",
                hint="Raise time_limit, or timeout= of connect(); a server may be loading the model.",
            )
        return Ending("local_decode_timeout", said)

    def _take(self, piece: Piece) -> Generator[Event, Reply, Ending | None]:
        self.told |= piece.report
        self.thought += piece.thought
        self.refused += piece.refusal
        if piece.finish == "content_filter" or (piece.finish and self.refused):
            raise refusal(self.refused, self.connection.server)
        room = self.params.max_tokens - self.writer.written
        elapsed = self.clock() - self.started
        steps, stop = self.writer.write(piece, elapsed=elapsed, room=room)
        full = self.writer.written >= self.params.max_tokens
        ending = self._ending(piece.finish, stop, full=full)
        yield from self._note()
        reply = None
        if steps or piece.text or piece.tokens:
            reply = yield Decoded(steps, final=ending is not None)
        if ending is None and reply == STOP:
            return Ending("stopped", "by the user")
        return ending or self._late()

    def _ending(self, finish: str, stop: str, *, full: bool) -> Ending | None:
        limit = Ending("length", f"max_tokens={self.params.max_tokens}")
        if stop:
            return Ending("stop", f"stop string {stop!r}")
        if finish == "length":
            return limit if full else Ending("length", "max_tokens or the context window, as the server says")
        if finish == "stop":
            return Ending("stop", "end token or stop string, as the server says")
        if finish:
            return Ending("stop", f"as the server says: {finish[:40]!r}")
        # A server that does not heed max_tokens would go on.
        return limit if full and not self.writer.has_chunks else None

    def _broken_off(self) -> Ending:
        place, pieces = self.connection.place, self.answer.pieces
        if self.refused:
            raise refusal(self.refused, self.connection.server)
        if not pieces:
            raise RemoteError(
                f"{place} sent no chunk of an answer.",
                hint="Does it stream chat completions? Does the address end where the interface begins?",
            )
        raise RemoteError(f"{place} broke its answer off after {pieces:,} chunks.")

    def _await_count(self) -> None:
        """Read on for what comes after the end: the count of tokens, if the server makes one."""
        deadline = time.perf_counter() + _FOR_THE_COUNT
        while (left := deadline - time.perf_counter()) > 0:
            try:
                piece = self.answer.next(left)
            except Exception:  # noqa: BLE001 - the answer is whole, whatever comes after it
                return
            if not isinstance(piece, Piece):
                return
            self.told |= piece.report

    def _note(self) -> Generator[Event, Reply, None]:
        """Put what has become known into the header, if it is new."""
        unit = "chunk" if self.writer.has_chunks or not self.params.inspect else "token"
        report = ProviderReport(unit=unit, **self.told)
        events = [*self.events, *self._remarks()]
        if (report, events) != self.noted:
            self.noted = (report, events)
            yield Noted({"provider": report, "events": events})

    def _remarks(self) -> list[TraceEvent]:
        remarks = [TraceEvent(kind="asked_for_less", text=text) for text in self.question.lost]
        if self.writer.has_chunks and self.params.inspect:
            text = "The server tells no tokens and no probabilities: a step is a chunk of text as it came."
            remarks.append(TraceEvent(kind="chunks", text=text))
        if self.thought:
            text = "The model thought before it answered; the thought is not part of the answer."
            remarks.append(TraceEvent(kind="thought", text=text))
        return remarks
