"""Safetensors headers: whatever is wrong with a file is said, and never read past."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from cartoolkit.errors import InvalidCheckpoint
from cartoolkit.models.headers import BITS, read_header, read_json_object


def file_with(path, header, data=b"", *, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def tensor(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.fixture
def weights_file(tmp_path):
    """Enough tensors for a header of several kilobytes."""
    weights = {f"model.layers.{n}.weight": np.full((n, 3), n, np.float32) for n in range(1, 80)}
    save_file(weights, tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_tensors_are_what_the_library_says(weights_file):
    found = {t.name: t.shape for t in read_header(weights_file)}
    with safe_open(weights_file, "np") as file:
        assert found == {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def test_elements_are_counted(weights_file):
    assert sum(t.elements for t in read_header(weights_file)) == 3 * sum(range(1, 80))


def test_a_file_cut_at_any_place_is_refused(weights_file, tmp_path):
    content = weights_file.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    assert header > 4096
    cut = tmp_path / "cut.safetensors"
    for size in [*range(8), *range(8, header, 1024), header - 1, header, len(content) - 1]:
        cut.write_bytes(content[:size])
        with pytest.raises(InvalidCheckpoint, match=r"cut\.safetensors is cut off"):
            read_header(cut)


@pytest.mark.parametrize("length", [100_000_001, 2**32, 2**63 - 1, 2**64 - 1])
def test_an_absurd_header_length_is_refused_without_reading_it(tmp_path, length):
    path = file_with(tmp_path / "x", {}, length=length)
    with pytest.raises(InvalidCheckpoint, match=f"{length:,} bytes"):
        read_header(path)


def test_a_file_that_is_longer_than_its_tensors_is_refused(weights_file):
    with weights_file.open("ab") as file:
        file.write(b"12345")
    with pytest.raises(InvalidCheckpoint, match="5 bytes that belong to no tensor"):
        read_header(weights_file)


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        {"a": 1},
        {"a": {}},
        {"a": tensor(shape=[-2])},
        {"a": tensor(shape=[True, 2])},
        {"a": tensor(shape=["2"])},
        {"a": tensor(begin=8, end=0)},
        {"a": tensor(begin=-8, end=0)},
        {"a": tensor(begin=0.0, end=8)},
        {"a": tensor(shape=(3,))},
        {"a": tensor(begin=1, end=9)},
        {"a": tensor(), "b": tensor()},
        {"a": tensor(), "b": tensor(begin=16, end=24)},
        {"a": tensor(shape=(2**40, 2**40), end=2**82)},
        {"a": tensor(dtype=4)},
        {"a": {"dtype": "F32", "shape": [2]}},
    ],
    ids=str,
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path, header):
    with pytest.raises(InvalidCheckpoint, match="odd"):
        read_header(file_with(tmp_path / "odd", header, bytes(16)))


def test_what_the_header_says_beside_tensors_is_left_alone(tmp_path):
    path = file_with(tmp_path / "x", {"__metadata__": {"format": "pt"}, "a": tensor()}, bytes(8))
    assert [t.name for t in read_header(path)] == ["a"]


def test_a_dtype_of_tomorrow_is_let_through(tmp_path):
    path = file_with(tmp_path / "x", {"a": tensor(dtype="F2_E1M0")}, bytes(8))
    assert read_header(path)[0].dtype == "F2_E1M0"


@pytest.mark.parametrize("dtype", sorted(set(BITS) - {"F4", "F6_E2M3", "F6_E3M2", "C64"}))
def test_sizes_of_dtypes_agree_with_the_library(tmp_path, dtype):
    size = BITS[dtype] // 8
    path = file_with(tmp_path / "x", {"a": tensor(dtype=dtype, shape=(1,), end=size)}, bytes(size))
    assert read_header(path)[0].elements == 1
    try:
        with safe_open(path, "np") as file:
            assert file.get_slice("a").get_shape() == [1]
    except SafetensorError as exc:
        assert "dtype" in str(exc).lower() or "deserializing" in str(exc).lower()  # noqa: PT017 (an older library)


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200))
def test_no_bytes_raise_anything_else(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    try:
        read_header(path)
    except InvalidCheckpoint:
        return
    with safe_open(path, "np"):  # what we accept, the library accepts
        pass


@settings(max_examples=200, deadline=None)
@given(
    entry=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_no_header_entry_raises_anything_else(tmp_path_factory, entry):
    path = file_with(tmp_path_factory.getbasetemp() / "entry.safetensors", {"a": entry}, bytes(8))
    with pytest.raises(InvalidCheckpoint):
        read_header(path)


def test_json_files_have_a_size_limit(tmp_path):
    (tmp_path / "big.json").write_text('{"a": "' + "x" * 100 + '"}')
    assert read_json_object(tmp_path / "big.json", limit=200)["a"] == "x" * 100
    with pytest.raises(InvalidCheckpoint, match=r"big\.json is larger"):
        read_json_object(tmp_path / "big.json", limit=50)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidCheckpoint, match="cannot be read"):
        read_header(tmp_path)
    with pytest.raises(InvalidCheckpoint, match="cannot be read"):
        read_json_object(tmp_path / "none", limit=1)
