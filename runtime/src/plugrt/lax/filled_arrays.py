"""`iota`, `full`, `empty` and others: arrays that are filled by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.array_api.data_types import is_weak
from plugrt.array_api.device_argument import (
    is_struct,
    make_on_device,
    place_of_struct,
    shard_like,
)
from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentTypeError, DtypeError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.host_data import as_unsigned
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.dimension_arguments import normalize_dimension
from plugrt.native.known_dtypes import is_key_dtype
from plugrt.tracing import emit as e
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.key_words import is_key
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DTypeLike


@operation(static=("dtype", "size"))
def iota(dtype: DTypeLike, size: int) -> Tracer:
    """Returns the numbers from 0 up to ``size`` in a dtype.

    Raises `DtypeError` for bool. As ``jax.lax.iota``.

    >>> lax.iota(xp.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    result: Tracer = broadcasted_iota(dtype, (size,), 0)
    return result


@operation(static=("dtype", "shape", "dimension"), shards=True)
def broadcasted_iota(dtype: DTypeLike, shape: Sequence[int], dimension: int) -> Tracer:
    """Returns an array that counts along one dimension.

    Raises `DtypeError` for bool, `AxisError` for a dimension out of range. As
    ``jax.lax.broadcasted_iota``.
    """
    result_dtype = as_dtype(dtype)
    if dtype_kind(result_dtype) == "b":
        raise DtypeError("lax.iota makes numbers; the requested dtype is bool")
    sizes = normalize_shape("lax.iota", shape)
    return e.iota(
        sizes, normalize_dimension("broadcasted_iota", dimension, len(sizes)), result_dtype
    )


@operation(static=("shape", "dtype"))
def empty(shape: Sequence[int] | int, dtype: DTypeLike) -> Tracer:
    """Returns an array of a shape and a dtype whose values are unspecified (they are zeros).

    Raises `ShapeError` for an object that is no shape. As ``jax.lax.empty``.

    >>> lax.empty((2, 3), xp.float32).shape
    (2, 3)
    """
    return e.full(normalize_shape("lax.empty", shape), 0, as_dtype(dtype))


@with_argument_errors
def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Sharding | None = None,
) -> Array:
    """Returns an array of a shape filled with a scalar, in its dtype or in ``dtype``.

    Its sharding is ``sharding``, which determines a traced program's devices, too. Raises
    `ShapeError` for a value that is no scalar, or a sharding that does not divide the shape. As
    ``jax.lax.full``.

    >>> lax.full((2,), 1.5)
    Array([1.5, 1.5], dtype=float32)
    """
    if not (dtype is None or is_key_dtype(dtype)):
        fill_value = as_unsigned(fill_value, dtype)
    return make_on_device(_read_sharding("full", sharding), _full, shape, fill_value, dtype)


@operation(
    static=("shape", "dtype"), weak_by="body", title="full", keys="each", keyed=("fill_value",)
)
def _full(shape: Sequence[int], fill_value: Tracer, dtype: DTypeLike | None = None) -> Tracer:
    if fill_value.shape:
        raise ShapeError(f"fill_value of lax.full must be a scalar; found {fill_value.shape}")
    sizes = tuple(int(n) for n in shape)
    if is_key_dtype(dtype):
        return e.keys_of(
            e.broadcast_to(e.convert(fill_value, "uint32"), (*sizes, dtype.words)), dtype
        )
    result_dtype = fill_value.dtype if dtype is None else as_dtype(dtype)
    # Strong: as in JAX an integer that the dtype cannot hold wraps around.
    filled = e.broadcast_to(e.convert(e.strong(fill_value), result_dtype), sizes)
    return e.with_weakness(filled, dtype is None and fill_value.weak)


@with_argument_errors
def full_like(
    x: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: Sharding | None = None,
) -> Array:
    """Returns an array like ``x`` filled with a scalar, in its dtype.

    ``x`` is an array, or an object with shape and dtype, such as `plugrt.ShapeDtypeStruct`.
    ``shape``, ``dtype`` and ``sharding`` replace the attributes of ``x``. Raises `ShapeError` for a
    value that is no scalar. As ``jax.lax.full_like``.
    """
    where = _read_sharding("full_like", sharding)
    if not is_struct(x):
        filled = make_on_device(where, _full_like, x, fill_value, dtype, shape)
        is_alike = where is None and type(x) is Array and filled.shape == x.shape
        return shard_like(filled, x) if is_alike and not is_weak(filled) else filled
    if where is None and shape is None:
        where = place_of_struct(x)
    sizes = x.shape if shape is None else shape
    return make_on_device(where, _full, sizes, fill_value, x.dtype if dtype is None else dtype)


@operation(static=("dtype", "shape"), weak_by="body", title="full_like", keys="body")
def _full_like(
    x: Tracer,
    fill_value: Tracer,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
) -> Tracer:
    result_dtype: Any = x.dtype if dtype is None else as_dtype(dtype)
    if is_key(fill_value) and result_dtype == fill_value.dtype:
        result_dtype = None
    result: Tracer = _full(x.shape if shape is None else shape, fill_value, result_dtype)
    return e.with_weakness(result, dtype is None and x.weak)


def _read_sharding(what: str, sharding: object) -> Sharding | None:
    if sharding is None or isinstance(sharding, Sharding):
        return sharding
    raise ArgumentTypeError(f"{what} takes a sharding, or None; got sharding={sharding!r:.100}")
