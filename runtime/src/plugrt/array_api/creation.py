"""Creation functions: `zeros`, `ones`, `full`, their ``_like`` forms, and `meshgrid`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from plugrt.array_api.data_types import is_weak
from plugrt.array_api.device_argument import (
    is_struct,
    make_on_device,
    place_of_struct,
    shard_like,
    to_device,
)
from plugrt.array_api.dtypes import as_dtype
from plugrt.array_api.elementwise.operands import broadcast_shapes
from plugrt.errors import ArgumentError, NotAnArray, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.casting import cast
from plugrt.execution.arrays.host_data import scalar_dtype
from plugrt.execution.transfers.host_values import as_array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.tracing import emit
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import convert, with_weakness
from plugrt.tracing.key_words import by_words, is_key
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DeviceLike, DTypeLike, OutSharding, Shape

Dtype = np.dtype[np.generic]


@operation(static=("shape", "value", "dtype", "weak"), weak_by="body")
def _splat(*, shape: tuple[int, ...], value: object, dtype: Dtype, weak: bool = False) -> Tracer:
    return with_weakness(emit.full(shape, value, dtype), weak)


@operation(static=("shape", "value", "dtype", "weak"), weak_by="body", keys="body")
def _splat_like(
    x: Tracer, *, shape: tuple[int, ...], value: object, dtype: Dtype, weak: bool
) -> Tracer:
    return _divided_like(with_weakness(emit.full(shape, value, dtype), weak), x)  # on its devices


def _broadcast(value: Tracer, dtype: Dtype, shape: tuple[int, ...]) -> Tracer:
    if is_key(value) and value.dtype == dtype:
        made: Tracer = by_words("each", emit.broadcast_to, value, shape)
        return made
    if is_key_dtype(dtype):
        words = convert(value, np.dtype(np.uint32))
        if words.ndim:
            words = emit.reshape(words, (*words.shape, 1))
        return emit.keys_of(emit.broadcast_to(words, (*shape, dtype.words)), dtype)
    return emit.broadcast_to(convert(value, dtype), shape)


@operation(static=("shape", "dtype", "weak"), weak_by="body", title="full", keys="body")
def _emit_full(value: Tracer, *, shape: tuple[int, ...], dtype: Dtype, weak: bool) -> Tracer:
    return with_weakness(_broadcast(value, dtype, shape), weak)


@operation(static=("shape", "dtype", "weak"), weak_by="body", title="full_like", keys="body")
def _emit_full_like(
    x: Tracer, value: Tracer, *, shape: tuple[int, ...], dtype: Dtype, weak: bool
) -> Tracer:
    filled = with_weakness(_broadcast(value, dtype, shape), weak)
    return _divided_like(filled, x)


def _divided_like(made: Tracer, x: Tracer) -> Tracer:
    """Returns an array that varies as ``x`` along Manual axes, and has its Explicit sharding.

    The latter only if it has the shape of ``x``.
    """
    made = emit.with_manual_type(made, made.mat.moved(x.mat.varying, "varying"))
    sharding = x.sharding_type
    if sharding is None or not sharding.spec.axis_names or made.shape != x.shape:
        return made
    return made.constrained(sharding, "like=")


@with_argument_errors
def zeros(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns zeros, of the default floating dtype unless another is given.

    ``shape`` is an integer or several. Raises `ShapeError` for a negative size, `UnsupportedDtype`,
    and `InvalidArgument` for an object that is no device.
    """
    target = default_float() if dtype is None else as_dtype(dtype)
    return make_on_device(
        to_device("zeros", device, out_sharding),
        _splat,
        shape=normalize_shape("zeros", shape),
        value=0,
        dtype=target,
    )


@with_argument_errors
def ones(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns ones, of the default floating dtype unless another is given.

    Raises as `zeros`.
    """
    target = default_float() if dtype is None else as_dtype(dtype)
    return make_on_device(
        to_device("ones", device, out_sharding),
        _splat,
        shape=normalize_shape("ones", shape),
        value=1,
        dtype=target,
    )


@with_argument_errors
def empty(
    shape: Shape,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns an array whose contents mean nothing: zeros, as devices have no unset arrays.

    Raises as `zeros`.
    """
    return zeros(shape, dtype=dtype, device=device, out_sharding=out_sharding)


@with_argument_errors
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns an array filled with a scalar, in the scalar's dtype unless another is given.

    As in jax.numpy, the dtype is weak if a Python scalar's would be, an array as ``fill_value`` is
    repeated by NumPy's rule, and a number for keys is each of their words. Raises `ShapeError` for
    an array that does not fit, `NotAnArray`, and as `zeros`.

    >>> xp.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int32)
    """
    wanted = normalize_shape("full", shape)
    value, target = _read_fill_value("full", fill_value, dtype, wanted)
    weak = dtype is None and is_weak(fill_value)
    device = to_device("full", device, out_sharding)
    return make_on_device(device, _emit_full, value, shape=wanted, dtype=target, weak=weak)


@with_argument_errors
def zeros_like(
    x: ArrayLike,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns zeros with the shape, dtype and device of ``x``, unless others are given.

    Raises `NotAnArray` or `UnsupportedDtype`.

    >>> xp.zeros_like(xp.asarray([1, 2])).dtype.name
    'int32'
    """
    return _like(x, 0, dtype, to_device("zeros_like", device, out_sharding))


@with_argument_errors
def ones_like(
    x: ArrayLike,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns ones with the shape, dtype and device of ``x``, unless others are given.

    Raises `NotAnArray` or `UnsupportedDtype`.
    """
    return _like(x, 1, dtype, to_device("ones_like", device, out_sharding))


@with_argument_errors
def empty_like(
    x: ArrayLike,
    /,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns an array of the shape, dtype and device of ``x`` whose contents mean nothing.

    Raises `NotAnArray` or `UnsupportedDtype`.
    """
    return _like(x, 0, dtype, to_device("empty_like", device, out_sharding))


@with_argument_errors
def full_like(
    x: ArrayLike,
    /,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns an array of the shape, dtype and device of ``x`` filled as `full` does.

    Raises `ShapeError` for a ``fill_value`` that does not fit, `NotAnArray` or `UnsupportedDtype`.
    """
    device = to_device("full_like", device, out_sharding)
    model = _require_model(x)
    device = device or (place_of_struct(model) if is_struct(model) else None)
    value, target = _read_fill_value(
        "full_like", fill_value, model.dtype if dtype is None else dtype, model.shape
    )
    options = {"shape": model.shape, "dtype": target, "weak": dtype is None and is_weak(model)}
    if device is not None or is_struct(model):
        return make_on_device(device, _emit_full, value, **options)
    return shard_like(_emit_full_like(model, value, **options), model)


def _like(x: ArrayLike, value: int, dtype: object, device: object) -> Array:
    model = _require_model(x)
    device = device or (place_of_struct(model) if is_struct(model) else None)
    target = model.dtype if dtype is None else as_dtype(dtype)
    weak = dtype is None and is_weak(model)
    options = {"shape": model.shape, "value": value, "dtype": target, "weak": weak}
    if device is not None or is_struct(model):
        return make_on_device(device, _splat, **options)
    return shard_like(_splat_like(model, **options), model)


def _require_model(x: object) -> Any:
    """Returns ``x`` if it is an array, a scalar or a struct; raises `NotAnArray` for others."""
    if type(x) in (Array, Tracer) or is_struct(x):
        return x
    return as_array(x, "x") if current_trace() is None else as_tracer(x, "x")


def _read_fill_value(
    function: str, value: object, dtype: object, shape: tuple[int, ...]
) -> tuple[object, Dtype]:
    # Python scalars are converted on the host: a device would round floats to float32 first.
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        target = scalar_dtype(value) if dtype is None else as_dtype(dtype)
        held = np.dtype(np.uint32) if is_key_dtype(target) else target
        return cast(np.asarray(value), held), target
    if not isinstance(value, Array | Tracer | np.ndarray | np.generic):
        raise NotAnArray(f"fill_value of {function} is {value!r:.60}; it takes a scalar")
    if np.shape(value) and broadcast_shapes((np.shape(value), shape)) != shape:
        raise ShapeError(
            f"fill_value of {function} has shape {np.shape(value)}, which does not fit {shape}"
        )
    return value, value.dtype if dtype is None else as_dtype(dtype)


@with_argument_errors
def meshgrid(*arrays: ArrayLike, indexing: Literal["xy", "ij"] = "xy") -> list[Array]:
    """Returns the coordinates of a grid over 1-d arrays: one array for each of them.

    With ``indexing`` "xy" the first two axes are exchanged; "ij" keeps the order of the arguments.
    Any dtypes, which stay. Raises `ShapeError` for arrays of more dimensions, `ArgumentError` for
    another ``indexing``.

    >>> [x.shape for x in xp.meshgrid(xp.arange(2), xp.arange(3))]
    [(3, 2), (3, 2)]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing of meshgrid is {indexing!r}; it takes 'xy' or 'ij'")
    return list(_meshgrid(*arrays, indexing=indexing)) if arrays else []


@operation(static=("indexing",), weak_by="body")
def _meshgrid(*arrays: Tracer, indexing: str) -> tuple[Tracer, ...]:
    for i, x in enumerate(arrays):
        if x.ndim > 1:
            raise ShapeError(f"meshgrid got arrays[{i}] of shape {x.shape}; it takes 1-d arrays")
    order = list(range(len(arrays)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = [0] * len(arrays)
    for x, axis in zip(arrays, order, strict=True):
        shape[axis] = x.size
    return tuple(
        with_weakness(emit.broadcast_in_dim(emit.reshape(x, (x.size,)), shape, (axis,)), x.weak)
        for x, axis in zip(arrays, order, strict=True)
    )
