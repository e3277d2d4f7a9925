"""What all tests share: the default model, loaded once, and a scripted decoder that needs none."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

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


@pytest.fixture
def run_async():
    """Run a coroutine on a thread of its own: Playwright keeps a loop running in the main one."""

    def run(coroutine):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, coroutine).result()  # noqa: TID251

    return run
