"""Positions along axes, known ones and operands: normalizes, converts and checks them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt.array_api.indexing.items import (
    Indices,
    KnownPosition,
    Scalar,
    Shape,
    Unravelled,
    Window,
    is_advanced,
    items_with_axis,
)
from plugrt.array_api.indexing.key import Key
from plugrt.errors import InvalidIndex
from plugrt.tracing.emit import (
    broadcast_to,
    compare,
    concatenate,
    constant,
    convert,
    emit,
    full,
    hlo,
    reshape,
    select,
)
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer

Positions = list[tuple[int, Tracer]]
"""Axes, each with the positions along it."""


def operand_positions(shape: Shape, key: Key, mode: str | None = None) -> Positions:
    """Returns the positions that are operands, and known ones that broadcast with arrays.

    Negative ones are counted from the front. With mode ``wrap``, all are taken modulo the size.
    """
    pending = iter(key.operands)
    found: Positions = []
    flat: Any = None
    for axis, item in enumerate(items_with_axis(key.spec)):
        if isinstance(item, Unravelled):
            flat = next(pending) if item.axis == 0 else flat
            found.append((axis, _unravel(flat, item)))
        elif isinstance(item, Scalar | Window | Indices):
            p = next(pending)
            if shape[axis] == 0 and 0 not in p.shape:
                raise InvalidIndex(
                    f"an array of indices for axis {axis} of an array of shape {shape}, which has "
                    "no elements there"
                )
            safe = isinstance(item, Window) or (isinstance(item, Scalar) and item.safe)
            found.append((axis, normalize_positions(p, shape[axis], mode, safe=safe)))
        elif isinstance(item, KnownPosition) and is_advanced(key.spec):
            found.append((axis, constant_position(item.position)))
    return found


def _unravel(flat: Tracer, item: Unravelled) -> Tracer:
    """Returns the positions along one axis of a mask, from positions in the flattened mask."""
    stride = math.prod(item.shape[item.axis + 1 :])
    if stride > 1:
        flat = emit(hlo.divide, flat, full(flat.shape, stride, flat.dtype))
    if item.axis and item.shape[item.axis]:
        flat = emit(hlo.remainder, flat, full(flat.shape, item.shape[item.axis], flat.dtype))
    return flat


def normalize_positions(
    p: Tracer, size: int, mode: str | None = None, *, safe: bool = False
) -> Tracer:
    """Returns positions along an axis in a signed dtype, counted from the front."""
    wide = p.dtype.itemsize > 4 or p.dtype.name == "uint32" or size > np.iinfo(np.int32).max
    unsigned = dtype_kind(p.dtype) == "u"
    p = convert(p, np.int64 if wide else np.int32)
    if safe:
        return p
    sizes = full(p.shape, size, p.dtype)
    if mode == "wrap" and size:
        p = emit(hlo.remainder, p, sizes)
    if unsigned:
        return p
    negative = compare(p, full(p.shape, 0, p.dtype), "LT")
    return select(negative, emit(hlo.add, p, sizes), p)


def position_dtype(position: int) -> np.dtype[Any]:
    """Returns the dtype of positions up to this one: int32, or int64 beyond its range."""
    return np.dtype(np.int64 if position > np.iinfo(np.int32).max else np.int32)


def constant_position(position: int) -> Tracer:
    """Returns a known position as a constant."""
    return constant(position, position_dtype(position))


def in_bounds(shape: Shape, positions: Positions) -> Tracer:
    """Returns booleans: whether all positions are within their axes."""
    block = np.broadcast_shapes(*[p.shape for _, p in positions])
    result: Tracer | None = None
    for axis, p in positions:
        low = compare(p, full(p.shape, 0, p.dtype), "GE")
        high = compare(p, full(p.shape, shape[axis], p.dtype), "LT")
        both = broadcast_to(emit(hlo.and_, low, high), block)
        result = both if result is None else emit(hlo.and_, result, both)
    return full(block, True, np.dtype(np.bool_)) if result is None else result


def start_indices(shape: Shape, scalars: Positions) -> list[Tracer]:
    """Returns a 0-d start for each axis, in one dtype: the position, or 0."""
    given = dict(scalars)
    wide = any(p.dtype == np.int64 for p in given.values())
    dtype = np.dtype(np.int64) if wide else position_dtype(max(shape, default=0))
    return [
        convert(given[i], dtype) if i in given else constant(0, dtype) for i in range(len(shape))
    ]


def index_vectors(positions: Positions, block: Shape) -> Tracer:
    """Returns positions broadcast to ``block`` and stacked along a new last axis."""
    wide = any(p.dtype == np.int64 for _, p in positions)
    dtype = np.dtype(np.int64 if wide else np.int32)
    if not positions:
        return full((*block, 0), 0, dtype)
    parts = [reshape(broadcast_to(convert(p, dtype), block), (*block, 1)) for _, p in positions]
    return concatenate(parts, len(block))
