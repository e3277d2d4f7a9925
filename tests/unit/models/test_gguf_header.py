"""GGUF headers: what gguf-py wrote is read back, and whatever is wrong with a file is said in a moment."""

import re
import struct
import time

import gguf
import numpy as np
import pytest
import tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.gguf_header import GgufArray, read_gguf_header
from cartoolkit.models.gguf_types import FILE_TYPES, TYPES


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = pair("general.architecture", 8, text("llama"))


def entry(name="a", shape=(32,), kind=0, offset=0):
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def file_with(path, *, pairs=(ARCHITECTURE,), tensors=(), data=b"", version=3, counts=None):
    counts = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


def refusal(path):
    started = time.perf_counter()
    with pytest.raises(InvalidCheckpoint) as caught:
        read_gguf_header(path)
    assert time.perf_counter() - started < 1
    assert len(str(caught.value)) < 600
    return str(caught.value)


# -- what is read ----------------------------------------------------------------------------------


def test_tensors_lie_where_the_library_says(tiny_gguf):
    reader = gguf.GGUFReader(tiny_gguf)
    found = read_gguf_header(tiny_gguf)
    assert found.data_begin == reader.data_offset
    expected = {
        t.name: (t.tensor_type.name, tuple(map(int, t.shape)), t.data_offset, t.data_offset + int(t.n_bytes))
        for t in reader.tensors
    }
    assert {t.name: (t.dtype, t.shape, t.begin, t.end) for t in found.tensors} == expected
    assert found.parameters == sum(int(t.n_elements) for t in reader.tensors)
    assert found.weight_bytes == sum(int(t.n_bytes) for t in reader.tensors)


def test_metadata_is_what_the_library_says(tiny_gguf):
    fields = gguf.GGUFReader(tiny_gguf).fields
    found = read_gguf_header(tiny_gguf).metadata
    own = {key for key in fields if not key.startswith("GGUF.")}
    assert found.keys() == own
    for key in own:
        value = fields[key].contents()
        if isinstance(value, list):
            kept = found[key]
            assert kept.count == len(value) if isinstance(kept, GgufArray) else list(kept) == value
        else:
            assert found[key] == value


def test_what_a_file_says_of_itself(tiny_gguf):
    found = read_gguf_header(tiny_gguf)
    assert (found.version, found.architecture, found.context_length) == (3, "llama", 256)
    assert (found.layers, found.heads, found.embedding_length) == (2, 4, 64)
    assert found.vocab_size == len(tiny_model.vocabulary())
    assert (found.name, found.file_type) == (None, None)


def test_name_and_file_type_are_read(tmp_path):
    pairs = [
        ARCHITECTURE,
        pair("general.name", 8, text("Tiny é")),
        pair("general.file_type", 4, b"\x0f\0\0\0"),
    ]
    found = read_gguf_header(file_with(tmp_path / "x.gguf", pairs=pairs))
    assert (found.name, found.file_type) == ("Tiny é", "Q4_K_M")


def test_every_kind_of_value_is_read(tmp_path):
    values = {
        "u8": (0, "B", 200),
        "i8": (1, "b", -3),
        "u16": (2, "H", 60000),
        "i16": (3, "h", -300),
        "u32": (4, "I", 4_000_000_000),
        "i32": (5, "i", -5),
        "f32": (6, "f", 0.5),
        "flag": (7, "?", True),
        "u64": (10, "Q", 2**63),
        "i64": (11, "q", -(2**40)),
        "f64": (12, "d", 1e300),
    }
    pairs = [pair(key, kind, struct.pack("<" + code, value)) for key, (kind, code, value) in values.items()]
    numbers = pair("numbers", 9, struct.pack("<IQ3h", 3, 3, 1, -2, 3))
    words = pair("words", 9, struct.pack("<IQ", 8, 2) + text("a") + text(""))
    found = read_gguf_header(file_with(tmp_path / "x.gguf", pairs=[*pairs, numbers, words])).metadata
    assert {key: found[key] for key in values} == {key: value for key, (_, _, value) in values.items()}
    assert (found["numbers"], found["words"]) == ((1, -2, 3), GgufArray(2, 8))


def test_version_2_is_read_as_version_3(tmp_path):
    path = file_with(tmp_path / "x.gguf", tensors=[entry()], data=bytes(128), version=2)
    assert (read_gguf_header(path).version, read_gguf_header(path).parameters) == (2, 32)


def test_the_files_own_alignment_holds(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_custom_alignment(4096)
    writer.add_tensor("a", np.ones(5, np.float32))
    writer.add_tensor("b", np.ones(5, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    begins = {t.name: t.data_offset for t in gguf.GGUFReader(tmp_path / "x.gguf").tensors}
    assert {t.name: t.begin for t in read_gguf_header(tmp_path / "x.gguf").tensors} == begins
    assert begins["b"] - begins["a"] == 4096


def test_the_tokenizers_hash_is_of_the_tokenizer_alone(tmp_path):
    def hash_of(name, **changes):
        return read_gguf_header(tiny_model.write_gguf(tmp_path / name, **changes)).tokenizer_hash

    same = hash_of("a.gguf")
    assert same == hash_of("b.gguf", seed=1)
    assert same != hash_of("c.gguf", pre="llama-bpe")
    assert read_gguf_header(file_with(tmp_path / "d.gguf")).tokenizer_hash is None


def test_types_are_the_librarys():
    sizes = gguf.GGML_QUANT_SIZES
    assert {kind.value: (kind.name, *sizes[kind]) for kind in sizes} == TYPES


def test_file_types_are_the_librarys():
    kinds = [kind for kind in gguf.LlamaFileType if kind.name != "GUESSED"]
    assert {k.value: k.name.removeprefix("MOSTLY_").removeprefix("ALL_") for k in kinds} == FILE_TYPES


def test_a_type_of_tomorrow_is_let_through_up_to_the_next_tensor(tmp_path):
    tensors = [entry("a", (7,), 999, 0), entry("b", (8,), 0, 64)]
    found = read_gguf_header(file_with(tmp_path / "x.gguf", tensors=tensors, data=bytes(96))).tensors
    assert [(t.dtype, t.end - t.begin) for t in found] == [("type 999", 64), ("F32", 32)]


def test_a_large_vocabulary_is_walked_over_in_a_moment(tmp_path):
    words = b"".join(text("token") for _ in range(262_144))
    pairs = [ARCHITECTURE, pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 262_144) + words)]
    path = file_with(tmp_path / "x.gguf", pairs=pairs)
    started = time.perf_counter()
    assert read_gguf_header(path).vocab_size == 262_144
    assert time.perf_counter() - started < 0.5


def test_terabytes_that_are_not_there_are_not_read(tmp_path):
    path = file_with(tmp_path / "x.gguf", tensors=[entry(shape=(2**20, 2**10))])
    begin = path.stat().st_size
    with path.open("rb+") as file:
        file.truncate(begin + 2**32)  # a sparse file of 4 GB
    started = time.perf_counter()
    assert read_gguf_header(path).weight_bytes == 2**32
    assert time.perf_counter() - started < 0.2


# -- what is refused -------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_of_its_header_is_refused(tiny_gguf, tmp_path):
    content = tiny_gguf.read_bytes()
    header = read_gguf_header(tiny_gguf).data_begin
    assert header > 4096
    cut = tmp_path / "cut.gguf"
    for size in [*range(64), *range(64, header, 97), *range(1024, header, 1024), header - 1, header]:
        cut.write_bytes(content[:size])
        with pytest.raises(InvalidCheckpoint, match=r"cut\.gguf is cut off"):
            read_gguf_header(cut)


def test_a_file_cut_inside_its_tensors_is_refused(tiny_gguf, tmp_path):
    content = tiny_gguf.read_bytes()
    last = max(tensor.end for tensor in read_gguf_header(tiny_gguf).tensors)
    for size in (read_gguf_header(tiny_gguf).data_begin + 1, last // 2, last - 1):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        assert "is cut off" in refusal(tmp_path / "cut.gguf")


ABSURD = (2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


@pytest.mark.parametrize("count", ABSURD)
@pytest.mark.parametrize("place", ["tensors", "pairs"])
def test_absurd_counts_are_refused(tmp_path, count, place):
    counts = (count, 1) if place == "tensors" else (0, count)
    assert f"{count:,}" in refusal(file_with(tmp_path / "x.gguf", counts=counts, data=bytes(4096)))


@pytest.mark.parametrize("count", [1000, 900_000, 99_999])
def test_a_count_that_cannot_be_there_is_refused(tmp_path, count):
    assert "cut off" in refusal(file_with(tmp_path / "x.gguf", counts=(count, 1), data=bytes(64)))


@pytest.mark.parametrize("length", ABSURD)
@pytest.mark.parametrize(
    "place",
    [
        lambda length: struct.pack("<Q", length) + b"general.name",
        lambda length: pair("general.name", 8, struct.pack("<Q", length)),
        lambda length: pair("tokens", 9, struct.pack("<IQ", 8, length)),
        lambda length: pair("tokens", 9, struct.pack("<IQQ", 8, 1, length)),
        lambda length: pair("tokens", 9, struct.pack("<IQQ", 8, 2, 0) + struct.pack("<Q", length)),
        lambda length: pair("numbers", 9, struct.pack("<IQ", 4, length)),
    ],
    ids=["key", "text", "texts", "text in texts", "last text in texts", "numbers"],
)
def test_absurd_lengths_are_refused(tmp_path, length, place):
    path = file_with(tmp_path / "x.gguf", pairs=[ARCHITECTURE, place(length)], data=bytes(4096))
    assert re.search("limit|cut off|more than", refusal(path))


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (entry(shape=(2**60, 2**60)), "cut off"),
        (entry(shape=(2**64 - 1,)), "cut off"),
        (entry(offset=2**63), "cut off"),
        (entry(offset=7), "not aligned"),
        (entry(shape=(31,), kind=2), "no multiple of Q4_0's 32"),
        (entry(shape=(1,) * 5), "5 sides"),
        (text("a") + struct.pack("<I", 2**32 - 1), "4,294,967,295 sides"),
        (struct.pack("<Q", 2**40), "1,099,511,627,776 bytes"),
    ],
    ids=["product", "one side", "offset", "alignment", "block", "five sides", "sides", "name"],
)
def test_tensors_that_make_no_sense_are_refused(tmp_path, tensor, words):
    assert words in refusal(file_with(tmp_path / "x.gguf", tensors=[tensor], data=bytes(4096)))


def test_tensors_inside_each_other_are_refused(tmp_path):
    tensors = [entry("a", (32,)), entry("b", (8,), 0, 64)]
    assert "inside 'a'" in refusal(file_with(tmp_path / "x.gguf", tensors=tensors, data=bytes(128)))


def test_two_things_of_one_name_are_refused(tmp_path):
    tensors = [entry("a", (8,)), entry("a", (8,), 0, 32)]
    assert "one name" in refusal(file_with(tmp_path / "x.gguf", tensors=tensors, data=bytes(128)))
    assert "twice" in refusal(file_with(tmp_path / "y.gguf", pairs=[ARCHITECTURE, ARCHITECTURE]))


@pytest.mark.parametrize("kind", [13, 14, 2**32 - 1])
def test_kinds_of_values_that_do_not_exist_are_refused(tmp_path, kind):
    assert f"type {kind}" in refusal(file_with(tmp_path / "x.gguf", pairs=[pair("a", kind, bytes(64))]))
    array = pair("a", 9, struct.pack("<IQ", kind, 1) + bytes(64))
    assert f"type {kind}" in refusal(file_with(tmp_path / "y.gguf", pairs=[array]))


def test_arrays_of_arrays_are_refused(tmp_path):
    nested = pair("a", 9, struct.pack("<IQ", 9, 1) * 3000)
    assert "an array cannot have" in refusal(file_with(tmp_path / "x.gguf", pairs=[nested]))


@pytest.mark.parametrize("alignment", [0, 7, 2**31])
def test_an_alignment_that_makes_no_sense_is_refused(tmp_path, alignment):
    pairs = [ARCHITECTURE, pair("general.alignment", 4, struct.pack("<I", alignment))]
    assert f"alignment = {alignment}" in refusal(file_with(tmp_path / "x.gguf", pairs=pairs))


@pytest.mark.parametrize("version", [0, 1, 4, 65535])
def test_other_versions_are_refused(tmp_path, version):
    assert f"version {version}," in refusal(file_with(tmp_path / "x.gguf", version=version))


def test_big_endian_files_are_refused_as_such(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    assert "big-endian" in refusal(tmp_path / "x.gguf")


@pytest.mark.parametrize("content", [b"ggjt" * 20, b"PK\x03\x04" * 20, b"\0" * 100, b"not a model at all"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "x.gguf").write_bytes(content)
    assert "instead of b'GGUF'" in refusal(tmp_path / "x.gguf")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize("pairs", [(), (pair("general.architecture", 4, bytes(4)),)])
def test_a_file_that_names_no_architecture_is_refused_when_asked(tmp_path, pairs):
    found = read_gguf_header(file_with(tmp_path / "x.gguf", pairs=pairs))
    with pytest.raises(InvalidCheckpoint, match=re.escape("general.architecture")):
        _ = found.architecture


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=300), is_gguf=st.booleans())
def test_no_bytes_raise_anything_else(tmp_path_factory, content, is_gguf):
    path = tmp_path_factory.getbasetemp() / "any.gguf"
    counts = struct.pack("<IQQ", 3, 1, 2) if is_gguf else b""
    path.write_bytes((b"GGUF" + counts if is_gguf else b"") + content)
    try:
        found = read_gguf_header(path)
    except InvalidCheckpoint:
        return
    assert found.data_begin <= path.stat().st_size + 32


@settings(max_examples=300, deadline=None)
@given(place=st.integers(0, 8000), byte=st.integers(0, 255))
def test_one_wrong_byte_raises_nothing_else(tiny_gguf, tmp_path_factory, place, byte):
    content = bytearray(tiny_gguf.read_bytes())
    content[place] = byte
    path = tmp_path_factory.getbasetemp() / "wrong.gguf"
    path.write_bytes(content)
    try:
        found = read_gguf_header(path)
    except InvalidCheckpoint:
        return
    assert all(tensor.end <= len(content) for tensor in found.tensors)
