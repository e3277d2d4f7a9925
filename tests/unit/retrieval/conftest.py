"""A real PostgreSQL server with pgvector, out of a wheel, for the tests of this folder."""

import os
import tempfile
import warnings

import pytest


@pytest.fixture(scope="session")
def postgres_address():
    """The address of a server of our own on a socket in a temporary folder; it ends with the session."""
    # Not in pytest's folder: where the tests run as root, the server does not, and would be shut out.
    folder = tempfile.mkdtemp(prefix="postgres")
    try:
        server = start(folder)
    except Exception as failure:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL server could be started: {type(failure).__name__}: {failure}")
    yield server.get_uri()
    server.cleanup()


def start(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pgserver asks for a folder that a machine without logins lacks
        import pgserver

        return pgserver.get_server(folder, cleanup_mode="delete")


@pytest.fixture
def admin(postgres_address):
    """A connection that may do everything."""
    import psycopg

    with psycopg.connect(postgres_address, autocommit=True) as connection:
        yield connection


@pytest.fixture
def table(admin):
    """The name of a table that is not there, and is dropped after the test."""
    name = "passages"
    admin.execute(f"DROP TABLE IF EXISTS {name}")
    yield name
    admin.execute(f"DROP TABLE IF EXISTS {name}")
