"""`arange` and `linspace`."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype, is_weak
from plugrt.array_api.device_argument import make_on_device, to_device
from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.elementwise.operands import NUMERIC, REAL, admit, default_dtype
from plugrt.array_api.elementwise.rounding import floor
from plugrt.errors import ArgumentError, DtypeError, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import python_scalar, scalar_dtype
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.emit import broadcast_to, compare, convert, emit, full, hlo, iota, select
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float, default_int, dtype_kind, inexact, result_dtype
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DeviceLike, DTypeLike, OutSharding

Dtype = np.dtype[np.generic]
_ON_HOST = 1 << 16
"""Arrays of up to this many elements are made on the host, instead of compiling a program."""


@with_argument_errors
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike = 1,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns the numbers ``start + i * step`` before ``stop``; from 0 if one bound is given.

    The default ``dtype`` is the result type of the three; for Python scalars the default integer
    dtype if all three are integers, else the default float. Real dtypes. Raises `ArgumentError` for
    a ``step`` of 0, `NotAnArray` for bounds that are no scalars, `DtypeError`.

    >>> xp.arange(3)
    Array([0, 1, 2], dtype=int32)
    >>> xp.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    bounds = (0, start) if stop is None else (start, stop)
    target = _bounds_dtype(*bounds, step)
    first, end, by = (_read_number("arange", v) for v in (*bounds, step))
    if by == 0:
        raise ArgumentError("step of arange is 0")
    if isinstance(first + end + by, int):
        count = len(range(first, end, by))
        fits = -(2**31) <= first < 2**31 and -(2**31) <= first + count * by - by < 2**31
        target = target if fits or target != np.int32 else np.dtype(np.int64)
    else:
        count = max(math.ceil((end - first) / by), 0)
    target = target if dtype is None else as_dtype(dtype)
    admit("arange", "the dtype argument", target, REAL)
    where = to_device("arange", device, out_sharding)
    return _space_evenly(first, by, None, count, target, where)


@with_argument_errors
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> Array:
    """Returns ``num`` numbers at equal distances from ``start`` to ``stop``. Numeric dtypes.

    With ``endpoint`` the last is ``stop`` itself. The default ``dtype`` is the bounds' dtype,
    converted to floats; for Python scalars the default float, or the default complex dtype if one
    is complex. Integers are rounded down, as in NumPy and JAX. Raises `ShapeError` for a negative
    ``num``, `NotAnArray` for bounds that are no scalars, `DtypeError`.

    >>> xp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    target = _bounds_dtype(start, stop)
    first, last = _read_number("linspace", start), _read_number("linspace", stop)
    count = operator.index(num)
    if count < 0:
        raise ShapeError(f"num of linspace is {num}; it takes a number of elements from 0")
    is_complex = isinstance(first + last, complex)
    target = inexact(target) if dtype is None else as_dtype(dtype)
    admit("linspace", "the dtype argument", target, NUMERIC)
    if is_complex and dtype_kind(target) != "c":
        raise DtypeError(f"linspace got a complex bound, and the dtype {target.name} is real")
    if dtype_kind(target) in "iu":
        exact = linspace(start, stop, num, device=device, endpoint=endpoint)
        return astype(floor(exact), target)
    steps = count - 1 if endpoint else count
    step = (last - first) / steps if steps > 0 else 0.0
    return _space_evenly(
        first, step, last if endpoint and steps > 0 else None, count, target, device
    )


def _bounds_dtype(*bounds: Any) -> Dtype:
    """Returns the common dtype of bounds; Python scalars alone get their default dtype.

    It has 64 bits only with ``config.enable_x64``: NumPy makes 64-bit numbers by default, often
    without the user's intent.
    """
    known = [(x.dtype, is_weak(x)) for x in bounds if hasattr(x, "dtype")]
    scalars = [
        (default_dtype(scalar_dtype(x)), True) for x in bounds if python_scalar(x) is not None
    ]
    dtype = result_dtype([*known, *scalars] or [(default_float(), True)])
    if dtype == np.bool_:
        return default_int()
    return default_dtype(dtype) if dtype.itemsize == (16 if dtype.kind == "c" else 8) else dtype


def _read_number(function: str, value: object) -> Any:
    if isinstance(value, np.generic | np.ndarray | Array) and np.ndim(value) == 0:
        value = value.item()
    if not isinstance(value, int | float | complex):
        raise NotAnArray(f"{function} got the bound or step {value!r}; it takes Python numbers")
    return value


def _space_evenly(start: Any, step: Any, last: Any, count: int, dtype: Dtype, device: Any) -> Array:
    if count <= _ON_HOST and current_trace() is None:
        exact = start + np.arange(count) * step
        if last is not None:
            exact[-1] = last
        return asarray(exact.astype(dtype), device=device)
    # Computed in a dtype that represents every index exactly, if the result's does not.
    wide = dtype if dtype_kind(dtype) in "iu" or dtype.itemsize >= 4 else np.dtype(np.float32)
    values = [np.asarray(v).astype(wide) for v in (start, step, start if last is None else last)]
    return make_on_device(
        device, _count, *values, count=count, exact_last=last is not None, dtype=dtype
    )


@operation(static=("count", "exact_last", "dtype"))
def _count(
    start: Tracer, step: Tracer, last: Tracer, *, count: int, exact_last: bool, dtype: Dtype
) -> Tracer:
    index = iota((count,), 0, np.dtype(np.int64 if count > 2**31 - 1 else np.int32))
    steps = emit(hlo.multiply, convert(index, start.dtype), broadcast_to(step, (count,)))
    values = emit(hlo.add, steps, broadcast_to(start, (count,)))
    if exact_last:
        is_last = compare(index, full((count,), count - 1, index.dtype), "EQ")
        values = select(is_last, broadcast_to(last, (count,)), values)
    return convert(values, dtype)
