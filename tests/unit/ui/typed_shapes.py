"""Whether plain data has the shape that a TypedDict states: no key more, no key less, no other kind."""

from types import UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def faults(value, shape, where="$"):
    """What is wrong with `value`, one line each."""
    origin, args = get_origin(shape), get_args(shape)
    if origin in (Union, UnionType):
        tried = [faults(value, each, where) for each in args]
        return [] if [] in tried else max(tried, key=len)
    if origin is Literal:
        return [] if value in args else [f"{where}: {value!r} is none of {args}"]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where}: no list"]
        return [line for i, each in enumerate(value) for line in faults(each, args[0], f"{where}[{i}]")]
    if is_typeddict(shape):
        return _faults_of_keys(value, get_type_hints(shape), where)
    right = isinstance(value, int | float if shape is float else shape)
    return [] if right and (shape is bool or value is not True) else [f"{where}: {value!r} is no {shape}"]


def _faults_of_keys(value, hints, where):
    if not isinstance(value, dict) or set(value) != set(hints):
        return [f"{where}: has {sorted(value) if isinstance(value, dict) else value!r}"]
    return [line for key, shape in hints.items() for line in faults(value[key], shape, f"{where}.{key}")]
