"""The way to one model on one server: a client of the openai library, and how a question is put to it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cartoolkit.errors import InvalidRequest
from cartoolkit.remote.channel import Answer, on_loop
from cartoolkit.remote.failures import Server, said_by
from cartoolkit.remote.keys import key_from
from cartoolkit.remote.offers import MOST_OFFERS, lowered

if TYPE_CHECKING:
    from collections.abc import Collection

    from openai import AsyncOpenAI, AsyncStream

__all__ = ["OPENAI", "Connection", "Question", "checked_address"]

OPENAI = "https://api.openai.com/v1"
"""Where OpenAI's own models answer."""

# Seconds for a connection to be made; how long an answer may take is another matter.
_CONNECT = 10.0


@dataclass(slots=True)
class Question:
    """What is asked, and what had to be given up.

    Attributes:
        fields: of `POST /chat/completions`.
        explicit: settings that the caller has written.
        lost: a sentence for each thing that the server does not do.
    """

    fields: dict[str, Any]
    explicit: Collection[str] = ()
    lost: list[str] = field(default_factory=list)


class Connection:
    """A model on a server.

    Args:
        model: as the server calls it.
        address: where its interface begins, such as ``https://api.openai.com/v1``.
        key: None takes it from `key_variable` with every request.
        key_variable: name of an environment variable; empty if the server needs no key.
        timeout: seconds of silence after which the server is given up.
        client: made here if None.
    """

    def __init__(
        self,
        model: str,
        address: str,
        *,
        key: str | None,
        key_variable: str,
        timeout: float,
        client: AsyncOpenAI | None,
    ) -> None:
        self.model = model
        self.address = address
        self.timeout = timeout
        self.place = _place(address)
        self._key = key
        self._key_variable = key_variable
        # Made now: the library takes a second to import, which is no time of the first answer.
        self._client = _new_client(address) if client is None else client
        self._is_own = client is None
        # What the server has refused, each with the number of candidates that it was asked for then.
        self._complaints: list[tuple[str, int]] = []

    @property
    def server(self) -> Server:
        """Whom a request is sent to, for the words of an error."""
        if not self._is_own:
            key = self._client.api_key
        else:
            key = self._key if self._key is not None else key_from(self._key_variable)
        return Server(self.model, self.place, self._key_variable, key)

    def require_key(self) -> None:
        """Refuse to ask without the key, before anything is sent or billed.

        Raises:
            RemoteError: the key is not set.
        """
        _ = self.server

    def ask(self, question: Question) -> Answer:
        """Put a question; it is sent when the first piece of the answer is asked for.

        Raises:
            RemoteError: the key is not set.
        """
        server = self.server
        return Answer(server, lambda: self._send(question, server))

    async def _send(self, question: Question, server: Server) -> AsyncStream[Any]:
        import openai

        client = self._client_with(server.key)
        for complaint, candidates in self._complaints:
            # Who asks for fewer has not been refused yet.
            if _candidates(question) >= candidates:
                _give_way(question, complaint)
        for _ in range(MOST_OFFERS):
            try:
                return await client.chat.completions.create(**question.fields)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                complaint, asked_for = f"{error.param or ''} {said_by(error, server)}", _candidates(question)
                if not _give_way(question, complaint):
                    raise
                is_about_them = _candidates(question) < asked_for
                self._complaints.append((complaint, asked_for if is_about_them else 0))
        return await client.chat.completions.create(**question.fields)

    def _client_with(self, key: str) -> AsyncOpenAI:
        import openai

        timeout = openai.Timeout(None, connect=_CONNECT)
        # Trying again is the router's business: it knows other models.
        options: dict[str, Any] = {"max_retries": 0, "timeout": timeout}
        if self._is_own:
            options["api_key"] = key or "none"
        return self._client.with_options(**options)

    def close(self) -> None:
        """Close the client, if it was made here."""
        if self._is_own:
            on_loop(self._client.close())


def _new_client(address: str) -> AsyncOpenAI:
    import openai

    # A proxy of the environment knows nothing of servers on this machine.
    http = openai.DefaultAsyncHttpxClient(trust_env=False) if _is_here(address) else None
    return openai.AsyncOpenAI(api_key="none", base_url=address, http_client=http)


def _candidates(question: Question) -> int:
    return question.fields.get("top_logprobs", 0)


def _give_way(question: Question, complaint: str) -> bool:
    """Ask for less, if that is what a complaint is about; whether it is."""
    found = lowered(question.fields, complaint, question.explicit)
    if found is None:
        return False
    question.fields, lost = found
    if lost:
        question.lost.append(lost)
    return True


def checked_address(address: str) -> str:
    """The address of an interface, checked.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise InvalidRequest(
            f"base_url must be an address such as {OPENAI} or http://127.0.0.1:8080/v1; got {address!r}."
        )
    if "@" in urlsplit(address).netloc:
        # Not shown: it holds a password, and what a row or a trace holds is shown to others.
        raise InvalidRequest(
            f"base_url must not hold a name and a password; the one of {_place(address)} does.",
            hint="Put the key into an environment variable and name it: key_variable=.",
        )
    return address


def _place(address: str) -> str:
    """Host and port, without a name or password that an address may hold."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port is None else f"{host}:{parts.port}"


def _is_here(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
