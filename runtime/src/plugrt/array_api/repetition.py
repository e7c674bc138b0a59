"""`repeat`, `tile` and `roll`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.array_api.elementwise.operands import INTEGER, admit
from plugrt.array_api.fold import accumulate, binary_combiner
from plugrt.array_api.indexing.positions import normalize_positions
from plugrt.array_api.indexing.read import dynamic_slice, gather
from plugrt.array_api.searching import bisect
from plugrt.array_api.sets import require_concrete
from plugrt.errors import ArgumentError, AxisError, ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing import emit
from plugrt.tracing.argument_checks import normalize_axis, normalize_shape
from plugrt.tracing.emit import concatenate, constant, convert, full, hlo, iota
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_int
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, Axes, OutSharding


@with_argument_errors
def repeat(
    x: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    /,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Returns ``x`` with each slice along ``axis`` (None: each element) repeated.

    ``repeats`` is an integer or an array of integers, one for all elements or one for each. The
    size of the result is the sum of that array, which is read; for a traced one it must be given as
    ``total_repeat_length`` (else `DataDependentShape`): the result is cut off, or filled with the
    last element, as in ``jnp.repeat``. Any dtype, integer ``repeats``. Raises `DtypeError`,
    `ShapeError` or `ArgumentError` for others, `AxisError`.

    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    if isinstance(repeats, int | np.integer) and not isinstance(repeats, bool):
        if repeats < 0:
            raise ArgumentError(f"repeats of repeat is {repeats}; it takes 0 or more")
        if total_repeat_length is None:
            each: Array = repeat_each(
                x, times=operator.index(repeats), axis=axis, out_sharding=out_sharding
            )
            return each
    if isinstance(repeats, list | tuple):
        repeats = np.asarray(repeats, None if repeats else np.int32)
    if total_repeat_length is None:
        counts = require_concrete("repeat", repeats, "Pass total_repeat_length", "repeats")
        admit("repeat", "repeats", counts.dtype, INTEGER)
        host = np.asarray(counts)
        if host.size and host.min() < 0:
            raise ArgumentError(f"repeats of repeat has {host.min()}; it takes 0 or more")
        repeats = counts
        if host.size == 1:
            alike: Array = repeat_each(
                x, times=int(host.reshape(())), axis=axis, out_sharding=out_sharding
            )
            return alike
        total_repeat_length = int(host.sum())
    result: Array = repeat_by(
        x, repeats, total=total_repeat_length, axis=axis, out_sharding=out_sharding
    )
    return result


@operation(static=("times", "axis"), shards=True, keys="each")
def repeat_each(x: Tracer, *, times: int, axis: int | None) -> Tracer:
    """Returns ``x`` with every element, or slice along ``axis``, repeated ``times`` times."""
    x, along = _flatten("repeat", x, axis)
    shape = x.shape
    wide = (*shape[: along + 1], times, *shape[along + 1 :])
    kept = [i for i in range(x.ndim + 1) if i != along + 1]
    result = (*shape[:along], shape[along] * times, *shape[along + 1 :])
    return emit.reshape(emit.broadcast_in_dim(x, wide, kept), result)


@operation(static=("total", "axis"), weak_by=("x",), shards=True, keys="each")
def repeat_by(x: Tracer, repeats: Tracer, *, total: int, axis: int | None) -> Tracer:
    """Returns ``x`` with each element repeated by its number in ``repeats``, ``total`` in all."""
    admit("repeat", "repeats", repeats.dtype, INTEGER)
    x, along = _flatten("repeat", x, axis)
    size, index = x.shape[along], default_int()
    if repeats.ndim > 1 or repeats.shape not in ((), (1,), (size,)):
        raise ShapeError(
            f"repeat along axis {along} of x of shape {x.shape} got repeats of shape "
            f"{repeats.shape}; it takes one number or {size} numbers"
        )
    shape = (*x.shape[:along], total, *x.shape[along + 1 :])
    if 0 in shape:
        return full(shape, 0, x.dtype)
    if not size:
        raise ShapeError(
            f"repeat got x of shape {x.shape}, which has no elements to fill {total} with"
        )
    counts = emit.broadcast_to(convert(repeats, index), (size,))
    ends = accumulate(binary_combiner(hlo.add), counts, 0, 0)
    source = bisect(ends, iota((total,), 0, index), left=False)
    return gather(x, [(along, source)], (total,), along)


@operation(static=("repetitions",), keys="each")
def tile(x: Tracer, repetitions: Sequence[int], /) -> Tracer:
    """Returns ``x`` repeated ``repetitions[i]`` times along axis i, as a block.

    The shorter of shape and repetitions is extended by leading ones. Any dtype. Raises `ShapeError`
    for a negative number.

    >>> xp.tile(xp.asarray([1, 2]), (2, 1))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    counts = normalize_shape("tile", repetitions, what="repetitions")
    ndim = max(x.ndim, len(counts))
    shape = (1,) * (ndim - x.ndim) + x.shape
    counts = (1,) * (ndim - len(counts)) + counts
    pairs = [n for pair in zip(counts, shape, strict=True) for n in pair]
    blocks = emit.broadcast_in_dim(emit.reshape(x, shape), pairs, [2 * i + 1 for i in range(ndim)])
    return emit.reshape(blocks, [n * c for n, c in zip(shape, counts, strict=True)])


@operation(static=("axis",), keys="each", keyed=("x",))
def roll(x: Tracer, /, shift: int | Sequence[int], axis: Axes = None) -> Tracer:
    """Returns ``x`` with its elements moved ``shift`` positions along ``axis``, cyclically.

    Without an axis the flattened array is rolled. Several shifts need as many axes, one of which
    may be named twice; one shift applies to all of them. A shift may be a 0-d integer array. It is
    always an operand of the program, which other shifts reuse. Any dtype. Keeps the shape. Raises
    `DtypeError` for shifts that are no integers, `AxisError`.

    >>> xp.roll(xp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift]
    if axis is None:
        if len(shifts) != 1:
            raise AxisError(f"roll got {len(shifts)} shifts and no axis; it takes one of each")
        return emit.reshape(_roll_axis(emit.reshape(x, (x.size,)), shifts[0], 0), x.shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    along = [normalize_axis("roll", a, x.ndim) for a in axes]
    if len(shifts) == 1:
        shifts *= len(along)
    elif len(along) == 1:
        along *= len(shifts)
    if len(shifts) != len(along):
        raise AxisError(f"roll got {len(shifts)} shifts for {len(along)} axes")
    for places, a in zip(shifts, along, strict=True):
        x = _roll_axis(x, places, a)
    return emit.strong(x)


def _roll_axis(x: Tracer, shift: Any, axis: int) -> Tracer:
    """Returns the slice of two joined copies that starts at ``-shift``, modulo the size."""
    admit("roll", "shift", shift.dtype, INTEGER)
    if shift.ndim:
        raise ShapeError(f"roll got a shift of shape {shift.shape}; a shift is a single integer")
    size = x.shape[axis]
    if not size:
        return x
    places = normalize_positions(shift, size, "wrap")
    start = emit.emit(hlo.subtract, constant(size, places.dtype), places)
    return dynamic_slice(concatenate([x, x], axis), [(axis, start)], x.shape)


def _flatten(function: str, x: Tracer, axis: int | None) -> tuple[Tracer, int]:
    if axis is None:
        return emit.reshape(x, (x.size,)), 0
    return emit.strong(x), normalize_axis(function, axis, x.ndim)


__all__ = ["repeat", "roll", "tile"]
