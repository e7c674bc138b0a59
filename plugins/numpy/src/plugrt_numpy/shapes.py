"""Operations that move elements and compute nothing, for static and for dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    Array,
    Dtype,
    Function,
    is_complex,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation


def _broadcaster(rank: int, shape: Sequence[int], dimensions: Sequence[int]) -> Function:
    """Returns a function that puts operand dimension i at ``dimensions[i]`` of a shape."""
    shape = tuple(shape)
    if not shape:
        return lambda x: x
    order = sorted(range(rank), key=dimensions.__getitem__)
    places = {d: i for i, d in enumerate(sorted(dimensions))}
    index = tuple(slice(None) if d in places else None for d in range(len(shape)))
    transposed = order != list(range(rank))

    def broadcast(x: Array) -> Array:
        if transposed:
            x = x.transpose(order)
        return np.broadcast_to(np.asarray(x)[index], shape)

    return broadcast if rank else lambda x: np.broadcast_to(x, shape)


def _broadcast_in_dim(op: Operation) -> Function:
    rank = len(op.operand_types[0].shape)
    return _broadcaster(rank, op.shape, op.ints("broadcast_dimensions"))


def _dynamic_broadcast_in_dim(op: Operation) -> Function:
    rank, dimensions = len(op.operand_types[0].shape), op.ints("broadcast_dimensions")
    return lambda x, shape: _broadcaster(rank, shape.tolist(), dimensions)(x)


def _broadcast(op: Operation) -> Function:
    shape = op.shape
    return lambda x: np.broadcast_to(x, shape)


def _reshape(op: Operation) -> Function:
    shape = op.shape
    if not shape and not op.operand_types[0].shape:
        return lambda x: x  # also of many elements, within a region
    return lambda x: x.reshape(shape)


def _dynamic_reshape(op: Operation) -> Function:
    return lambda x, shape: x.reshape(shape.tolist())


def _transpose(op: Operation) -> Function:
    order = op.ints("permutation")
    return lambda x: x.transpose(order)


def _reverse(op: Operation) -> Function:
    reversed_dimensions = op.ints("dimensions")
    index = tuple(
        slice(None, None, -1 if d in reversed_dimensions else 1) for d in range(len(op.shape))
    )
    return lambda x: x[index]


def iota(shape: Sequence[int], dimension: int, dtype: Dtype) -> Array:
    """Returns an array that counts along one dimension, in the memory of one row."""
    wide = np.dtype(np.float64) if is_complex(dtype) else wide_dtype(dtype)
    # np.arange supports no complex dtypes, and no numbers that a narrow integer has to wrap.
    counted = np.arange(shape[dimension], dtype=wide if wide.itemsize >= 4 else np.int64)
    row = counted.astype(wide, copy=False).astype(dtype, copy=False)
    return np.broadcast_to(row.reshape([-1] + [1] * (len(shape) - 1 - dimension)), tuple(shape))


def _iota(op: Operation) -> Function:
    shape, dimension, dtype = op.shape, op.integer("iota_dimension"), op.dtype
    return lambda: iota(shape, dimension, dtype)


def _dynamic_iota(op: Operation) -> Function:
    dimension, dtype = op.integer("iota_dimension"), op.dtype
    return lambda shape: iota(shape.tolist(), dimension, dtype)


def _concatenate(op: Operation) -> Function:
    axis = op.integer("dimension")
    return lambda *arrays: np.concatenate(arrays, axis)


def pad(
    x: Array, value: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Array:
    """Returns an array with padding before, after and between its elements; negative removes."""
    inner = [n + max(n - 1, 0) * i for n, i in zip(x.shape, interior, strict=True)]
    shape = [n + a + b for n, a, b in zip(inner, low, high, strict=True)]
    out = np.full(shape, value, x.dtype)
    sources, targets = [], []
    for size, n, before, between in zip(shape, x.shape, low, interior, strict=True):
        step = between + 1
        first = -(min(before, 0) // step)  # the first element at or after position 0
        last = min(n, (size - before + step - 1) // step)
        last = max(first, last)
        sources.append(slice(first, last))
        start = before + first * step
        targets.append(slice(start, max(start, start + (last - first) * step), step))
    if all(s.stop > s.start for s in sources):
        out[tuple(targets)] = x[tuple(sources)]
    return out


def _pad(op: Operation) -> Function:
    low, high = op.ints("edge_padding_low"), op.ints("edge_padding_high")
    interior = op.ints("interior_padding")
    return lambda x, value: pad(x, value, low, high, interior)


def _dynamic_pad(op: Operation) -> Function:
    return lambda x, value, low, high, interior: pad(
        x, value, low.tolist(), high.tolist(), interior.tolist()
    )


def _get_dimension_size(op: Operation) -> Function:
    dimension, dtype = op.integer("dimension"), op.dtype
    return lambda x: dtype.type(x.shape[dimension])


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.broadcast": _broadcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_broadcast_in_dim": _dynamic_broadcast_in_dim,
    "stablehlo.dynamic_iota": _dynamic_iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": _dynamic_reshape,
    "stablehlo.get_dimension_size": _get_dimension_size,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.transpose": _transpose,
}
"""Operation name to lowering."""
