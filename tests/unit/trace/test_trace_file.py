"""The trace file: what is loaded is what was saved, and every kind of damage has its sentence."""

import errno
import json
import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from trace_samples import empty, events, header, plain, sky, step, trace

from cartoolkit.errors import TraceError
from cartoolkit.trace import CANDIDATE_COLUMNS, STEP_COLUMNS, Event, Trace
from cartoolkit.trace import file as trace_file
from cartoolkit.trace.exact_json import dumps_exact, loads_exact

KEY = "cartoolkit.trace"
LAYOUT = {**STEP_COLUMNS, **CANDIDATE_COLUMNS}


def bits(run):
    """Everything in a trace as bytes and plain values, so that NaN equals itself."""
    shapes = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in run.columns.items()}
    prompt = [run.prompt_ids.tobytes(), run.prompt_logprobs.tobytes()]
    return shapes, prompt, run.texts, run.token_bytes, repr(run.header)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Round trips


@pytest.mark.parametrize(
    "run",
    [sky(), plain(), empty(), trace([]), sky(prompt_logprobs=np.array([np.nan, -2.5], np.float32))],
    ids=["inspected", "not inspected", "nothing at all", "prompt only", "scored prompt"],
)
def test_what_is_loaded_is_what_was_saved(run, tmp_path):
    path = run.save(tmp_path / "run.trace")
    assert bits(Trace.load(path)) == bits(run)


def test_the_file_is_where_it_was_asked_for_and_nothing_else_is(tmp_path):
    assert sky().save(tmp_path / "no ending") == tmp_path / "no ending"
    assert sky().save(str(tmp_path / "run.trace")) == tmp_path / "run.trace"
    assert names(tmp_path) == ["no ending", "run.trace"]


def test_an_older_file_of_the_same_name_is_replaced(tmp_path):
    path = plain().save(tmp_path / "run.trace")
    sky().save(path)
    assert len(Trace.load(path)) == 5


def test_header_values_that_json_lacks_survive_exactly(tmp_path):
    params = {
        "logit_bias": {17: -math.inf, 3: 1.5},
        "nan": math.nan,
        "pair": (1, [2.0, None, True]),
        "$odd": "x",
        "seed": 2**63 - 1,
        "zero": -0.0,
        "text": "\u2028 \x00 ü 🙂",
    }
    run = trace(
        [], params=params, events=[Event(kind="look-up", text="t", at=2, data={"hits": {1: math.inf}})]
    )
    loaded = Trace.load(run.save(tmp_path / "run.trace")).header
    assert repr(loaded.params) == repr(params)
    assert loaded.events[0].data == {"hits": {1: math.inf}}
    assert type(loaded.params["pair"]) is tuple


def test_numpy_numbers_in_the_header_become_plain_ones(tmp_path):
    run = trace([], params={"temperature": np.float32(0.5), "n": np.int64(3)})
    assert Trace.load(run.save(tmp_path / "run.trace")).header.params == {"temperature": 0.5, "n": 3}


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.just("$dict"), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None)
@given(plain_values)
def test_exact_json_returns_what_it_was_given_and_is_strict_json(value):
    text = dumps_exact(value)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert repr(loads_exact(text)) == repr(value)


@st.composite
def any_columns(draw):
    """A trace with arbitrary bits in every float, arbitrary texts, ids and flags."""
    n, k, p = draw(st.integers(0, 4)), draw(st.integers(0, 3)), draw(st.integers(0, 3))
    ids = st.integers(0, 2**31 - 1)
    token_bytes = draw(st.dictionaries(ids, st.binary(max_size=6), min_size=1, max_size=5))
    known = st.sampled_from(sorted(token_bytes))
    shape = {**dict.fromkeys(STEP_COLUMNS, (n,)), **dict.fromkeys(CANDIDATE_COLUMNS, (n, k))}
    limits = {
        "token_id": known,
        "candidate_id": known | st.just(-1),
        "flags": st.integers(0, 15),
        "candidate_removed_by": st.integers(0, 5),
    }
    columns = {}
    for name, dtype in LAYOUT.items():
        kind = np.dtype(dtype)
        if name in limits:
            columns[name] = draw(arrays(kind, shape[name], elements=limits[name]))
        else:
            raw = draw(arrays(np.dtype(f"u{kind.itemsize}"), shape[name]))
            columns[name] = raw.view(kind).reshape(shape[name])
    return Trace(
        header(),
        columns,
        draw(st.lists(st.text(max_size=5), min_size=n, max_size=n)),
        prompt_ids=draw(arrays(np.int32, p, elements=known)),
        prompt_logprobs=draw(arrays(np.uint32, p)).view(np.float32),
        token_bytes=token_bytes,
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(any_columns())
def test_any_bits_survive_a_round_trip(tmp_path_factory, run):
    path = run.save(tmp_path_factory.mktemp("any") / "run.trace")
    assert bits(Trace.load(path)) == bits(run)


def test_another_reader_finds_plain_arrays_and_strict_json(tmp_path):
    path = sky().save(tmp_path / "run.trace")
    found = safetensors.numpy.load_file(path)
    assert found["token_id"].tolist() == [1, 4, 8, 9, 2]
    assert found["text_bytes"].tobytes().decode() == "The <script>alert(1)</script>🙂"
    assert found["text_offsets"].tolist() == [0, 3, 29, 29, 33, 33]
    document = json.loads(metadata(path.read_bytes())[KEY])
    assert document["version"] == 1
    assert document["header"]["model"]["name"] == "tiny <model>"


# Saving that fails


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(TraceError, match=r"the folder .*absent does not exist") as caught:
        sky().save(tmp_path / "absent" / "run.trace")
    assert caught.value.hint == "Create it first, or choose another place."


def test_a_folder_is_no_place_for_a_file(tmp_path):
    with pytest.raises(TraceError, match="that is a folder"):
        sky().save(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(TraceError, match="x is not a folder"):
        sky().save(tmp_path / "x" / "run.trace")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "there is no permission to write in"),
        (OSError(errno.ENOSPC, "No space left on device"), r"the disk is full, [\d,]+ bytes are needed"),
        (OSError(errno.EIO, "Input/output error"), "input/output error"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_a_failed_write_leaves_the_old_file_and_nothing_half_written(tmp_path, monkeypatch, error, sentence):
    path = plain().save(tmp_path / "run.trace")
    monkeypatch.setattr(os, "fsync", raising(error))
    with pytest.raises(TraceError, match=sentence):
        sky().save(path)
    assert names(tmp_path) == ["run.trace"]
    assert len(Trace.load(path)) == 2


def test_an_interrupt_while_writing_leaves_the_old_file_and_nothing_half_written(tmp_path, monkeypatch):
    path = plain().save(tmp_path / "run.trace")
    monkeypatch.setattr(os, "fsync", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        sky().save(path)
    assert names(tmp_path) == ["run.trace"]
    assert len(Trace.load(path)) == 2


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(TraceError, match="too long"):
        sky().save(tmp_path / ("x" * 300))
    assert names(tmp_path) == []


def broken(**changes):
    run = sky()
    for name, value in changes.items():
        setattr(run, name, value)
    return run


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (trace([], params={"x": {"y": [object()]}}), r"header\.params\.x\.y\[0\] is of type object"),
        (broken(texts=["a"]), r"text_offsets should have length 6, and has shape \[2\]"),
        (broken(texts=["a", "b", "\ud800", "c", "d"]), "a text or a token id that cannot be written"),
        (broken(prompt_ids=np.array([1, 3])), "prompt_ids should be I32, and is I64"),
        (broken(token_bytes={1: b""}), "token_id has token 4, whose bytes it does not tell"),
    ],
)
def test_a_trace_that_contradicts_itself_is_not_saved(run, sentence, tmp_path):
    with pytest.raises(TraceError, match=sentence):
        run.save(tmp_path / "run.trace")
    assert names(tmp_path) == []


def test_a_header_that_nests_forever_is_not_saved(tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested too deeply"):
        dumps_exact({"loop": loop})


def test_a_header_beyond_the_limit_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "_MAX_HEADER_CHARS", 100)
    with pytest.raises(TraceError, match=r"its header takes .* 100 are the most"):
        sky().save(tmp_path / "run.trace")


# Loading what is no trace


def metadata(data):
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length])["__metadata__"]


def refused(path, sentence):
    with pytest.raises(TraceError, match=sentence) as caught:
        Trace.load(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    refused(tmp_path / "absent", "there is no such file")


def test_a_folder_is_no_trace(tmp_path):
    refused(tmp_path, "it is a folder")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are a Unix thing")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "it is not an ordinary file")


def test_a_path_under_a_file_cannot_be_reached(tmp_path):
    (tmp_path / "x").write_text("")
    refused(tmp_path / "x" / "y", "it cannot be reached")


def test_a_path_with_a_null_byte_cannot_be_reached():
    refused(Path("a\0b"), "it cannot be reached")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"PK\x03\x04",
        b"\x80\x04}.",
        b"{}",
        b"\xff" * 64,
        bytes(8),
        bytes(4096),
    ],
    ids=["empty", "picture", "zip", "pickle", "json", "ones", "short zeros", "zeros"],
)
def test_files_of_other_kinds_are_refused(data, tmp_path):
    (tmp_path / "x").write_bytes(data)
    refused(tmp_path / "x", "it is damaged, cut short or of another kind")


def test_a_header_longer_than_the_file_is_refused_without_being_allocated(tmp_path):
    (tmp_path / "x").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    refused(tmp_path / "x", "it is damaged, cut short or of another kind")


def test_weights_are_not_a_trace(tmp_path):
    safetensors.numpy.save_file({"w": np.zeros(3)}, tmp_path / "model.safetensors", {"format": "pt"})
    refused(tmp_path / "model.safetensors", "it is a safetensors file, but not one of a trace")
    safetensors.numpy.save_file({"w": np.zeros(3)}, tmp_path / "bare.safetensors")
    refused(tmp_path / "bare.safetensors", "it is a safetensors file, but not one of a trace")


def test_a_file_beyond_the_size_limit_is_refused_unread(tmp_path, monkeypatch):
    path = sky().save(tmp_path / "run.trace")
    monkeypatch.setattr(trace_file, "_MAX_FILE_BYTES", 1000)
    refused(path, "1,000 are the most")


def test_more_steps_than_the_limit_are_refused(tmp_path, monkeypatch):
    path = sky().save(tmp_path / "run.trace")
    monkeypatch.setattr(trace_file, "_MAX_ROWS", 4)
    refused(path, "more than 4 steps or tokens")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "no"), "there is no permission to read it"),
        (OSError(5, "broken"), "it cannot be read"),
    ],
)
def test_a_file_that_cannot_be_opened_says_why(tmp_path, monkeypatch, error, sentence):
    path = sky().save(tmp_path / "run.trace")
    monkeypatch.setattr(trace_file, "safe_open", lambda *_, **__: raising(error)())
    refused(path, sentence)


def test_a_file_cut_at_any_byte_is_refused(tmp_path):
    data = plain().save(tmp_path / "run.trace").read_bytes()
    cut = tmp_path / "cut.trace"
    for length in range(len(data)):
        cut.write_bytes(data[:length])
        with pytest.raises(TraceError, match="cannot open"):
            Trace.load(cut)


def test_a_file_with_a_byte_changed_anywhere_loads_or_is_refused(tmp_path):
    data = bytearray(sky().save(tmp_path / "run.trace").read_bytes())
    path = tmp_path / "changed.trace"
    for i in range(0, len(data), 3):
        data[i] ^= 0x15
        path.write_bytes(data)
        data[i] ^= 0x15
        try:
            Trace.load(path)
        except TraceError:
            continue


# Loading a trace that was tampered with


@pytest.fixture
def tampered(tmp_path):
    """Save the sky with some arrays, or its header, replaced; None takes an array away."""

    def write(document=None, text=None, **changes):
        path = sky().save(tmp_path / "run.trace")
        stored = metadata(path.read_bytes())[KEY]
        found = {**safetensors.numpy.load_file(path), **changes}
        if document is not None:
            stored = json.dumps({**json.loads(stored), **document})
        stored = stored if text is None else text
        kept = {name: array for name, array in found.items() if array is not None}
        safetensors.numpy.save_file(kept, path, {KEY: stored})
        return path

    return write


def test_a_newer_format_is_refused_with_advice(tampered):
    fault = refused(
        tampered(document={"version": 2}), "a newer cartoolkit wrote it, in format 2; 1 is known here"
    )
    assert fault.hint == "Update cartoolkit to read it."


@pytest.mark.parametrize("version", [None, 0, -1, "1", 1.0, True, [1]])
def test_a_version_that_is_none_is_refused(tampered, version):
    refused(tampered(document={"version": version}), "no usable format version")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "its header is damaged"),
        ("[]", "it is not a JSON object"),
        ("3", "it is not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"version": 1, "header": ' + "[" * 100 + "]" * 100 + "}", "nested too deeply"),
        ('{"version": ' + "1" * 5000 + "}", "its header is damaged"),
        ('{"version": {"$float": "1"}}', "'\\$float' is not one of its marks"),
        ('{"version": {"$what": 1}}', "'\\$what' is not one of its marks"),
        ('{"version": {"$dict": [[1]]}}', "something else than pairs"),
        ('{"version": {"$dict": [[[], 1]]}}', "a key that cannot be one"),
    ],
)
def test_a_damaged_header_is_refused(tampered, text, sentence):
    refused(tampered(text=text), sentence)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (None, "its header is not what it should be"),
        ([], "its header is not what it should be"),
        ({}, r"its header\.model is not what it should be"),
        ({"model": {"name": 3}}, r"its header\.model\.name is not what it should be"),
        ({"extra": 1}, "is not what it should be"),
    ],
)
def test_a_header_of_the_wrong_types_is_refused(tampered, change, sentence):
    refused(tampered(document={"header": change}), sentence)


def test_a_header_beyond_the_limit_is_refused(tampered, monkeypatch):
    path = tampered()
    monkeypatch.setattr(trace_file, "_MAX_HEADER_CHARS", 100)
    refused(path, "its header takes .* characters, 100 are the most")


i32, i64, u8, f32 = np.int32, np.int64, np.uint8, np.float32


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rank": None}, r"not those of a trace \(missing: rank; unknown: none\)"),
        ({"weights": np.zeros(2)}, r"not those of a trace \(missing: none; unknown: weights\)"),
        ({"rank": np.zeros(5, i64)}, "rank should be I32, and is I64"),
        ({"logprob": np.zeros(5, np.float16)}, "logprob should be F32, and is F16"),
        ({"rank": np.zeros(4, i32)}, r"rank should have length 5, and has shape \[4\]"),
        ({"rank": np.zeros((5, 1), i32)}, r"rank should have 1 axes, and has shape \[5, 1\]"),
        ({"candidate_id": np.zeros((5, 2), i32)}, r"should have length 2, and has shape \[5, 3\]"),
        ({"candidate_removed_by": np.zeros((4, 3), u8)}, r"should have length 5, and has shape \[4, 3\]"),
        ({"prompt_logprobs": np.zeros(3, f32)}, "prompt_logprobs should have length 2"),
        ({"text_offsets": np.zeros(5, i64)}, "text_offsets should have length 6"),
        (
            {"text_offsets": np.array([0, 3, 2, 29, 33, 33])},
            "text_offsets do not rise from 0 to the 33 bytes",
        ),
        ({"text_offsets": np.array([1, 3, 29, 29, 33, 33])}, "text_offsets do not rise"),
        ({"text_offsets": np.array([0, 3, 29, 29, 33, 34])}, "text_offsets do not rise"),
        ({"text_offsets": np.array([0, 3, 2**62, -(2**62), 33, 33])}, "text_offsets do not rise"),
        ({"text_offsets": np.array([0, 3, 29, 30, 33, 33])}, "the text of step 2 is not UTF-8"),
        ({"text_bytes": np.full(33, 255, u8)}, "the text of step 0 is not UTF-8"),
        ({"vocab_offsets": np.zeros(11, i64)}, "vocab_offsets do not rise"),
        (
            {"token_id": np.array([1, 4, 8, 9, 999], i32)},
            "token_id has token 999, whose bytes it does not tell",
        ),
        ({"token_id": np.array([1, 4, 8, 9, -1], i32)}, "token_id has token -1"),
        ({"prompt_ids": np.array([1, 77], i32)}, "prompt_ids has token 77"),
        ({"candidate_id": np.full((5, 3), 55, i32)}, "candidate_id has token 55"),
        ({"candidate_id": np.full((5, 3), -2, i32)}, "candidate_id has a number below -1"),
        ({"candidate_removed_by": np.full((5, 3), 6, u8)}, "names stage 6, 5 is the last"),
        ({"flags": np.full(5, 16, u8)}, "flags has a bit that this version does not know"),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(tampered, changes, sentence):
    refused(tampered(**changes), sentence)


def test_ids_that_do_not_rise_are_refused(tampered, tmp_path):
    ids = safetensors.numpy.load_file(sky().save(tmp_path / "other"))["vocab_ids"]
    refused(tampered(vocab_ids=ids[::-1].copy()), "vocab_ids do not rise from 0")
    refused(tampered(vocab_ids=ids * 0), "vocab_ids do not rise from 0")


def test_a_huge_shape_without_bytes_is_refused(tmp_path):
    path = tmp_path / "huge.trace"
    document = json.dumps({"version": 1, "header": header().model_dump()})
    entry = {"dtype": "U8", "shape": [2**40, 0], "data_offsets": [0, 0]}
    top = json.dumps({"__metadata__": {KEY: document}, "candidate_removed_by": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(top)) + top)
    refused(path, "its arrays are not those of a trace")


def test_many_notices_and_a_long_prompt_are_no_problem(tmp_path):
    run = trace([step(0, 1, "The")], prompt="x" * 1_000_000, events=events(*(["n"] * 2000)))
    assert Trace.load(run.save(tmp_path / "run.trace")).header == run.header
