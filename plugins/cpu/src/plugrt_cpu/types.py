"""Interned array types, and the dtypes that XLA's CPU backend supports."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import NotAnArray, UnsupportedDtype
from plugrt.interface import TOKEN_TYPE, Layout, TensorType
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt_cpu import adapter

if TYPE_CHECKING:
    import numpy.typing as npt

_BUFFER_PROTOCOL = (
    "bool",
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_WHOLE_BYTES = (
    "bfloat16",
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
_SUB_BYTE = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")

BUFFER_PROTOCOL_DTYPES = frozenset(map(np.dtype, _BUFFER_PROTOCOL))
"""Dtypes of Python's buffer protocol in jaxlib; NumPy has them all."""
_FIRST_TOKEN = (0,), np.dtype(bool)
_NUMPY_NUMBERS = 256
"""NumPy's own dtypes have smaller numbers."""


@cache
def collect_dtypes() -> tuple[frozenset[np.dtype[Any]], frozenset[np.dtype[Any]]]:
    """Returns all dtypes that a buffer can have, and which are of less than a byte.

    ml_dtypes stores one element of these a byte, XLA packs them. The first call imports it, not a
    start: the import is 4 % of one.
    """
    [ml_dtypes] = import_native("ml_dtypes")
    less = frozenset(np.dtype(getattr(ml_dtypes, name)) for name in _SUB_BYTE)
    whole = frozenset(np.dtype(getattr(ml_dtypes, name)) for name in _WHOLE_BYTES)
    return BUFFER_PROTOCOL_DTYPES | whole | less, less


def is_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether a buffer can have a dtype."""
    return dtype in BUFFER_PROTOCOL_DTYPES or dtype in collect_dtypes()[0]


def is_sub_byte(dtype: np.dtype[Any]) -> bool:
    """Whether an element is less than a byte."""
    return dtype.num >= _NUMPY_NUMBERS and dtype in collect_dtypes()[1]


@lru_cache(maxsize=8192)
def array_type(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[TensorType, adapter.Aval]:
    """Returns the type, the same object each time, and its description for jaxlib.

    A token is for jaxlib what begins a chain: an empty array.
    """
    kind = TensorType(shape, dtype)
    if kind.is_token:
        return TOKEN_TYPE, array_type(*_FIRST_TOKEN)[1]
    return kind, adapter.Aval(shape, dtype)


@lru_cache(maxsize=1024)
def type_in_layout(
    shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout | None
) -> TensorType:
    """Returns the type in a layout, None for row-major: then the object that `array_type` gives."""
    if layout is None:  # not an argument of `array_type`: a cache key depends on how it is passed
        return array_type(shape, dtype)[0]
    return TensorType(shape, dtype, layout)


def fits(found: TensorType, wanted: TensorType) -> bool:
    """Whether an argument of one type can be given for a parameter of another."""
    return found == wanted or (wanted.is_token and found == array_type(*_FIRST_TOKEN)[0])


def layout_of(tensor_type: TensorType) -> Layout:
    """Returns the layout of an array of that type: row-major by default."""
    return tensor_type.layout or Layout.row_major(len(tensor_type.shape))


def require_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the native-endian dtype for one that a buffer can have; raises `UnsupportedDtype`."""
    native = dtype.newbyteorder("=")
    if is_dtype(native):
        return native
    raise UnsupportedDtype(
        f"XLA's CPU backend has no element type for dtype {dtype.name!r}; it has "
        f"{', '.join(sorted(d.name for d in collect_dtypes()[0]))}"
    )


def to_plain_array(array: Any) -> npt.NDArray[Any]:
    """Returns the source as a plain array of a dtype and byte order that a device has."""
    if isinstance(array, np.ma.MaskedArray):
        raise NotAnArray("a masked array cannot be put on a device, which has no masks")
    plain = np.asarray(array)
    return plain.astype(require_dtype(plain.dtype), copy=False)
