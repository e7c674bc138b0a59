"""Data type functions: `astype`, `result_type`, `finfo` and others, `__array_namespace_info__`."""

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
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import python_scalar
from plugrt.execution.placement.default_device import default_device
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device, TensorType
from plugrt.plugins.selection import backends
from plugrt.tracing.emit import concatenate, convert, emit, hlo, reshape, slice_
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import (
    default_complex,
    default_float,
    default_int,
    dtype_kind,
    itemsize_bits,
    promote_dtypes,
    result_dtype,
)
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DeviceLike, DTypeLike

Dtype = np.dtype[Any]


@operation(static=("dtype",), weak_by="none", title="astype")
def convert_dtype(x: Tracer, *, dtype: Dtype) -> Tracer:
    """Returns ``x`` in another dtype: `astype` without its options."""
    return convert(x, dtype)


@operation(static=("dtype",), weak_by="none")
def view(x: Tracer, dtype: DTypeLike) -> Tracer:
    """Returns the bits of ``x`` as elements of another dtype: the method of arrays.

    The last axis gets longer or shorter. A bool is a byte, a complex number two floats. Raises
    `ShapeError` where the bits of the last axis are no whole number of elements.
    """
    target = as_dtype(dtype)
    made = _split_parts(x if x.ndim else reshape(x, (1,)))
    kind = dtype_kind(target)
    held = np.dtype({"b": "u1", "c": f"f{target.itemsize // 2}"}.get(kind, target))
    old, new, lead, size = itemsize_bits(made.dtype), itemsize_bits(held), *_last(made)
    if size * old % (new * (2 if kind == "c" else 1)):
        raise ShapeError(f"view of {TensorType(x.shape, x.dtype)} as {target.name} does not fit")
    if old < new:
        made = reshape(made, (*lead, size * old // new, new // old))
    shape = (*lead, size * old // new) if old <= new else (*lead, size, old // new)
    if made.dtype != held:
        made = emit(hlo.bitcast_convert, made, result=TensorType(shape, held))
    made = reshape(made, (*lead, size * old // new))
    if kind == "c":
        made = emit(hlo.complex, *(_every_second(made, i) for i in (0, 1)))
    made = convert(made, target)
    return reshape(made, ()) if not x.ndim and made.size == 1 else made


def _last(x: Tracer) -> tuple[tuple[int, ...], int]:
    return x.shape[:-1], x.shape[-1]


def _every_second(x: Tracer, first: int) -> Tracer:
    shape = (*x.shape[:-1], x.shape[-1] // 2)
    start, ones = [*[0] * x.ndim, first], [1] * (x.ndim + 1)
    return reshape(slice_(reshape(x, (*shape, 2)), start, [*shape, first + 1], ones), shape)


def _split_parts(x: Tracer) -> Tracer:
    """Returns complex numbers as pairs of floats along the last axis, and booleans as bytes."""
    if dtype_kind(x.dtype) == "c":
        lead, size = _last(x)
        parts = [reshape(emit(part, x), (*x.shape, 1)) for part in (hlo.real, hlo.imag)]
        return reshape(concatenate(parts, x.ndim), (*lead, 2 * size))
    return convert(x, np.dtype(np.uint8)) if x.dtype == np.bool_ else x


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
    arrays lose their imaginary part. With ``copy`` False an array that has the dtype is returned
    unchanged. ``device`` moves the result. Keeps the shape. Raises `UnsupportedDtype` for a dtype
    that devices lack.

    >>> xp.astype(xp.asarray([1.9, -1.9]), xp.int32)
    Array([ 1, -1], dtype=int32)
    """
    target = as_dtype(dtype)
    array: Array = x if type(x) in (Array, Tracer) else convert_dtype(x, dtype=target)  # type: ignore[assignment]
    if array.dtype != target or is_weak(array):
        return place(convert_dtype(array, dtype=target), device)
    return place(copy_array(array) if copy else array, device)


def is_weak(x: Any) -> builtins.bool:
    """Whether the dtype of an array or scalar is weak, as a Python scalar's is."""
    if type(x) in (Array, Tracer):
        return builtins.bool(x._aval.weak if type(x) is Array else x.weak)
    return python_scalar(x) is not None and not isinstance(x, builtins.bool)


@with_argument_errors
def can_cast(from_: ArrayLike | DTypeLike, to: DTypeLike, /) -> builtins.bool:
    """Returns whether promotion may convert a dtype, or an array's dtype, to another one.

    Raises `UnsupportedDtype` for an object that is no dtype.

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
    """Returns the common dtype of arrays, dtypes and Python scalars, by promotion.

    Python scalars yield to the others; at least one other argument is required. Raises `DtypeError`
    for dtypes without a promotion, `ArgumentTypeError` for scalars alone.

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
    if all(type(x) in _SCALARS for x in arrays_and_dtypes):
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
    """The limits of a floating dtype; of a complex one, its parts' limits."""

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

    Raises `ArgumentTypeError` for an object that is no dtype, and `ArgumentError` for another name.

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


_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class Info:
    """The inspection API: capabilities, devices, dtypes and defaults."""

    def capabilities(self) -> dict[str, Any]:
        """Returns support of boolean indexing and data-dependent shapes, and the most dimensions.

        Both work on arrays and are refused while tracing. Arrays are read through NumPy, which
        has at most 64 dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Returns the device of arrays created without ``device``."""
        return default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, np.dtype[Any]]:
        """Returns the default dtypes; ``config.enable_x64`` decides their width, not the device."""
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": default_int(),
            "indexing": default_int(),
        }

    def dtypes(
        self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Returns the standard's dtypes by name; only of ``kind``, as in `isdtype`, if given.

        64-bit dtypes are left out if ``config.enable_x64`` is False.
        """
        found = {name: getattr(dtypes, name) for name in _NAMES}
        return {
            name: dtype
            for name, dtype in found.items()
            if dtypes.as_dtype(dtype) == dtype and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> list[Device]:
        """Returns the devices of the default backend that this process can use."""
        return list(backends.get_backend().addressable_devices())


def __array_namespace_info__() -> Info:
    """Returns the inspection API of the namespace."""
    return Info()
