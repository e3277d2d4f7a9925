"""The connection to PostgreSQL: lost, forked, closed or given, and errors that give nothing away."""

import multiprocessing
import socket
import traceback

import psycopg
import pytest

from cartoolkit.errors import InvalidRequest, MissingDependency, RetrievalError, RetrieverFailed
from cartoolkit.retrieval import postgres_server
from cartoolkit.retrieval.passages import Passage
from cartoolkit.retrieval.postgres import PostgresRetriever

PASSAGES = [Passage("gold", "gold metal"), Passage("food", "Café crème")]


@pytest.fixture
def retriever(postgres_address, table):
    with PostgresRetriever(postgres_address, table) as made:
        made.add(PASSAGES)
        yield made


def ids(hits):
    return [hit.id for hit in hits]


def test_a_connection_of_one_s_own_is_used_and_left_open(postgres_address, table):
    from psycopg.rows import dict_row

    with psycopg.connect(postgres_address, row_factory=dict_row) as connection:
        with PostgresRetriever(connection, table) as retriever:
            retriever.add(PASSAGES)
            assert ids(retriever.search("gold")) == ["gold"]
        assert not connection.closed
        with pytest.raises(RetrievalError, match="was closed"):
            retriever.search("gold")
        # Its own transactions take ours in.
        with PostgresRetriever(connection, table) as retriever:
            with connection.transaction(force_rollback=True):
                retriever.delete(["gold", "food"])
            assert len(retriever) == 2
            connection.close()
            with pytest.raises(RetrieverFailed, match="is closed") as caught:
                retriever.search("gold")
            assert "address instead of a connection" in caught.value.hint


def test_a_lost_connection_is_opened_again(retriever, admin):
    for action in (lambda: retriever.search("gold"), lambda: retriever.add([Passage("x", "new gold")])):
        lost = retriever._server._connection.info.backend_pid
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (lost,))
        action()
        assert retriever._server._connection.info.backend_pid != lost
    assert ids(retriever.search("gold")) == ["gold", "x"]


def search_in_child(retriever, results):
    results.put(ids(retriever.search("gold")))


def test_a_forked_child_connects_anew(retriever):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=search_in_child, args=(retriever, results))
    child.start()
    assert results.get(timeout=60) == ["gold"]
    child.join(60)
    assert ids(retriever.search("gold")) == ["gold"]


def test_a_closed_retriever_says_so(postgres_address, table):
    retriever = PostgresRetriever(postgres_address, table)
    retriever.close()
    retriever.close()
    for action in (lambda: retriever.search("gold"), lambda: len(retriever), lambda: retriever.add(PASSAGES)):
        with pytest.raises(RetrievalError, match="was closed"):
            action()


def unused_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_server_that_is_away_is_named_without_the_password():
    address = f"postgresql://ann:hush%40hush@127.0.0.1:{(port := unused_port())}/library"
    with pytest.raises(RetrieverFailed, match=f"ann@127.0.0.1:{port}/library cannot be used") as caught:
        PostgresRetriever(address)
    assert "Connection refused" in str(caught.value)
    assert "hush" not in shown(caught.value)


def shown(failure):
    """All that a traceback shows of an error, and its representation."""
    return "".join(traceback.format_exception(failure)) + repr(failure)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hu@sh@127.0.0.1/library",
        "postgresql://ann:hush/sh@127.0.0.1/library",
        "postgresql://ann:12/hush@127.0.0.1/library",
        "host=127.0.0.1 password=my hush",
        "host=127.0.0.1 password='hush",
    ],
)
def test_an_address_that_cannot_be_read_is_not_repeated(address):
    with pytest.raises(InvalidRequest, match="address of the PostgreSQL server") as caught:
        PostgresRetriever(address)
    assert "%40 for @" in caught.value.hint
    assert "hu@" not in str(caught.value)
    assert "hush" not in str(caught.value) + caught.value.hint


def test_a_password_is_in_no_representation(postgres_address, table):
    address = psycopg.conninfo.make_conninfo(postgres_address, password="hush")
    with PostgresRetriever(address, table) as retriever:
        assert repr(retriever).endswith("/postgres, table passages)")
        assert "hush" not in repr(retriever) + str(vars(retriever))
    assert postgres_server.secrets({"password": "hush", "user": "ann"}) == ["hush"]


def test_a_data_base_that_is_not_there_is_named(postgres_address):
    address = psycopg.conninfo.make_conninfo(postgres_address, dbname="nowhere")
    with pytest.raises(RetrieverFailed, match='database "nowhere" does not exist'):
        PostgresRetriever(address)


def test_errors_quote_neither_passages_nor_queries(retriever, admin, table):
    admin.execute(f"ALTER TABLE {table} ADD CHECK (text NOT LIKE 'hush%')")
    for passage in (Passage("x", "hush now"), Passage("x", "y", page=2**70)):
        with pytest.raises(RetrieverFailed) as caught:
            retriever.add([passage])
        assert "hush" not in shown(caught.value)
        assert str(2**70) not in shown(caught.value)


def test_what_is_no_server_is_refused():
    with pytest.raises(InvalidRequest, match="int is no PostgreSQL server"):
        PostgresRetriever(5432)


def test_without_psycopg_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingDependency, match="psycopg") as caught:
        PostgresRetriever("postgresql://127.0.0.1")
    assert "cartoolkit[postgres]" in caught.value.hint
