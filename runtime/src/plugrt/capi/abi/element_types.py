"""PJRT's element types: their numbers, their dtypes, and their elements of fewer than 8 bits.

XLA's programs have such elements packed, the first in the low bits. NumPy has one in each byte.
Their sizes, of 1, 2 or 4 bits, divide a byte.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from plugrt.errors import UnsupportedDtype
from plugrt.lifetime.uninterrupted_imports import import_native

[ml_dtypes] = import_native("ml_dtypes")  # a start on a library has not imported it

TOKEN = 23
"""The element type of a token: a value without contents that orders effects."""

_TYPES: tuple[tuple[str, str | None], ...] = (
    ("INVALID", None), ("PRED", "bool"), ("S8", "int8"), ("S16", "int16"), ("S32", "int32"),
    ("S64", "int64"), ("U8", "uint8"), ("U16", "uint16"), ("U32", "uint32"), ("U64", "uint64"),
    ("F16", "float16"), ("F32", "float32"), ("F64", "float64"), ("BF16", "bfloat16"),
    ("C64", "complex64"), ("C128", "complex128"), ("F8E5M2", "float8_e5m2"),
    ("F8E4M3FN", "float8_e4m3fn"), ("F8E4M3B11FNUZ", "float8_e4m3b11fnuz"),
    ("F8E5M2FNUZ", "float8_e5m2fnuz"), ("F8E4M3FNUZ", "float8_e4m3fnuz"), ("S4", "int4"),
    ("U4", "uint4"), ("TOKEN", None), ("S2", "int2"), ("U2", "uint2"), ("F8E4M3", "float8_e4m3"),
    ("F8E3M4", "float8_e3m4"), ("F8E8M0FNU", "float8_e8m0fnu"), ("F4E2M1FN", "float4_e2m1fn"),
    ("S1", "int1"), ("U1", "uint1"), ("F6E2M3FN", "float6_e2m3fn"),
    ("F6E3M2FN", "float6_e3m2fn"),
)  # fmt: skip
"""``PJRT_Buffer_Type`` in order from 0: each enumerator without its prefix, and its dtype."""

BUFFER_TYPES = tuple(name for name, _ in _TYPES)
"""The enumerators alone."""


def _dtype(name: str) -> np.dtype[np.generic] | None:
    scalar_type = getattr(ml_dtypes, name, None)
    if scalar_type is None:
        scalar_type = getattr(np, name if name != "bool" else "bool_", None)
    return None if scalar_type is None else np.dtype(scalar_type)


_FROM_TYPE: dict[int, np.dtype[np.generic]] = {
    value: dtype
    for value, (_, name) in enumerate(_TYPES)
    if name is not None and (dtype := _dtype(name)) is not None
}
_SINCE = {23: 50, 24: 55, 25: 55, 26: 55, 27: 55, 28: 63, 29: 63, 30: 94, 31: 94, 32: 114, 33: 114}
"""The minor version that added an element type; older libraries abort on it."""

_FROM_TYPE[TOKEN] = np.dtype("V")
ELEMENT_TYPES: dict[np.dtype[np.generic], int] = {
    dtype: value for value, dtype in _FROM_TYPE.items()
}


def dtype_to_element_type(dtype: np.dtype[np.generic], minor: int) -> int:
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


def element_bits(dtype: np.dtype[np.generic]) -> int:
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


def element_type_to_dtype(element_type: int) -> np.dtype[np.generic]:
    """Returns the dtype of a ``PJRT_Buffer_Type``; `UnsupportedDtype` for an unknown one."""
    try:
        return _FROM_TYPE[element_type]
    except KeyError:
        raise UnsupportedDtype(
            f"the PJRT element type {element_type} has no NumPy or ml_dtypes dtype here"
        ) from None


def packed_size(count: int, dtype: np.dtype[np.generic]) -> int:
    """Returns the bytes of that many elements."""
    return -(-count * element_bits(dtype) // 8)


def unpack_elements(
    memory: npt.NDArray[np.uint8], dtype: np.dtype[np.generic], count: int
) -> npt.NDArray[np.generic]:
    """Returns the first ``count`` packed elements, each in a byte of its own."""
    bits = element_bits(dtype)
    parts = memory[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    return parts.reshape(-1)[:count].view(dtype)


def pack_elements(array: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    """Returns the bytes of the elements of an array in C order."""
    bits = element_bits(array.dtype)
    values = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    padded = np.zeros(packed_size(values.size, array.dtype) * (8 // bits), np.uint8)
    padded[: values.size] = values
    shifted = padded.reshape(-1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(shifted, axis=1)
    return packed
