"""A server of the test's own, and an engine that asks it."""

import pytest
from speaking_server import SpeakingServer

from cartoolkit.remote import connect


@pytest.fixture
def server():
    with SpeakingServer() as server:
        yield server
        server.shutdown()


@pytest.fixture
def engine(server):
    with connect("parrot", base_url=server.address) as engine:
        yield engine
