"""`matmul`, `tensordot`, `vecdot` and `matrix_transpose`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plugrt.array_api.elementwise.operands import ANY, broadcast_shapes, common_dtype
from plugrt.array_api.fold import binary_combiner, fold, widen_for_sum
from plugrt.errors import AxisError, ShapeError
from plugrt.interface import TensorType
from plugrt.settings.declarations import config
from plugrt.tracing import emit
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis
from plugrt.tracing.emit import convert, hlo, ir, transpose
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer

_PRECISION = {
    None: "DEFAULT",
    "default": "DEFAULT",
    "bfloat16": "DEFAULT",
    "high": "HIGH",
    "tensorfloat32": "HIGH",
    "highest": "HIGHEST",
    "float32": "HIGHEST",
}
"""JAX's names for StableHLO's precisions (``jax.default_matmul_precision``)."""


@operation(shards=True)
def matmul(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the matrix product over the last two dimensions; those before them broadcast.

    A one-dimensional ``x1`` is a row, and ``x2`` a column; the result lacks the added axis. Numeric
    dtypes; integers wrap around. Precision is ``config.default_matmul_precision``. Raises
    `ShapeError` for 0-d arrays and for sizes that do not fit.

    >>> xp.matmul(xp.ones((2, 3)), xp.ones((3, 4))).shape
    (2, 4)
    """
    x1, x2 = _promote("matmul", x1, x2)
    row, column = x1.ndim == 1, x2.ndim == 1
    if not x1.ndim or not x2.ndim or x1.shape[-1] != x2.shape[-1 if column else -2]:
        raise ShapeError(
            f"matmul got x1 of shape {x1.shape} and x2 of shape {x2.shape}; the last axis of x1 "
            f"must be of the size of the {'only' if column else 'second last'} axis of x2"
        )
    if column or x2.ndim == 2:
        return dot(x1, x2, [x1.ndim - 1], [0])
    if row:
        return dot(x2, x1, [x2.ndim - 2], [0])
    batch = _broadcast_batch("matmul", x1, x2, 2)
    x1 = emit.broadcast_to(x1, (*batch, *x1.shape[-2:]))
    x2 = emit.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    n = len(batch)
    return dot(x1, x2, [n + 1], [n], range(n))


@operation
def matrix_transpose(x: Tracer, /) -> Tracer:
    """Returns ``x`` with its last two axes exchanged; `ShapeError` for fewer than two.

    Any dtype.
    """
    if x.ndim < 2:
        raise ShapeError(
            f"matrix_transpose got x of shape {x.shape}; it takes two dimensions or more"
        )
    return transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@operation(static=("axes",), shards=True)
def tensordot(
    x1: Tracer, x2: Tracer, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tracer:
    """Returns the sum of products over ``axes``: the last N of ``x1`` and the first N of ``x2``.

    Or ``axes`` is a pair of sequences, axes of ``x1`` and the corresponding axes of ``x2``. The
    result has the other axes of ``x1``, then the others of ``x2``. Numeric dtypes and bool,
    promoted. Raises `AxisError`, and `ShapeError` if the sizes differ.

    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x1, x2 = _promote("tensordot", x1, x2)
    left, right = _read_axes(axes, x1.ndim, x2.ndim)
    sizes = [x1.shape[i] for i in left], [x2.shape[i] for i in right]
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"tensordot got x1 of shape {x1.shape} and x2 of shape {x2.shape}; over axes {left} "
            f"and {right} their sizes {sizes[0]} and {sizes[1]} differ"
        )
    return dot(x1, x2, left, right)


def _read_axes(axes: object, n1: int, n2: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, tuple | list):
        if len(axes) != 2:
            raise AxisError(f"axes of tensordot is {axes}; it takes a number or a pair")
        left = normalize_axes("tensordot", axes[0], n1, "axes[0]")
        right = normalize_axes("tensordot", axes[1], n2, "axes[1]")
        if len(left) != len(right):
            raise AxisError(f"axes of tensordot is {axes}; both must name as many axes")
        return left, right
    if not isinstance(axes, int) or not 0 <= axes <= min(n1, n2):
        raise AxisError(
            f"axes of tensordot is {axes!r} for arrays of {n1} and {n2} dimensions; it takes a "
            "number of axes that both have, or a pair of sequences"
        )
    return tuple(range(n1 - axes, n1)), tuple(range(axes))


@operation(static=("axis",), shards=True)
def vecdot(x1: Tracer, x2: Tracer, /, *, axis: int = -1) -> Tracer:
    """Returns the sum over ``axis`` of ``conj(x1) * x2``; the other dimensions broadcast.

    ``axis`` counts from the back (-1 is the last), so that it is the same axis in both. Numeric
    dtypes and bool, promoted; the result lacks the axis. Raises `AxisError`, and `ShapeError` if
    sizes or shapes do not match.
    """
    x1, x2 = _promote("vecdot", x1, x2)
    least = min(x1.ndim, x2.ndim)
    if not isinstance(axis, int) or not -least <= axis <= -1:
        raise AxisError(
            f"axis of vecdot is {axis!r} for x1 of shape {x1.shape} and x2 of shape {x2.shape}; "
            f"it takes {-least} to -1, an axis that both have, counted from the back"
        )
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(
            f"vecdot got x1 of shape {x1.shape} and x2 of shape {x2.shape}, whose sizes along "
            f"axis {axis} differ"
        )
    shape = broadcast_shapes((x1.shape, x2.shape))
    if shape is None:
        raise ShapeError(
            f"vecdot got x1 of shape {x1.shape} and x2 of shape {x2.shape}, which do not broadcast"
        )
    dtype = x1.dtype
    if dtype.kind == "c":
        x1 = emit.emit(hlo.complex, emit.emit(hlo.real, x1), _negate(emit.emit(hlo.imag, x1)))
    products = emit.emit(
        hlo.multiply,
        widen_for_sum(emit.broadcast_to(x1, shape)),
        widen_for_sum(emit.broadcast_to(x2, shape)),
    )
    along = (normalize_axis("vecdot", axis, len(shape)),)
    join = binary_combiner(hlo.or_ if dtype == np.bool_ else hlo.add)
    return convert(fold(join, products, 0, along, keepdims=False), dtype)


def _negate(x: Tracer) -> Tracer:
    return emit.emit(hlo.negate, x)


def dot(
    x: Tracer,
    y: Tracer,
    left: Sequence[int],
    right: Sequence[int],
    batch: Sequence[int] = (),
    precision_name: str | None = None,
) -> Tracer:
    """Returns the product of two arrays of one dtype, contracted over ``left`` and ``right``.

    The result has the ``batch`` axes, which are the leading ones of both, then the other axes of
    ``x`` and then the others of ``y``. Without ``precision_name`` the precision is
    ``config.default_matmul_precision``.
    """
    if x.dtype == np.bool_:  # whether any product is true: backends differ in sums of i1
        counts = dot(convert(x, np.int32), convert(y, np.int32), left, right, batch)
        return convert(counts, np.bool_)
    numbers = hlo.DotDimensionNumbers.get(list(batch), list(batch), list(left), list(right))
    shape = [x.shape[i] for i in batch]
    for operand, contracted in ((x, left), (y, right)):
        gone = {*batch, *contracted}
        shape += [n for i, n in enumerate(operand.shape) if i not in gone]
    return emit.emit(
        hlo.dot_general,
        x,
        y,
        result=TensorType(tuple(shape), x.dtype),
        dot_dimension_numbers=numbers,
        precision_config=precision(precision_name or config.default_matmul_precision),
    )


def precision(name: str | None) -> ir.ArrayAttr:
    """Returns StableHLO's attribute of the precision of both operands of a product."""
    one = hlo.PrecisionAttr.get(_PRECISION[name])
    return ir.ArrayAttr.get([one, one])


def _promote(function: str, x1: Tracer, x2: Tracer) -> tuple[Tracer, Tracer]:
    dtype = common_dtype(function, (x1, x2), ANY, ("x1", "x2"))
    return convert(x1, dtype), convert(x2, dtype)


def _broadcast_batch(function: str, x1: Tracer, x2: Tracer, core: int) -> tuple[int, ...]:
    batch = broadcast_shapes((x1.shape[:-core], x2.shape[:-core]))
    if batch is None:
        raise ShapeError(
            f"{function} got x1 of shape {x1.shape} and x2 of shape {x2.shape}, whose dimensions "
            f"before the last {core} do not broadcast"
        )
    return batch


__all__ = ["dot", "matmul", "matrix_transpose", "precision", "tensordot", "vecdot"]
