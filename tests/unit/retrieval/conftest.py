"""A real PostgreSQL server with pgvector, out of a wheel, for the tests of this folder."""

import os
import warnings

import pytest


@pytest.fixture(scope="session")
def postgres_address(tmp_path_factory):
    """The address of a server of our own on a socket in a temporary folder; it ends with the session."""
    try:
        server = start(tmp_path_factory.mktemp("postgres"))
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
def table(postgres_address, request):
    """The name of a table that is not there, and is dropped after the test."""
    import psycopg

    name = "passages"
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        yield name
        connection.execute(f"DROP TABLE IF EXISTS {name}")
