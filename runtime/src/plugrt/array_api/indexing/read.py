"""Reads elements by a `Key`: by slices, dynamic slices and gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.array_api.indexing.items import (
    Item,
    KnownPosition,
    Scalar,
    Shape,
    Slice,
    Spec,
    Window,
    block_shape,
    has_operand,
    is_advanced,
    items_with_axis,
    result_layout,
)
from plugrt.array_api.indexing.key import Key
from plugrt.array_api.indexing.positions import (
    Positions,
    in_bounds,
    index_vectors,
    normalize_positions,
    operand_positions,
    start_indices,
)
from plugrt.array_api.manipulation import reverse
from plugrt.errors import ArgumentError
from plugrt.tracing.emit import (
    active_trace,
    broadcast_in_dim,
    broadcast_to,
    emit,
    full,
    hlo,
    reshape,
    select,
    slice_,
    wrap_one,
)
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer

MODES = (None, "fill", "drop", "clip", "promise_in_bounds", "wrap")


def read(x: Tracer, key: Key, mode: str | None = None, fill_value: object = None) -> Tracer:
    """Returns ``x[key]``. See `plugrt.array_api.indexing.functions.getitem` for the meaning."""
    if is_advanced(key.spec):
        part, _, key = cut_windows(x, key)
        return _read_by_arrays(part, key, mode, fill_value)
    shape = [n for _, n in result_layout(key.spec, ())]
    items = items_with_axis(key.spec)
    scalars = operand_positions(x.shape, key)
    if scalars:
        result = slice_at_positions(x, items, scalars)
        result = _static_part(result, [remaining_slice(item) for item in items])
        unsafe = [p for p in scalars if isinstance(i := items[p[0]], Scalar) and not i.safe]
        result = reshape(result, shape)
        if is_filled_out_of_bounds(mode, fill_value) and unsafe:
            return fill_invalid(result, in_bounds(x.shape, unsafe), (), fill_value)
        return result
    return reshape(_static_part(x, items), shape)


def remaining_slice(item: Item) -> Item:
    """Returns the slice that is left to apply to an axis after `slice_at_positions`."""
    if isinstance(item, Scalar):
        return Slice(0, 1, 1)
    return item.inside if isinstance(item, Window) else item


def cut_windows(x: Tracer, key: Key) -> tuple[Tracer, Positions, Key]:
    """Returns the part of ``x`` that contains a key's windows, its start, and a key for it.

    That key has slices instead of the windows.
    """
    pending = iter(key.operands)
    operands: list[object] = []
    starts: list[Tracer] = []
    for item in key.spec:
        if has_operand(item):
            (starts if isinstance(item, Window) else operands).append(next(pending))
    if not starts:
        return x, [], key
    items = [i if isinstance(i, Window) else None for i in items_with_axis(key.spec)]
    axes = [axis for axis, item in enumerate(items) if item]
    positions = [
        (axis, normalize_positions(p, x.shape[axis], safe=True))
        for axis, p in zip(axes, starts, strict=True)
    ]
    spec = tuple(item.inside if isinstance(item, Window) else item for item in key.spec)
    return slice_at_positions(x, items, positions), positions, Key(spec, tuple(operands))


def _read_by_arrays(x: Tracer, key: Key, mode: str | None, fill_value: object) -> Tracer:
    block = block_shape(key.spec, key.operands)
    axes = result_layout(key.spec, block)
    shape = tuple(n for _, n in axes)
    positions = operand_positions(x.shape, key, mode)
    if math.prod(shape) == 0:
        return full(shape, 0, x.dtype)
    whole = [Slice(0, n, 1) for n in x.shape]
    items = [
        item if isinstance(item, Slice) else whole[i]
        for i, item in enumerate(items_with_axis(key.spec))
    ]
    part = _static_part(x, items)
    before = 0
    for item, _ in axes:
        if item is None:
            break
        before += isinstance(item, Slice)
    gathered = gather(part, positions, block, before)
    if is_filled_out_of_bounds(mode, fill_value):
        valid = broadcast_to(in_bounds(x.shape, positions), block)
        where = range(before, before + len(block))
        gathered = fill_invalid(gathered, valid, where, fill_value)
    return reshape(gathered, shape)


def is_filled_out_of_bounds(mode: str | None, fill_value: object) -> bool:
    """Whether positions out of bounds give ``fill_value``; checks ``mode``."""
    if mode not in MODES:
        raise ArgumentError(f"mode is {mode!r}; it takes {', '.join(map(repr, MODES))}")
    return mode in ("fill", "drop") or (mode is None and fill_value is not None)


def fill_invalid(x: Tracer, valid: Tracer, where: Sequence[int], fill_value: object) -> Tracer:
    """Returns ``x`` with ``fill_value`` where ``valid``, whose axes are ``where``, is False."""
    value = default_fill(x.dtype) if fill_value is None else fill_value
    mask = broadcast_in_dim(valid, x.shape, where) if valid.shape != x.shape else valid
    return select(mask, x, full(x.shape, value, x.dtype))


def default_fill(dtype: np.dtype[Any]) -> Any:
    """Returns JAX's default fill value: NaN, the least signed, the greatest unsigned integer."""
    kind = dtype_kind(dtype)
    if kind in "fc":
        return np.nan
    if kind == "b":
        return True
    limits: Any = ml_dtypes.iinfo
    info = limits(dtype)
    return info.min if kind == "i" else info.max


def _static_part(x: Tracer, items: Sequence[Item]) -> Tracer:
    """Returns the part of ``x`` that slices and known positions select, with all axes."""
    bounds = [static_bounds(item) for item in items]
    if any(b != (0, n, 1) for b, n in zip(bounds, x.shape, strict=True)):
        low, high, strides = zip(*bounds, strict=True)
        x = slice_(x, low, high, strides)
    backwards = [i for i, k in enumerate(items) if isinstance(k, Slice) and k.step < 0]
    return reverse(x, backwards)


def static_bounds(item: Item) -> tuple[int, int, int]:
    """Returns start, limit and stride of a slice's or a known position's elements, ascending."""
    if isinstance(item, KnownPosition):
        return item.position, item.position + 1, 1
    assert isinstance(item, Slice)
    if not item.count:
        return 0, 0, 1
    last = item.start + (item.count - 1) * item.step
    low, high = min(item.start, last), max(item.start, last)
    return (low, high + 1, abs(item.step)) if item.count > 1 else (low, high + 1, 1)


def slice_at_positions(x: Tracer, items: Sequence[Item | None], scalars: Positions) -> Tracer:
    """Returns the part of ``x`` at single positions and windows, clamped to the bounds.

    ``items`` has one item for each axis; all axes remain; an axis without a position is whole.
    """
    taken = {axis for axis, _ in scalars}
    sizes = [
        n if i not in taken else item.extent if isinstance(item, Window) else 1
        for i, (n, item) in enumerate(zip(x.shape, items, strict=True))
    ]
    return dynamic_slice(x, scalars, sizes)


def dynamic_slice(x: Tracer, scalars: Positions, sizes: Sequence[int]) -> Tracer:
    """Returns the part of ``x`` of these sizes that begins at 0-d positions; 0 without one."""
    trace = active_trace()
    starts = [p.value for p in start_indices(x.shape, scalars)]
    return wrap_one(hlo.dynamic_slice(x.value, starts, list(sizes), loc=trace.location()))


def gather(x: Tracer, positions: Positions, block: Shape, before: int) -> Tracer:
    """Returns the slices of ``x`` at ``positions``, clamped.

    The result has ``before`` of the axes that have no positions, then ``block``, then the others.
    """
    taken = [axis for axis, _ in positions]
    rest = x.ndim - len(taken)
    offset = [i if i < before else i + len(block) for i in range(rest)]
    if not positions:
        kept = [*x.shape[:before], *block, *x.shape[before:]]
        return broadcast_in_dim(x, kept, offset)
    numbers = hlo.GatherDimensionNumbers.get(offset, taken, [], [], taken, len(block))
    sizes = [1 if i in taken else n for i, n in enumerate(x.shape)]
    return emit(
        hlo.gather,
        x,
        index_vectors(positions, block),
        dimension_numbers=numbers,
        slice_sizes=sizes,
    )


__all__ = ["MODES", "Spec", "default_fill", "gather", "in_bounds", "normalize_positions", "read"]
