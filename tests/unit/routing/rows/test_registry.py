"""The list of models: what is put in, found, taken out, read from files, and known from the catalog."""

import json
from pathlib import Path

import pytest
from model_rows import row

from cartoolkit.errors import InvalidRegistry, InvalidRequest, ModelNotFound
from cartoolkit.models.admission import Verdict
from cartoolkit.models.catalog import CATALOG
from cartoolkit.models.checkpoint import Checkpoint
from cartoolkit.models.quantization import Quantization
from cartoolkit.routing.rows.registry import Registry, catalog_rows, checkpoint_rows
from cartoolkit.routing.rows.registry_file import read_rows, rows_from

GOOD = {"id": "acme/large", "capabilities": ["generate"], "source": {"kind": "remote_api"}}


def test_a_model_is_found_by_id_and_by_a_name_that_is_its_own():
    registry = Registry([row("acme/large"), row("acme/small", name="Small")])
    assert registry.get("acme/small") is registry.get("Small")
    assert [model.id for model in registry] == ["acme/large", "acme/small"]
    assert "acme/large" in registry
    assert "Small" not in registry


def test_a_name_of_two_models_is_refused_with_both_ids():
    registry = Registry([row("acme/one", name="Same"), row("acme/two", name="Same")])
    with pytest.raises(InvalidRequest, match=r"2 models are called 'Same': acme/one, acme/two"):
        registry.get("Same")


def test_an_unknown_name_is_told_with_what_is_meant_perhaps():
    with pytest.raises(ModelNotFound, match="model not found: 'acme/lage'") as failure:
        Registry([row("acme/large")]).get("acme/lage")
    assert failure.value.hint == "Did you mean 'acme/large' or 'large'? There are: acme/large."


def test_a_model_that_was_taken_out_is_gone():
    registry = Registry([row("acme/large")])
    assert registry.remove("acme/large").id == "acme/large"
    assert len(registry) == 0
    with pytest.raises(ModelNotFound):
        registry.remove("acme/large")


def test_an_id_that_is_taken_is_replaced_only_on_request():
    registry = Registry([row("acme/large")])
    with pytest.raises(InvalidRequest, match="there is a model 'acme/large' already"):
        registry.add(row("acme/large", name="New"))
    registry.add(row("acme/large", name="New"), replace=True)
    assert registry.get("acme/large").name == "New"


def test_a_community_row_cannot_speak_for_a_curated_one():
    registry = Registry([row("acme/large", trust_tier="curated")])
    with pytest.raises(InvalidRequest, match="that of a curated model"):
        registry.add(row("acme/large"), replace=True)


TOML = """
[[models]]
id = "acme/large:v2"
capabilities = ["generate", "code"]
trust_tier = "curated"
[models.source]
kind = "remote_api"
[models.cost]
input_per_mtok = 0.5
[[models.benchmarks]]
name = "MMLU"
score = 0.7
"""


def test_rows_are_read_from_toml_and_are_never_curated(tmp_path):
    file = tmp_path / "models.toml"
    file.write_text(TOML)
    (model,) = read_rows(file)
    assert (model.id, model.capabilities, model.trust_tier) == (
        "acme/large:v2",
        ("generate", "code"),
        "community",
    )
    assert model.cost.input_per_mtok == 0.5
    assert model.cost.output_per_mtok is None
    assert model.benchmarks[0].score == 0.7


@pytest.mark.parametrize("whole", [[GOOD], {"models": [GOOD]}])
def test_rows_are_read_from_json_with_or_without_the_word_models(tmp_path, whole):
    file = tmp_path / "models.json"
    file.write_text(json.dumps(whole), encoding="utf-8-sig")
    registry = Registry()
    assert registry.load(file) == ("acme/large",)
    assert registry.get("large").provider == "acme"


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        ({"id": "large"}, "large", "id: must be provider/name or provider/name:variant"),
        (
            {"cost": {"input_per_mtok": -1}},
            "acme/b",
            "cost.input_per_mtok: must be greater than or equal to 0; got -1",
        ),
        (
            {"cost": {"inputs_per_mtok": 1}},
            "acme/b",
            "cost.inputs_per_mtok is not a field; did you mean 'input_per_mtok'?",
        ),
        (
            {"cost": {"pricing_tiers": [{}]}},
            "acme/b",
            "cost.pricing_tiers[1].min_prompt_tokens is missing",
        ),
        (
            {"benchmarks": [{"name": "x", "score": 70}]},
            "acme/b",
            "benchmarks[1].score: must be less than or equal to 1; got 70",
        ),
        ({"capabilities": ["generat"]}, "acme/b", "capabilities[1]: must be 'generate',"),
        ({"source": None}, "acme/b", "source: "),
        (
            {"performance": {"ttft_ms": {"value": 5, "low": 6}}},
            "acme/b",
            "performance.ttft_ms: the interval's low end 6 is above the value 5",
        ),
        ({"id": "a\nb"}, "'a\\nb'", "id: must be provider/name"),
        ({"id": "acme/large"}, "acme/large", "id is that of row 1 already"),
    ],
)
def test_a_wrong_row_is_named_with_its_field(change, where, said):
    with pytest.raises(InvalidRegistry) as failure:
        rows_from([GOOD, GOOD | {"id": "acme/b"} | change], origin="mine.json")
    head, fault = str(failure.value).splitlines()
    assert head == "mine.json has a fault:"
    assert fault.startswith(f"  row 2 ({where}): {said}")


def test_all_faults_are_told_at_once_up_to_ten():
    with pytest.raises(InvalidRegistry) as failure:
        rows_from([{"id": f"acme/{n}", "capabilities": ["generate"]} for n in range(12)])
    head, *faults = str(failure.value).splitlines()
    assert head == "this list has 12 faults:"
    assert faults[0] == "  row 1 (acme/0): source is missing"
    assert (len(faults), faults[-1]) == (11, "  and 2 more")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.yaml", b"", "'m.yaml' is no file of models: its name must end in .json or .toml."),
        ("m.json", b"{", "m.json is not valid JSON: "),
        ("m.toml", b"[[models", "m.toml is not valid TOML: "),
        ("m.json", b"\xff", "m.json is not valid JSON: "),
        ("m.json", b"[" * 100_000, "m.json is not valid JSON: "),
        ("m.json", b"3", "m.json: 'models' must be a list of rows; it is a int."),
        ("m.json", b"[3]", "m.json, row 1: a row must be a table of fields and values."),
        (
            "m.toml",
            b"id = 'a/b'",
            "m.toml must hold 'models', a list of rows, and nothing else; it holds 'id'.",
        ),
    ],
)
def test_a_file_that_is_no_list_of_models_is_told_as_such(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidRegistry) as failure:
        read_rows(tmp_path / name)
    assert str(failure.value).startswith(said)


def test_a_file_that_is_not_there_is_told_with_its_path(tmp_path):
    with pytest.raises(InvalidRegistry, match=r"none\.json cannot be read: No such file"):
        read_rows(tmp_path / "none.json")


def test_a_file_with_one_taken_id_changes_nothing(tmp_path):
    file = tmp_path / "models.json"
    file.write_text(json.dumps([GOOD | {"id": "acme/new"}, GOOD]))
    registry = Registry([row("acme/large")])
    with pytest.raises(InvalidRequest, match="acme/large"):
        registry.load(file)
    assert [model.id for model in registry] == ["acme/large"]


def test_the_catalog_gives_a_curated_row_for_each_engine():
    rows = catalog_rows(("torch", "gguf"))
    assert len(rows) == 2 * len(CATALOG)
    assert {model.trust_tier for model in rows} == {"curated"}
    entry = CATALOG["smollm2-135m-instruct"]
    packed = next(model for model in rows if model.id == "gguf/smollm2-135m-instruct:Q4_1")
    assert (packed.context_length, packed.parameters) == (8192, entry.parameters)
    assert packed.cost.size_mb.value == pytest.approx(98.362432)
    assert packed.downloads_weights
    assert packed.cost.usd(1, 1) is None


def test_the_second_catalog_model_has_a_row_for_each_engine_as_well():
    rows = {model.id: model for model in catalog_rows()}
    packed, whole = rows["gguf/gemma3-270m:Q4_K_M"], rows["torch/gemma3-270m"]
    assert (packed.context_length, packed.size_label, packed.tags) == (32_768, "268M", ("LicenseRef-Gemma",))
    assert packed.cost.size_mb.value == pytest.approx(253.113024)
    assert (whole.quantization, packed.quantization) == (None, "Q4_K_M")
    assert whole.cost.size_mb.value > 4 * 268  # float32


def test_a_catalog_row_says_that_its_weights_are_not_here_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("CARTOOLKIT_CACHE", str(tmp_path))
    assert {model.weights_ready for model in catalog_rows()} == {False}


def test_a_catalog_row_says_why_its_engine_cannot_be_used(monkeypatch):
    from cartoolkit.models.engines import EngineStatus
    from cartoolkit.routing.rows import registry

    missing = EngineStatus("mlx", usable=False, version=None, why_not="mlx-lm is not installed.")
    monkeypatch.setattr(registry, "engine_status", lambda engine, try_import: missing)
    (model,) = catalog_rows(("mlx",))[:1]
    assert (model.available, model.unavailable_because) == (False, "mlx-lm is not installed.")


def test_the_registry_shows_the_three_facts():
    frame = Registry([row("acme/large", weights_ready=True)]).to_frame()
    facts = frame.loc["acme/large", ["where", "available", "weights_ready", "downloads_weights"]]
    assert list(facts) == ["remote", True, True, False]


def test_a_folder_is_looked_for_beside_the_file_that_names_it(tmp_path):
    (tmp_path / "here").mkdir()
    rows = [
        GOOD | {"id": f"mine/{n}", "source": {"kind": "folder", "location": name}}
        for n, name in enumerate(("here", "away", "\0"))
    ]
    (tmp_path / "models.json").write_text(json.dumps(rows))
    here, away, odd = read_rows(tmp_path / "models.json")
    assert (here.source.location, here.weights_ready) == (str(tmp_path / "here"), True)
    assert (away.weights_ready, odd.weights_ready) == (False, False)
    assert not away.downloads_weights


def checkpoint(**changes):
    """What inspecting a folder finds, without a folder."""
    known = {
        "path": Path("/models/My Model"), "name": "org/My Model", "config": {"max_position_embeddings": 2048},
        "model_type": "llama", "architectures": ("LlamaForCausalLM",), "weight_files": (),
        "weight_bytes": 3_000_000, "parameters": 1_500_000, "dtypes": ("BF16",), "format": "safetensors",
        "quantization": None, "fingerprint": "", "tokenizer_hash": None, "is_catalog": False,
        "licence": "MIT",
    }  # fmt: skip
    return Checkpoint(**known | changes)


def test_a_checkpoint_gives_a_row_for_each_engine_and_the_reason_where_it_cannot_be_served():
    # A pickle is read by torch alone; the others refuse it by its format, before a library is asked.
    rows = checkpoint_rows(checkpoint(format="pickle"), ("mlx", "gguf"))
    assert [model.id for model in rows] == ["mlx/org-My-Model", "gguf/org-My-Model"]
    assert [model.available for model in rows] == [False, False]
    assert all("pickle" in model.unavailable_because for model in rows)
    model = rows[0]
    assert (model.context_length, model.parameters, model.cost.size_mb.value) == (2048, 1_500_000, 3.0)
    assert (model.trust_tier, model.weights_ready, model.source.engine) == ("community", True, "mlx")


def test_of_packed_weights_the_number_is_not_known(monkeypatch):
    monkeypatch.setattr("cartoolkit.routing.rows.registry.checkpoint_served", lambda *_: Verdict(serves=True))
    packed = checkpoint(quantization=Quantization.parse("mxfp4"))
    (model,) = checkpoint_rows(packed, ("mlx",))
    assert (model.id, model.parameters, model.available) == ("mlx/org-My-Model:mxfp4", None, True)
