"""Sliding windows: ``reduce_window`` and ``select_and_scatter``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, Dtype, Function, wide_dtype
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.folding import combiner, known_ufunc
from plugrt_numpy.operations.scattering import at_places, scatter_by_passes
from plugrt_numpy.shapes import pad

Join = Callable[[Sequence[Array], Sequence[Array]], list[Array]]
"""Combines the values on the left with those on the right, of one shape."""


@dataclass(frozen=True)
class Windows:
    """The windows of an operation, for each dimension."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: list[list[int]]

    @classmethod
    def of(cls, op: Operation) -> Windows:
        """Reads the attributes; missing ones are 1, or no padding."""
        rank = len(op.operand_types[0].shape)
        ones = [1] * rank
        return cls(
            op.ints("window_dimensions", ones),
            op.ints("window_strides", ones),
            op.ints("base_dilations", ones),
            op.ints("window_dilations", ones),
            op.table("padding") or [[0, 0]] * rank,
        )

    def pad_with(self, x: Array, value: Any) -> Array:
        """Returns the array with holes and edges filled with a value."""
        if all(d == 1 for d in self.base_dilations) and not any(map(any, self.padding)):
            return np.asarray(x)
        low, high = zip(*self.padding, strict=True)
        return pad(np.asarray(x), value, low, high, [d - 1 for d in self.base_dilations])

    def view(self, x: Array) -> Array:
        """Returns a view of a padded array: positions of windows, then positions within one."""
        spans = [(n - 1) * d + 1 for n, d in zip(self.sizes, self.dilations, strict=True)]
        if any(n < span for n, span in zip(x.shape, spans, strict=True)):
            return np.empty([*self.counts(x.shape), *self.sizes], x.dtype)
        every = np.lib.stride_tricks.sliding_window_view(x, spans)
        index = [slice(None, None, s) for s in self.strides]
        return every[(*index, *(slice(None, None, d) for d in self.dilations))]

    def counts(self, shape: Sequence[int]) -> list[int]:
        """Returns how many windows fit into a padded array, for each dimension."""
        return [
            0 if n < (w - 1) * d + 1 else (n - (w - 1) * d - 1) // s + 1
            for n, w, s, d in zip(shape, self.sizes, self.strides, self.dilations, strict=True)
        ]

    @property
    def reduced_axes(self) -> list[int]:
        """The axes with more than one element per window, padding, strides or dilation."""
        both = zip(self.sizes, self.strides, strict=True)
        return [axis for axis, (size, stride) in enumerate(both) if (size, stride) != (1, 1)]

    @property
    def scanned_axis(self) -> tuple[int, bool] | None:
        """The axis with windows of all elements up to their position, and whether from the end."""
        wide = [axis for axis, size in enumerate(self.sizes) if size > 1]
        plain = {*self.strides, *self.base_dilations, *self.dilations} == {1}
        if len(wide) != 1 or not plain:
            return None
        [axis] = wide
        reach = self.sizes[axis] - 1
        if any(map(any, (*self.padding[:axis], *self.padding[axis + 1 :]))):
            return None
        backwards = self.padding[axis] == [0, reach]
        return (axis, backwards) if backwards or self.padding[axis] == [reach, 0] else None


def _reduce_window(op: Operation) -> Function:
    windows, count = Windows.of(op), len(op.ir.results)
    if count == 1:
        ufunc = known_ufunc(op.body())
        if ufunc is not None:
            return _separable(ufunc, windows, op.dtype)
    return unpack_single(op, _general(op, windows, count))


def _separable(ufunc: Any, windows: Windows, dtype: Dtype) -> Function:
    """Reduces the windows along one axis after the other: k + k steps in place of k * k."""
    wide = wide_dtype(dtype)
    axes = windows.reduced_axes
    scanned = windows.scanned_axis

    def join(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        return [ufunc(left[0], right[0])]

    def run(x: Array, start: Any) -> Array:
        begun = np.asarray(start).astype(wide)
        if scanned is not None and x.size and windows.sizes[scanned[0]] >= x.shape[scanned[0]]:
            return _scan(ufunc, np.asarray(x).astype(wide, copy=False), begun, scanned).astype(
                dtype, copy=False
            )
        x = windows.pad_with(np.asarray(x).astype(wide, copy=False), begun)
        for axis in axes:
            [x] = _reduce_axis(join, [x], windows, axis)
        result: Array = ufunc(x, begun)
        return result.astype(dtype, copy=False)

    return run


def _scan(ufunc: Any, x: Array, start: Array, along: tuple[int, bool]) -> Array:
    """Returns the running reductions along an axis, from its end if the flag is set."""
    axis, backwards = along
    x = np.flip(x, axis) if backwards else x
    total: Array = ufunc(ufunc.accumulate(x, axis, x.dtype), start)
    return np.flip(total, axis) if backwards else total


def _reduce_axis(join: Join, arrays: list[Array], windows: Windows, axis: int) -> list[Array]:
    """Reduces windows along an axis: one pass a position, or log2(size) passes by doubling."""
    size, stride, dilation = (v[axis] for v in (windows.sizes, windows.strides, windows.dilations))
    span = (size - 1) * dilation + 1
    length = arrays[0].shape[axis]
    count = 0 if length < span else (length - span) // stride + 1
    before = (slice(None),) * axis
    if not count:
        return [x[(*before, slice(0, 0))] for x in arrays]
    if size > 8:
        places = slice(0, (count - 1) * stride + 1, stride)
        return [x[(*before, places)] for x in _by_doubling(join, arrays, size, dilation, axis)]

    def taken(place: int) -> list[Array]:
        first = place * dilation
        return [
            x[(*before, slice(first, first + (count - 1) * stride + 1, stride))] for x in arrays
        ]

    total = taken(0)
    for place in range(1, size):
        total = join(total, taken(place))
    return total


def _by_doubling(
    join: Join, arrays: list[Array], size: int, dilation: int, axis: int
) -> list[Array]:
    """Returns the totals of all windows of a size, combined from totals of powers of two."""
    before = (slice(None),) * axis

    def joined(first: list[Array], second: list[Array], offset: int) -> list[Array]:
        later = [x[(*before, slice(offset, None))] for x in second]
        length = min(first[0].shape[axis], later[0].shape[axis])
        return join(*([x[(*before, slice(length))] for x in side] for side in (first, later)))

    power, of_power, done = 1, arrays, 0
    total: list[Array] = []
    while True:
        if size & power:
            total = joined(total, of_power, done * dilation) if done else of_power
            done += power
        if done == size:
            return total
        of_power = joined(of_power, of_power, power * dilation)
        power *= 2


def _general(op: Operation, windows: Windows, count: int) -> Function:
    """Reduces by any body: one axis after another from the last, which keeps the order."""
    combine, places = combiner(op, count)

    def run(*values: Any) -> list[Array]:
        starts = values[count : 2 * count]
        captured = [values[2 * count + i] for i in places]

        def join(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
            return [np.asarray(x) for x in combine(*left, *right, *captured)]

        arrays = [windows.pad_with(x, s) for x, s in zip(values[:count], starts, strict=True)]
        rest = windows.counts(arrays[0].shape)
        begun = [np.broadcast_to(start, rest) for start in starts]
        if 0 in windows.sizes or not math.prod(rest):
            return begun
        for axis in reversed(windows.reduced_axes):
            arrays = _reduce_axis(join, arrays, windows, axis)
        return [np.broadcast_to(x, rest) for x in join(begun, arrays)]

    return run


def _select_and_scatter(op: Operation) -> Function:
    windows = Windows.of(op)
    select, select_places = combiner(op, 1, 0)
    scatter, scatter_places = combiner(op, 1, 1)
    ufunc = known_ufunc(op.body(1))

    def run(x: Array, source: Array, start: Any, *captured: Any) -> Array:
        place = _select_positions(
            windows, np.asarray(x), select, [captured[i] for i in select_places]
        )
        given = [captured[i] for i in scatter_places]
        out = np.full(x.size, start, x.dtype)
        flat, places = np.ascontiguousarray(source).reshape(-1), place.reshape(-1)
        if ufunc is not None:
            at_places(ufunc, out, places, flat)
        else:
            scatter_by_passes(lambda old, new: scatter(old, new, *given)[0], out, places, flat)
        return out.reshape(x.shape)

    return run


def _select_positions(windows: Windows, x: Array, select: Any, captured: Sequence[Any]) -> Array:
    """Returns for each window the flat position, in ``x``, of the element that is selected."""
    positions = windows.view(
        windows.pad_with(np.arange(1, x.size + 1, dtype=np.int64).reshape(x.shape), np.int64(0))
    )
    values = windows.view(windows.pad_with(x, x.dtype.type(0)))
    rank = x.ndim
    counts = positions.shape[:rank]
    # A position of 0 is padding, which is never selected.
    best, chosen = None, np.zeros(counts, np.int64)
    for offset in np.ndindex(*windows.sizes):
        value, position = values[(..., *offset)], positions[(..., *offset)]
        if best is None:
            best, chosen = value, position
            continue
        keep = np.asarray(select(best, value, *captured)[0]) & (chosen > 0)
        keep = keep | (position == 0)
        best = np.where(keep, best, value).astype(x.dtype, copy=False)
        chosen = np.where(keep, chosen, position)
    return chosen - 1


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
"""Operation name to lowering."""
