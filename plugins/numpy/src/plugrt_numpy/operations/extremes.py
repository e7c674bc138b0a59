"""`find_extreme`: reductions of values and their places that are an ``argmax`` or an ``argmin``."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import ir
from plugrt_numpy.data_types import Array, Dtype, Function, is_float, wide_dtype
from plugrt_numpy.operation import Operation

_ORDERED = frozenset(
    f"stablehlo.{name}" for name in ("and", "compare", "not", "or", "return", "select", "xor")
)


def find_extreme(op: Operation, axes: tuple[int, ...]) -> Function | None:
    """Returns the function of ``reduce`` of an array and its ``iota`` along one axis, or None.

    It has the array and the positions as arguments and returns the chosen value and its position,
    for each line along the axis. A body that only compares its arguments and selects among them
    depends only on their order, so a few pairs of values determine what it computes.
    """
    if len(axes) != 1 or len(op.ir.operands) != 4 or not _only_compares(op):
        return None
    if not _is_iota(op.ir.operands[1], axes[0]):
        return None
    [axis], dtype = axes, op.operand_types[0].dtype
    chosen = _try_choices(op, dtype)
    return None if chosen is None else _along(chosen, axis, wide_dtype(dtype))


def _along(chosen: Any, axis: int, wide: Dtype) -> Function:
    def run(x: Array, places: Array) -> tuple[Array, Array]:
        where = np.expand_dims(chosen(np.asarray(x, wide), axis), axis)
        value, place = (np.take_along_axis(a, where, axis) for a in (x, np.asarray(places)))
        return value.squeeze(axis), place.squeeze(axis)

    return run


def _only_compares(op: Operation) -> bool:
    """Whether a body compares values with values and places with places, and selects."""
    block = op.ir.regions[0].blocks[0]
    column = {argument: i % 2 for i, argument in enumerate(block.arguments)}
    for view in block.operations:
        operation = view.operation
        if operation.name not in _ORDERED:
            return False
        if operation.name == "stablehlo.compare":
            compared = [column.get(value) for value in operation.operands]
            total = "TOTALORDER" in str(operation.attributes.get("compare_type", ""))
            if None in compared or len(set(compared)) != 1 or total:
                return False
    return not op.captured_places()[0]


def _is_iota(value: ir.Value, axis: int) -> bool:
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView) or owner.name != "stablehlo.iota":
        return False
    return int(owner.attributes["iota_dimension"].value) == axis


def _try_choices(op: Operation, dtype: Dtype) -> Any:
    """Returns ``np.argmax`` or ``np.argmin`` if a body chooses the same of two elements.

    Both return a NaN before all else, and the first of equal elements; the left argument is first.
    """
    samples = [0, 1, np.nan] if is_float(dtype) else [0, 1]
    left, right = (np.array(v).astype(dtype) for v in zip(*_pairs(samples), strict=True))
    zero, one = (np.full(left.shape, i, op.result_types[1].dtype) for i in (0, 1))
    found, places = op.body().call(left, zero, right, one)
    both = np.stack([left, right]).astype(wide_dtype(dtype))
    for choose in (np.argmax, np.argmin):
        value = _along(choose, 0, both.dtype)(both, np.indices(both.shape)[0])
        if all(map(_same, value, (np.asarray(found, both.dtype), np.asarray(places)))):
            return choose
    return None


def _same(a: Array, b: Array) -> bool:
    return bool(np.all((a == b) | ((a != a) & (b != b))))  # NaNs, which integers do not have


def _pairs(samples: list[Any]) -> list[tuple[Any, Any]]:
    return [(a, b) for a in samples for b in samples]
