"""Errors of the openai library and of servers, translated into this package's own in this one place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cartoolkit.errors import (
    CartoolkitError,
    ContentRefused,
    ModelNotFound,
    NetworkUnavailable,
    PromptTooLong,
    RateLimited,
    RemoteError,
)
from cartoolkit.notices import in_words
from cartoolkit.remote.keys import hidden

if TYPE_CHECKING:
    from openai import APIStatusError

__all__ = ["Server", "refusal", "said_by", "translated"]

# As OpenAI, Azure OpenAI and those that follow them name it.
_REFUSALS = {
    "content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked",
    "cyber_policy_violation",
}  # fmt: skip
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (?:window|size|length)"
    r"[^.]{0,40}exceed|exceeds? [^.]{0,40}context (?:window|size|length)|prompt is too long",
    re.IGNORECASE,
)
# What a web server says of an address that it does not know; of a model it says more.
_NO_SUCH_PAGE = re.compile(r"(<|\W*(404|not found|page not found|file not found)\b.{0,20}$)", re.IGNORECASE)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Server:
    """Whom a request was sent to, for the words of an error.

    Attributes:
        model: as the server calls it.
        place: its address as people write it, without a name or password in it.
        key_variable: where the key comes from; empty if it was given, or none is needed.
        key: what must not be shown.
    """

    model: str
    place: str
    key_variable: str = ""
    key: str = field(default="", repr=False)


def translated(error: Exception, server: Server, *, pieces: int) -> CartoolkitError:
    """The error to raise for one that the openai library, or reading what came, has raised.

    Args:
        error: what was raised.
        server: whom the request was sent to.
        pieces: chunks that had come by then.
    """
    import openai

    if isinstance(error, CartoolkitError):
        return error
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, server)
    said = said_by(error, server)
    if isinstance(error, openai.APIConnectionError) and not pieces:
        cause = said_by(error.__cause__, server) if error.__cause__ else said
        return NetworkUnavailable(
            f"{server.place} could not be reached: {cause}.",
            hint="Is the server running, and the address right? For OpenAI's own, is there a network?",
        )
    if isinstance(error, openai.APIConnectionError):
        return RemoteError(f"{server.place} broke its answer off after {pieces:,} chunks.")
    if isinstance(error, openai.APIError):
        return _of_content(error, server) or RemoteError(f"{server.place} ended its answer: {said}.")
    return RemoteError(
        f"{server.place} sent what is no chat completion: {said}.",
        hint=_ADDRESS,
    )


def refusal(words: str, server: Server) -> ContentRefused:
    """The error for content that was refused in the answer itself."""
    said = f": {_short(words, server)}" if words else ""
    return ContentRefused(f"{server.model} at {server.place} refused the content{said}.", hint=_ELSEWHERE)


_ADDRESS = "Does the address end where the interface begins, as in http://127.0.0.1:8080/v1?"
_ELSEWHERE = "Put it differently. The request is not sent to another model."


def _of_status(error: APIStatusError, server: Server) -> CartoolkitError:
    status, said = error.status_code, said_by(error, server)
    if (refused := _of_content(error, server)) is not None:
        return refused
    if status in {400, 413, 422} and _TOO_LONG.search(f"{error.code} {error.type} {said}"):
        return PromptTooLong(
            f"the prompt does not fit the context window of {server.model}: {said}.",
            hint="Shorten the prompt, or lower max_tokens. A server does not cut a prompt.",
        )
    if status == 404 and not _NO_SUCH_PAGE.match(said):
        return ModelNotFound(
            f"{server.place} has no model {server.model!r}: {said}.",
            hint="Look at the names that the server lists under /models.",
        )
    kind = RateLimited if status == 429 else RemoteError
    answered = f"{server.place} answered with status {status}: {said}."
    return kind(answered, hint=_hint(error, server), status=status)


def _of_content(error: object, server: Server) -> ContentRefused | None:
    body = getattr(error, "body", None)
    inner = body.get("innererror") if isinstance(body, dict) else None
    codes = {getattr(error, "code", None), getattr(error, "type", None)}
    codes |= {inner.get("code")} if isinstance(inner, dict) else set()
    if {str(code).lower() for code in codes} & _REFUSALS:
        return refusal(said_by(error, server), server)
    return None


def _hint(error: APIStatusError, server: Server) -> str | None:
    hints = {401: _key_hint(server), 403: _key_hint(server), 404: _ADDRESS, 429: _rate_hint(error)}
    return hints.get(error.status_code)


def _key_hint(server: Server) -> str:
    if server.key_variable:
        return f"Put a key that may use {server.model} into the environment variable {server.key_variable}."
    return "Give the name of the environment variable that holds your key: key_variable=."


def _rate_hint(error: APIStatusError) -> str:
    if error.code == "insufficient_quota":
        return "The account behind the key has nothing left to spend."
    wait = str(error.response.headers.get("retry-after") or "")
    return f"It asks to wait {wait} s." if wait.isdigit() else "Wait a moment, or ask another model."


def said_by(error: object, server: Server) -> str:
    """What a server or a library says, in one line without the key and without a full stop."""
    body = getattr(error, "body", None)
    words = body.get("message") if isinstance(body, dict) else body if isinstance(body, str) else None
    if not isinstance(words, str) or not words:
        words = getattr(error, "message", None)
    if not isinstance(words, str) or not words:
        words = in_words(error) if isinstance(error, BaseException) else str(error)
    return _short(words, server)


def _short(words: str, server: Server) -> str:
    # Hidden before it is cut, or a part of the key would be left at the end.
    line = " ".join(hidden(words, server.key).split())
    return (line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…").rstrip(".")
