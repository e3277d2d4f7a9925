"""GGUF checkpoints: one file, several parts, a folder of them; described in a config.json's words."""

import hashlib
import os

import gguf
import numpy as np
import pytest
import tiny_model

from cartoolkit.errors import InvalidCheckpoint, ModelNotFound
from cartoolkit.models import QuantScheme, inspect_checkpoint


def write_split(folder, *, parts=3, name="tiny", architecture="llama"):
    """A model that gguf-py itself split, one tensor a file."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", architecture, split_max_tensors=1)
    writer.add_context_length(128)
    for number in range(parts):
        writer.add_tensor(f"blk.{number}.attn_norm.weight", np.full(64, number, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob(f"{name}-*.gguf"))


def refusal(path):
    with pytest.raises(InvalidCheckpoint) as caught:
        inspect_checkpoint(path)
    return f"{caught.value} {caught.value.hint}"


def test_a_file_is_described(tiny_gguf):
    tensors = gguf.GGUFReader(tiny_gguf).tensors
    found = inspect_checkpoint(tiny_gguf)
    assert (found.path, found.name, found.format) == (tiny_gguf, "tiny_model", "gguf")
    assert (found.model_type, found.architectures) == ("llama", ())
    assert found.weight_files == (tiny_gguf,)
    assert found.parameters == sum(int(tensor.n_elements) for tensor in tensors)
    assert found.weight_bytes == sum(int(tensor.n_bytes) for tensor in tensors)
    assert found.dtypes == ("F32", "Q4_1", "Q8_0")
    assert found.context_length == 256
    assert not found.is_catalog


def test_the_config_has_hugging_faces_words(tiny_gguf):
    assert inspect_checkpoint(tiny_gguf).config == {
        "model_type": "llama",
        "vocab_size": len(tiny_model.vocabulary()),
        "hidden_size": tiny_model.HIDDEN,
        "intermediate_size": tiny_model.INNER,
        "num_hidden_layers": tiny_model.LAYERS,
        "num_attention_heads": tiny_model.HEADS,
        "num_key_value_heads": tiny_model.KV_HEADS,
        "max_position_embeddings": 256,
        "rope_theta": 100000.0,
        "rms_norm_eps": float(np.float32(1e-5)),
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }


def test_without_a_file_type_the_commonest_type_counts(tiny_gguf):
    # By bytes: 263 rows of Q8_0 embeddings against 2 layers of Q4_1 matrices.
    sizes = {}
    for tensor in gguf.GGUFReader(tiny_gguf).tensors:
        sizes[tensor.tensor_type.name] = sizes.get(tensor.tensor_type.name, 0) + int(tensor.n_bytes)
    found = inspect_checkpoint(tiny_gguf).quantization
    assert found.name == max(sizes, key=sizes.get)
    assert found.scheme is QuantScheme.RTN_BLOCK


def test_full_precision_is_not_packed(tmp_path):
    parts = write_split(tmp_path, parts=1)
    found = inspect_checkpoint(parts[0] if parts else tmp_path / "tiny.gguf").quantization
    assert (found.scheme, found.is_packed) == (QuantScheme.UNQUANTIZED, False)


def test_other_content_has_another_fingerprint(tmp_path):
    one = inspect_checkpoint(tiny_model.write_gguf(tmp_path / "x.gguf")).fingerprint
    (tmp_path / "y").mkdir()
    assert inspect_checkpoint(tiny_model.write_gguf(tmp_path / "y" / "x.gguf")).fingerprint == one
    assert inspect_checkpoint(tiny_model.write_gguf(tmp_path / "x.gguf", seed=1)).fingerprint != one


def test_a_folder_with_one_file_alone_is_that_file(tiny_gguf, tmp_path):
    (tmp_path / "README.md").write_text("")
    os.link(tiny_gguf, tmp_path / "Only.GGUF")
    assert inspect_checkpoint(tmp_path).path == tmp_path / "Only.GGUF"


def test_a_folder_with_several_is_refused_with_their_names(tiny_gguf, tmp_path):
    for name in ("b.Q8_0.gguf", "a.Q4_1.gguf"):
        os.link(tiny_gguf, tmp_path / name)
    said = refusal(tmp_path)
    assert "2 GGUF models: a.Q4_1.gguf, b.Q8_0.gguf" in said
    assert str(tmp_path / "a.Q4_1.gguf") in said


def test_a_gguf_beside_safetensors_does_no_harm(checkpoint_folder, tiny_gguf):
    os.link(tiny_gguf, checkpoint_folder / "x.gguf")
    assert inspect_checkpoint(checkpoint_folder).format == "safetensors"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelNotFound, match=r"no file .*none\.gguf"):
        inspect_checkpoint(tmp_path / "none.gguf")


def test_an_adapter_is_refused_as_such(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_type("adapter")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert "type 'adapter'" in refusal(tmp_path / "x.gguf")


def test_a_file_without_weights_is_refused(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert "holds no weights" in refusal(tmp_path / "x.gguf")


# -- split models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_part_stands_for_the_whole(tmp_path, given):
    parts = write_split(tmp_path)
    assert [path.name for path in parts] == [f"tiny-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    found = inspect_checkpoint(parts[given])
    assert (found.path, found.name, found.weight_files) == (parts[0], "tiny", tuple(parts))
    assert (found.parameters, found.weight_bytes, found.context_length) == (3 * 64, 3 * 64 * 4, 128)


def test_a_folder_with_one_split_model_is_that_model(tmp_path):
    parts = write_split(tmp_path)
    assert inspect_checkpoint(tmp_path).path == parts[0]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_part_is_named(tmp_path, missing):
    parts = write_split(tmp_path)
    parts[missing].unlink()
    said = refusal(next(path for path in parts if path.exists()))
    assert f"one of 3 parts, and 1 of them are missing beside it: {missing + 1}." in said


def test_a_damaged_part_is_named(tmp_path):
    parts = write_split(tmp_path)
    os.truncate(parts[2], 100)
    assert f"{parts[2].name} is cut off" in refusal(parts[0])


def test_a_part_that_was_renamed_is_told(tmp_path):
    parts = write_split(tmp_path)
    parts[0].rename(tmp_path / "model.gguf")
    assert "in 3 files, and its name does not say which part" in refusal(tmp_path / "model.gguf")


def test_parts_of_different_models_are_refused(tmp_path):
    parts, others = write_split(tmp_path / "a"), write_split(tmp_path / "b", parts=3, name="other")
    writer = gguf.GGUFWriter(parts[1], "llama")
    for number in range(5):
        writer.add_tensor(f"x{number}", np.ones(32, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "hold 3 tensors, and they hold 7" in refusal(parts[0])
    assert len(inspect_checkpoint(others[0]).weight_files) == 3


@pytest.mark.parametrize("name", ["x-00004-of-00003.gguf", "x-00000-of-00003.gguf", "x-00001-of-00000.gguf"])
def test_a_part_number_that_makes_no_sense_is_refused(tmp_path, tiny_gguf, name):
    os.link(tiny_gguf, tmp_path / name)
    assert "calls itself part" in refusal(tmp_path / name)


def test_a_claim_of_99999_parts_is_answered_in_a_moment(tmp_path, tiny_gguf):
    os.link(tiny_gguf, tmp_path / "x-00001-of-99999.gguf")
    said = refusal(tmp_path / "x-00001-of-99999.gguf")
    assert "99998 of them are missing" in said
    assert len(said) < 500


# -- whatever is wrong with a file -----------------------------------------------------------------


def test_a_file_cut_at_every_kilobyte_is_refused(tiny_gguf, tmp_path):
    content = tiny_gguf.read_bytes()
    for size in range(0, len(content) - 64, 1024):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        assert "cut.gguf is cut off" in refusal(tmp_path / "cut.gguf")


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("llama.context_length", "max_position_embeddings"),
        ("llama.attention.head_count", "num_attention_heads"),
        ("tokenizer.ggml.eos_token_id", "eos_token_id"),
        ("llama.vocab_size", "vocab_size"),
    ],
)
@pytest.mark.parametrize(("value", "is_right"), [("many", False), (-7, False), (7, True)])
def test_a_value_of_the_wrong_type_counts_as_not_there(tmp_path, key, word, value, is_right):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    kind = gguf.GGUFValueType.INT32 if isinstance(value, int) else gguf.GGUFValueType.STRING
    writer.add_key_value(key, value, kind)
    writer.add_key_value("general.file_type", "Q4_0", gguf.GGUFValueType.STRING)
    writer.add_tensor("a", np.ones(8, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = inspect_checkpoint(tmp_path / "x.gguf")
    assert found.config == {"model_type": "llama"} | ({word: value} if is_right else {})
    assert found.quantization.name == "F32"


def test_the_tokenizers_hash_covers_its_own_entries(tiny_gguf):
    # The bytes of every `tokenizer.` pair, in order, as gguf-py finds them.
    reader = gguf.GGUFReader(tiny_gguf)
    digest = hashlib.sha256()
    for key, field in reader.fields.items():
        if key.startswith("tokenizer."):
            for part in field.parts:
                digest.update(part.tobytes())
    assert inspect_checkpoint(tiny_gguf).tokenizer_hash == digest.hexdigest()
