"""The engines behind the rows: opened when they are needed, kept, and let go of when memory is short.

An engine that was handed over stays. One that was opened here is let go of, not closed: whoever else holds
it, as `cartoolkit.load` gives the same engine twice, keeps it, and otherwise its memory is free.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cartoolkit.errors import EngineBusy, EngineClosed, EngineError, InvalidRequest, ModelNotFound
from cartoolkit.notices import in_words
from cartoolkit.routing.choice.filters import memory_needed_mb
from cartoolkit.routing.rows.current import Shelved

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from cartoolkit.engine import Result, Session
    from cartoolkit.requests import GenerateRequest, Prompt
    from cartoolkit.routing.rows.schema import ModelSchema
    from cartoolkit.trace import ModelInfo, Step

__all__ = ["Answerer", "Shelf", "answers_elsewhere", "open_answerer"]

_TICK = 0.1


class Answerer(Protocol):
    """What can answer: an engine of this process, or one that asks a server."""

    info: ModelInfo

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        ...

    def start(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        paused: bool = False,
        quiet: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> Session:
        """Answer in the background; see `Engine.start`."""
        ...

    def generate(self, request: Prompt | GenerateRequest | None = None, **settings: Any) -> Result:  # noqa: ANN401
        """Answer and wait for the end; see `Engine.generate`."""
        ...

    def stream(self, request: Prompt | GenerateRequest | None = None, **settings: Any) -> Iterator[Step]:  # noqa: ANN401
        """Answer step by step; see `Engine.stream`."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


def answers_elsewhere(model: ModelSchema) -> bool:
    """Whether a model runs in another program, here or on another machine: it takes none of our memory."""
    return model.source.kind in {"remote_api", "local_server"}


def open_answerer(model: ModelSchema) -> Answerer:
    """Load a model, or connect to it; a download shows its progress.

    Raises:
        CartoolkitError: as for `cartoolkit.load` and `cartoolkit.remote.connect`.
        ModelNotFound: the row does not say where its weights are.
    """
    source = model.source
    if answers_elsewhere(model):
        from cartoolkit.remote import connect

        return connect(
            source.model or model.id.partition("/")[2].partition(":")[0],
            base_url=source.location or None,
            key_variable=source.key_variable,
            name=model.name,
            context_length=model.context_length,
        )
    if not source.location:
        raise ModelNotFound(
            f"{model.id} has no location, so it cannot be loaded.",
            hint="Give source.location: a folder, a catalog name or a hub name; or add a loaded engine.",
        )
    from cartoolkit.engine import load

    return load(source.location, engine=source.engine or "auto", quiet=model.weights_ready)


@dataclass(slots=True, eq=False)
class _Slot:
    """What is known of one row's engine.

    Attributes:
        model: its row.
        answerer: None before it is opened, and after it was let go of.
        own: it was opened here.
        used: counts up with every use of any slot; the lowest was idle for longest.
        opening: under way, for all who wait for it.
    """

    model: ModelSchema
    answerer: Answerer | None = None
    own: bool = True
    used: int = 0
    opening: Future[Answerer] | None = None

    @property
    def live(self) -> Answerer | None:
        answerer = self.answerer  # read once: another thread may let go of it
        return None if answerer is None or answerer.closed else answerer


# One for each engine of the process, as several routers, and several rows of one, may share it.
_TURNS: weakref.WeakKeyDictionary[Answerer, threading.Lock] = weakref.WeakKeyDictionary()
_TURNS_LOCK = threading.Lock()


def _turn_at(answerer: Answerer) -> threading.Lock:
    with _TURNS_LOCK:
        return _TURNS.setdefault(answerer, threading.Lock())


class Shelf:
    """Answerers by model id; may be used from several threads.

    Args:
        open_model: makes an answerer of a row.
        free_mb: how much memory can be taken now, in MB; None if nobody knows.
    """

    def __init__(
        self, open_model: Callable[[ModelSchema], Answerer], free_mb: Callable[[], float | None]
    ) -> None:
        self._open = open_model
        self._free_mb = free_mb
        self._slots: dict[str, _Slot] = {}
        self._lock = threading.RLock()
        self._uses = 0

    def is_handed_over(self, model_id: str) -> bool:
        """Whether the row's engine came from the caller."""
        slot = self._slots.get(model_id)
        return slot is not None and not slot.own

    def put(self, model: ModelSchema, answerer: Answerer) -> None:
        """Take an answerer of the caller's own, which is never let go of to make room."""
        with self._lock:
            self._slots[model.id] = _Slot(model, answerer, own=False)

    def get(self, model_id: str) -> Answerer | None:
        """The answerer of a row, if it is there."""
        slot = self._slots.get(model_id)
        return slot.live if slot else None

    @property
    def loaded(self) -> frozenset[str]:
        """Ids of the rows whose engine is in memory, or connected."""
        with self._lock:
            return frozenset(model_id for model_id, slot in self._slots.items() if slot.live)

    @property
    def shelved(self) -> Shelved:
        """What the rows need to know of the engines."""
        with self._lock:
            engines = [(model_id, slot.own, slot.live) for model_id, slot in self._slots.items()]
        weights = {model_id: engine.info.weights_hash for model_id, _, engine in engines if engine}
        lost = (model_id for model_id, is_own, engine in engines if not is_own and not engine)
        return Shelved(weights, frozenset(lost))

    @property
    def reclaimable_mb(self) -> float:
        """Memory of the engines that were opened here and are idle: what letting go of them would free."""
        with self._lock:
            return sum(memory_needed_mb(slot.model) or 0.0 for slot in self._idle())

    @contextmanager
    def take(self, model: ModelSchema, *, patience: float | None = None) -> Iterator[Answerer]:
        """Have a model's answerer to oneself; it is opened first if need be.

        Others who take it wait. Only a server is asked by several at once.

        Args:
            model: the row.
            patience: seconds to wait for others to be done with it; None waits without end.

        Raises:
            EngineBusy: the others were not done in time.
            EngineClosed: it was handed over by the caller, who has closed it.
            CartoolkitError: it cannot be opened.
        """
        answerer = self._opened(model)
        turn = nullcontext() if answers_elsewhere(model) else _turn(answerer, patience)
        with turn:
            with self._lock:
                self._uses += 1
                if (slot := self._slots.get(model.id)) is not None:  # the router may have been closed
                    slot.used = self._uses
            yield answerer

    def _opened(self, model: ModelSchema) -> Answerer:
        with self._lock:
            slot = self._slots.setdefault(model.id, _Slot(model))
            if slot.own and slot.model.source != model.source:  # the row was replaced by another one
                slot = self._slots[model.id] = _Slot(model)
            if live := slot.live:
                return live
            if not slot.own and not _can_be_opened(model):
                raise EngineClosed(
                    f"the engine of {model.id} was closed.", hint="Load it again and add it to the router."
                )
            if slot.opening is None:
                slot.own = True
                self._make_room(model)
                slot.opening = self._open_in_background(slot)
            opening = slot.opening
        return _outcome_of(opening, model)

    def _open_in_background(self, slot: _Slot) -> Future[Answerer]:
        """On a thread: an interrupt ends the wait, and is told from what the model's code raises."""
        future: Future[Answerer] = Future()

        def work() -> None:
            try:
                answerer = self._open(slot.model)
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                with self._lock:
                    slot.opening = None
                future.set_exception(error)
            else:
                with self._lock:
                    slot.answerer, slot.opening = answerer, None
                future.set_result(answerer)

        threading.Thread(target=work, name=f"open {slot.model.id}", daemon=True).start()
        return future

    def make_room(self, model: ModelSchema) -> None:
        """Let go of idle engines, the one unused for longest first, until the model fits."""
        with self._lock:
            self._make_room(model)

    def _make_room(self, model: ModelSchema) -> None:
        needed = memory_needed_mb(model)
        while needed is not None and (free := self._free_mb()) is not None and needed > free:
            idle = min(self._idle(), key=lambda slot: slot.used, default=None)
            if idle is None:
                return  # the engine itself says by how much it does not fit
            idle.answerer = None
            gc.collect()

    def forget_all_but(self, registered: Container[object]) -> None:
        """Let go of the engines whose rows are gone; whoever is using one keeps it until the end.

        Args:
            registered: tells which ids there are, at the moment at which it is asked: a row that another
                thread adds stands there before its engine stands here.
        """
        with self._lock:
            gone = [model_id for model_id in self._slots if model_id not in registered]
            for model_id in gone:
                del self._slots[model_id]
        if gone:
            gc.collect()

    def _idle(self) -> list[_Slot]:
        """Slots whose engine was opened here, takes memory, and has nothing to do."""
        return [
            slot
            for slot in self._slots.values()
            if slot.own and slot.live and not answers_elsewhere(slot.model) and not _is_busy(slot.live)
        ]

    def close(self) -> None:
        """Let go of everything that was opened here."""
        with self._lock:
            own = [slot for slot in self._slots.values() if slot.own]
            self._slots = {name: slot for name, slot in self._slots.items() if not slot.own}
        for slot in own:
            if (answerer := slot.live) is not None and answers_elsewhere(slot.model):
                answerer.close()
            slot.answerer = None
        gc.collect()


def _can_be_opened(model: ModelSchema) -> bool:
    """Whether the row says enough; a connection that was handed over may have had a key of its own."""
    return bool(model.source.location) and not answers_elsewhere(model)


def _is_busy(answerer: Answerer) -> bool:
    session = getattr(answerer, "session", None)
    return _turn_at(answerer).locked() or (session is not None and not session.done)


@contextmanager
def _turn(answerer: Answerer, patience: float | None) -> Iterator[None]:
    lock, deadline = _turn_at(answerer), None if patience is None else time.monotonic() + patience
    # Short waits let an interrupt through on every platform.
    while not lock.acquire(timeout=_TICK):
        if deadline is not None and time.monotonic() >= deadline:
            raise EngineBusy(
                f"the engine of {answerer.info.name} was busy with other requests of this process for "
                f"{patience:g} s."
            )
    try:
        yield
    finally:
        lock.release()


def _outcome_of(opening: Future[Answerer], model: ModelSchema) -> Answerer:
    # Not `result`, whose own TimeoutError could not be told from one that the model raised.
    while not opening.done():
        wait([opening], timeout=_TICK)
    error = opening.exception()
    if error is None:
        return opening.result()
    if isinstance(error, InvalidRequest):
        # The row is at fault then, and not the request: another model may answer it.
        raise EngineError(f"{model.id} cannot be loaded: {error}", hint=error.hint) from error
    if isinstance(error, Exception):
        raise error.with_traceback(None)
    raise EngineError(f"loading {model.id} raised {type(error).__name__}: {in_words(error)}.") from error
