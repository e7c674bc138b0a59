"""Kinds of dtypes, and the dtypes to compute in where NumPy is slow or wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plugrt.stablehlo.element_names import element_name

Array = npt.NDArray[Any]
Dtype = np.dtype[Any]
Function = Callable[..., Any]

BOOL: Dtype = np.dtype(np.bool_)
FLOAT32: Dtype = np.dtype(np.float32)
INT64: Dtype = np.dtype(np.int64)


@cache
def dtype_kind(dtype: Dtype) -> str:
    """Returns ``b`` (boolean), ``i`` (signed), ``u`` (unsigned), ``f`` or ``c`` (complex)."""
    name = element_name(dtype)
    if name == "i1":
        return "b"
    return "u" if name.startswith("ui") else name[0].replace("b", "f")


def is_integer(dtype: Dtype) -> bool:
    """Whether a dtype is a signed or unsigned integer's, booleans apart."""
    return dtype_kind(dtype) in "iu"


def is_float(dtype: Dtype) -> bool:
    """Whether a dtype is a real floating one."""
    return dtype_kind(dtype) == "f"


def is_complex(dtype: Dtype) -> bool:
    """Whether a dtype is a complex one."""
    return dtype_kind(dtype) == "c"


class IntegerInfo(NamedTuple):
    """The width and the range of an integer dtype."""

    bits: int
    low: int
    high: int


@cache
def integer_info(dtype: Dtype) -> IntegerInfo:
    """Returns the width and the range of an integer dtype, ml_dtypes' included."""
    name = element_name(dtype)
    bits = int(name.lstrip("ui"))
    if name.startswith("u"):
        return IntegerInfo(bits, 0, 2**bits - 1)
    return IntegerInfo(bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def bit_width(dtype: Dtype) -> int:
    """Returns the bits of an element: 4 for int4, which has a byte on the host."""
    if dtype == BOOL:
        return 1
    if is_integer(dtype):
        return integer_info(dtype).bits
    return 4 if dtype.name.startswith("float4") else dtype.itemsize * 8


@cache
def bits_dtype(dtype: Dtype) -> Dtype:
    """Returns the unsigned dtype of the same size."""
    return np.dtype(f"u{dtype.itemsize}")


@cache
def wide_dtype(dtype: Dtype) -> Dtype:
    """Returns the dtype to compute in: NumPy's own of the same kind, as exact or more so.

    Floats of 8 and 16 bits are computed in float32 and rounded once, as XLA does on CPUs.
    """
    kind, bits = dtype_kind(dtype), bit_width(dtype)
    if kind == "f" and bits <= 16:
        return FLOAT32
    if kind in "iu" and bits < 8:
        return np.dtype(np.int8 if kind == "i" else np.uint8)
    return dtype


def compute_wide(function: Function, dtype: Dtype, result: Dtype | None = None) -> Function:
    """Returns a function of arrays of ``dtype`` that computes in `wide_dtype`.

    The results have the dtype ``result``, by default the arguments' dtype.
    """
    wide, narrow = wide_dtype(dtype), result or dtype
    if wide == dtype:
        return function
    if narrow == BOOL:
        return lambda *arrays: function(*[a.astype(wide) for a in arrays])
    return lambda *arrays: function(*[a.astype(wide) for a in arrays]).astype(narrow)


def has_leading_sign(dtype: Dtype) -> bool:
    """Whether the highest bit of a float's bytes is its sign."""
    return bit_width(dtype) % 8 == 0 and dtype.name != "float8_e8m0fnu"


def bits_to_order(array: Array) -> Array:
    """Returns signed integers that sort as ``totalOrder`` of IEEE 754 sorts the floats."""
    if not has_leading_sign(array.dtype):
        array = array.astype(FLOAT32)
    bits = array.view(np.dtype(f"i{array.dtype.itemsize}"))
    # A negative float's magnitude is inverted, its sign kept. (By its sign's bits: np.where needs
    # ten times as long.)
    info = np.iinfo(bits.dtype)
    ordered: Array = bits ^ ((bits >> (info.bits - 1)) & info.max)
    return ordered
