"""Plain Python values as strict JSON that comes back equal: NaN, infinity, tuples and number keys included.

JSON has no NaN and only strings for keys, so what it lacks is written as an object with one key that
starts with ``$``: ``{"$float": "nan"}``, ``{"$tuple": […]}``, ``{"$dict": [[key, value], …]}``.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

__all__ = ["dumps_exact", "loads_exact"]

_MAX_DEPTH = 64
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dumps_exact(value: object) -> str:
    """The value as ASCII JSON; NumPy scalars become Python's.

    Raises:
        ValueError: something in it is no number, text, bool, None, list, tuple or dict, or lies too deep.

    >>> dumps_exact({7: float("-inf")})
    '{"$dict": [[7, {"$float": "-inf"}]]}'
    """
    return json.dumps(_encode(value, "", 0), allow_nan=False)


def loads_exact(text: str) -> Any:  # noqa: ANN401 - as free as JSON
    """What `dumps_exact` was given.

    Raises:
        ValueError: the text is not JSON of that form.

    >>> loads_exact('{"$dict": [[7, {"$float": "-inf"}]]}')
    {7: -inf}
    """
    try:
        return _decode(json.loads(text), 0)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deeply")


def _encode(value: object, where: str, depth: int) -> object:
    _check_depth(depth)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return _encode_dict(value, where, depth)
    if isinstance(value, list | tuple):
        items = [_encode(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    raise ValueError(f"{where.lstrip('.') or 'the value'} is of type {type(value).__name__}")


def _encode_dict(value: dict[Any, Any], where: str, depth: int) -> object:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _encode(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    pairs = [
        [_encode(key, f"{where}.{key}", depth + 1), _encode(item, f"{where}.{key}", depth + 1)]
        for key, item in value.items()
    ]
    return {"$dict": pairs}


def _decode(value: object, depth: int) -> object:
    _check_depth(depth)
    if isinstance(value, list):
        return [_decode(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith("$")), None)
    if tag is None:
        return {key: _decode(item, depth + 1) for key, item in value.items()}
    return _decode_tagged(tag, value[tag], len(value), depth)


def _decode_tagged(tag: str, value: object, keys: int, depth: int) -> object:
    if keys == 1 and tag == "$float" and isinstance(value, str) and value in _FLOATS:
        return _FLOATS[value]
    if keys == 1 and tag == "$tuple" and isinstance(value, list):
        return tuple(_decode(item, depth + 1) for item in value)
    if keys == 1 and tag == "$dict" and isinstance(value, list):
        return _decode_pairs(value, depth)
    raise ValueError(f"{tag!r} is not one of its marks")


def _decode_pairs(pairs: list[Any], depth: int) -> dict[Any, Any]:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError("a $dict holds something else than pairs")
    try:
        return {_decode(key, depth + 1): _decode(item, depth + 1) for key, item in pairs}
    except TypeError:
        raise ValueError("a $dict has a key that cannot be one") from None
