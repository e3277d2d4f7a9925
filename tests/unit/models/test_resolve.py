"""resolve(): catalog name, folder or hub name, each with its own clear failure."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import tiny_model
from local_servers import hub_handler, serving
from test_gguf_checkpoint import write_split

from cartoolkit.errors import InvalidCheckpoint, InvalidRequest, MissingDependency, ModelNotFound
from cartoolkit.models import available_formats, convert, resolve

RESOLVE = """
import json, sys, time
from cartoolkit.errors import InvalidRequest, CartoolkitError
from cartoolkit.models import available_formats, resolve
started = time.perf_counter()
try:
    settings = json.loads(sys.argv[2])
    if settings.pop("only_ask", False):
        answer = {"formats": available_formats(sys.argv[1])}
    else:
        found = resolve(sys.argv[1], progress=False, **settings)
        folder = found.path if found.path.is_dir() else found.path.parent
        files = sorted(path.name for path in folder.iterdir())
        answer = {"path": str(found.path), "name": found.name, "files": files, "format": found.format}
        answer |= {"allowed": [found.allow_pickle, found.trust_remote_code]}
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


# -- formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formats", "taken"),
    [
        (("gguf",), "gguf"),
        (("gguf", "safetensors"), "gguf"),
        (("safetensors", "gguf"), "safetensors"),
        (["pickle", "safetensors"], "safetensors"),
    ],
)
def test_the_first_format_that_can_be_had_is_taken(own_cache, local_wheels, formats, taken):
    found = resolve("tiny", formats=formats, progress=False)
    assert (found.format, found.name, found.is_catalog) == (taken, "Tiny", True)


def test_without_the_converter_a_catalog_model_is_had_as_gguf(own_cache, local_wheels, monkeypatch):
    assert available_formats("tiny") == ("gguf", "safetensors")
    monkeypatch.setattr(convert, "missing_libraries", lambda: ["gguf"])
    assert available_formats("tiny") == ("gguf",)
    assert resolve("tiny", formats=("safetensors", "gguf"), progress=False).format == "gguf"
    with pytest.raises(MissingDependency, match="gguf"):
        resolve("tiny", progress=False)


def test_what_was_converted_once_is_had_without_the_converter(own_cache, local_wheels, monkeypatch):
    resolve("tiny", progress=False)
    monkeypatch.setattr(convert, "missing_libraries", lambda: ["gguf"])
    assert available_formats("tiny") == ("gguf", "safetensors")


def test_a_catalog_model_is_no_pickle(own_cache):
    with pytest.raises(InvalidCheckpoint, match="not as pickle"):
        resolve(formats=("pickle",))


def test_asking_for_formats_downloads_nothing(own_cache, tiny_entry, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    assert available_formats("Tiny") == ("gguf", "safetensors")
    assert not own_cache.exists()


@pytest.mark.parametrize("formats", [(), ("onnx",), ("safetensors", "GGUF"), "gguf"])
def test_formats_that_do_not_exist_are_refused(formats):
    with pytest.raises(InvalidRequest, match="safetensors"):
        resolve("tiny", formats=formats)


def test_a_gguf_file_is_taken_where_gguf_is_asked_for(tiny_gguf):
    assert available_formats(tiny_gguf) == ("gguf",)
    assert resolve(tiny_gguf, formats=("safetensors", "gguf")).path == tiny_gguf
    with pytest.raises(InvalidCheckpoint, match=r"there as gguf, and safetensors is asked for") as caught:
        resolve(str(tiny_gguf))
    assert "engine='gguf'" in caught.value.hint


def test_a_folder_with_both_is_taken_in_the_order_asked_for(checkpoint_folder, tiny_gguf):
    os.link(tiny_gguf, checkpoint_folder / "x.gguf")
    assert available_formats(checkpoint_folder) == ("safetensors", "gguf")
    assert resolve(checkpoint_folder, formats=("gguf", "safetensors")).path == checkpoint_folder / "x.gguf"
    assert resolve(checkpoint_folder, formats=("safetensors", "gguf")).path == checkpoint_folder


def test_a_folder_without_gguf_is_told_with_what_it_has(checkpoint_folder):
    with pytest.raises(InvalidCheckpoint, match="there as safetensors, and gguf is asked for") as caught:
        resolve(checkpoint_folder, formats=("gguf",))
    assert "engine='torch'" in caught.value.hint


# -- what is allowed by name -----------------------------------------------------------------------


def make_pickles(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"not even a pickle" * 10)
    return folder


def test_pickles_are_refused_until_they_are_allowed(checkpoint_folder):
    folder = make_pickles(checkpoint_folder)
    assert available_formats(folder) == ("pickle",)
    with pytest.raises(InvalidCheckpoint, match="run code when opened") as caught:
        resolve(folder)
    assert "allow_pickle=True" in caught.value.hint
    found = resolve(folder, allow_pickle=True)
    assert (found.format, found.allow_pickle) == ("pickle", True)
    assert (found.weight_bytes, found.parameters, found.dtypes) == (170, 0, ())


def test_safetensors_go_before_pickles_that_are_allowed(checkpoint_folder):
    (checkpoint_folder / "pytorch_model.bin").write_bytes(b"")
    assert resolve(checkpoint_folder, allow_pickle=True).format == "safetensors"


@pytest.mark.parametrize("name", ["x.safetensors", "../x.bin", 3])
def test_an_index_of_pickles_names_files_of_the_folder(checkpoint_folder, name):
    (checkpoint_folder / "model.safetensors").unlink()
    index = json.dumps({"weight_map": {"a": name}})
    (checkpoint_folder / "pytorch_model.bin.index.json").write_text(index)
    with pytest.raises(InvalidCheckpoint, match="not a file name"):
        resolve(checkpoint_folder, allow_pickle=True)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_is_refused_until_it_is_allowed(checkpoint_folder, file):
    content = tiny_model.CONFIG | {"auto_map": {"AutoModel": "modeling_x.X"}}
    (checkpoint_folder / file).write_text(json.dumps(content))
    with pytest.raises(InvalidCheckpoint, match="run code") as caught:
        resolve(checkpoint_folder)
    assert "trust_remote_code=True" in caught.value.hint
    assert resolve(checkpoint_folder, trust_remote_code=True).trust_remote_code


# -- the hub, in a process of its own: its library reads the environment once, when it is imported ---


def resolve_from_hub(name, home, endpoint, wishes=None, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    settings = {
        "HF_HOME": str(home),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RESOLVE, name, json.dumps(wishes or {})],
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
def hub(repository, asked, tiny_gguf, tmp_path_factory):
    config = json.loads(repository["config.json"])
    remote_code = json.dumps(config | {"auto_map": {"AutoModel": "x.X"}}).encode()
    model_file = json.dumps(config | {"model_file": "modeling_x.py"}).encode()
    packed = json.dumps(config | {"quantization": {"bits": 4, "group_size": 64}}).encode()
    without_weights = {name: text for name, text in repository.items() if name != "model.safetensors"}
    parts = write_split(tmp_path_factory.mktemp("split"), name="m.F32")
    split = {path.name: path.read_bytes() for path in parts}
    repositories = {
        "org/model": repository,
        "org/code": repository | {"config.json": remote_code},
        "org/model-file": repository | {"config.json": model_file},
        "org/pickle": without_weights,
        "org/packed": repository | {"config.json": packed},
        "org/modelopt": repository | {"hf_quant_config.json": b'{"quantization": {"quant_algo": "FP8"}}'},
        "org/dataset": {"README.md": b""},
        "org/one": {"m.Q4_1.gguf": tiny_gguf.read_bytes(), "mmproj.gguf": b"", "README.md": b""},
        "org/many": {f"m.{kind}.gguf": tiny_gguf.read_bytes() for kind in ("Q4_K_M", "Q4_K", "IQ4_K_M")},
        "org/split": split,
        "org/both": repository | {"m.Q4_1.gguf": tiny_gguf.read_bytes()},
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
        ("org/model-file", "InvalidCheckpoint", "run code"),
        ("org/pickle", "InvalidCheckpoint", "pickle"),
        ("org/dataset", "InvalidCheckpoint", "no config.json"),
    ],
)
def test_what_the_hub_has_not_or_should_not_be_loaded_is_told(hub, tmp_path, name, kind, words):
    answer = resolve_from_hub(name, tmp_path, hub)
    assert answer.get("kind") == kind, answer
    assert words in answer["message"]


@pytest.mark.parametrize("name", ["org/code", "org/model-file", "org/pickle"])
def test_a_refused_model_costs_no_download_of_weights(hub, tmp_path, asked, name):
    resolve_from_hub(name, tmp_path, hub)
    assert not any("model.safetensors" in path or ".bin" in path for path in asked)


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("org/model", ["safetensors", "pickle"]),
        ("org/pickle", ["pickle"]),
        ("org/one", ["gguf"]),
        ("org/both", ["safetensors", "gguf", "pickle"]),
        ("org/many:Q4_K_M", ["gguf"]),
        ("org/dataset", []),
    ],
)
def test_the_hub_is_asked_for_formats_without_a_download(hub, tmp_path, asked, name, formats):
    assert resolve_from_hub(name, tmp_path, hub, {"only_ask": True})["formats"] == formats
    assert not any("/resolve/" in path for path in asked)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("org/one", "m.Q4_1.gguf"),
        ("org/one/m.Q4_1.gguf", "m.Q4_1.gguf"),
        ("org/many:Q4_K_M", "m.Q4_K_M.gguf"),
        ("org/many:q4_k", "m.Q4_K.gguf"),
        ("org/many/m.IQ4_K_M.gguf", "m.IQ4_K_M.gguf"),
        ("org/split", "m.F32-00001-of-00003.gguf"),
        ("org/split/m.F32-00002-of-00003.gguf", "m.F32-00001-of-00003.gguf"),
        ("org/both:Q4_1", "m.Q4_1.gguf"),
    ],
)
def test_a_gguf_file_of_the_hub_comes_alone_and_once(hub, tmp_path, asked, name, file):
    answer = resolve_from_hub(name, tmp_path, hub, {"formats": ["gguf"]})
    assert (Path(answer.get("path", "")).name, answer.get("name")) == (file, name), answer
    parts = 3 if "split" in name else 1
    assert [Path(path).suffix for path in answer["files"]] == [".gguf"] * parts
    assert answer["stderr"] == ""
    asked.clear()
    assert resolve_from_hub(name, tmp_path, hub, {"formats": ["gguf"]})["path"] == answer["path"]
    assert asked == []


@pytest.mark.parametrize(
    ("name", "formats", "words"),
    [
        ("org/one", ["safetensors"], "GGUF only"),
        ("org/many", ["gguf"], "fits 3 GGUF models"),
        ("org/many:Q8_0", ["gguf"], "fits 0 GGUF models"),
        ("org/many/m.Q9.gguf", ["gguf"], "fits 0 GGUF models"),
        ("org/many:Q4_K", ["safetensors"], "GGUF only"),
    ],
)
def test_a_gguf_repository_is_told_clearly(hub, tmp_path, asked, name, formats, words):
    answer = resolve_from_hub(name, tmp_path, hub, {"formats": formats})
    assert answer.get("kind") == "InvalidCheckpoint", answer
    assert words in answer["message"]
    assert answer["hint"]
    assert not any("/resolve/" in path for path in asked)


@pytest.mark.parametrize(
    ("name", "engine", "words"),
    [("org/packed", "torch", "packed for MLX"), ("org/modelopt", "mlx", "modelopt")],
)
def test_what_the_engine_cannot_serve_is_not_downloaded(hub, tmp_path, asked, name, engine, words):
    answer = resolve_from_hub(name, tmp_path, hub, {"engine": engine})
    assert answer.get("kind") == "InvalidCheckpoint", answer
    assert words in answer["message"]
    assert "not downloaded" in answer["message"]
    assert not any("model.safetensors" in path for path in asked)


def test_what_the_engine_can_serve_is_downloaded(hub, tmp_path):
    answer = resolve_from_hub("org/packed", tmp_path, hub, {"engine": "mlx"})
    assert "model.safetensors" in answer.get("files", ""), answer


def test_what_is_here_already_is_put_before_the_engine_too(checkpoint_folder, tiny_gguf):
    assert resolve(checkpoint_folder, engine="torch").format == "safetensors"
    with pytest.raises(InvalidCheckpoint, match="the torch engine reads safetensors"):
        resolve(tiny_gguf, formats=("gguf",), engine="torch")


def test_pickles_of_the_hub_come_when_they_are_allowed(hub, tmp_path, asked):
    answer = resolve_from_hub("org/pickle", tmp_path, hub, {"allow_pickle": True})
    assert (answer.get("format"), answer.get("allowed")) == ("pickle", [True, False]), answer
    assert answer["files"] == ["config.json", "pytorch_model.bin", "tokenizer.json"]


def test_pickles_do_not_come_where_there_are_safetensors(hub, tmp_path, asked):
    answer = resolve_from_hub("org/model", tmp_path, hub, {"allow_pickle": True})
    assert answer.get("format") == "safetensors", answer
    assert not any(path.endswith(".bin") for path in asked)


def test_code_of_the_hub_comes_when_it_is_allowed(hub, tmp_path):
    answer = resolve_from_hub("org/code", tmp_path, hub, {"trust_remote_code": True})
    assert answer.get("allowed") == [False, True], answer
    assert "modeling_x.py" in answer["files"]


@pytest.mark.parametrize("name", ["org/code", "org/model-file"])
def test_an_engine_that_runs_no_code_costs_no_download_of_weights(hub, tmp_path, asked, name):
    answer = resolve_from_hub(name, tmp_path, hub, {"trust_remote_code": True, "engine": "mlx"})
    assert "the mlx engine runs none" in answer.get("message", ""), answer
    assert not any("model.safetensors" in path for path in asked)


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


def test_without_the_hubs_library_the_hint_is_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingDependency, match="need the package huggingface_hub") as caught:
        resolve("owner/model", formats=("gguf",))
    assert caught.value.hint == "Install it with: pip install 'huggingface_hub>=1.0'"


def test_the_gguf_extra_brings_the_hubs_library():
    """It asks for it itself; torch and mlx have it by transformers."""
    required = importlib.import_module("importlib.metadata").requires("transformers")
    assert any(line.startswith("huggingface-hub") for line in required)
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    assert any(line.startswith("huggingface_hub") for line in extras["gguf"])
