"""``reduce`` and ``map``: by ufuncs where the body is one, else by vectorised bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, Dtype, Function, wide_dtype
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.control_flow import unpack_single
from plugrt_numpy.operations.extremes import find_extreme
from plugrt_numpy.operations.folding import combiner, fold_first_axis, known_ufunc


def _reduce(op: Operation) -> Function:
    axes, count = op.ints("dimensions"), len(op.ir.results)
    if count == 1:
        ufunc = known_ufunc(op.body())
        if ufunc is not None:
            return reduce_by(ufunc, axes, op.dtype)
    return unpack_single(op, _general(op, axes, count))


def reduce_by(ufunc: Any, axes: Sequence[int], dtype: Dtype) -> Function:
    """Returns a function of an array and an initial value that reduces axes by a ufunc."""
    axes = tuple(axes)
    wide = wide_dtype(dtype)
    reduce = ufunc.reduce
    if wide != dtype:
        return lambda x, start: (
            ufunc(reduce(x.astype(wide), axes, wide), np.asarray(start).astype(wide)).astype(dtype)
            if x.size
            else np.broadcast_to(start, _rest(x.shape, axes))
        )

    def run(x: Array, start: Any) -> Array:
        # Without an initial value of its own an empty maximum would raise.
        if not x.size:
            return np.broadcast_to(start, _rest(x.shape, axes))
        result: Array = ufunc(reduce(x, axes, wide), start)
        return result

    return run


def _rest(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(shape) if d not in axes)


def _general(op: Operation, axes: Sequence[int], count: int) -> Function:
    combine, places = combiner(op, count)
    extreme = find_extreme(op, tuple(axes)) if count == 2 else None
    shape = op.operand_types[0].shape
    kept = [d for d in range(len(shape)) if d not in axes]
    rest = [shape[d] for d in kept]
    size = math.prod(shape[d] for d in axes)
    order = [*axes, *kept]

    def run(*values: Any) -> list[Any]:
        arrays, starts = values[:count], values[count : 2 * count]
        captured = [values[2 * count + i] for i in places]
        if not size:
            return [np.broadcast_to(start, rest) for start in starts]
        if extreme is not None:
            folded = extreme(*arrays)
        else:
            flat = [np.asarray(x).transpose(order).reshape([size, *rest]) for x in arrays]
            folded = fold_first_axis(combine, flat, captured)
        begun = [np.broadcast_to(start, rest) for start in starts]
        results = combine(*begun, *folded, *captured)
        return [np.broadcast_to(r, rest) for r in results]

    return run


def _map(op: Operation) -> Function:
    count, shape = len(op.ir.operands), op.shape
    call, vectorised, places = op.body().call, op.body().elementwise, op.captured_places()[0]
    dtypes = [kind.dtype for kind in op.result_types]

    def run(*values: Any) -> list[Any]:
        arrays, captured = values[:count], [values[count + i] for i in places]
        if vectorised:
            return [np.broadcast_to(r, shape) for r in call(*arrays, *captured)]
        out = [np.empty(shape, dtype) for dtype in dtypes]
        for index in np.ndindex(*shape):
            for x, result in zip(out, call(*(a[index] for a in arrays), *captured), strict=True):
                x[index] = result
        return out

    return unpack_single(op, run)


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.map": _map,
    "stablehlo.reduce": _reduce,
}
"""Operation name to lowering."""
