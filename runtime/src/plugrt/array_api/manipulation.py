"""Manipulation functions: `reshape`, `concat`, `stack`, `flip`, `moveaxis` and others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plugrt.array_api.elementwise.operands import ANY, common_dtype, common_shape, require_array
from plugrt.errors import ArgumentError, AxisError, ShapeError
from plugrt.tracing import emit
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis, normalize_shape
from plugrt.tracing.emit import (
    concatenate,
    convert,
    hlo,
    slice_,
    strong,
    transpose,
    wrap_one,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Axes


@operation(weak_by="body", keys="each")
def broadcast_arrays(*arrays: Tracer) -> list[Tracer]:
    """Returns the arrays broadcast to their common shape, each in its own dtype.

    Raises `ShapeError` where the shapes do not broadcast.
    """
    if not arrays:
        return []
    shape = common_shape("broadcast_arrays", arrays, _name_arrays(arrays))
    return [emit.with_weakness(emit.broadcast_to(x, shape), x.weak) for x in arrays]


@operation(static=("shape",), shards=True, keys="each")
def broadcast_to(x: Tracer, /, shape: Sequence[int]) -> Tracer:
    """Returns ``x`` broadcast to ``shape``, by NumPy's rules. Any dtype.

    ``out_sharding`` is the result's sharding over Explicit axes of a mesh. Raises `ShapeError` if
    ``x`` does not broadcast to ``shape``.

    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    wanted = normalize_shape("broadcast_to", shape)
    fits = len(wanted) >= x.ndim and all(
        n in (1, m) for n, m in zip(x.shape[::-1], wanted[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"broadcast_to got x of shape {x.shape}, which does not broadcast to shape {wanted}"
        )
    return emit.broadcast_to(x, wanted)


@operation(static=("axis",), keys="each")
def concat(arrays: Sequence[Tracer], /, axis: int | None = 0) -> Tracer:
    """Returns the arrays joined along an existing axis; None flattens and joins them.

    The result has their common dtype. Raises `ShapeError` unless the shapes agree except for
    ``axis``, and `AxisError`.

    >>> xp.concat([xp.ones((1, 2)), xp.zeros((1, 2))])
    Array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    arrays = _list_arrays("concat", arrays)
    dtype = common_dtype("concat", tuple(arrays), ANY, _name_arrays(arrays))
    parts = [convert(x, dtype) for x in arrays]
    if axis is None:
        return concatenate([emit.reshape(x, (x.size,)) for x in parts], 0)
    first = parts[0].shape
    along = normalize_axis("concat", axis, len(first))
    for i, x in enumerate(parts):
        if len(x.shape) != len(first) or any(
            n != m for d, (n, m) in enumerate(zip(x.shape, first, strict=True)) if d != along
        ):
            raise ShapeError(
                f"concat along axis {along} got arrays[0] of shape {first} and arrays[{i}] of "
                f"shape {x.shape}; they must agree but for that axis"
            )
    return concatenate(parts, along)


@operation(static=("axis",), keys="each")
def stack(arrays: Sequence[Tracer], /, axis: int = 0) -> Tracer:
    """Returns arrays of one shape joined along a new axis, in their common dtype.

    Raises `ShapeError` where the shapes differ, and `AxisError`.

    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    arrays = _list_arrays("stack", arrays)
    dtype = common_dtype("stack", tuple(arrays), ANY, _name_arrays(arrays))
    shape = arrays[0].shape
    for i, x in enumerate(arrays):
        if x.shape != shape:
            raise ShapeError(
                f"stack got arrays[0] of shape {shape} and arrays[{i}] of shape {x.shape}; they "
                "must have one shape"
            )
    at = normalize_axis("stack", axis, len(shape) + 1)
    new = (*shape[:at], 1, *shape[at:])
    return concatenate([emit.reshape(convert(x, dtype), new) for x in arrays], at)


@operation(static=("axis",), keys="each")
def unstack(x: Tracer, /, *, axis: int = 0) -> tuple[Tracer, ...]:
    """Returns the slices of ``x`` along ``axis``, without that axis.

    Any dtype. Raises `AxisError`.

    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    along = normalize_axis("unstack", axis, x.ndim)
    rest = (*x.shape[:along], *x.shape[along + 1 :])
    return tuple(emit.reshape(slice_along(x, along, i, i + 1), rest) for i in range(x.shape[along]))


@operation(static=("axis",), keys="each")
def expand_dims(x: Tracer, /, axis: int | Sequence[int] = 0) -> Tracer:
    """Returns ``x`` with new axes of size 1 at the positions ``axis`` of the result.

    Any dtype. Raises `AxisError` for a position out of range or named twice.

    >>> xp.expand_dims(xp.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    if axis is None:
        raise AxisError("expand_dims takes an axis, or several; got None")
    count = np.size(axis)
    axes = normalize_axes("expand_dims", axis, x.ndim + count)
    sizes = iter(x.shape)
    return emit.reshape(x, [1 if i in axes else next(sizes) for i in range(x.ndim + count)])


@operation(static=("axis",), keys="each")
def squeeze(x: Tracer, /, axis: Axes = None) -> Tracer:
    """Returns ``x`` without the named axes, which must have size 1; None removes all such axes.

    Any dtype. Raises `ShapeError` for an axis of another size, `AxisError`.
    """
    if axis is None:
        axes = tuple(i for i, n in enumerate(x.shape) if n == 1)
    else:
        axes = normalize_axes("squeeze", axis, x.ndim)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(
                f"squeeze got axis {i} of x of shape {x.shape}, which is not of size 1"
            )
    return emit.reshape(x, [n for i, n in enumerate(x.shape) if i not in axes])


@operation(static=("axis",), keys="each")
def flip(x: Tracer, /, axis: Axes = None) -> Tracer:
    """Returns ``x`` with its elements in reverse order along ``axis``; None means all axes.

    Any dtype. Raises `AxisError`.
    """
    axes = normalize_axes("flip", axis, x.ndim)
    return reverse(x, axes)


@operation(static=("axes",), keys="each")
def permute_dims(x: Tracer, /, axes: Sequence[int]) -> Tracer:
    """Returns ``x`` whose axis i is axis ``axes[i]`` of the argument.

    Any dtype. Raises `AxisError` or `ShapeError` unless each axis is named once.

    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    order = normalize_axes("permute_dims", axes, x.ndim, "axes")
    if len(order) != x.ndim:
        raise ShapeError(
            f"permute_dims got axes {tuple(axes)} for x of shape {x.shape}; each axis must be "
            "named once"
        )
    return transpose(x, order)


@operation(static=("source", "destination"), keys="each")
def moveaxis(x: Tracer, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tracer:
    """Returns ``x`` with axes ``source`` at ``destination``; the others keep their order.

    Any dtype. Raises `AxisError`, and `ShapeError` for different numbers of axes.

    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    source = normalize_axes("moveaxis", source, x.ndim, "source")
    destination = normalize_axes("moveaxis", destination, x.ndim, "destination")
    if len(source) != len(destination):
        raise ShapeError(
            f"moveaxis got {len(source)} axes in source and {len(destination)} in destination"
        )
    order = [i for i in range(x.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return transpose(x, order)


@operation(static=("axis1", "axis2"), keys="each")
def swapaxes(x: Tracer, axis1: int, axis2: int, /) -> Tracer:
    """Returns ``x`` with two axes exchanged (NumPy's; not in the standard).

    Any dtype. Raises `AxisError`.
    """
    a = normalize_axis("swapaxes", axis1, x.ndim, "axis1")
    b = normalize_axis("swapaxes", axis2, x.ndim, "axis2")
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return transpose(x, order)


@operation(static=("shape", "copy", "order"), shards=True, keys="each")
def reshape(
    x: Tracer, /, shape: int | Sequence[int], *, copy: bool | None = None, order: str = "C"
) -> Tracer:
    """Returns the elements of ``x``, in row-major order, in another shape.

    One size may be -1, which is inferred from the others. With ``order`` "F" the order is
    column-major, as in NumPy. ``copy`` False raises `ShapeError` if the shape changes, since a
    launch writes its result to new memory; True makes a copy in any case. Any dtype. Raises
    `ShapeError` if the sizes do not match, `ArgumentError` for another order.

    >>> xp.reshape(xp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    wanted = _infer_size("reshape", normalize_shape("reshape", shape, least=-1), x)
    if copy and wanted == x.shape:
        return wrap_one(hlo.optimization_barrier([x.value], loc=emit.active_trace().location()))
    if copy is False and wanted != x.shape:
        raise ShapeError(
            f"reshape of x of shape {x.shape} to {wanted} with copy=False: arrays are immutable "
            "and a new shape is new memory; leave copy out"
        )
    if order not in ("C", "F"):
        raise ArgumentError(f"order of reshape is {order!r}; it is 'C' or 'F'")
    if order == "F":
        turned = emit.reshape(transpose(x, range(x.ndim)[::-1]), wanted[::-1])
        return transpose(turned, range(len(wanted))[::-1])
    return emit.reshape(x, wanted)


@operation(shards=True, keys="each")
def ravel(x: Tracer, /) -> Tracer:
    """Returns the elements in row-major order as an array of one dimension (NumPy's).

    Any dtype. Raises `NotAnArray` for any other object than an array or number.
    """
    return emit.reshape(x, (x.size,))


def reverse(x: Tracer, axes: Sequence[int]) -> Tracer:
    """Returns ``x`` reversed along ``axes``, which are counted from the front."""
    if not axes:
        return strong(x)
    tracer: Tracer = emit.emit(hlo.reverse, x, dimensions=list(axes))
    return tracer


def slice_along(x: Tracer, axis: int, start: int, limit: int) -> Tracer:
    """Returns ``x[start:limit]`` along one axis."""
    low, high = [0] * x.ndim, list(x.shape)
    low[axis], high[axis] = start, limit
    return slice_(x, low, high, [1] * x.ndim)


def _list_arrays(function: str, arrays: object) -> list[Tracer]:
    if not isinstance(arrays, tuple | list):
        # An array is a sequence of arrays along its first axis, as in NumPy.
        return list(unstack(require_array(function, "arrays", arrays)))
    if not arrays:
        raise ShapeError(f"{function} got no arrays; it takes at least one")
    return list(arrays)


def _name_arrays(arrays: Sequence[Tracer]) -> tuple[str, ...]:
    return tuple(f"arrays[{i}]" for i in range(len(arrays)))


def _infer_size(function: str, sizes: tuple[int, ...], x: Tracer) -> tuple[int, ...]:
    """Returns the sizes with a -1 replaced by the inferred size."""
    unknown = sizes.count(-1)
    rest = math.prod(n for n in sizes if n != -1)
    fits = rest == x.size if not unknown else unknown == 1 and rest > 0 and x.size % rest == 0
    if not fits:
        raise ShapeError(
            f"{function} got x of shape {x.shape}, whose {x.size} elements do not fill shape "
            f"{sizes}{' (only one -1 can be worked out)' if unknown > 1 else ''}"
        )
    return tuple(x.size // rest if n == -1 else n for n in sizes)
