"""What all tests share: the default model, loaded once, and a scripted decoder that needs none."""

import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def engine32():
    """The default model in float32, so that numbers can be compared closely."""
    import cartoolkit as ct

    with ct.load(dtype="float32", quiet=True) as engine:
        yield engine


@pytest.fixture
def fresh32(engine32):
    """The same engine with an empty cache."""
    engine32.decoder.clear_kv_cache()
    return engine32
