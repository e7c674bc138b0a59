"""Slices: with bounds from attributes or from operands, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Lowering, Operation


def _slice(op: Operation) -> Function:
    bounds = zip(
        op.ints("start_indices"), op.ints("limit_indices"), op.ints("strides"), strict=True
    )
    index = tuple(slice(*bound) for bound in bounds)
    return lambda x: x[index]


def _real_dynamic_slice(op: Operation) -> Function:
    def read(x: Array, starts: Array, limits: Array, strides: Array) -> Array:
        bounds = zip(starts.tolist(), limits.tolist(), strides.tolist(), strict=True)
        return x[tuple(slice(*bound) for bound in bounds)]

    return read


def clamped_slices(
    starts: Sequence[Any], sizes: Sequence[int], most: Sequence[int]
) -> tuple[slice, ...]:
    """Returns slices of fixed sizes; a start is moved so that its slice lies within bounds."""
    places = [min(max(int(s), 0), m) for s, m in zip(starts, most, strict=True)]
    return tuple(slice(p, p + n) for p, n in zip(places, sizes, strict=True))


def _dynamic_slice(op: Operation) -> Function:
    sizes = op.ints("slice_sizes")
    most = [n - size for n, size in zip(op.operand_types[0].shape, sizes, strict=True)]
    return lambda x, *starts: x[clamped_slices(starts, sizes, most)]


def _dynamic_update_slice(op: Operation) -> Function:
    whole, update = op.operand_types[:2]
    most = [n - size for n, size in zip(whole.shape, update.shape, strict=True)]

    def write(x: Array, values: Array, *starts: Any) -> Array:
        out = x.copy()
        out[clamped_slices(starts, update.shape, most)] = values
        return out

    return write


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.slice": _slice,
}
"""Operation name to lowering."""
