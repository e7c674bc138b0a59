"""`asarray`: arrays from scalars, sequences, NumPy data, DLPack and buffers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.array_api.data_types import convert_dtype, is_weak
from plugrt.array_api.device_argument import copy_array, name_each, place, to_device
from plugrt.array_api.dlpack import from_dlpack
from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, IntegerOverflow, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_types import is_registered, represent
from plugrt.execution.arrays.casting import cast
from plugrt.execution.arrays.host_data import host_array, scalar_dtype
from plugrt.execution.transfers.transfer import device_put
from plugrt.frames.argument_errors import PYTHON_ERRORS, refuse, require_flag
from plugrt.frames.traceback_filter import filter_traceback
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import concatenate, convert, reshape
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import (
    default_complex,
    default_float,
    dtype_kind,
    result_dtype,
)
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArraySource, DeviceLike, DTypeLike, OutSharding

Dtype = np.dtype[np.generic]
_SCALARS = (bool, int, float, complex)
_BUFFERS = (str, bytes, bytearray, memoryview, array)


def asarray(
    obj: ArraySource,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns ``obj`` as an array: arrays, scalars, nested sequences, NumPy, DLPack, buffers.

    NumPy data keep their dtype, Python scalars get the default dtype of their kind. With ``copy``
    True the memory is the array's own, with False it is shared with ``obj`` (`ValueError` if that
    is impossible), with None a copy is made if needed. ``device`` commits the result to a device.
    Raises `NotAnArray` for an object that is no array, and `ShapeError` for ragged sequences.

    >>> xp.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> xp.asarray([1.5, 2], dtype=xp.bfloat16).dtype.name
    'bfloat16'
    """
    try:
        try:  # no decorator: its frame would cost half as much as returning an array unchanged
            if copy is not None:
                require_flag("asarray", "copy", copy, optional=True)
            target = None if dtype is None else as_dtype(dtype)
            if out_sharding is not None:
                device = to_device("asarray", device, out_sharding)
            if isinstance(obj, Array):
                return _convert_array(obj, target, device, copy)
            if _is_nested(obj):
                leaves = list(_leaves(obj))
                if any(isinstance(leaf, Array) for leaf in leaves):
                    _refuse(copy is False, "a sequence of arrays is put together")
                    joined = _join(*leaves, shape=_find_shape(obj))
                    return _convert_array(joined, target, device, None)
                host = _read_sequence(obj, leaves, target)
            elif type(obj) in _SCALARS:  # type checkers do not treat this as narrowing
                if target is None and device is None and copy is not False:
                    return _convert_scalar(obj)  # type: ignore[arg-type]
                dtype = scalar_dtype(obj) if target is None else target  # type: ignore[arg-type]
                host = _cast_checked(obj, dtype)
            elif is_registered(obj):
                stated = represent(obj, "the argument of asarray")
                return asarray(stated, target, device=device, copy=copy)
            elif hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray | np.generic):
                lent = from_dlpack(obj, device=device, copy=copy)  # type: ignore[arg-type]
                return _convert_array(lent, target, device, None)
            else:
                host = _read_foreign(obj, target)
            return _put(obj, host, device, copy)
        except PYTHON_ERRORS as error:
            refuse("asarray", error, [("obj", obj), ("dtype", dtype), ("copy", copy)])
    except Exception as error:  # raised again without plugrt's frames
        filter_traceback(error)
        raise


def _convert_scalar(x: bool | int | float | complex) -> Array:
    # Weak, as in jax.numpy, so that a function gives one dtype eagerly and traced.
    return device_put(x) if current_trace() is None else as_tracer(x)  # type: ignore[return-value]


def _convert_array(x: Array, target: Dtype | None, device: object, copy: bool | None) -> Array:
    if target is not None and target != x.dtype:
        _refuse(copy is False, f"{x.dtype.name} becomes {target.name}")
        return place(convert_dtype(x, dtype=target), device)
    if target is not None and is_weak(x):
        x = convert_dtype(x, dtype=target)
    result = place(copy_array(x) if copy else x, device)
    if copy is False and type(x) is Array:
        _refuse(result._shards is not x._shards, "the data are on another device")
    return result


def _put(obj: Any, host: npt.NDArray[np.generic], device: Any, copy: bool | None) -> Array:
    _refuse(copy is False and not np.may_share_memory(host, obj), "the data are converted")
    if current_trace() is not None:
        return place(as_tracer(host), device)  # type: ignore[arg-type]
    where = device if device is None else name_each(device, host.ndim)
    result: Array = device_put(host, where, may_alias=True if copy is False else None)
    if copy is False:
        shares = result.unsafe_buffer_pointer() == host.ctypes.data
        _refuse(not shares, f"{result.device!r} cannot use memory like this")
    return result


def _refuse(needed: bool, why: str) -> None:
    if needed:
        raise ArgumentError(f"asarray was called with copy=False, and a copy is needed: {why}")


def _read_foreign(obj: object, target: Dtype | None) -> npt.NDArray[np.generic]:
    host = obj if isinstance(obj, np.ndarray | np.generic) else np.asarray(obj)
    if host.dtype.hasobject and host.ndim == 0:
        raise NotAnArray(
            f"asarray got {obj!r:.60} of type {type(obj).__module__}.{type(obj).__qualname__}; it "
            "takes arrays, scalars, nested sequences of these, objects with __dlpack__, a buffer "
            "or __array__"
        )
    host = host_array(host, "the argument of asarray")
    return host if target is None else cast(host, target)


def _read_sequence(
    obj: object, leaves: list[object], target: Dtype | None
) -> npt.NDArray[np.generic]:
    try:
        host = np.asarray(obj) if target is None else _cast_checked(obj, target)
    except IntegerOverflow:
        raise
    except ValueError as error:
        _find_shape(obj)  # raises a `ShapeError` that names the ragged part of the sequence
        raise NotAnArray(f"asarray cannot make an array of the sequence: {error}") from error
    if target is None and all(type(leaf) in _SCALARS for leaf in leaves):
        host = cast(host, _default_dtype(host, leaves))
    elif target is None and any(type(leaf) in _SCALARS for leaf in leaves):
        # NumPy treats Python scalars as 64-bit arrays; beside other elements they are weak.
        known = [(np.asarray(leaf).dtype, type(leaf) in _SCALARS) for leaf in leaves]
        host = cast(host, result_dtype(known))
    return host_array(host, "the argument of asarray")


def _cast_checked(obj: object, target: Dtype) -> npt.NDArray[np.generic]:
    try:
        return cast(obj, target)
    except OverflowError as error:
        raise IntegerOverflow(
            f"asarray was called with the dtype {target.name}, which cannot hold all of "
            f"{obj!r:.60}: {error}"
        ) from error


def _default_dtype(host: npt.NDArray[np.generic], leaves: list[Any]) -> Dtype:
    """Returns the dtype of a sequence of Python scalars that NumPy converted to ``host``."""
    found = "i" if leaves and all(isinstance(x, int) for x in leaves) else dtype_kind(host.dtype)
    if found in "iu" and host.dtype != np.bool_:
        # For integers beyond int64 NumPy chooses uint64, float64 or object.
        ends = (min(leaves), max(leaves))
        return max((scalar_dtype(int(x)) for x in ends), key=lambda dtype: dtype.itemsize)
    return {"f": default_float(), "c": default_complex()}.get(found, host.dtype)


def _is_nested(x: object) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, _BUFFERS)


def _leaves(x: Any) -> Iterator[object]:
    if _is_nested(x):
        for element in x:
            yield from _leaves(element)
    else:
        yield x


def _find_shape(x: Any) -> tuple[int, ...]:
    if not _is_nested(x):
        return x.shape if isinstance(x, Array) else np.shape(x)
    shapes = [_find_shape(element) for element in x]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                f"asarray got a ragged sequence: element 0 has shape {shapes[0]}, element {i} has "
                f"shape {shape}"
            )
    return (len(x), *(shapes[0] if shapes else ()))


@operation(static=("shape",), weak_by="none", title="asarray", keys="each")
def _join(*leaves: Tracer, shape: tuple[int, ...]) -> Tracer:
    dtype = result_dtype([(x.dtype, x.weak) for x in leaves])
    rows = [reshape(convert(x, dtype), (math.prod(x.shape),)) for x in leaves]
    return reshape(concatenate(rows, 0), shape)
