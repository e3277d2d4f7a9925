"""Measurements on disk and in rows: kept whole, used only where they speak for what would answer."""

import json
import os

import pytest
from model_rows import row
from probe_rows import MACHINE, VERSIONS, probe_row
from pydantic import ValidationError

from cartoolkit.errors import InvalidRequest
from cartoolkit.routing.probing import measurements
from cartoolkit.routing.probing.freshness import weights_hash_of, why_stale
from cartoolkit.routing.probing.machine import MachineIdentity
from cartoolkit.routing.probing.measurements import LARGEST_FILE, MeasurementStore, Probe, with_measurements
from cartoolkit.routing.rows.figures import Figure

MODEL = row("gguf/small:q4", "folder", source={"kind": "folder", "location": "/no/such", "engine": "gguf"})
INSTALLED = {"llama-cpp-python": "0.3.36"}


def figure(value, **about):
    return {"value": value, "basis": "measured", **about}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store on the machine of the tests' measurements."""
    monkeypatch.setattr(measurements, "machine_identity", lambda: MACHINE)
    monkeypatch.setattr("cartoolkit.routing.probing.freshness.installed_versions", lambda _: INSTALLED)
    return MeasurementStore(tmp_path / "kept")


# -- rows ------------------------------------------------------------------------------------------


def test_measured_figures_take_the_place_of_declared_ones_and_the_rest_stays():
    model = row(
        "gguf/small:q4",
        "folder",
        quality=0.9,
        performance={"ttft_ms": 10.0, "tokens_per_second": 99.0, "latency_p99_ms": 7.0},
        cost={"size_mb": 98.0, "ram_mb": 50.0},
    )
    probe = probe_row(
        ttft_ms=figure(20.0), prefill_tokens_per_second=figure(300.0), load_ms=figure(400.0),
        ram_mb=figure(320.0), quality=figure(0.3, n=82),
    )  # fmt: skip
    found = with_measurements(model, probe)
    speed = found.performance
    assert speed.ttft_ms == Figure(value=20.0, basis="measured")
    assert (speed.prefill_tokens_per_second.value, speed.load_ms.value) == (300.0, 400.0)
    assert speed.tokens_per_second == Figure(value=99.0, basis="declared")
    assert speed.latency_p99_ms.value == 7.0
    assert (found.cost.size_mb.value, found.cost.ram_mb.value) == (98.0, 320.0)
    assert (found.quality.value, found.quality.n) == (0.3, 82)
    assert model.quality.basis == "declared"


def test_a_measurement_without_figures_changes_nothing():
    assert with_measurements(MODEL, probe_row()) == MODEL


def test_a_measurement_of_another_model_is_refused():
    with pytest.raises(InvalidRequest, match="of 'gguf/other', not of 'gguf/small:q4'"):
        with_measurements(MODEL, probe_row("gguf/other"))


def test_a_row_with_measurements_is_one_that_a_file_could_hold():
    found = with_measurements(MODEL, probe_row(ttft_ms=figure(20.0), quality=figure(0.3)))
    assert type(found).model_validate_json(found.model_dump_json()) == found


# -- disk ------------------------------------------------------------------------------------------


def test_what_was_saved_is_found_again_by_another_store(store):
    probe = probe_row(ttft_ms=figure(20.0, low=18.0, high=25.0, n=6), notes=("A note.",))
    store.save(probe)
    assert MeasurementStore(store.folder).latest(MODEL, weights_hash="sha256:1") == probe
    assert MeasurementStore(store.folder).probes() == [probe]


def test_a_new_measurement_takes_the_place_of_the_old_one(store):
    store.save(probe_row(measured_at=1.0))
    assert store.latest(MODEL, weights_hash="sha256:1").measured_at == 1.0
    store.save(probe_row(measured_at=2.0))
    assert store.latest(MODEL, weights_hash="sha256:1").measured_at == 2.0
    assert len(store.probes()) == 1


def test_models_whose_ids_differ_in_case_alone_are_kept_apart(store):
    paths = {
        store.save(probe_row(name)).name.lower() for name in ("gguf/small", "gguf/Small", "gguf/small:q4")
    }
    assert len(paths) == 3


def test_nothing_is_found_where_nothing_was_saved(store):
    assert store.latest(MODEL, weights_hash="sha256:1") is None
    assert store.probes() == []
    assert not store.folder.exists()


def test_another_machine_s_measurement_is_kept_and_not_used(store):
    elsewhere = MACHINE.model_copy(update={"cores": 2})
    store.save(probe_row(machine=elsewhere))
    assert store.latest(MODEL, weights_hash="sha256:1") is None
    assert len(store.probes()) == 1


def test_a_measurement_of_other_weights_is_kept_and_not_used(store):
    store.save(probe_row())
    assert store.latest(MODEL, weights_hash="sha256:2") is None
    assert store.latest(MODEL) is None  # its folder is not here
    assert len(store.probes()) == 1


def test_of_weights_that_nobody_can_tell_what_this_store_saved_is_believed(store):
    probe = probe_row(weights_hash="")
    store.save(probe)
    assert store.latest(MODEL) == probe
    assert MeasurementStore(store.folder).latest(MODEL) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Invalid JSON"),
        (b'{"version": 1', "Invalid JSON"),
        (b"[]", "an object"),
        (b"\xff\xfe", "Invalid JSON"),
        (b'{"version": 2}', "version"),
        (b" " * (LARGEST_FILE + 1), "2.0 MB"),
    ],
    ids=["empty", "torn", "a list", "not text", "newer", "large"],
)
def test_a_damaged_file_is_told_of_once_and_passed_over(store, capsys, content, said):
    path = store.save(probe_row())
    good = store.save(probe_row("gguf/other"))
    path.write_bytes(content)
    for _ in range(2):
        assert store.latest(MODEL, weights_hash="sha256:1") is None
        assert [probe.model_id for probe in store.probes()] == ["gguf/other"]
    told = capsys.readouterr().out
    assert told.count("passed over") == 1
    assert said in told
    assert str(path) in told
    assert good.exists()


def test_a_number_that_is_none_makes_the_file_a_damaged_one(store, capsys):
    path = store.save(probe_row(ttft_ms=figure(20.0)))
    content = json.loads(path.read_text())
    content["ttft_ms"]["value"] = -1
    path.write_text(json.dumps(content))
    assert store.latest(MODEL, weights_hash="sha256:1") is None
    assert "ttft_ms.value" in capsys.readouterr().out


def test_a_file_that_was_mended_is_read_again(store, capsys):
    path = store.save(probe_row())
    whole = path.read_bytes()
    path.write_bytes(b"{")
    assert store.latest(MODEL, weights_hash="sha256:1") is None
    path.write_bytes(whole)
    assert store.latest(MODEL, weights_hash="sha256:1") is not None
    capsys.readouterr()


def test_a_write_that_fails_leaves_the_old_measurement_and_nothing_beside_it(store, monkeypatch):
    path = store.save(probe_row(measured_at=1.0))

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        store.save(probe_row(measured_at=2.0))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert MeasurementStore(store.folder).probes()[0].measured_at == 1.0


def test_the_folder_follows_the_cache_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path))
    assert MeasurementStore().folder == tmp_path / "measurements"


def test_without_the_variable_the_folder_is_the_user_s_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CARTOOLKIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert MeasurementStore().folder.parts[-2:] == ("cartoolkit", "measurements")


def test_a_form_that_is_not_known_is_no_measurement():
    with pytest.raises(ValidationError):
        Probe.model_validate(probe_row().model_dump() | {"colour": "blue"})


# -- freshness -------------------------------------------------------------------------------------


def stale(probe=None, model=MODEL, machine=MACHINE, weights="sha256:1", installed=INSTALLED):
    return why_stale(probe or probe_row(), model, machine, weights, installed)


def test_the_same_machine_weights_and_library_are_fresh():
    assert stale() == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("processor", "Abacus 10"),
        ("cores", 8),
        ("memory_gib", 32),
        ("system", "Inferno"),
        ("gpus", ("Loom",)),
    ],
)
def test_another_machine_is_told_by_any_of_its_parts(field, value):
    other = MachineIdentity.model_validate(MACHINE.model_dump() | {field: value})
    assert "another machine" in stale(machine=other)
    assert other.key != MACHINE.key


def test_other_weights_and_missing_ones_are_told_apart():
    assert "other weights" in stale(weights="sha256:2")
    assert "not here" in stale(weights=None)


@pytest.mark.parametrize(
    ("version", "is_fresh"), [("0.3.36", True), ("0.3.40", True), ("0.4.0", False), ("1.3.36", False)]
)
def test_a_library_counts_by_its_first_two_numbers(version, is_fresh):
    assert (stale(installed={"llama-cpp-python": version}) == "") == is_fresh


def test_local_builds_of_one_version_are_one_library():
    torch = row("torch/small", "folder", source={"kind": "folder", "engine": "torch"})
    probe = probe_row("torch/small", engine="torch", versions={"torch": "2.11.0+cpu"})
    assert stale(probe, torch, installed={"torch": "2.11.1+cu130"}) == ""
    assert "torch 2.11.0+cpu, and 2.12.0" in stale(probe, torch, installed={"torch": "2.12.0"})


def test_a_row_that_moved_to_another_engine_is_not_what_was_measured():
    moved = row("gguf/small:q4", "folder", source={"kind": "folder", "engine": "torch"})
    assert "with llama.cpp, and the row says torch" in stale(model=moved)


def test_what_answers_elsewhere_is_told_by_its_address():
    def at(address):
        return row("acme/large", source={"kind": "remote_api", "location": address})

    here, there = weights_hash_of(at("https://a.example")), weights_hash_of(at("https://b.example"))
    assert here != there
    assert "a.example" not in here
    assert VERSIONS  # the libraries of a server are its own
    probe = probe_row("acme/large", engine="openai", weights_hash=here)
    assert why_stale(probe, at("https://a.example"), MACHINE, here) == ""


def test_weights_in_a_folder_are_told_by_their_content(tiny_folder):
    model = row(
        "torch/tiny", "folder", source={"kind": "folder", "location": str(tiny_folder), "engine": "torch"}
    )
    before = weights_hash_of(model)
    assert before.startswith("sampled-sha256:")
    assert weights_hash_of(model) == before
    weights = tiny_folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, ns=(1, 1))
    assert weights_hash_of(model) != before
    weights.unlink()
    assert weights_hash_of(model) is None


@pytest.fixture
def tiny_folder(tmp_path):
    """A checkpoint of four numbers."""
    import numpy as np
    from safetensors.numpy import save_file

    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    save_file({"weight": np.zeros(4, np.float32)}, tmp_path / "model.safetensors")
    return tmp_path


def test_a_catalog_model_that_is_not_here_has_no_weights_to_compare(tmp_path, monkeypatch):
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path))
    source = {"kind": "catalog", "location": "smollm2-135m-instruct", "engine": "gguf"}
    assert weights_hash_of(row("gguf/smollm2", "catalog", source=source)) is None


def test_a_row_without_a_place_has_none_either():
    assert weights_hash_of(row("torch/mine", "folder", source={"kind": "folder", "engine": "torch"})) is None


def test_a_hub_model_is_told_by_its_local_copy_without_a_connection(
    tiny_folder, tmp_path_factory, monkeypatch
):
    from huggingface_hub import constants

    cache, commit = tmp_path_factory.mktemp("hub"), "a" * 40
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    model = row("torch/tiny", "hub", source={"kind": "hub", "location": "org/tiny", "engine": "torch"})
    assert weights_hash_of(model) is None
    repository = cache / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text(commit)
    (repository / "snapshots").mkdir()
    tiny_folder.rename(repository / "snapshots" / commit)
    here = row("torch/tiny", "folder", source=folder_source(repository / "snapshots" / commit))
    assert weights_hash_of(model) == weights_hash_of(here) is not None


def folder_source(folder):
    return {"kind": "folder", "location": str(folder), "engine": "torch"}


def test_a_measurement_shows_its_figures_and_not_its_answers():
    item = {"id": "capital:France", "kind": "facts", "split": "choice", "right": True, "text": "Paris"}
    probe = probe_row(
        "gguf/small:q4",
        ttft_ms=figure(20.4),
        tokens_per_second=figure(300.26),
        quality=figure(0.55),
        items=[{**item, "ms": 1.0, "completion_tokens": 2}],
    )
    shown = "<Probe of gguf/small:q4: first token 20 ms, decoding 300.3 tokens/s, right 55%>"
    assert (repr(probe), str(probe)) == (shown, shown)
    assert repr(probe_row("gguf/a")) == "<Probe of gguf/a: nothing measured>"
