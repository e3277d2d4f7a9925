"""An engine whose model answers on a server, with the three ways to let it answer."""

from __future__ import annotations

import functools
import re
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, NoReturn, Self

from cartoolkit.engine.prompt import engine_request
from cartoolkit.engine.provenance import new_header
from cartoolkit.engine.retrieving import plan_retrieval
from cartoolkit.engine.session import Session
from cartoolkit.engine.streaming import stream
from cartoolkit.errors import EngineClosed, InvalidRequest, UnsupportedMode
from cartoolkit.notices import say
from cartoolkit.remote.chat_request import chat_fields, not_heeded, refuse_what_changes_the_answer
from cartoolkit.remote.connection import OPENAI, Connection, Question, checked_address
from cartoolkit.remote.conversing import converse
from cartoolkit.remote.keys import require_openai
from cartoolkit.remote.piece_writer import PieceWriter
from cartoolkit.remote.vocabulary import Vocabulary
from cartoolkit.trace import ModelInfo, ProviderReport
from cartoolkit.trace.recorder import TraceRecorder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai import AsyncOpenAI

    from cartoolkit.engine.result import Result
    from cartoolkit.requests import GenerateRequest, Prompt
    from cartoolkit.trace import Step

__all__ = ["RemoteEngine", "connect"]

# Seconds of silence after which a server is given up; it may have to load the model first.
_TIMEOUT = 120.0
# Seconds to wait for what runs when the engine is closed.
_PATIENCE = 10.0
_OPENAI_KEY = "OPENAI_API_KEY"
_LOOKING_UP = ("retrieval", "retriever")


def connect(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    key_variable: str | None = None,
    name: str | None = None,
    timeout: float = _TIMEOUT,
    context_length: int | None = None,
    client: AsyncOpenAI | None = None,
) -> RemoteEngine:
    """Make an engine of a model on a server; nothing is sent before it is asked something.

    ::

        connect("gpt-4o-mini")                                        # OpenAI; the key from OPENAI_API_KEY
        connect("llama3.2", base_url="http://127.0.0.1:11434/v1")     # a server of one's own, without a key

    Args:
        model: as the server calls it.
        base_url: where its interface begins; None is OpenAI's.
        api_key: better left out, as it then stands in the notebook.
        key_variable: environment variable that holds the key, read with every request; empty if the server
            needs none. None is ``OPENAI_API_KEY`` at OpenAI's address and none at any other, so that the key
            of one provider is not sent to another.
        name: as people know it; `model` if None.
        timeout: seconds of silence after which the server is given up.
        context_length: tokens of prompt and answer together, if it is known.
        client: a client of one's own, for what this function has no argument for; its key and address are
            used, and it is not closed.

    Raises:
        InvalidRequest: an argument is unusable.
        MissingDependency: the openai library is not installed.
    """
    require_openai()
    _check(model, timeout, client)
    _check_texts(base_url=base_url, api_key=api_key, key_variable=key_variable, name=name)
    _check_length(context_length)
    if client is not None:
        address, variable = str(client.base_url), ""
    else:
        address = checked_address(OPENAI if base_url is None else base_url)
        variable = (_OPENAI_KEY if address == OPENAI else "") if key_variable is None else key_variable
    connection = Connection(
        model,
        address,
        key=api_key,
        key_variable="" if api_key is not None else variable,
        timeout=float(timeout),
        client=client,
    )
    info = ModelInfo(
        name=name or model,
        engine="openai",
        device=connection.place,
        dtype="",
        context_length=context_length or 0,
        vocab_size=0,
    )
    return RemoteEngine(info, connection)


def _check(model: object, timeout: object, client: object) -> None:
    if not isinstance(model, str) or not model.strip():
        raise InvalidRequest(f"model must be the name that the server knows it by; got {model!r}.")
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < float("inf"):
        raise InvalidRequest(f"timeout must be a number of seconds above 0; got {timeout!r}.")
    if client is not None:
        import openai

        if not isinstance(client, openai.AsyncOpenAI):
            raise InvalidRequest(
                f"client must be an openai.AsyncOpenAI; got a {type(client).__name__}.",
                hint="Only an asynchronous client can be interrupted while it waits for the server.",
            )


def _check_texts(**texts: object) -> None:
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise InvalidRequest(f"{name} must be a text; got {type(text).__name__}.")
    variable = texts.get("key_variable")
    if isinstance(variable, str) and not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", variable):
        # Not shown: it may well be the key.
        raise InvalidRequest(
            "key_variable must be the name of an environment variable, not the key itself.",
            hint="Such as key_variable='OPENAI_API_KEY', after that variable was set to the key.",
        )


def _check_length(context_length: object) -> None:
    if context_length is None:
        return
    if not isinstance(context_length, int) or isinstance(context_length, bool) or context_length < 1:
        raise InvalidRequest(f"context_length must be a whole number of at least 1; got {context_length!r}.")


class RemoteEngine:
    """A model on a server; made by `connect`. It answers several requests at once.

    What differs from an engine that runs here: token ids are numbered as the tokens come and name nothing
    outside of the run; the prompt has none; where the server tells no log-probabilities a step is a chunk of
    text; a run cannot be branched, and nothing can be looked up in the middle of it. A seed is passed on, but
    servers promise no more than to try.

    Attributes:
        info: which model, and where.
    """

    def __init__(self, info: ModelInfo, connection: Connection) -> None:
        self.info = info
        self._connection = connection
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._session: Session | None = None
        self._closed = False

    def generate(self, request: Prompt | GenerateRequest | None = None, **settings: Any) -> Result:  # noqa: ANN401
        """Answer and wait for the end. An interrupt ends the answer early and returns what there is.

        Args:
            request: a prompt, a list of messages, or a `GenerateRequest`.
            settings: fields of `GenerateParams` or `GenerateRequest`, which override the request's own.

        Raises:
            InvalidRequest: a setting is unknown or out of range, or a server cannot heed it and the answer
                would be another one without it; nothing was sent.
            PromptTooLong: the server says that the prompt does not fit.
            NetworkUnavailable: the server cannot be reached.
            ModelNotFound: it has no such model.
            RemoteError: it answers with an error; the error's `trace` holds what there was.
            ContentRefused: it refuses the content.
            DecodeTimeout: nothing came in time.
        """
        return self.start(request, **settings).result()

    def stream(self, request: Prompt | GenerateRequest | None = None, **settings: Any) -> Iterator[Step]:  # noqa: ANN401
        """Answer step by step; leaving the loop early ends the request.

        Arguments and errors as for `generate`.
        """
        asked = self._checked(request, settings)
        return stream(lambda: self.start(asked))

    def start(
        self,
        request: Prompt | GenerateRequest | None = None,
        *,
        paused: bool = False,
        quiet: bool = False,
        **settings: Any,  # noqa: ANN401
    ) -> Session:
        """Answer in the background; returns at once.

        Pause, step and stop take effect between two chunks, and a stop while nothing comes within a moment.

        Args:
            request: as for `generate`.
            paused: begin with a pause; nothing is sent before `step` or `resume`.
            quiet: do not print which settings the server is not told; the trace's events say it anyway.
            settings: as for `generate`.
        """
        started = time.perf_counter()
        asked = self._checked(request, settings)
        self._connection.require_key()
        events = list(told := not_heeded(asked.params))
        if not quiet:
            for event in told:
                say(event.text)
        header = new_header(self.info, asked.conversation()[-1].text(), asked.params, events)
        # A server that has told nothing yet has not counted 0 tokens.
        untold = ProviderReport(unit="token" if asked.params.inspect else "chunk")
        header = header.model_copy(update={"provider": untold})
        vocabulary = Vocabulary()
        question = Question(chat_fields(asked, self._connection.model), asked.params.model_fields_set)
        writer = PieceWriter(vocabulary, asked.params)
        loop = functools.partial(converse, question=question, writer=writer, events=events)
        recorder = TraceRecorder(header, (), vocabulary.token_bytes)
        session = Session(recorder, asked.params, loop, started=started, paused=paused, branch=self.branch)
        self._begin(session)
        return session

    def _checked(self, request: Prompt | GenerateRequest | None, settings: dict[str, Any]) -> GenerateRequest:
        self._refuse_if_closed()
        plain = {name: value for name, value in settings.items() if name not in _LOOKING_UP}
        asked = engine_request(request, plain, self.info)
        policy, retriever = (settings.get(name) for name in _LOOKING_UP)
        look = plan_retrieval(policy, retriever, asked.params, self.info)
        # A policy that never looks anything up asks for nothing.
        if look is not None and look.searcher is not None:
            raise UnsupportedMode(
                f"nothing can be looked up while {self.info.name} answers on a server: its answer cannot be "
                "rolled back to a token.",
                hint="Look it up first, and send it as context=; or load the model here.",
            )
        refuse_what_changes_the_answer(asked, self.info.name)
        return asked

    def _begin(self, session: Session) -> None:
        self._session = session
        self._sessions.add(session)
        # Of the engine the thread holds the connection alone.
        connection = self._connection
        threading.Thread(
            target=session.run,
            args=(lambda: connection,),
            kwargs={"on_corruption": lambda: None},
            name="cartoolkit-remote-session",
            daemon=True,
        ).start()

    def branch(self, *_: object, **__: object) -> NoReturn:
        """Not possible: a server cannot go on from the middle of an answer.

        Raises:
            UnsupportedMode: always.
        """
        raise UnsupportedMode(
            f"a run of {self.info.name} cannot be branched: a server does not go on from the middle of an "
            "answer, and its token ids name nothing here.",
            hint="Ask again with another seed or temperature, or load the model here to branch its runs.",
        )

    @property
    def model(self) -> str:
        """The model as the server calls it."""
        return self._connection.model

    @property
    def address(self) -> str:
        """Where the server's interface begins."""
        return self._connection.address

    @property
    def session(self) -> Session | None:
        """The session that was started last."""
        return self._session

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise EngineClosed(f"the connection to {self.info.name} was closed; connect again.")

    def close(self) -> None:
        """Stop what is running and close the connections."""
        if self._closed:
            return
        self._closed = True
        for session in (running := list(self._sessions)):
            session.stop()
        for session in running:
            session.wait(_PATIENCE)
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self._closed else ""
        return f"<RemoteEngine: {self.info.name} at {self.info.device}>{state}"

    def _repr_html_(self) -> str:
        return self.info._repr_html_()
