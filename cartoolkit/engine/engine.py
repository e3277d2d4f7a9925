"""An engine: a model on a device, and the three ways to let it answer."""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Self

from cartoolkit.engine.branching import plan_branch, token_ids
from cartoolkit.engine.looking_up import decode_with_look_ups
from cartoolkit.engine.loop import Beginning, decode
from cartoolkit.engine.prompt import PROMPT_EVENTS, engine_request, prepare_prompt
from cartoolkit.engine.provenance import new_header, seeded
from cartoolkit.engine.retrieving import plan_retrieval
from cartoolkit.engine.session import Session
from cartoolkit.engine.streaming import stream
from cartoolkit.engine.worker import Worker
from cartoolkit.errors import EngineBusy, EngineClosed, EngineError, InvalidRequest, PromptTooLong
from cartoolkit.notices import say
from cartoolkit.trace import Trace
from cartoolkit.trace.recorder import TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartoolkit.engine.branching import Forced
    from cartoolkit.engine.decoder import Decoder
    from cartoolkit.engine.result import Result
    from cartoolkit.engine.retrieving import Look
    from cartoolkit.requests import GenerateRequest, Prompt
    from cartoolkit.retrieval import Policy, Searcher
    from cartoolkit.trace import ModelInfo, Step

    Lookable = Searcher | Callable[[str], str | None]

__all__ = ["Engine"]

# Seconds that closing an engine and leaving Python wait for a forward to end.
_PATIENCE = 10.0
_ENDS_AN_ANSWER = {"max_tokens", "ignore_eos", "stop", "truncate", "answer_start"}


class Engine:
    """A loaded model. Made by `cartoolkit.load`, or from a model of one's own.

    One session runs at a time; the next call after a failed forward makes a new decoder::

        Engine(lambda: TorchDecoder(model, tokenizer))
    """

    def __init__(self, load_decoder: Callable[[], Decoder]) -> None:
        """Load the decoder at once.

        Args:
            load_decoder: makes a new decoder; called now, and again after a forward has failed.
        """
        self._load_decoder = load_decoder
        self._worker = Worker("cartoolkit-engine")
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._session: Session | None = None
        self._decoder: Decoder | None = None
        self._closed = False
        self.info: ModelInfo = self.decoder.info
        _ENGINES.add(self)

    @property
    def decoder(self) -> Decoder:
        """The decoder, loaded again if a failure has cost the last one.

        Raises:
            EngineClosed: after `close`.
        """
        # Whoever comes while it is being loaded waits for it, instead of loading a second one.
        with self._loading:
            self._refuse_if_closed()
            if (decoder := self._decoder) is None:
                decoder = self._worker.run(self._load_decoder)
                self._keep(decoder)
        return decoder

    def _keep(self, decoder: Decoder) -> None:
        with self._lock:
            if not self._closed:
                self._decoder = decoder
                return
        self._worker.run(decoder.close)
        self._refuse_if_closed()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EngineClosed(f"the engine of {self.info.name} was closed; load the model again.")

    # Answering

    def generate(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        retrieval: str | Policy | None = None,
        retriever: Lookable | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Result:
        """Answer and wait for the end. An interrupt ends the answer early and returns what there is.

        Args:
            request: a prompt, a list of messages, or a `GenerateRequest`.
            retrieval: when to look something up: a `cartoolkit.retrieval.Policy`, or the name of a preset
                (``none``, ``upfront``, ``seed``, ``flare``, ``rollback``, ``dragin``).
            retriever: where: a function from query to text, or anything with `search(query, k)`. Given
                alone, `retrieval` is ``rollback``.
            settings: fields of `GenerateParams` or `GenerateRequest`, which override the request's own.

        Raises:
            InvalidRequest: a setting is unknown or out of range; nothing has run.
            PromptTooLong: the prompt does not fit and `truncate=False`.
            EngineBusy: another session is running.
            ForwardFailed: the model failed; the error's `trace` holds what there was.
        """
        request = engine_request(request, settings, self.info)
        return self.start(request, retrieval=retrieval, retriever=retriever).result()

    def stream(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        retrieval: str | Policy | None = None,
        retriever: Lookable | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> Iterator[Step]:
        """Answer step by step; leaving the loop early stops the generation.

        The texts of the steps, joined, are the answer. Where a look-up rolls some back, each of these comes
        a second time, with its index and `kept=False`. Arguments and errors as for `generate`.
        """
        asked = engine_request(request, settings, self.info)
        plan_retrieval(retrieval, retriever, asked.params, self.info)  # refuses before the first step
        return stream(lambda: self.start(asked, retrieval=retrieval, retriever=retriever))

    def start(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        retrieval: str | Policy | None = None,
        retriever: Lookable | None = None,
        paused: bool = False,
        quiet: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> Session:
        """Answer in the background; returns at once.

        Args:
            request: as for `generate`.
            retrieval: as for `generate`.
            retriever: as for `generate`.
            paused: begin with a pause; nothing is read before `step` or `resume`.
            quiet: do not print what had to be done to the prompt; the trace's events say it anyway.
            settings: as for `generate`.
        """
        asked = engine_request(request, settings, self.info)
        look = plan_retrieval(retrieval, retriever, asked.params, self.info)
        start = asked.answer_start
        forced = tuple(token_ids(start, self.decoder, name="answer_start")) if start else ()
        if len(forced) >= asked.params.max_tokens:
            raise InvalidRequest(
                f"max_tokens={asked.params.max_tokens:,} leaves no room after the answer_start of "
                f"{len(forced):,} tokens."
            )
        return self._start(asked, Beginning(forced=forced), look, paused=paused, quiet=quiet)

    def _start(
        self,
        request: GenerateRequest,
        beginning: Beginning,
        look: Look | None = None,
        *,
        paused: bool,
        quiet: bool,
    ) -> Session:
        started = time.perf_counter()
        decoder = self.decoder
        prompt = prepare_prompt(request, decoder)
        if not quiet:
            for event in prompt.events:
                say(event.text)
        params, seed = seeded(request.params)
        header = new_header(decoder.info, prompt.shown, params, prompt.events)
        loop = functools.partial(decode, seed=seed, beginning=beginning)
        if look is not None:
            header = header.model_copy(update={"retrieval": look.describe()})
            loop = functools.partial(
                decode_with_look_ups,
                request=request,
                policy=look.policy,
                question=prompt.shown,
                seed=seed,
                beginning=beginning,
            )
        recorder = TraceRecorder(header, prompt.ids, decoder.token_bytes)
        searcher = look.searcher if look else None
        session = Session(
            recorder, params, loop, started=started, paused=paused, searcher=searcher, branch=self.branch
        )
        self._begin(session, decoder)
        return session

    def score(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        continuation: str | Sequence[int],
        **settings: Any,  # noqa: ANN401
    ) -> Result:
        """Record what the model thinks of an answer that somebody else wrote, token by token.

        Every step is forced and carries the distribution that the token was not drawn from, so two models or
        engines can be compared on the same text. All of it is read: nothing but a stop by the user ends it.

        Args:
            request: as for `generate`.
            continuation: the answer, as text or as token ids; control tokens may be written by name.
            settings: as for `generate`, but for those that end or cut an answer.

        Raises:
            InvalidRequest: it holds no token, or a setting does not go with it.
            PromptTooLong: prompt and answer do not fit the context window.
            EngineError: as for `generate`.
        """
        if unfit := sorted(_ENDS_AN_ANSWER & settings.keys()):
            raise InvalidRequest(f"{unfit[0]} does not go with score(), which reads the whole continuation.")
        decoder = self.decoder
        ids = token_ids(continuation, decoder, name="continuation")
        fixed: dict[str, Any] = {
            "time_limit": None, "max_tokens": len(ids), "ignore_eos": True, "stop": [], "truncate": False,
        }  # fmt: skip
        asked = engine_request(request, fixed | settings, self.info)
        prompt, window = prepare_prompt(asked, decoder), decoder.info.context_length
        if len(prompt.ids) + len(ids) > window:
            raise PromptTooLong(
                f"prompt and continuation do not fit the context window of {window:,} tokens: "
                f"{len(prompt.ids):,} and {len(ids):,}.",
                hint="Shorten one of them.",
            )
        return self._start(asked, Beginning(forced=tuple(ids)), paused=False, quiet=False).result()

    def branch(
        self,
        run: Trace | Result | Session,
        *,
        at: int,
        token: Forced | None = None,
        paused: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> Session:
        """Answer again in the background, like another run up to a token and differently from there.

        The prompt and the tokens before it are read from the cache as far as it holds them. With neither
        token nor settings the other run's draws are used again, so only a change makes a difference. Unlike a
        fresh request, the same branch may differ in its last bits once the cache holds another run.

        Args:
            run: what to branch off: a trace of this model, also one from a file, a result, or a session,
                which is ended if it still runs.
            at: index of the first step that is not taken over; negative counts from the end.
            token: an id, a list of ids, or a text, to stand there; None draws anew.
            paused: begin with a pause.
            settings: fields of `GenerateParams` that differ from the run's, such as `seed` or `max_tokens`.

        Raises:
            InvalidRequest: no such step or token, an unknown setting, or a run of another model.
            EngineBusy: another session is running.
        """
        started = time.perf_counter()
        trace = run if isinstance(run, Trace) else run.trace
        decoder = self.decoder
        branch = plan_branch(trace, decoder, at=at, token=token, settings=settings)
        if isinstance(run, Session) and not run.done:
            # Only now: what was wrong with the arguments has not cost the run.
            run.stop()
            run.wait()
        params, seed = seeded(branch.params)
        # Events of the other run up to here, and what was done to the prompt, are this one's as well.
        events = [e for e in trace.events if e.at < branch.event.at or e.kind in PROMPT_EVENTS]
        header = new_header(decoder.info, trace.header.prompt, params, [*events, branch.event])
        recorder = TraceRecorder(header, trace.prompt_ids.tolist(), decoder.token_bytes)
        recorder.prompt_logprobs = trace.prompt_logprobs
        loop = functools.partial(decode, seed=seed, beginning=branch.beginning)
        session = Session(recorder, params, loop, started=started, paused=paused, branch=self.branch)
        self._begin(session, decoder)
        return session

    def _begin(self, session: Session, decoder: Decoder) -> None:
        with self._lock:
            self._refuse_if_closed()
            if decoder is not self._decoder:
                raise EngineError("the model failed in the meantime; the next call loads it again.")
            running = self._session
            if running is not None and not running.done:
                raise EngineBusy(
                    f"the engine of {self.info.name} is busy: a session is {running.state} "
                    f"with {len(running.steps)} tokens.",
                    hint="Stop it with engine.session.stop() (or Stop in the widget), or wait for its end.",
                )
            self._session = session
            drop = functools.partial(self._drop, weakref.ref(decoder))
            self._worker.submit(lambda: session.run(self._loaded, on_corruption=drop))
            threading.Thread(
                target=session.watch, args=(self._leave_behind,), name="cartoolkit-watchdog", daemon=True
            ).start()

    def _loaded(self) -> Decoder:
        self._refuse_if_closed()
        assert self._decoder is not None
        return self._decoder

    def _drop(self, failed: weakref.ref[Decoder]) -> None:
        """After a failed forward the cache may be half-written, so the whole decoder goes."""
        decoder = failed()
        with self._lock:
            # A forward that was given up may fail when another decoder is at work already.
            if self._decoder is decoder:
                self._decoder = None
        if decoder is not None:
            decoder.close()

    def _leave_behind(self) -> None:
        """A forward does not return: let its thread and its decoder go, and begin anew with the next call."""
        with self._lock:
            self._decoder = None
            self._worker.close()
            if not self._closed:
                self._worker = Worker("cartoolkit-engine")

    @property
    def session(self) -> Session | None:
        """The session that was started last."""
        return self._session

    # Ending

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def close(self) -> None:
        """Stop what is running and release the model's memory.

        A forward that does not return is waited for ten seconds; its memory is released when it does.
        """
        with self._lock:
            if self._closed:
                return
            decoder, self._decoder, self._closed = self._decoder, None, True
        if self._session is not None:
            self._session.stop()
        if decoder is not None:
            released = self._worker.submit(decoder.close)
            with contextlib.suppress(TimeoutError):
                released.result(_PATIENCE)
        self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info
        state = " (closed)" if self._closed else ""
        return (
            f"<Engine: {info.name} on {info.engine}, {info.device}, {info.dtype}, "
            f"context {info.context_length:,} tokens>{state}"
        )

    def _repr_html_(self) -> str:
        return self.info._repr_html_()


_ENGINES: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """End what still runs before Python goes: a thread inside torch would abort the whole process."""
    sessions = [engine.session for engine in _ENGINES]
    for session in sessions:
        if session is not None:
            session.stop()
    for session in sessions:
        if session is not None:
            session.wait(_PATIENCE)
