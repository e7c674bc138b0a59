"""``sort``: by keys where the comparator compares keys, else by a network of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_numpy.data_types import (
    BOOL,
    Array,
    Function,
    bits_to_order,
    has_leading_sign,
    is_float,
    wide_dtype,
)
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.comparators import SortKey, sort_keys
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.folding import Combine, combiner


def _sort(op: Operation) -> Function:
    axis = op.integer("dimension", -1)
    count = len(op.ir.results)
    axis = axis % max(len(op.operand_types[0].shape), 1)
    keys = sort_keys(op)
    combine, places = combiner(op, count)

    alone = len(keys) == count == 1 and keys[0].expression == ("key", 0)
    first = _read_first(op, axis)

    def run(*values: Any) -> list[Any]:
        arrays = [np.asarray(x) for x in values[:count]]
        if alone:
            found = _sorted_values(keys[0], arrays[0], axis)
            if found is not None:
                return [found]
        if keys:
            order = _order_by_keys(keys, arrays, axis, first)
        else:
            captured = [values[count + i] for i in places]
            order = _order_by_network(combine, arrays, axis, captured)
        if order.shape != arrays[0].shape:
            return [_take_first(x, order, axis) for x in arrays]
        return [np.take_along_axis(x, order, axis) for x in arrays]

    return unpack_single(op, run)


def _read_first(op: Operation, axis: int) -> int | None:
    """Returns how many elements along the axis are read, if the results are only sliced there.

    ``top_k`` is such a sort. None where they are read otherwise.
    """
    longest = 0
    for result in op.ir.results:
        for use in result.uses:
            reader = Operation(use.owner.operation, op.module)
            if reader.name != "stablehlo.slice" or reader.ints("start_indices")[axis]:
                return None
            longest = max(longest, reader.ints("limit_indices")[axis])
    return longest or None


def _take_first(x: Array, order: Array, axis: int) -> Array:
    """Returns an array of the shape of ``x`` with only its first elements set."""
    out = np.empty_like(x)
    taken = [slice(None)] * axis + [slice(order.shape[axis])]
    out[tuple(taken)] = np.take_along_axis(x, order, axis)
    return out


def _order_by_keys(
    keys: Sequence[SortKey], arrays: Sequence[Array], axis: int, first: int | None
) -> Array:
    """Returns the places of the elements in order, or of the ``first`` ones."""
    columns = [_sortable(key, key.of(arrays)) for key in keys]
    if len(columns) > 1:
        return np.lexsort(columns[::-1], axis=axis)  # the last of them is lexsort's first
    [column] = columns
    if column.dtype.kind in "iu" and column.dtype.itemsize <= 4 and column.ndim:
        return _order_of_integers(column, axis, first)
    return np.argsort(column, axis=axis, kind="stable")


def _order_of_integers(column: Array, axis: int, first: int | None) -> Array:
    """Returns the places of integers of 32 bits or less in stable order, or of the first ones.

    Each becomes one of 64 bits with its place in the low half: NumPy sorts values much faster than
    it finds their order, and selects the first without sorting the others.
    """
    size = column.shape[axis]
    wide = np.dtype(f"{column.dtype.kind}8")
    places = np.arange(size, dtype=wide)
    places = places.reshape([-1 if d == axis else 1 for d in range(column.ndim)])
    both = (column.astype(wide) << 32) | places
    if first is not None and first < size:
        both = np.partition(both, first - 1, axis)
        both = both[tuple([slice(None)] * axis + [slice(first)])]
    both.sort(axis)
    order: Array = both & 0xFFFFFFFF
    return order.view(np.int64)


def _sorted_values(key: SortKey, x: Array, axis: int) -> Array | None:
    """Returns the values in order; None where equal ones differ, and their order matters.

    NumPy sorts values ten times as fast as it finds their order.
    """
    if is_float(x.dtype) and not has_leading_sign(x.dtype):
        return None
    if not is_float(x.dtype):
        if wide_dtype(x.dtype) != x.dtype:
            return None
        ordered = np.sort(x, axis)
    else:
        if not key.total and (np.isnan(x).any() or np.signbit(x[x == 0]).any()):
            return None
        # Total order is the integers' order, and the way back is the same.
        ordered = bits_to_order(np.sort(bits_to_order(x), axis).view(x.dtype)).view(x.dtype)
    return np.flip(ordered, axis) if key.descending else ordered


def _sortable(key: SortKey, values: Array) -> Array:
    """Returns integers or floats whose ascending order is the key's."""
    if is_float(values.dtype):
        return _sortable_floats(key, values)
    if values.dtype == BOOL:
        values = values.view(np.uint8)
    values = values.astype(wide_dtype(values.dtype), copy=False)
    return np.invert(values) if key.descending else values


def _sortable_floats(key: SortKey, values: Array) -> Array:
    if key.total:
        order = bits_to_order(values)
        return np.invert(order) if key.descending else order
    values = values.astype(wide_dtype(values.dtype), copy=False)
    if not key.nans_first:  # where NumPy puts them, too
        return -values if key.descending else values
    order = bits_to_order(values + values.dtype.type(0))  # -0 becomes 0
    order = np.invert(order) if key.descending else order
    first: Array = np.where(np.isnan(values), np.iinfo(order.dtype).min, order)
    return first


def _order_by_network(
    combine: Combine, arrays: Sequence[Array], axis: int, captured: Sequence[Any]
) -> Array:
    """Sorts by Batcher's odd-even merge network; equal elements keep their order.

    All pairs of a step are compared by one call of the body, for all rows at once.
    """
    moved = [np.moveaxis(x, axis, 0) for x in arrays]
    size = moved[0].shape[0]
    order = np.broadcast_to(
        np.arange(size).reshape([-1] + [1] * (moved[0].ndim - 1)), moved[0].shape
    ).copy()
    moved = [x.copy() for x in moved]
    for left, right in _network(size):
        a, b = [x[left] for x in moved], [x[right] for x in moved]
        i, j = order[left], order[right]
        swap = _less(combine, b, a, captured)
        equal = ~swap & ~_less(combine, a, b, captured)
        swap = swap | (equal & (j < i))
        for x, low, high in zip([*moved, order], [*a, i], [*b, j], strict=True):
            x[left], x[right] = np.where(swap, high, low), np.where(swap, low, high)
    return np.moveaxis(order, 0, axis)


def _less(
    combine: Combine, a: Sequence[Array], b: Sequence[Array], captured: Sequence[Any]
) -> Array:
    pairs = [x for pair in zip(a, b, strict=True) for x in pair]
    return np.asarray(combine(*pairs, *captured)[0])


def _network(size: int) -> list[tuple[Array, Array]]:
    """Returns the steps of Batcher's odd-even mergesort: the lower and upper places of pairs."""
    steps = []
    p = 1
    while p < size:
        k = p
        while k >= 1:
            low = np.concatenate(
                [np.arange(j, min(j + k, size - k)) for j in range(k % p, size - k, 2 * k)]
                or [np.arange(0)]
            )
            low = low[low // (2 * p) == (low + k) // (2 * p)]
            if len(low):
                steps.append((low, low + k))
            k //= 2
        p *= 2
    return steps


OPERATIONS: dict[str, Lowering] = {"stablehlo.sort": _sort}
"""Operation name to lowering."""
