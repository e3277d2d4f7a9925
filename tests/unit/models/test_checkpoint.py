"""inspect_checkpoint(): a folder is understood without loading a weight, or refused in one sentence."""

import json
import os
import re
import shutil
import time

import numpy as np
import pytest
import tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from cartoolkit.errors import InvalidCheckpoint, ModelNotFound
from cartoolkit.models import QuantScheme, fetch, inspect_checkpoint
from cartoolkit.models.config import read_config

INDEX = "model.safetensors.index.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def rewrite(folder, **changes):
    (folder / "config.json").write_text(json.dumps(tiny_model.CONFIG | changes))
    return folder


@pytest.fixture
def sharded(checkpoint_folder):
    (checkpoint_folder / "model.safetensors").unlink()
    save_file({"a": np.ones(3, np.float32)}, checkpoint_folder / FIRST)
    save_file({"b": np.ones(5, np.float32)}, checkpoint_folder / SECOND)
    write_index(checkpoint_folder, {"a": FIRST, "b": SECOND})
    return checkpoint_folder


def write_index(folder, weight_map):
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def refusal(folder):
    with pytest.raises(InvalidCheckpoint) as caught:
        inspect_checkpoint(folder)
    return str(caught.value)


def test_a_folder_is_described(checkpoint_folder):
    found = inspect_checkpoint(checkpoint_folder)
    assert (found.path, found.name) == (checkpoint_folder, "checkpoint")
    assert (found.model_type, found.architectures) == ("llama", ("LlamaForCausalLM",))
    assert found.weight_files == (checkpoint_folder / "model.safetensors",)
    assert found.parameters == 32 + 4
    assert found.weight_bytes == 32 * 4 + 4 * 2
    assert found.dtypes == ("F16", "F32")
    assert (found.format, found.quantization) == ("safetensors", None)
    assert not found.is_catalog
    assert found.licence is None
    assert found.context_length is None


def test_its_name_can_be_given(checkpoint_folder):
    assert inspect_checkpoint(checkpoint_folder, name="org/model").name == "org/model"


def test_the_context_length_is_the_configs(checkpoint_folder):
    assert inspect_checkpoint(rewrite(checkpoint_folder, max_position_embeddings=77)).context_length == 77


@pytest.mark.parametrize(
    ("changes", "length"),
    [
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 4096}}, 4096),
        ({"max_position_embeddings": 8, "text_config": {"max_position_embeddings": 4096}}, 8),
        ({"text_config": {}}, None),
    ],
)
def test_the_context_length_has_several_places(checkpoint_folder, changes, length):
    assert inspect_checkpoint(rewrite(checkpoint_folder, **changes)).context_length == length


@pytest.mark.parametrize(("key", "value"), [("vocab_size", "many"), ("max_position_embeddings", -1)])
def test_a_wrong_value_in_the_text_part_is_refused_with_its_place(checkpoint_folder, key, value):
    said = refusal(rewrite(checkpoint_folder, text_config={key: value}))
    assert f"text_config.{key} = {value!r}" in said


def test_the_tokenizer_hash_is_that_of_its_file(checkpoint_folder):
    # SHA-256 of the two bytes "{}", as printed by sha256sum.
    expected = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert inspect_checkpoint(checkpoint_folder).tokenizer_hash == expected
    (checkpoint_folder / "tokenizer.json").unlink()
    assert inspect_checkpoint(checkpoint_folder).tokenizer_hash is None


def test_shards_are_added_up(sharded):
    found = inspect_checkpoint(sharded)
    assert [path.name for path in found.weight_files] == [FIRST, SECOND]
    assert found.parameters == 8


# -- fingerprints ----------------------------------------------------------------------------------


def test_the_same_content_elsewhere_has_the_same_fingerprint(checkpoint_folder, tmp_path):
    copy = shutil.copytree(checkpoint_folder, tmp_path / "copy")
    assert inspect_checkpoint(copy).fingerprint == inspect_checkpoint(checkpoint_folder).fingerprint
    assert inspect_checkpoint(copy).fingerprint.startswith("sampled-sha256:")


@pytest.mark.parametrize("change", ["config", "weight", "tensor name"])
def test_other_content_has_another_fingerprint(checkpoint_folder, change):
    before = inspect_checkpoint(checkpoint_folder).fingerprint
    weights = dict(tiny_model.WEIGHTS)
    if change == "config":
        rewrite(checkpoint_folder, hidden_size=5)
    else:
        array = weights.pop("model.norm.weight")
        name = "model.norm.other" if change == "tensor name" else "model.norm.weight"
        weights[name] = array + np.float16(change == "weight")
        save_file(weights, checkpoint_folder / "model.safetensors", metadata={"format": "pt"})
    assert inspect_checkpoint(checkpoint_folder).fingerprint != before


def test_a_catalog_model_carries_the_hash_recorded_at_conversion(own_cache, local_wheels):
    folder = fetch("tiny", progress=False)
    found = inspect_checkpoint(folder)
    recorded = json.loads((folder / "cartoolkit.json").read_text())["model_sha256"]
    assert (found.is_catalog, found.name, found.licence) == (True, "tiny", "CC0-1.0")
    assert found.fingerprint == f"sha256:{recorded}"


def test_a_catalog_model_that_was_changed_is_one_no_longer(own_cache, local_wheels):
    folder = fetch("tiny", progress=False)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("100000.0", "100001.0"))
    found = inspect_checkpoint(folder)
    assert not found.is_catalog
    assert found.fingerprint.startswith("sampled-sha256:")


def test_half_a_gigabyte_is_inspected_in_a_moment(checkpoint_folder):
    header = json.dumps(
        {"a": {"dtype": "U8", "shape": [500_000_000], "data_offsets": [0, 500_000_000]}}
    ).encode()
    with (checkpoint_folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 500_000_000)
    started = time.perf_counter()
    inspect_checkpoint(checkpoint_folder)
    assert time.perf_counter() - started < 0.15


# -- refusals --------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelNotFound, match="nowhere"):
        inspect_checkpoint(tmp_path / "nowhere")


def test_a_folder_without_config_is_refused(checkpoint_folder):
    (checkpoint_folder / "config.json").unlink()
    assert "has no config.json" in refusal(checkpoint_folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"llama"', "null", "\udcff", "[" * 50_000, '{"a": ' + "9" * 5000 + "}"]
)
def test_a_config_that_is_no_json_object_is_refused(checkpoint_folder, text):
    (checkpoint_folder / "config.json").write_text(text, errors="surrogateescape")
    assert "config.json" in refusal(checkpoint_folder)


def test_a_config_without_model_type_is_refused(checkpoint_folder):
    assert "model_type" in refusal(rewrite(checkpoint_folder, model_type=None))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", 3),
        ("model_type", ""),
        ("architectures", "LlamaForCausalLM"),
        ("architectures", [1]),
        ("vocab_size", "49152"),
        ("vocab_size", 0),
        ("hidden_size", -1),
        ("num_hidden_layers", 1.5),
        ("num_attention_heads", True),
        ("max_position_embeddings", [8192]),
        ("eos_token_id", "2"),
        ("eos_token_id", [2, None]),
        ("tie_word_embeddings", "yes"),
        ("n_positions", "1024"),
        ("quantization", 4),
        ("quantization_config", "awq"),
        ("text_config", [1]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_name_and_value(checkpoint_folder, key, value):
    said = refusal(rewrite(checkpoint_folder, **{key: value}))
    assert f"{key} = {value!r}" in said


@settings(max_examples=200, deadline=None)
@given(
    config=st.dictionaries(
        st.sampled_from(
            ["model_type", "architectures", "vocab_size", "eos_token_id", "auto_map", "quantization_config"]
        ),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=3)
        | st.lists(st.integers() | st.text(max_size=2)),
    )
)
def test_no_config_raises_anything_else(tmp_path_factory, config):
    folder = tmp_path_factory.getbasetemp()
    (folder / "config.json").write_text(json.dumps(config))
    try:
        assert read_config(folder) == config
    except InvalidCheckpoint:
        return
    assert isinstance(config["model_type"], str)


def test_a_config_of_absurd_size_is_not_read(checkpoint_folder):
    (checkpoint_folder / "config.json").write_text(json.dumps({"model_type": "x" * 10_000_001}))
    assert "larger than 10 MB" in refusal(checkpoint_folder)


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("code", [{"auto_map": {"AutoModel": "modeling_x.X"}}, {"model_file": "model.py"}])
def test_code_that_comes_with_the_checkpoint_is_refused(checkpoint_folder, file, code):
    (checkpoint_folder / file).write_text(json.dumps(tiny_model.CONFIG | code))
    said = refusal(checkpoint_folder)
    assert file in said
    assert "run code" in said
    assert next(iter(code)) in said


@pytest.mark.parametrize("method", ["awq", "gptq", "bitsandbytes", "fp8", "compressed-tensors"])
def test_packed_weights_are_named_by_their_method(checkpoint_folder, method):
    block = {"quant_method": method, "bits": 4, "group_size": 64}
    found = inspect_checkpoint(rewrite(checkpoint_folder, quantization_config=block)).quantization
    assert (found.name, found.method, found.scheme) == (method, method, QuantScheme.UNKNOWN)
    assert (found.bits, found.group_size) == (4, 64)


def test_mlx_packing_is_told_apart(checkpoint_folder):
    packed = {"group_size": 64, "bits": 4}
    for config in ({"quantization": packed}, {"quantization": packed, "quantization_config": packed}):
        found = inspect_checkpoint(rewrite(checkpoint_folder, **config)).quantization
        assert (found.scheme, found.mode, found.method) == (QuantScheme.AFFINE_GROUP_INT, "affine", None)


def test_a_packing_that_is_only_told_beside_the_config_is_found(checkpoint_folder):
    # NVIDIA's ModelOpt writes hf_quant_config.json and leaves config.json as it was.
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    (checkpoint_folder / "hf_quant_config.json").write_text(json.dumps(beside))
    assert inspect_checkpoint(checkpoint_folder).quantization.method == "modelopt"


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.pt"])
def test_pickles_alone_are_refused(checkpoint_folder, name):
    (checkpoint_folder / "model.safetensors").rename(checkpoint_folder / name)
    said = refusal(checkpoint_folder)
    assert name in said
    assert "run code when opened" in said


def test_pickles_that_were_allowed_are_described_and_not_opened(sharded):
    for path in [*sharded.glob("*.safetensors"), sharded / INDEX]:
        path.unlink()
    names = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
    for name in names:
        (sharded / name).write_bytes(b"not even a pickle")
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (sharded / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    found = inspect_checkpoint(sharded, allow_pickle=True)
    assert (found.format, found.allow_pickle, found.weight_bytes) == ("pickle", True, 34)
    assert [path.name for path in found.weight_files] == names
    (sharded / names[1]).unlink()
    with pytest.raises(InvalidCheckpoint, match="lacks 1 of 2"):
        inspect_checkpoint(sharded, allow_pickle=True)


@pytest.mark.parametrize("name", ["model.pt", "consolidated.00.pth"])
def test_a_pickle_that_transformers_would_not_find_is_refused_even_if_allowed(checkpoint_folder, name):
    (checkpoint_folder / "model.safetensors").rename(checkpoint_folder / name)
    with pytest.raises(InvalidCheckpoint, match=re.escape(name)):
        inspect_checkpoint(checkpoint_folder, allow_pickle=True)


def test_a_folder_cut_at_every_kilobyte_of_its_header_is_refused(checkpoint_folder):
    weights = {f"model.layers.{n}.weight": np.full((n, 3), n, np.float32) for n in range(1, 80)}
    path = checkpoint_folder / "model.safetensors"
    save_file(weights, path)
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    assert header > 4096
    for size in range(0, header, 1024):
        path.write_bytes(content[:size])
        assert "model.safetensors is cut off" in refusal(checkpoint_folder)
    path.write_bytes(content)
    assert inspect_checkpoint(checkpoint_folder).parameters == 3 * sum(range(1, 80))


def test_a_pickle_beside_safetensors_does_no_harm(checkpoint_folder):
    (checkpoint_folder / "pytorch_model.bin").write_bytes(b"")
    assert inspect_checkpoint(checkpoint_folder).parameters == 36


def test_missing_weights_are_told_with_what_is_there(checkpoint_folder):
    (checkpoint_folder / "model.safetensors").rename(checkpoint_folder / "adapter_model.safetensors")
    assert "adapter_model.safetensors" in refusal(checkpoint_folder)
    (checkpoint_folder / "adapter_model.safetensors").unlink()
    assert "no safetensors file at all" in refusal(checkpoint_folder)


def test_weights_that_are_empty_are_refused(checkpoint_folder):
    save_file({}, checkpoint_folder / "model.safetensors")
    assert "holds no weights" in refusal(checkpoint_folder)


def test_a_cut_off_weights_file_is_refused(checkpoint_folder):
    os.truncate(checkpoint_folder / "model.safetensors", 300)
    assert "model.safetensors is cut off" in refusal(checkpoint_folder)


def test_a_file_in_place_of_a_folder_is_refused(checkpoint_folder):
    assert "is a file" in refusal(checkpoint_folder / "model.safetensors")


@pytest.mark.parametrize(
    "name",
    [
        "../outside.safetensors",
        "/etc/passwd.safetensors",
        "a/b.safetensors",
        "..\\x.safetensors",
        "C:x.safetensors",
        "model.bin",
        "",
        3,
        None,
        ["x"],
    ],
)
def test_an_index_never_leaves_the_folder(sharded, name):
    save_file({"a": np.ones(3, np.float32)}, sharded.parent / "outside.safetensors")
    write_index(sharded, {"a": name, "b": SECOND})
    assert "not a file name" in refusal(sharded)


@pytest.mark.parametrize("weight_map", [None, {}, [], "x"])
def test_an_index_without_a_map_is_refused(sharded, weight_map):
    write_index(sharded, weight_map)
    assert "weight_map" in refusal(sharded)


def test_a_missing_shard_is_named(sharded):
    (sharded / SECOND).unlink()
    said = refusal(sharded)
    assert "1 of 2" in said
    assert SECOND in said


def test_a_shard_without_the_promised_tensor_is_refused(sharded):
    write_index(sharded, {"a": FIRST, "b": SECOND, "c": FIRST})
    assert f"'c' is in {FIRST}" in refusal(sharded)


def test_a_cut_off_shard_is_refused(sharded):
    os.truncate(sharded / SECOND, 20)
    assert f"{SECOND} is cut off" in refusal(sharded)
