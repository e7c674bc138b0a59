"""Reads and writes safetensors: named arrays behind a header of JSON.

The format is https://huggingface.co/docs/safetensors. The package of that name is not used: the
thin installation would get a compiled dependency in place of these lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from plugrt.errors import DataLoss, DtypeError
from plugrt.wire.checked_fields import Size, decode, decode_json, require, require_bytes

HostArray = npt.NDArray[np.generic]

_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
    "BF16": "bfloat16", "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64",
    "I64": "int64", "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA = "__metadata__"
_MOST_HEADER = 100_000_000
"""The bound of the format on the header, in bytes."""


@dataclass(frozen=True, slots=True)
class _Entry:
    dtype: str
    shape: tuple[Size, ...]
    data_offsets: tuple[Size, Size]


def write_arrays(arrays: Mapping[str, HostArray]) -> bytes:
    """Returns arrays as safetensors; `DtypeError` for a dtype that the format lacks."""
    header: dict[str, object] = {}
    parts: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise DtypeError(f"{name!r} is {array.dtype.name}, for which safetensors has no name")
        part = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": _NAMES[array.dtype.name],
            "shape": [*array.shape],
            "data_offsets": [at, at + len(part)],
        }
        at += len(part)
        parts.append(part)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    return b"".join((len(text).to_bytes(8, "little"), text, *parts))


def read_arrays(content: bytes) -> dict[str, HostArray]:
    """Returns the arrays of a file in its order, as read-only views of ``content``.

    Raises `DataLoss` for other bytes, for entries that overlap or leave a gap, and for unknown
    dtypes.
    """
    count = int.from_bytes(content[:8], "little")
    require(
        len(content) >= 8 and count <= min(_MOST_HEADER, len(content) - 8),
        f"it has {len(content)} bytes, with a header of {count}",
    )
    header = decode_json(dict[str, object], content[8 : 8 + count], "the header")
    data = memoryview(content)[8 + count :]
    found: dict[str, HostArray] = {}
    at = 0
    header.pop(_METADATA, None)
    entries = [(name, _read_entry(name, value)) for name, value in header.items()]
    for name, entry in sorted(entries, key=lambda each: each[1].data_offsets):
        dtype = _read_dtype(name, entry.dtype)
        begin, end = entry.data_offsets
        size = require_bytes(entry.shape, dtype, repr(name))
        require(
            begin == at and end == at + size <= len(data),
            f"{name!r} of {size} bytes is at {begin} to {end} of {len(data)}; {at} was expected",
        )
        at = end
        found[name] = np.frombuffer(data[begin:end], dtype).reshape(entry.shape)
    require(at == len(data), f"{len(data) - at} bytes belong to no array")
    return {name: found[name] for name, _ in entries}


def _read_entry(name: str, value: object) -> _Entry:
    entry = decode(_Entry, value, repr(name)[:60])
    assert isinstance(entry, _Entry)
    return entry


def _read_dtype(name: str, stated: str) -> np.dtype[np.generic]:
    if stated not in _DTYPES:
        raise DataLoss(f"{name!r} has the dtype {stated!r:.20}; known are {', '.join(_DTYPES)}")
    dtype = _DTYPES[stated]
    return np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
