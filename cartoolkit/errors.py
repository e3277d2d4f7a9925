"""Every error that cartoolkit raises on purpose, as one tree.

::

    CartoolkitError
    ├── InvalidRequest (ValueError)     what was asked for is out of range or misspelt
    │   └── PromptTooLong               the prompt does not fit and `truncate=False`
    ├── UnsupportedMode                 the engine cannot serve this kind of input
    ├── MissingDependency (ImportError) an optional library is not installed
    ├── ModelError                      something about the weights on disk
    │   ├── ModelNotFound               no model of that name or path
    │   ├── InvalidCheckpoint           the folder or file is not a checkpoint that can be read
    │   ├── HashMismatch                the bytes that arrived are not the pinned ones
    │   └── NotEnoughSpace              the disk cannot hold the model
    ├── NetworkUnavailable              a download could not be made or finished, or a server not be reached
    ├── ContentRefused                  a provider refused the content; asking another one is no remedy
    ├── EngineError
    │   ├── EngineBusy                  another session is using this engine
    │   ├── EngineClosed                the engine was closed
    │   ├── ForwardFailed               the model's forward raised; the decoder is reloaded on next use
    │   │   └── OutOfMemory             it raised because the machine had no memory left
    │   ├── NotEnoughMemory             the weights or the cache do not fit into memory
    │   ├── DecodeTimeout               the time ceiling passed before the first token
    │   └── RemoteError                 a server answered with an error, or with what is no answer
    │       └── RateLimited             it wants fewer requests, or the account is spent
    ├── RetrievalError                  something about looking things up
    │   ├── InvalidIndex                an index or corpus file is damaged, foreign or too new
    │   ├── RetrieverFailed             a look-up raised, or answered with something that is no text
    │   └── UnreadableDocument          a document holds no text that can be read
    ├── RoutingError                    something about choosing a model
    │   ├── AllModelsFailed             every model that may answer was asked, and none did
    │   ├── InvalidRegistry             a file of models holds something that cannot be used
    │   ├── LedgerError                 outcomes cannot be written down or read
    │   ├── NoEligibleModel             every model was filtered out
    │   ├── ProbeFailed                 a model could not be measured: it crashed, was ended, or hung
    │   └── SpendLimitExceeded          a call may cost more than a limit leaves
    └── TraceError                      a trace file is damaged, foreign or too new

Each message says what happened and with which value; `hint` says what to do and is also shown
as a note under the traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartoolkit.routing.calls.attempts import Attempt
    from cartoolkit.trace import Trace

__all__ = [
    "AllModelsFailed",
    "CartoolkitError",
    "ContentRefused",
    "DecodeTimeout",
    "EngineBusy",
    "EngineClosed",
    "EngineError",
    "ForwardFailed",
    "HashMismatch",
    "InvalidCheckpoint",
    "InvalidIndex",
    "InvalidRegistry",
    "InvalidRequest",
    "LedgerError",
    "MissingDependency",
    "ModelError",
    "ModelNotFound",
    "NetworkUnavailable",
    "NoEligibleModel",
    "NotEnoughMemory",
    "NotEnoughSpace",
    "OutOfMemory",
    "ProbeFailed",
    "PromptTooLong",
    "RateLimited",
    "RemoteError",
    "RetrievalError",
    "RetrieverFailed",
    "RoutingError",
    "SpendLimitExceeded",
    "TraceError",
    "UnreadableDocument",
    "UnsupportedMode",
]


class CartoolkitError(Exception):
    """The base of every error that cartoolkit raises on purpose.

    Attributes:
        hint: one sentence that says what to do, or None.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(hint)


class InvalidRequest(CartoolkitError, ValueError):
    """A request names an unknown field or gives a value out of range; nothing has run."""


class PromptTooLong(InvalidRequest):
    """The prompt does not fit into the context window and `truncate=False` forbids cutting it."""


class UnsupportedMode(CartoolkitError):
    """The engine cannot serve a block of the request, such as an image; nothing was dropped silently."""


class MissingDependency(CartoolkitError, ImportError):
    """An optional library is needed and not installed."""


class ModelError(CartoolkitError):
    """Something is wrong with a model's files."""


class ModelNotFound(ModelError):
    """No catalog entry, folder or reachable hub repository has this name."""


class InvalidCheckpoint(ModelError):
    """The files are there, but are not a checkpoint that this engine may read."""


class HashMismatch(ModelError):
    """Downloaded bytes differ from the pinned hash; they were deleted."""


class NotEnoughSpace(ModelError):
    """The disk cannot hold what has to be written."""


class NetworkUnavailable(CartoolkitError):
    """A download could not be made, or a server not be reached; nothing half-written was kept."""


class ContentRefused(CartoolkitError):
    """A provider refused to answer this content, by its own rules.

    It says nothing about the model, and the same request is not sent to another provider for it.
    """


class EngineError(CartoolkitError):
    """Something went wrong while an engine was at work.

    Attributes:
        trace: what had been generated until then, or None.
    """

    def __init__(self, message: str, *, hint: str | None = None, trace: Trace | None = None) -> None:
        super().__init__(message, hint=hint)
        self.trace = trace


class EngineBusy(EngineError):
    """A second session was started while one was running on the same engine."""


class EngineClosed(EngineError):
    """The engine was closed and can no longer generate."""


class ForwardFailed(EngineError):
    """The model's forward raised; its state is unknown, so it is dropped and reloaded on next use."""


class NotEnoughMemory(EngineError):
    """What was asked for does not fit into the memory of the machine or the device."""


class OutOfMemory(ForwardFailed):
    """A forward found no memory; the decoder is dropped, and the next call loads it again."""


class DecodeTimeout(EngineError):
    """The wall-clock ceiling passed before a single token was produced."""


class RemoteError(EngineError):
    """A server answered with an error, or broke its answer off, or sent what is no answer at all.

    Attributes:
        status: the HTTP status, such as 500; None where the answer had begun, or could not be understood.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        trace: Trace | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint, trace=trace)
        self.status = status


class RateLimited(RemoteError):
    """A server wants fewer requests, or the account behind the key has nothing left to spend."""


class RetrievalError(CartoolkitError):
    """Something went wrong while passages were read, indexed or looked up."""


class InvalidIndex(RetrievalError):
    """A file is not an index or corpus of this package, is damaged, or was written by a newer version."""


class RetrieverFailed(RetrievalError):
    """A look-up could not be made; the message says by what and why."""


class UnreadableDocument(RetrievalError):
    """A document is damaged, locked by a password, or holds no text."""


class RoutingError(CartoolkitError):
    """Something went wrong while a model was chosen, or with all that were."""


class AllModelsFailed(RoutingError):
    """Every model that may answer was asked in turn, and none of them did; the message says why, for each.

    Attributes:
        attempts: what was tried, in order.
    """

    def __init__(self, message: str, *, attempts: Sequence[Attempt] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.attempts = tuple(attempts)


class InvalidRegistry(RoutingError):
    """A file of models cannot be read, or one of its rows cannot be used; the message names row and field."""


class LedgerError(RoutingError):
    """The file of outcomes cannot be written or read, is foreign, or was written by a newer version."""


class NoEligibleModel(RoutingError):
    """No model passes the filters; the message says for each one why not."""


class ProbeFailed(RoutingError):
    """A model could not be measured: its process crashed or was ended, it hung, or it raised."""


class SpendLimitExceeded(RoutingError):
    """A call may cost more than a spend limit leaves, or nobody knows what it costs; nothing was called."""


class TraceError(CartoolkitError):
    """A trace file cannot be read or written: damaged, not a trace, or of a newer version."""
