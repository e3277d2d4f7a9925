"""A trace as one file: safetensors arrays and a JSON header in its metadata. No pickle, nothing executed.

Requirements it exists to satisfy: what is loaded equals what was saved, bit for bit; a file appears whole
or not at all; a file from somebody else can be opened without fear, and what is wrong with it is said.

Arrays are the columns of `cartoolkit.trace.columns`, the prompt, and two tables of strings, each a blob
of bytes with int64 offsets: `text_*` (what each step added, UTF-8) and `vocab_*` (bytes of token ids).
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialize

from cartoolkit.errors import TraceError
from cartoolkit.trace.columns import CANDIDATE_COLUMNS, FLAGS, STEP_COLUMNS
from cartoolkit.trace.exact_json import dumps_exact, loads_exact
from cartoolkit.trace.header import TraceHeader
from cartoolkit.trace.step import STAGES
from cartoolkit.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["FORMAT_VERSION", "load", "save"]

FORMAT_VERSION = 1
"""Raised when an older cartoolkit could no longer read what is written."""

_KEY = "cartoolkit.trace"
_MAX_FILE_BYTES = 1 << 32
_MAX_HEADER_CHARS = 1 << 26
_MAX_ROWS = 5_000_000

_LAYOUT: Mapping[str, tuple[type[np.generic], str]] = {
    **{name: (dtype, "n") for name, dtype in STEP_COLUMNS.items()},
    **{name: (dtype, "nk") for name, dtype in CANDIDATE_COLUMNS.items()},
    "prompt_ids": (np.int32, "p"),
    "prompt_logprobs": (np.float32, "p"),
    "text_bytes": (np.uint8, "x"),
    "text_offsets": (np.int64, "N"),
    "vocab_ids": (np.int32, "v"),
    "vocab_bytes": (np.uint8, "y"),
    "vocab_offsets": (np.int64, "V"),
}
"""dtype and axes of every array; equal letters mean equal lengths, a capital one more than its small one."""

_DTYPE_NAMES = {np.int32: "I32", np.int64: "I64", np.float32: "F32", np.float64: "F64", np.uint8: "U8"}


class _Fault(Exception):
    """What is wrong with a file or a trace, as the second half of a sentence; `hint` as in TraceError."""

    hint: str | None = None


def save(trace: Trace, path: Path) -> Path:
    """Write the trace to `path` and return it; `.trace` is the usual ending, nothing is appended.

    The bytes go to a second file in the same folder, which takes the name at the very end, so an older
    file of that name survives any error.

    Raises:
        TraceError: the place cannot be written to, or the trace contradicts itself.
    """
    try:
        data = _pack(trace)
    except _Fault as fault:
        raise TraceError(f"the trace was not saved to {path}: {fault}.") from None
    aside = path.parent / f".{secrets.token_hex(8)}.trace.part"
    try:
        _write_aside(data, aside, path)
    except (OSError, ValueError) as error:
        reason, hint = _why_not_written(error, path, len(data))
        raise TraceError(f"the trace was not saved to {path}: {reason}.", hint=hint) from error
    return path


def load(path: Path) -> Trace:
    """Open a saved trace, checking everything that its bytes claim.

    Raises:
        TraceError: the file is not there, damaged, not a trace, or written by a newer version.
    """
    try:
        _check_place(path)
        document, arrays = _read(path)
        header = _parse_header(document)
        _check_arrays(arrays)
        return _unpack(header, arrays)
    except _Fault as fault:
        raise TraceError(f"cannot open {path} as a trace: {fault}.", hint=fault.hint) from None


# Writing


def _write_aside(data: bytes, aside: Path, path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with aside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def _why_not_written(error: OSError | ValueError, path: Path, size: int) -> tuple[str, str | None]:
    folder = path.parent
    if isinstance(error, IsADirectoryError):
        return "that is a folder", "Add a file name, such as run.trace."
    if isinstance(error, FileNotFoundError):
        return f"the folder {folder} does not exist", "Create it first, or choose another place."
    if isinstance(error, NotADirectoryError):
        return f"{folder} is not a folder", "Choose another place."
    if isinstance(error, PermissionError):
        return f"there is no permission to write in {folder}", "Choose another place."
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full, {size:,} bytes are needed", "Free some space, or choose another place."
    return str(getattr(error, "strerror", None) or error).lower(), None


def _pack(trace: Trace) -> bytes:
    try:
        header = dumps_exact({"version": FORMAT_VERSION, "header": trace.header.model_dump()})
    except ValueError as error:
        raise _Fault(f"its header cannot be kept exactly, {error}") from None
    if len(header) > _MAX_HEADER_CHARS:
        raise _Fault(f"its header takes {len(header):,} characters, {_MAX_HEADER_CHARS:,} are the most")
    ids = sorted(trace.token_bytes)
    try:
        texts = [text.encode() for text in trace.texts]
        arrays = {
            **trace.columns,
            "prompt_ids": trace.prompt_ids,
            "prompt_logprobs": trace.prompt_logprobs,
            **_strings("text", texts),
            "vocab_ids": np.array(ids, np.int32),
            **_strings("vocab", [trace.token_bytes[i] for i in ids]),
        }
    except (UnicodeEncodeError, OverflowError) as error:
        raise _Fault(f"it holds a text or a token id that cannot be written ({error})") from None
    _check_layout({name: (_dtype_name(array), array.shape) for name, array in arrays.items()})
    _check_arrays(arrays)
    return serialize({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {_KEY: header})


def _dtype_name(array: np.ndarray) -> str:
    return _DTYPE_NAMES.get(array.dtype.type, str(array.dtype))


def _strings(name: str, values: list[bytes]) -> dict[str, np.ndarray]:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return {f"{name}_bytes": np.frombuffer(b"".join(values), np.uint8), f"{name}_offsets": offsets}


# Reading


def _check_place(path: Path) -> None:
    try:
        status = path.stat()
    except FileNotFoundError:
        raise _Fault("there is no such file") from None
    except (OSError, ValueError) as error:
        raise _Fault(f"it cannot be reached ({error})") from None
    if stat.S_ISDIR(status.st_mode):
        raise _Fault("it is a folder")
    # A pipe or a device would keep us waiting for bytes that never come.
    if not stat.S_ISREG(status.st_mode):
        raise _Fault("it is not an ordinary file")
    if status.st_size > _MAX_FILE_BYTES:
        raise _Fault(f"it has {status.st_size:,} bytes, {_MAX_FILE_BYTES:,} are the most")


def _read(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY)
            if text is None:
                raise _Fault("it is a safetensors file, but not one of a trace")
            document = _document(text)
            _check_version(document)
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            _check_layout({name: (s.get_dtype(), tuple(s.get_shape())) for name, s in slices.items()})
            return document, {name: file.get_tensor(name) for name in _LAYOUT}
    except (SafetensorError, UnicodeError) as error:
        raise _Fault(f"it is damaged, cut short or of another kind ({error})") from None
    except PermissionError:
        raise _Fault("there is no permission to read it") from None
    except OSError as error:
        raise _Fault(f"it cannot be read ({error})") from None


def _check_version(document: Mapping[str, object]) -> None:
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise _Fault(f"its header has no usable format version, but {version!r:.40}")
    if version > FORMAT_VERSION:
        fault = _Fault(f"a newer cartoolkit wrote it, in format {version}; {FORMAT_VERSION} is known here")
        fault.hint = "Update cartoolkit to read it."
        raise fault


def _document(text: str) -> dict[str, object]:
    if len(text) > _MAX_HEADER_CHARS:
        raise _Fault(f"its header takes {len(text):,} characters, {_MAX_HEADER_CHARS:,} are the most")
    try:
        document = loads_exact(text)
    except ValueError as error:
        raise _Fault(f"its header is damaged ({error})") from None
    if not isinstance(document, dict):
        raise _Fault("its header is damaged (it is not a JSON object)")
    return document


def _parse_header(document: Mapping[str, object]) -> TraceHeader:
    try:
        return TraceHeader.model_validate(document.get("header"))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(["header", *(str(part) for part in fault["loc"])])
        raise _Fault(f"its {where} is not what it should be ({fault['msg']})") from None


def _unpack(header: TraceHeader, arrays: Mapping[str, np.ndarray]) -> Trace:
    columns = {name: arrays[name] for name in (*STEP_COLUMNS, *CANDIDATE_COLUMNS)}
    ids = arrays["vocab_ids"].tolist()
    return Trace(
        header,
        columns,
        [text.decode() for text in _pieces(arrays, "text")],
        prompt_ids=arrays["prompt_ids"],
        prompt_logprobs=arrays["prompt_logprobs"],
        token_bytes=dict(zip(ids, _pieces(arrays, "vocab"), strict=True)),
    )


# Checks that a file and a trace about to be saved must both pass


def _check_layout(found: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
    missing, foreign = [sorted(names) for names in (_LAYOUT.keys() - found, found.keys() - _LAYOUT)]
    if missing or foreign:
        raise _Fault(
            f"its arrays are not those of a trace (missing: {_names(missing)}; unknown: {_names(foreign)})"
        )
    lengths: dict[str, int] = {}
    for name, (dtype, axes) in _LAYOUT.items():
        found_dtype, shape = found[name]
        if found_dtype != _DTYPE_NAMES[dtype]:
            raise _Fault(f"{name} should be {_DTYPE_NAMES[dtype]}, and is {found_dtype}")
        if len(shape) != len(axes):
            raise _Fault(f"{name} should have {len(axes)} axes, and has shape {list(shape)}")
        for axis, length in zip(axes, shape, strict=True):
            expected = lengths.setdefault(axis, _expected(axis, length, lengths))
            if length != expected:
                raise _Fault(f"{name} should have length {expected}, and has shape {list(shape)}")
    if max(lengths["n"], lengths["v"]) > _MAX_ROWS:
        raise _Fault(f"it has more than {_MAX_ROWS:,} steps or tokens")


def _names(names: list[str]) -> str:
    return ", ".join(name[:40] for name in names[:3]) + (", …" if len(names) > 3 else "") or "none"


def _expected(axis: str, length: int, lengths: Mapping[str, int]) -> int:
    return lengths[axis.lower()] + 1 if axis.isupper() else length


def _check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    for name in ("text", "vocab"):
        _check_offsets(arrays[f"{name}_offsets"], len(arrays[f"{name}_bytes"]), name)
    _check_texts(arrays)
    _check_ids(arrays)
    stages = arrays["candidate_removed_by"]
    if stages.size and stages.max() >= len(STAGES):
        raise _Fault(f"candidate_removed_by names stage {stages.max()}, {len(STAGES) - 1} is the last")
    if arrays["flags"].size and arrays["flags"].max() > sum(FLAGS.values()):
        raise _Fault("flags has a bit that this version does not know")


def _check_offsets(offsets: np.ndarray, size: int, name: str) -> None:
    if offsets[0] != 0 or offsets[-1] != size or (offsets[1:] < offsets[:-1]).any():
        raise _Fault(f"{name}_offsets do not rise from 0 to the {size:,} bytes of {name}_bytes")


def _pieces(arrays: Mapping[str, np.ndarray], name: str) -> Iterable[bytes]:
    blob, offsets = arrays[f"{name}_bytes"].tobytes(), arrays[f"{name}_offsets"].tolist()
    return (blob[a:b] for a, b in itertools.pairwise(offsets))


def _check_texts(arrays: Mapping[str, np.ndarray]) -> None:
    for i, text in enumerate(_pieces(arrays, "text")):
        try:
            text.decode()
        except UnicodeDecodeError:
            raise _Fault(f"the text of step {i} is not UTF-8") from None


def _check_ids(arrays: Mapping[str, np.ndarray]) -> None:
    known = arrays["vocab_ids"]
    if (known < 0).any() or (known[1:] <= known[:-1]).any():
        raise _Fault("vocab_ids do not rise from 0")
    if (arrays["candidate_id"] < -1).any():
        raise _Fault("candidate_id has a number below -1")
    candidates = arrays["candidate_id"][arrays["candidate_id"] >= 0]
    for name, ids in {**arrays, "candidate_id": candidates}.items():
        if name in ("token_id", "prompt_ids", "candidate_id"):
            unknown = ids[~np.isin(ids, known)]
            if unknown.size:
                raise _Fault(f"{name} has token {unknown[0]}, whose bytes it does not tell")
