"""Encodes values as JSON and decodes them: `decode` checks types and raises `DataLoss`.

A checksum finds damage, not a header that was written wrongly. So each field of a saved header is
read as a type, with its bounds, before anything uses it. Conditions between fields are checked
where both are known, by `require` and `built`.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import ml_dtypes
import numpy as np

from plugrt.base.files import parse_json
from plugrt.errors import DataLoss, PlugrtError, describe
from plugrt.wire.hlo_proto import PRIMITIVE_TYPES

T = TypeVar("T")

_MOST_BYTES = 2**62
"""The maximum size of an array: all memories are smaller."""
_SCALARS = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Between:
    """Bounds of an integer, both included."""

    least: int
    most: int


Count = Annotated[int, Between(0, 2**31 - 1)]
"""A number of things, an index, or an id."""
Size = Annotated[int, Between(0, 2**62)]
"""The size of a dimension, or a number of bytes."""
Shape = tuple[Size, ...]


def encode(value: object) -> object:
    """Returns a value as `decode` reads it: a record as a dict, bytes as text in base64."""
    if isinstance(value, np.dtype):
        return value.name
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {name: encode(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [*map(encode, value)]
    return value


def decode(kind: Any, value: Any, what: str) -> object:
    """Returns a JSON value as a type: a dataclass, a tuple, a dict, a union, `Literal`, a scalar.

    A dataclass has exactly its fields. Raises `DataLoss`, with the field after ``what``, for a
    value of another type or outside of its bounds.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is object:  # the caller decodes it
        return value
    if is_dataclass(kind):
        return _decode_record(kind, value, what)
    if origin is Annotated:
        number = decode(parts[0], value, what)
        require(parts[1].least <= number <= parts[1].most, f"{what} is {number}")
        return number
    if origin in (Union, UnionType):
        return _decode_union(parts, value, what)
    if origin is Literal:
        require(type(value) is str and value in parts, f"{what} is {value!r:.60}")
        return value
    if origin is tuple:
        return _decode_tuple(parts, value, what)
    if origin is list:
        return [*_decode_tuple((*parts, ...), value, what)]
    if origin is dict:
        _require_type(value, dict, what)
        return {
            decode(str, name, f"a name in {what}"): decode(parts[1], each, f"{what}[{name!r:.60}]")
            for name, each in value.items()
        }
    if origin is np.dtype:
        return _decode_dtype(value, what)
    if kind is bytes:
        return _decode_bytes(value, what)
    if kind is float and type(value) is int:
        require(abs(value) < 2**53, f"{what} is {value!r:.60}")
        return float(value)
    if kind not in (*_SCALARS, NoneType):
        raise AssertionError(f"{kind!r} is not decoded")
    _require_type(value, kind, what)
    if kind is str:  # JSON can escape half of a surrogate pair, which nothing writes or prints
        require(value.isascii() or not has_surrogates(value), f"{what} is {value!r:.60}")
    return value


def has_surrogates(text: str) -> bool:
    """Whether a text cannot be encoded in UTF-8."""
    return any("\ud800" <= char <= "\udfff" for char in text)


def decode_json(kind: object, text: bytes, what: str) -> Any:
    """Returns text of JSON as a type; `DataLoss` for any other bytes."""
    try:
        return decode(kind, parse_json(text), what)
    except ValueError as error:
        raise DataLoss(f"{what} is not JSON: {error}") from error


def require(holds: bool, found: str) -> None:
    """Raises `DataLoss` unless a condition holds; ``found`` describes the saved value."""
    if not holds:
        raise DataLoss(f"it is damaged, or was not written by plugrt: {found}")


@contextmanager
def built(what: str) -> Iterator[None]:
    """Raises `DataLoss` if a class refuses saved values within the block."""
    try:
        yield
    except DataLoss:
        raise
    except PlugrtError as error:
        raise DataLoss(
            f"it is damaged, or was not written by plugrt: {what}: {describe(error)}"
        ) from error


def require_indices(found: Sequence[int], count: int, what: str) -> None:
    """Raises `DataLoss` unless these are indices below ``count``, in order, each once."""
    require(
        list(found) == sorted(set(found)) and all(0 <= i < count for i in found),
        f"{what} is {list(found)[:8]} of {count}",
    )


def require_bytes(shape: Sequence[int], dtype: np.dtype[np.generic], what: str) -> int:
    """Returns the size of an array; raises `DataLoss` if it is larger than any memory."""
    nbytes = math.prod(shape) * dtype.itemsize
    # NumPy refuses sizes that are too large also if another one is 0.
    nonzero = math.prod(filter(None, shape)) * dtype.itemsize
    require(
        len(shape) <= 64 and all(n >= 0 for n in shape) and nonzero <= _MOST_BYTES,
        f"{what} is {dtype.name}{list(shape)!s:.60}",
    )
    return nbytes


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind, include_extras=True)


def _decode_record(kind: Any, value: object, what: str) -> object:
    _require_type(value, dict, what)
    assert isinstance(value, dict)
    hints = _hints(kind)
    lacking, strange = hints.keys() - value.keys(), value.keys() - hints.keys()
    require(not lacking, f"{what} lacks {sorted(lacking)}")
    require(not strange, f"{what} has {sorted(strange)!s:.100}")
    found = {name: decode(hint, value[name], f"{what}.{name}") for name, hint in hints.items()}
    with built(what):
        return kind(**found)


def _decode_union(kinds: Sequence[object], value: object, what: str) -> object:
    for kind in kinds:
        try:
            return decode(kind, value, what)
        except DataLoss:
            continue
    require(False, f"{what} is {value!r:.60}")
    raise AssertionError


def _decode_tuple(kinds: Sequence[object], value: object, what: str) -> tuple[object, ...]:
    _require_type(value, list, what)
    assert isinstance(value, list)
    if kinds[-1:] == (...,):
        kinds = [kinds[0]] * len(value)
    require(len(value) == len(kinds), f"{what} has {len(value)} items")
    return tuple(
        decode(kind, each, f"{what}[{i}]")
        for i, (kind, each) in enumerate(zip(kinds, value, strict=True))
    )


def _decode_dtype(value: object, what: str) -> np.dtype[np.generic]:
    require(
        isinstance(value, str) and value in PRIMITIVE_TYPES.values(), f"{what} is {value!r:.60}"
    )
    return np.dtype(getattr(ml_dtypes, str(value), None) or str(value))


def _decode_bytes(value: object, what: str) -> bytes:
    _require_type(value, str, what)
    try:
        return base64.b64decode(str(value), validate=True)
    except (ValueError, binascii.Error):
        require(False, f"{what} is {value!r:.60}")
        raise AssertionError from None


def _require_type(value: object, kind: type, what: str) -> None:
    require(type(value) is kind, f"{what} is {value!r:.60}, not of the type {kind.__name__}")
