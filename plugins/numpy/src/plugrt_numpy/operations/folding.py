"""Folds arrays by a region, for reductions, windows and scans of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt_numpy.bodies import single_operation
from plugrt_numpy.data_types import Array
from plugrt_numpy.operation import Body, Operation

Combine = Callable[..., Sequence[Any]]
"""A function of the left values, then the right values, of one shape; returns the values."""

_UFUNCS: dict[str, Any] = {
    "stablehlo.add": np.add,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}


def known_ufunc(body: Body) -> Any:
    """Returns the ufunc of a body, or None. It is the same for floats and integers."""
    return _UFUNCS.get(single_operation(body.block))


def combiner(op: Operation, count: int, index: int = 0) -> tuple[Combine, list[int]]:
    """Returns the function of a body of ``2 * count`` arguments, vectorised, and its captures.

    The captures are positions among the values after an operation's operands; they are the
    function's last arguments. A body that is not elementwise is run element by element.
    """
    body = op.body(index)
    captured = op.captured_places()[index]
    if body.elementwise:
        return body.call, captured
    return _element_by_element(body.call, 2 * count), captured


def _element_by_element(call: Combine, arguments: int) -> Combine:
    def run(*values: Any) -> tuple[Any, ...]:
        arrays, captured = values[:arguments], values[arguments:]
        rows = (
            list(np.broadcast(*arrays)) if len(arrays) > 1 else [(x,) for x in np.ravel(arrays[0])]
        )
        shape = np.broadcast_shapes(*map(np.shape, arrays))
        results = [call(*map(np.asarray, row), *captured) for row in rows]
        return tuple(np.array(column).reshape(shape) for column in zip(*results, strict=True))

    return run


def fold_first_axis(
    combine: Combine, arrays: Sequence[Array], captured: Sequence[Any]
) -> list[Array]:
    """Folds the first axis of arrays (at least 1 long), in order, in a tree of pairs.

    The specification lets an implementation choose any tree; one of pairs needs log2(n) calls.
    """
    while (size := len(arrays[0])) > 1:
        even = size & ~1
        folded = combine(*(x[0:even:2] for x in arrays), *(x[1:even:2] for x in arrays), *captured)
        whole = [np.asarray(f) for f in folded]
        if size != even:
            whole = [np.concatenate([f, x[even:]]) for f, x in zip(whole, arrays, strict=True)]
        arrays = whole
    return [x[0] for x in arrays]
