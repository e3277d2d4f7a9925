"""One connection to PostgreSQL: opened again when it was lost, and errors that give nothing away."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from cartoolkit.errors import InvalidIndex, InvalidRequest, MissingDependency, RetrievalError, RetrieverFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection, Cursor, Error

__all__ = ["Server", "postgres_explained"]

Answer = TypeVar("Answer")

CONNECT_SECONDS = 10
# A server that has vanished is noticed within a minute, not after the two hours of most systems.
ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
SECRETS = ("password", "sslpassword", "oauth_client_secret")
# Of these classes of SQLSTATE the server's message names objects and limits, never values. Others may quote
# a passage or a query (https://www.postgresql.org/docs/current/errcodes-appendix.html).
QUOTED = ("08", "25", "28", "3D", "40", "42501", "42P01", "42703", "53", "55", "57", "58")
GONE = ("42P01", "42703")
HINTS = {
    "28": "Check the user and the password.",
    "3D": "Create the data base, or correct its name.",
    "42501": "Ask an administrator for the right, or to create what is missing.",
    "40": "Another program changed the same rows; try again.",
    "53": "The server lacks disk, memory or free connections.",
    "55": "Another program holds a lock; try again.",
    "57014": "The server's statement_timeout ended it.",
}
REACH = "Check that it runs and lets this machine in, and the user, the password and the data base's name."


class Server:
    """A connection that threads share one at a time.

    An address is kept, so a connection that the server, a firewall or a fork has ended is opened again at the
    next use. A connection that was given is used as it is: nothing opens it again, and closing it is up
    to its owner.

    Args:
        server: an address (a URL or ``key=value`` pairs, as libpq takes them; what it leaves out comes from
            the PG* environment variables and ``~/.pgpass``), or an open connection of psycopg.

    Attributes:
        place: user, host and data base, for messages; without password.

    Raises:
        MissingDependency: psycopg is not installed.
        InvalidRequest: the address cannot be read, or it is neither an address nor a connection.
        RetrieverFailed: the server cannot be reached, or refuses the login.
    """

    def __init__(self, server: str | Connection[Any]) -> None:
        _psycopg()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._address: dict[str, Any] | None = None
        if isinstance(server, str):
            self._address = read_address(server)
            self.place = _place(self._address)
            with postgres_explained(self.place, secrets(self._address)):
                self._connection = self._connected()
        else:
            _require_connection(server)
            info = server.info
            self._connection = server
            self.place = f"{info.user}@{info.host}:{info.port}/{info.dbname}"

    def run(self, work: Callable[[Cursor[tuple[Any, ...]]], Answer]) -> Answer:
        """What `work` returns; what it writes is written whole or not at all.

        It is called a second time if the connection turns out to be lost and can be opened again.

        Raises:
            RetrieverFailed: the server cannot be reached, or cannot do it.
            InvalidIndex: a table or column is gone.
            RetrievalError: the retriever was closed.
        """
        from psycopg import OperationalError

        hidden = secrets(self._address or {})
        with self._lock, postgres_explained(self.place, hidden):
            try:
                return self._attempt(work)
            except OperationalError:
                if self._address is None or not self._connection.closed:
                    raise
                return self._attempt(work)

    def close(self) -> None:
        """Close the connection, unless it was given; what is used afterwards raises `RetrievalError`."""
        with self._lock:
            self._closed = True
            if self._address is not None and self._process == os.getpid():
                self._connection.close()

    def _attempt(self, work: Callable[[Cursor[tuple[Any, ...]]], Answer]) -> Answer:
        from psycopg.rows import tuple_row

        connection = self._opened()
        with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
            return work(cursor)

    def _opened(self) -> Connection[Any]:
        if self._closed:
            raise RetrievalError(f"The retriever on {self.place} was closed.", hint="Open it again.")
        forked = self._process != os.getpid()
        if forked or self._connection.closed:
            if self._address is None:
                raise RetrieverFailed(
                    f"The connection to {self.place} is closed, or belongs to the parent process.",
                    hint="Give the server's address instead of a connection; it is opened when needed.",
                )
            # A connection that a fork has copied must not be used, nor closed, by the child.
            self._abandoned, self._process = self._connection, os.getpid()
            self._connection = self._connected()
        return self._connection

    def _connected(self) -> Connection[Any]:
        import psycopg

        # A plan made once for all words would not know which of them are rare, so nothing is prepared.
        settings: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, **ALIVE, **(self._address or {})}
        settings["client_encoding"] = "utf8"
        return psycopg.connect(autocommit=True, prepare_threshold=None, **settings)


def read_address(address: str) -> dict[str, Any]:
    """The parts of an address, as libpq reads it.

    Raises:
        InvalidRequest: it cannot be read. The message does not repeat it, since it may hold a password.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(address)
    except ProgrammingError:
        parts = None
    # A password with an unescaped @ or / would be taken for a part of the host, port or data base.
    if parts is None or not _is_plausible(parts):
        raise InvalidRequest(
            "The address of the PostgreSQL server cannot be read.",
            hint="Write postgresql://user:password@host:5432/database, and in the password %40 for @, "
            "%2F for / and %25 for %.",
        )
    return parts


def secrets(address: dict[str, Any]) -> list[str]:
    """What of an address must never be shown."""
    return [str(address[name]) for name in SECRETS if address.get(name)]


@contextmanager
def postgres_explained(place: str, hidden: list[str]) -> Iterator[None]:
    """Turn psycopg's errors, anywhere inside, into one sentence without passages, queries or secrets.

    Raises:
        InvalidIndex: a table or column is gone.
        RetrieverFailed: anything else that the server or the connection could not do.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as exc:
        # The original stays out of the traceback: it may quote a passage or a query.
        raise _explanation(exc, place, hidden) from None


def _explanation(exc: Error, place: str, hidden: list[str]) -> RetrievalError:
    from psycopg import OperationalError

    state = exc.sqlstate or ""
    said = type(exc).__name__
    if state.startswith(QUOTED) or (not state and isinstance(exc, OperationalError)):
        said = f"{_first_line(exc)} ({said})"
    for secret in hidden:
        said = said.replace(secret, "…")
    if state in GONE:
        return InvalidIndex(
            f"The index at {place} is damaged: {said}.", hint="Drop the table and add the passages again."
        )
    if not state or state.startswith("08"):
        return RetrieverFailed(f"The PostgreSQL server at {place} cannot be used: {said}.", hint=REACH)
    hint = next((text for start, text in HINTS.items() if state.startswith(start)), None)
    return RetrieverFailed(f"The PostgreSQL server at {place} refused: {said}.", hint=hint)


def _first_line(exc: Error) -> str:
    said = exc.diag.message_primary or str(exc)
    return said.strip().splitlines()[0].rstrip(".") if said.strip() else "no reason given"


def _is_plausible(parts: dict[str, Any]) -> bool:
    ports = str(parts.get("port") or "").replace(",", "")
    return not any("@" in str(parts.get(name, "")) for name in ("host", "dbname")) and (
        not ports or ports.isdigit()
    )


def _place(address: dict[str, Any]) -> str:
    user = f"{address['user']}@" if address.get("user") else ""
    port = f":{address['port']}" if address.get("port") else ""
    host = address.get("host") or address.get("hostaddr") or "the default host"
    return f"{user}{host}{port}/{address.get('dbname') or ''}"


def _require_connection(server: object) -> None:
    from psycopg import Connection

    if not isinstance(server, Connection):
        raise InvalidRequest(
            f"{type(server).__name__} is no PostgreSQL server.",
            hint="Give an address such as postgresql://user@host/database, or a psycopg.Connection.",
        )


def _psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as exc:
        raise MissingDependency(
            "PostgresRetriever needs psycopg, which is not installed.",
            hint="pip install 'cartoolkit[postgres]'",
        ) from exc
