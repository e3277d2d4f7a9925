"""resolve(): catalog name, folder or hub name, each with its own clear failure."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_model
from local_servers import hub_handler, serving

from cartoolkit.errors import InvalidRequest, ModelNotFound
from cartoolkit.models import resolve

RESOLVE = """
import json, sys, time
from cartoolkit.errors import InvalidRequest, CartoolkitError
from cartoolkit.models import resolve
started = time.perf_counter()
try:
    found = resolve(sys.argv[1], progress=False)
    files = sorted(path.name for path in found.path.iterdir())
    answer = {"path": str(found.path), "name": found.name, "files": files}
except CartoolkitError as exc:
    answer = {"kind": type(exc).__name__, "message": str(exc), "hint": exc.hint}
print(json.dumps(answer | {"seconds": time.perf_counter() - started}))
"""


def test_a_catalog_name_is_fetched(own_cache, local_wheels):
    found = resolve("Tiny", progress=False)
    assert (found.name, found.path, found.is_catalog) == ("Tiny", own_cache / "models" / "tiny", True)


def test_a_catalog_name_goes_before_a_folder_of_that_name(own_cache, local_wheels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_model.write_folder(tmp_path / "tiny")
    assert resolve("tiny", progress=False).is_catalog
    assert not resolve("./tiny").is_catalog


def test_everything_in_place_takes_milliseconds(own_cache, local_wheels, monkeypatch):
    resolve("tiny", progress=False)
    monkeypatch.setattr(subprocess, "Popen", None)
    started = time.perf_counter()
    resolve("tiny")
    assert time.perf_counter() - started < 0.05


@pytest.mark.parametrize("form", [str, Path, lambda path: os.path.relpath(path)])
def test_a_folder_is_inspected(checkpoint_folder, form):
    assert resolve(form(checkpoint_folder)).parameters == 36


def test_a_bare_folder_name_in_the_working_directory_is_found(checkpoint_folder, monkeypatch):
    monkeypatch.chdir(checkpoint_folder.parent)
    assert resolve("checkpoint").path == checkpoint_folder


def test_home_is_understood(checkpoint_folder, monkeypatch):
    monkeypatch.setenv("HOME", str(checkpoint_folder.parent))
    assert resolve("~/checkpoint").path == checkpoint_folder


@pytest.mark.parametrize(
    "typed", ["./none", "../none", "/none/none", "~/none", "~nobody-here/x", Path("none"), Path("a/b")]
)
def test_what_looks_like_a_path_and_is_not_there_is_told_as_a_path(typed):
    with pytest.raises(ModelNotFound, match=r"There is no folder /") as caught:
        resolve(typed)
    assert "hub" in caught.value.hint


def test_a_gguf_file_that_is_not_there_is_told_as_a_file():
    with pytest.raises(ModelNotFound, match=r"There is no f\w+ /.*some\.Q4_K_M\.gguf"):
        resolve("models/some.Q4_K_M.gguf", formats=("gguf",))


@pytest.mark.parametrize(
    "word",
    ["gpt2", "", "a/b/c", "org/", "/".join("x" * 60 for _ in range(2)), "\0", "a b/c", "é/x", "x" * 5000],
)
def test_a_word_that_is_nothing_is_answered_with_what_there_is(word):
    with pytest.raises(ModelNotFound, match=re.escape("neither in the catalog, nor as a folder")) as caught:
        resolve(word)
    assert "smollm2-135m-instruct" in caught.value.hint
    assert len(str(caught.value)) < 400


# -- the hub, in a process of its own: its library reads the environment once, when it is imported ---


def resolve_from_hub(name, home, endpoint, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    settings = {
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE, name],
        env=clean | settings | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout) | {"stderr": done.stderr}


@pytest.fixture
def repository(checkpoint_folder):
    files = {path.name: path.read_bytes() for path in checkpoint_folder.iterdir()}
    return files | {"pytorch_model.bin": b"pickle", "modeling_x.py": b"code", "README.md": b"text"}


@pytest.fixture
def asked():
    return []


@pytest.fixture
def hub(repository, asked):
    config = json.loads(repository["config.json"])
    remote_code = json.dumps(config | {"auto_map": {"AutoModel": "x.X"}}).encode()
    without_weights = {name: text for name, text in repository.items() if name != "model.safetensors"}
    repositories = {
        "org/model": repository,
        "org/code": repository | {"config.json": remote_code},
        "org/pickle": without_weights,
        "org/dataset": {"README.md": b""},
        "gated/model": repository,
    }
    importlib.import_module("huggingface_hub")
    with serving(hub_handler(repositories, asked)) as address:
        yield address


def test_a_hub_model_is_downloaded_without_pickles_and_code(hub, tmp_path, asked):
    answer = resolve_from_hub("org/model", tmp_path, hub)
    assert answer.get("name") == "org/model", answer
    assert answer["files"] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert answer["stderr"] == ""  # progress=False
    assert not any(path.endswith((".bin", ".py", ".md")) for path in asked)


def test_a_downloaded_hub_model_needs_no_connection(hub, tmp_path, asked):
    first = resolve_from_hub("org/model", tmp_path, hub)
    asked.clear()
    assert resolve_from_hub("org/model", tmp_path, hub)["path"] == first["path"]
    assert asked == []
    offline = resolve_from_hub("org/model", tmp_path, "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert offline["path"] == first["path"]


def test_a_download_that_was_cut_short_is_completed(hub, tmp_path):
    first = resolve_from_hub("org/model", tmp_path, hub)
    (Path(first["path"]) / "model.safetensors").unlink()
    again = resolve_from_hub("org/model", tmp_path, hub)
    assert again["files"] == first["files"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("org/unknown", "ModelNotFound", "no model 'org/unknown'"),
        ("gated/model", "ModelNotFound", "terms"),
        ("org/code", "InvalidCheckpoint", "run code"),
        ("org/pickle", "InvalidCheckpoint", "pickle"),
        ("org/dataset", "InvalidCheckpoint", "no config.json"),
    ],
)
def test_what_the_hub_has_not_or_should_not_be_loaded_is_told(hub, tmp_path, name, kind, words):
    answer = resolve_from_hub(name, tmp_path, hub)
    assert answer.get("kind") == kind, answer
    assert words in answer["message"]


@pytest.mark.parametrize("name", ["org/code", "org/pickle"])
def test_a_refused_model_costs_no_download_of_weights(hub, tmp_path, asked, name):
    resolve_from_hub(name, tmp_path, hub)
    assert not any("model.safetensors" in path or ".bin" in path for path in asked)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", "http://no-such-host.invalid"])
def test_without_a_network_the_answer_comes_in_seconds(tmp_path, endpoint):
    importlib.import_module("huggingface_hub")
    answer = resolve_from_hub("org/model", tmp_path, endpoint)
    assert answer["kind"] == "NetworkUnavailable"
    assert answer["seconds"] < 10
    assert "org/model" in answer["message"]
    assert "default model" in answer["hint"]


def test_offline_mode_is_honoured_and_named(hub, tmp_path, asked):
    answer = resolve_from_hub("org/model", tmp_path, hub, HF_HUB_OFFLINE="1")
    assert answer["kind"] == "NetworkUnavailable"
    assert "HF_HUB_OFFLINE" in answer["message"]
    assert asked == []


@pytest.mark.parametrize("value", [3, 1.5, b"name", ["name"]])
def test_what_is_no_name_is_refused_with_the_value(value):
    with pytest.raises(InvalidRequest, match="named by a string or a folder"):
        resolve(value)
