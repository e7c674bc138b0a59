"""`slice`, `dynamic_slice`, `dynamic_update_slice` and their one-dimensional variants."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from plugrt.errors import ArgumentError, ShapeError
from plugrt.interface import TensorType
from plugrt.lax.dimension_arguments import normalize_dimension, per_dimension, read_start_indices
from plugrt.lax.operand_checks import same_dtype
from plugrt.tracing.emit import (
    active_trace,
    constant,
    hlo,
    reshape,
    slice_,
    strong,
    with_weakness,
    wrap_one,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer


@operation(static=("start_indices", "limit_indices", "strides"), keys="each")
def slice(
    operand: Tracer,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Tracer:
    """Returns the elements from start up to limit, in steps, of each dimension; Python integers.

    The bounds must be within the array. Any dtype. Raises `ShapeError` for bounds outside of the
    array, `ArgumentError` for wrong numbers of them. As ``jax.lax.slice``.
    """
    starts = per_dimension("slice", "start_indices", start_indices, operand.ndim)
    limits = per_dimension("slice", "limit_indices", limit_indices, operand.ndim)
    steps = per_dimension("slice", "strides", strides, operand.ndim)
    for n, start, limit, step in zip(operand.shape, starts, limits, steps, strict=True):
        if not (0 <= start <= limit <= n and step > 0):
            raise ShapeError(
                f"lax.slice needs 0 <= start <= limit <= length and positive strides; got starts "
                f"{starts}, limits {limits}, strides {steps} for shape {operand.shape}"
            )
    return slice_(strong(operand), starts, limits, steps)


@operation(static=("start_index", "limit_index", "stride", "axis"), keys="each")
def slice_in_dim(
    operand: Tracer,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Tracer:
    """Returns a slice of one dimension; negative indices count from its end.

    Any dtype. Raises `ShapeError` for bounds outside of the array, `AxisError`. As
    ``jax.lax.slice_in_dim``.

    >>> lax.slice_in_dim(xp.arange(6), 1, 6, stride=2)
    Array([1, 3, 5], dtype=int32)
    """
    at = normalize_dimension("slice_in_dim", axis, operand.ndim)
    length = operand.shape[at]
    bounds = []
    for given, default in ((start_index, 0), (limit_index, length)):
        index = default if given is None else operator.index(given)
        bounds.append(index + length if index < 0 else index)
    starts, limits, steps = [0] * operand.ndim, list(operand.shape), [1] * operand.ndim
    starts[at], limits[at], steps[at] = bounds[0], bounds[1], stride
    result: Tracer = slice(operand, starts, limits, steps)
    return result


@operation(static=("index", "axis", "keepdims"), keys="each")
def index_in_dim(operand: Tracer, index: int, axis: int = 0, keepdims: bool = True) -> Tracer:
    """Returns the slice at one index of a dimension, which stays with size 1 if ``keepdims``.

    Any dtype. Raises `ShapeError` for an index out of range, `AxisError`. As
    ``jax.lax.index_in_dim``.
    """
    at = normalize_dimension("index_in_dim", axis, operand.ndim)
    length = operand.shape[at]
    if not -length <= index < length:
        raise ShapeError(f"index {index} is beyond axis {axis} of length {length}")
    result: Tracer = slice_in_dim(operand, index % length, index % length + 1, 1, at)
    return result if keepdims else _drop_axis(result, at)


@operation(static=("slice_sizes", "allow_negative_indices"), weak_by=("operand",), keys="each")
def dynamic_slice(
    operand: Tracer,
    start_indices: Tracer | Sequence[Tracer],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Tracer:
    """Returns a block of ``slice_sizes`` that begins at computed indices.

    ``start_indices`` are integer scalars, one for each dimension, or an array of them. Negative
    ones count from the end if ``allow_negative_indices`` (one for all dimensions, or one each) is
    true; then the block is moved into the array. Any dtype. Raises `ShapeError` for sizes or a
    number of indices that do not fit, `DtypeError` for indices that are no integers. As
    ``jax.lax.dynamic_slice``.

    >>> lax.dynamic_slice(xp.arange(6), (2,), (3,))
    Array([2, 3, 4], dtype=int32)
    """
    sizes = per_dimension("dynamic_slice", "slice_sizes", slice_sizes, operand.ndim)
    if any(not 0 <= size <= n for size, n in zip(sizes, operand.shape, strict=True)):
        raise ShapeError(
            f"slice_sizes {sizes} of lax.dynamic_slice do not fit the shape {operand.shape}"
        )
    starts = read_start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    made = hlo.dynamic_slice(
        operand.value, [s.value for s in starts], sizes, loc=active_trace().location()
    )
    return wrap_one(made)


@operation(
    static=("allow_negative_indices",), weak_by="body", keys="each", keyed=("operand", "update")
)
def dynamic_update_slice(
    operand: Tracer,
    update: Tracer,
    start_indices: Tracer | Sequence[Tracer],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Tracer:
    """Returns ``operand`` with the block ``update`` at computed indices.

    Indices as in `dynamic_slice`. Raises `DtypeError` where the dtypes differ, `ShapeError` where
    the update does not fit. As ``jax.lax.dynamic_update_slice``.

    >>> lax.dynamic_update_slice(xp.arange(5), xp.asarray([9, 9]), (3,))
    Array([0, 1, 2, 9, 9], dtype=int32)
    """
    # JAX includes the indices, which are never weak: only an array without dimensions stays weak.
    is_weak = operand.weak and update.weak and not operand.ndim
    operand, update = same_dtype("dynamic_update_slice", ("operand", "update"), [operand, update])
    if update.ndim != operand.ndim or any(
        m > n for m, n in zip(update.shape, operand.shape, strict=False)
    ):
        raise ShapeError(
            f"update of lax.dynamic_update_slice, {TensorType(update.shape, update.dtype)}, does "
            f"not fit into operand, {TensorType(operand.shape, operand.dtype)}"
        )
    starts = read_start_indices(
        "dynamic_update_slice", operand, start_indices, allow_negative_indices
    )
    made = hlo.dynamic_update_slice(
        operand.value, update.value, [s.value for s in starts], loc=active_trace().location()
    )
    return with_weakness(wrap_one(made), is_weak)


@operation(
    static=("slice_size", "axis", "allow_negative_indices"), weak_by=("operand",), keys="each"
)
def dynamic_slice_in_dim(
    operand: Tracer,
    start_index: Tracer,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Tracer:
    """Returns ``slice_size`` elements of a dimension from a computed index on.

    Any dtype. Raises `ShapeError` if the size is too large, `DtypeError` for an index that is no
    integer, `AxisError`. As ``jax.lax.dynamic_slice_in_dim``.
    """
    at = normalize_dimension("dynamic_slice_in_dim", axis, operand.ndim)
    sizes = list(operand.shape)
    sizes[at] = slice_size
    starts = _start_indices(start_index, at, operand.ndim)
    result: Tracer = dynamic_slice(
        operand, starts, sizes, allow_negative_indices=allow_negative_indices
    )
    return result


@operation(static=("axis", "keepdims", "allow_negative_indices"), weak_by=("operand",), keys="each")
def dynamic_index_in_dim(
    operand: Tracer,
    index: Tracer,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Tracer:
    """Returns the slice at a computed index; the dimension stays with size 1 if ``keepdims``.

    Any dtype. Raises `DtypeError` for an index that is no integer, `AxisError`. As
    ``jax.lax.dynamic_index_in_dim``.
    """
    at = normalize_dimension("dynamic_index_in_dim", axis, operand.ndim)
    result: Tracer = dynamic_slice_in_dim(
        operand, index, 1, at, allow_negative_indices=allow_negative_indices
    )
    return result if keepdims else _drop_axis(result, at)


@operation(
    static=("axis", "allow_negative_indices"),
    weak_by="none",
    keys="each",
    keyed=("operand", "update"),
)
def dynamic_update_slice_in_dim(
    operand: Tracer,
    update: Tracer,
    start_index: Tracer,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Tracer:
    """Returns ``operand`` with ``update`` at a computed index of a dimension.

    Raises as `dynamic_update_slice`, and `AxisError`. As ``jax.lax.dynamic_update_slice_in_dim``.
    """
    at = normalize_dimension("dynamic_update_slice_in_dim", axis, operand.ndim)
    starts = _start_indices(start_index, at, operand.ndim)
    result: Tracer = dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )
    return result


@operation(
    static=("axis", "allow_negative_indices"),
    weak_by="none",
    keys="each",
    keyed=("operand", "update"),
)
def dynamic_update_index_in_dim(
    operand: Tracer,
    update: Tracer,
    index: Tracer,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Tracer:
    """Returns ``operand`` with ``update`` at one computed index of a dimension.

    ``update`` lacks that dimension or has it with length 1. Raises `ArgumentError` for an update of
    another shape, and as `dynamic_update_slice`. As ``jax.lax.dynamic_update_index_in_dim``.
    """
    at = normalize_dimension("dynamic_update_index_in_dim", axis, operand.ndim)
    if update.ndim == operand.ndim - 1:
        update = reshape(update, (*update.shape[:at], 1, *update.shape[at:]))
    if update.ndim != operand.ndim or update.shape[at] != 1:
        raise ArgumentError(
            f"update of lax.dynamic_update_index_in_dim has shape {update.shape}, which is not one "
            f"place of axis {axis} of shape {operand.shape}"
        )
    result: Tracer = dynamic_update_slice_in_dim(
        operand, update, index, at, allow_negative_indices=allow_negative_indices
    )
    return result


def _start_indices(index: Tracer, axis: int, ndim: int) -> list[Tracer]:
    if index.shape == (1,):
        index = reshape(index, ())
    zero = constant(0, index.dtype)
    return [index if i == axis else zero for i in range(ndim)]


def _drop_axis(x: Tracer, axis: int) -> Tracer:
    return reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))
