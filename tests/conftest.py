"""What all tests share: the default model, loaded once, and a scripted decoder that needs none."""

import asyncio
import os
import signal
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


@pytest.fixture
def interruptible():
    """Python's own answer to an interrupt, which a process that was started in the background lacks."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)
