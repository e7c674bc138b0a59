"""Writes elements by a `Key`: by slice updates and scatters, which return a new array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from plugrt.array_api.indexing.items import (
    Item,
    New,
    Scalar,
    Shape,
    Slice,
    block_shape,
    is_advanced,
    items_with_axis,
    result_layout,
)
from plugrt.array_api.indexing.key import Key
from plugrt.array_api.indexing.positions import (
    Positions,
    constant_position,
    in_bounds,
    index_vectors,
    operand_positions,
    position_dtype,
    start_indices,
)
from plugrt.array_api.indexing.read import (
    cut_windows,
    remaining_slice,
    slice_at_positions,
    static_bounds,
)
from plugrt.array_api.manipulation import reverse
from plugrt.errors import ShapeError
from plugrt.tracing.emit import (
    active_trace,
    broadcast_to,
    constant,
    emit,
    full,
    hlo,
    iota,
    region,
    reshape,
    select,
    slice_,
    wrap_one,
)
from plugrt.tracing.tracer import Tracer

Combine = Callable[[Tracer, Tracer], Tracer]
"""Maps old and given elements to new ones."""


def write(
    x: Tracer,
    key: Key,
    value: Tracer,
    combine: Combine,
    *,
    mode: str | None = None,
    sorted_: bool = False,
    unique: bool = False,
) -> Tracer:
    """Returns ``x`` with the elements at ``key`` combined with ``value``, which broadcasts.

    Where arrays in the key name an element twice, it is combined twice, in unspecified order.
    Positions out of bounds are ignored, or with mode ``clip`` clamped.
    """
    block: Shape = ()
    if is_advanced(key.spec):
        part, starts, inside = cut_windows(x, key)
        if starts:
            updated = write(part, inside, value, combine, mode=mode, sorted_=sorted_, unique=unique)
            return _update_slice(x, updated, starts, [0] * x.ndim)
        block = block_shape(key.spec, key.operands)
    axes = result_layout(key.spec, block)
    value = _broadcast_value(value, tuple(n for _, n in axes))
    value = reshape(value, [n for item, n in axes if not isinstance(item, New)])
    if 0 in value.shape or 0 in x.shape:
        operand_positions(x.shape, key)  # checks the positions
        return x
    if is_advanced(key.spec):
        hints = {"indices_are_sorted": sorted_, "unique_indices": unique}
        return _scatter(x, key, block, axes, value, combine, mode, hints)
    return _write_slices(x, key, value, combine, mode)


def _broadcast_value(value: Tracer, shape: Shape) -> Tracer:
    squeezed = value
    while squeezed.ndim > len(shape) and squeezed.shape[0] == 1:
        squeezed = reshape(squeezed, squeezed.shape[1:])
    fits = squeezed.ndim <= len(shape) and all(
        n in (1, m) for n, m in zip(squeezed.shape[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"the value of shape {value.shape} does not broadcast to the shape {shape} of x[key]"
        )
    return broadcast_to(squeezed, shape)


def _write_slices(x: Tracer, key: Key, value: Tracer, combine: Combine, mode: str | None) -> Tracer:
    """Combines a part that slices and single positions select; each element occurs once."""
    items = items_with_axis(key.spec)
    scalars = operand_positions(x.shape, key)
    there = [remaining_slice(item) for item in items]
    bounds = [static_bounds(item) for item in there]
    slab = slice_at_positions(x, items, scalars) if scalars else x
    counts = [item.count if isinstance(item, Slice) else 1 for item in there]
    value = reverse(
        reshape(value, counts),
        [i for i, item in enumerate(there) if isinstance(item, Slice) and item.step < 0],
    )
    low, high, strides = (list(b) for b in zip(*bounds, strict=True)) if bounds else ([], [], [])
    part = slice_(slab, low, high, strides) if slab.shape != tuple(counts) else slab
    part = combine(part, value)
    unsafe = [p for p in scalars if isinstance(i := items[p[0]], Scalar) and not i.safe]
    if unsafe and mode != "clip":
        old = slice_(slab, low, high, strides)
        part = select(broadcast_to(in_bounds(x.shape, unsafe), part.shape), part, old)
    if any(s != 1 for s in strides):
        part = _replace_strided(slab, part, bounds)
        low = [0] * x.ndim
    if part.shape == x.shape:
        return part
    return _update_slice(x, part, scalars, low)


def _update_slice(x: Tracer, part: Tracer, scalars: Positions, low: Sequence[int]) -> Tracer:
    starts = start_indices(x.shape, scalars)
    moving = {axis for axis, _ in scalars}
    starts = [s if i in moving else constant(low[i], s.dtype) for i, s in enumerate(starts)]
    trace = active_trace()
    return wrap_one(
        hlo.dynamic_update_slice(
            x.value, part.value, [s.value for s in starts], loc=trace.location()
        )
    )


def _replace_strided(slab: Tracer, part: Tracer, bounds: Sequence[tuple[int, int, int]]) -> Tracer:
    """Returns ``slab`` with every stride-th element replaced, through interior padding."""
    padding = [
        (low, size - high, stride - 1)
        for (low, high, stride), size in zip(bounds, slab.shape, strict=True)
    ]

    def spread(y: Tracer) -> Tracer:
        return emit(
            hlo.pad,
            y,
            constant(0, y.dtype),
            edge_padding_low=[p[0] for p in padding],
            edge_padding_high=[p[1] for p in padding],
            interior_padding=[p[2] for p in padding],
        )

    mask = spread(full(part.shape, True, np.dtype(np.bool_)))
    return select(mask, spread(part), slab)


@dataclass
class _ScatterAxes:
    """How a scatter treats each axis of the update: as a window, or index by index."""

    windows: list[int] = field(default_factory=list)
    """Axes of the update that are copied as windows: slices of step 1."""
    window_axes: list[int] = field(default_factory=list)
    """The corresponding axes of the array."""
    starts: list[tuple[int, int]] = field(default_factory=list)
    """The axes along which the window is only a part, with its starts."""
    sizes: list[int] = field(default_factory=list)
    """The sizes of the update's other axes, which are indexed, in order."""
    strided: list[tuple[int, Slice, int]] = field(default_factory=list)
    """Axes of the array with slices of other steps, and their positions in ``sizes``."""
    block: int = 0
    """The position in ``sizes`` of the first axis of the key's arrays."""


def _classify_axes(
    x: Tracer, items: Sequence[Item], axes: Sequence[tuple[Item | None, int]]
) -> _ScatterAxes:
    walk = _ScatterAxes()
    slices = iter([i for i, item in enumerate(items) if isinstance(item, Slice)])
    in_block = False
    for i, (item, n) in enumerate(axes):
        if item is None:
            walk.block = walk.block if in_block else len(walk.sizes)
            in_block = True
            walk.sizes.append(n)
            continue
        axis = next(slices)
        assert isinstance(item, Slice)
        if item.step == 1 or item.count == 1:
            walk.windows.append(i)
            walk.window_axes.append(axis)
            if item.count != x.shape[axis]:
                walk.starts.append((axis, item.start))
        else:
            walk.strided.append((axis, item, len(walk.sizes)))
            walk.sizes.append(n)
    return walk


def _scatter(
    x: Tracer,
    key: Key,
    block: Shape,
    axes: list[tuple[Item | None, int]],
    value: Tracer,
    combine: Combine,
    mode: str | None,
    hints: dict[str, bool],
) -> Tracer:
    """Combines elements by a scatter at the arrays' positions; slices of step 1 are windows."""
    axes = [(item, n) for item, n in axes if item is None or isinstance(item, Slice)]
    walk = _classify_axes(x, items_with_axis(key.spec), axes)
    shape = tuple(walk.sizes)
    positions: Positions = [(axis, constant_position(start)) for axis, start in walk.starts]
    for axis, p in operand_positions(x.shape, key, mode):
        if mode == "clip":
            p = _clamp_positions(p, x.shape[axis])
        positions.append((axis, _broadcast_positions(p, block, walk.block, shape)))
    for axis, item, at in walk.strided:
        positions.append((axis, _slice_positions(item, at, shape)))
    numbers = hlo.ScatterDimensionNumbers.get(
        walk.windows,
        [i for i in range(x.ndim) if i not in walk.window_axes],
        [],
        [],
        [axis for axis, _ in positions],
        len(shape),
    )
    return _emit_scatter(x, index_vectors(positions, shape), value, numbers, combine, hints)


def _emit_scatter(
    x: Tracer,
    vectors: Tracer,
    value: Tracer,
    numbers: object,
    combine: Combine,
    hints: dict[str, bool],
) -> Tracer:
    trace = active_trace()
    op = hlo.ScatterOp(
        [trace.mlir_type(x.shape, x.dtype)],
        [x.value],
        vectors.value,
        [value.value],
        numbers,
        loc=trace.location(),
        **hints,
    )
    scalar = trace.mlir_type((), x.dtype)
    region(op.regions[0], [scalar, scalar], lambda old, new: [combine(old, new)])
    return wrap_one(op)


def _broadcast_positions(p: Tracer, block: Shape, at: int, shape: Shape) -> Tracer:
    """Returns positions of shape ``block`` broadcast to the scatter's axes, from axis ``at`` on."""
    p = broadcast_to(p, block)
    after = len(shape) - at - len(block)
    return broadcast_to(reshape(p, (*block, *[1] * after)), shape)


def _slice_positions(item: Slice, at: int, shape: Shape) -> Tracer:
    """Returns the positions of a slice along one of the indexed axes."""
    dtype = position_dtype(max(item.start, item.start + item.count * item.step))
    count = iota(shape, at, dtype)
    scaled = emit(hlo.multiply, count, full(shape, item.step, dtype))
    return emit(hlo.add, scaled, full(shape, item.start, dtype))


def _clamp_positions(p: Tracer, size: int) -> Tracer:
    return emit(hlo.clamp, constant(0, p.dtype), p, constant(size - 1, p.dtype))
