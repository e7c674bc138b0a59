"""Data type functions: `astype`, `can_cast`, `result_type`, `finfo`, `iinfo`, `isdtype`."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from plugrt.array_api import dtypes
from plugrt.array_api.device_argument import copy_array, place
from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import python_scalar
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.emit import convert
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import (
    default_complex,
    default_float,
    default_int,
    dtype_kind,
    promote_dtypes,
    result_dtype,
)
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DeviceLike, DTypeLike

Dtype = np.dtype[Any]


@operation(static=("dtype",), weak_by="none")
def convert_dtype(x: Tracer, *, dtype: Dtype) -> Tracer:
    """Returns ``x`` in another dtype: `astype` without its options."""
    return convert(x, dtype)


@with_argument_errors
def astype(
    x: ArrayLike,
    dtype: DTypeLike,
    /,
    *,
    copy: builtins.bool = True,
    device: DeviceLike | None = None,
) -> Array:
    """Returns ``x`` in another dtype.

    Floats are truncated towards zero by a conversion to integers; everything but 0 is True; complex
    arrays lose their imaginary part. With ``copy`` False an array that has the dtype is returned as
    it is. ``device`` moves the result. The shape stays. Raises `UnsupportedDtype` for a dtype that
    devices lack.

    >>> xp.astype(xp.asarray([1.9, -1.9]), xp.int32)
    Array([ 1, -1], dtype=int32)
    """
    target = as_dtype(dtype)
    array: Array = x if type(x) in (Array, Tracer) else convert_dtype(x, dtype=target)  # type: ignore[assignment]
    if array.dtype != target or is_weak(array):
        return place(convert_dtype(array, dtype=target), device)
    return place(copy_array(array) if copy else array, device)


def is_weak(x: Any) -> builtins.bool:
    """Whether the dtype of an array or scalar yields to others, as that of a Python scalar does."""
    if type(x) in (Array, Tracer):
        return builtins.bool(x._aval.weak if type(x) is Array else x.weak)
    return python_scalar(x) is not None and not isinstance(x, builtins.bool)


@with_argument_errors
def can_cast(from_: ArrayLike | DTypeLike, to: DTypeLike, /) -> builtins.bool:
    """Returns whether promotion may bring a dtype, or an array's dtype, to another one.

    Raises `UnsupportedDtype` for what is no dtype.

    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int32, xp.int16)
    (True, False)
    """
    source, target = _read_dtype(from_), as_dtype(to)
    try:
        return promote_dtypes(source, target) == target and (
            dtype_kind(source) not in "iu"
            or dtype_kind(target) not in "f"
            or target.itemsize > source.itemsize
        )
    except DtypeError:
        return False


@with_argument_errors
def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike) -> Dtype:
    """Returns the dtype that arrays, dtypes and Python scalars have together.

    Python scalars yield to the others, of which there must be one. Raises `DtypeError` for dtypes
    without a promotion, `ArgumentTypeError` for scalars alone.

    >>> xp.result_type(xp.int8, xp.uint8).name
    'int16'
    >>> xp.result_type(xp.asarray([1, 2]), 1.5).name
    'float32'
    """
    operands: list[tuple[Dtype, builtins.bool]] = []
    for x in arrays_and_dtypes:
        if type(x) in _SCALARS:
            operands.append((_SCALARS[type(x)](), True))
        else:
            operands.append((_read_dtype(x), type(x) in (Array, Tracer) and is_weak(x)))
    if all(weak for _, weak in operands):
        raise ArgumentTypeError(
            "result_type takes at least one array or dtype beside Python scalars; got "
            f"{arrays_and_dtypes!r}"
        )
    return result_dtype(operands)


_SCALARS: dict[type, Any] = {
    builtins.bool: lambda: dtypes.bool,
    int: default_int,
    float: default_float,
    complex: default_complex,
}


def _read_dtype(x: object) -> Dtype:
    if isinstance(x, Array | np.ndarray | np.generic):
        return as_dtype(x.dtype)
    return as_dtype(x)


@dataclass(frozen=True)
class finfo_object:  # the standard's name
    """The limits of a floating dtype; of a complex one, those of its parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


@dataclass(frozen=True)
class iinfo_object:  # the standard's name
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Dtype


# ml_dtypes' functions have no types.
_FLOATS: Any = ml_dtypes.finfo
_INTEGERS: Any = ml_dtypes.iinfo


@with_argument_errors
def finfo(type: Array | npt.NDArray[Any] | np.generic | DTypeLike, /) -> finfo_object:
    """Returns the limits of a floating dtype, or of an array's; `DtypeError` for other dtypes.

    >>> xp.finfo(xp.float16).max
    65504.0
    """
    dtype = _read_dtype(type)
    if dtype_kind(dtype) not in "fc":
        raise DtypeError(f"finfo got {dtype.name}; it takes floating dtypes (iinfo: integers)")
    info: Any = _FLOATS(dtype)
    numbers = (info.eps, info.max, info.min, info.smallest_normal)
    eps, largest, smallest, normal = map(float, numbers)
    return finfo_object(int(info.bits), eps, largest, smallest, normal, np.dtype(info.dtype))


@with_argument_errors
def iinfo(type: Array | npt.NDArray[Any] | np.generic | DTypeLike, /) -> iinfo_object:
    """Returns the limits of an integer dtype, or of an array's; `DtypeError` for other dtypes.

    >>> xp.iinfo(xp.int4).min
    -8
    """
    dtype = _read_dtype(type)
    if dtype_kind(dtype) not in "iu":
        raise DtypeError(f"iinfo got {dtype.name}; it takes integer dtypes (finfo: floats)")
    info: Any = _INTEGERS(dtype)
    return iinfo_object(int(info.bits), int(info.max), int(info.min), dtype)


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@with_argument_errors
def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> builtins.bool:
    """Returns whether a dtype is of a kind: a dtype, a kind's name, or a tuple of such.

    The names are the standard's: bool, signed integer, unsigned integer, integral, real floating,
    complex floating, numeric.

    Raises `ArgumentTypeError` for what is no dtype, and `ArgumentError` for another name.

    >>> xp.isdtype(xp.bfloat16, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    found = np.dtype(dtype)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"there is no dtype kind {kind!r}; there are {', '.join(_KINDS)}")
        return dtype_kind(found) in _KINDS[kind]
    if isinstance(kind, Array | np.ndarray):
        raise NotAnArray("isdtype takes a dtype, the name of a kind, or a tuple of these")
    return builtins.bool(found == np.dtype(kind))


e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None
"""Inserts a dimension when used in an index: ``x[:, newaxis]``."""
