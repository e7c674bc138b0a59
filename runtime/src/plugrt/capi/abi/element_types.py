"""Converts between NumPy and ml_dtypes dtypes and PJRT's element types."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.errors import UnsupportedDtype

TOKEN = 23
"""The element type of a token: a value without contents that orders effects."""

_NAMES: tuple[str | None, ...] = (
    None, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "complex64", "complex128", "float8_e5m2",
    "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e4m3fnuz", "int4",
    "uint4", None, "int2", "uint2", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu",
    "float4_e2m1fn", "int1", "uint1", "float6_e2m3fn", "float6_e3m2fn",
)  # fmt: skip
"""The dtype of each ``PJRT_Buffer_Type``, by value."""


def _dtype(name: str) -> np.dtype[Any] | None:
    scalar_type = getattr(ml_dtypes, name, None)
    if scalar_type is None:
        scalar_type = getattr(np, name if name != "bool" else "bool_", None)
    return None if scalar_type is None else np.dtype(scalar_type)


_FROM_TYPE: dict[int, np.dtype[Any]] = {
    value: dtype
    for value, name in enumerate(_NAMES)
    if name is not None and (dtype := _dtype(name)) is not None
}
_SINCE = {23: 50, 24: 55, 25: 55, 26: 55, 27: 55, 28: 63, 29: 63, 30: 94, 31: 94, 32: 114, 33: 114}
"""The minor version that added an element type; older libraries abort on it."""

_FROM_TYPE[TOKEN] = np.dtype("V")
ELEMENT_TYPES: dict[np.dtype[Any], int] = {dtype: value for value, dtype in _FROM_TYPE.items()}


def dtype_to_element_type(dtype: np.dtype[Any], minor: int) -> int:
    """Returns the ``PJRT_Buffer_Type`` for a library of version 0.``minor``.

    Raises `UnsupportedDtype` for a dtype that PJRT lacks, or that this library is too old for.
    """
    try:
        found = ELEMENT_TYPES[dtype]
    except KeyError:
        raise UnsupportedDtype(
            f"dtype {dtype} has no PJRT element type; booleans, integers, floats, complex numbers "
            "and the types of ml_dtypes in native byte order have one"
        ) from None
    if minor < _SINCE.get(found, 0):
        raise UnsupportedDtype(
            f"dtype {dtype} came with version 0.{_SINCE[found]} of the PJRT C API; the library "
            f"has 0.{minor}"
        )
    return found


def element_bits(dtype: np.dtype[Any]) -> int:
    """Returns the bits that an element needs, where it may share bytes with others."""
    if dtype.kind == "b":
        return 8
    small = re.fullmatch(r"u?int(\d)|float([46])_\w+", dtype.name)
    return int(small[1] or small[2]) if small else dtype.itemsize * 8


def supported_dtypes(minor: int) -> frozenset[str]:
    """Returns the names of the dtypes that a library of version 0.``minor`` can name."""
    return frozenset(
        dtype.name
        for dtype, value in ELEMENT_TYPES.items()
        if value != TOKEN and minor >= _SINCE.get(value, 0)
    )


def element_type_to_dtype(element_type: int) -> np.dtype[Any]:
    """Returns the dtype of a ``PJRT_Buffer_Type``; `UnsupportedDtype` for an unknown one."""
    try:
        return _FROM_TYPE[element_type]
    except KeyError:
        raise UnsupportedDtype(
            f"the PJRT element type {element_type} has no NumPy or ml_dtypes dtype here"
        ) from None
