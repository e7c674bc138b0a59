"""`vector_norm` and `matrix_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.elementwise.operands import FLOATING, unary
from plugrt.array_api.linalg.matrices import read_matrices, real_dtype, squared_abs
from plugrt.array_api.linalg.singular_values import svdvals
from plugrt.array_api.statistics import max, min, sum
from plugrt.errors import ArgumentError
from plugrt.tracing.argument_checks import normalize_axes
from plugrt.tracing.emit import convert, reshape, widen
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Axes


@operation(static=("axis", "keepdims", "ord"), weak_by="none")
def vector_norm(
    x: Tracer, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Tracer:
    """Returns the norms of the vectors along ``axis`` (None: of all elements).

    ``ord`` is the p of the p-norm: infinity gives the largest absolute value, minus infinity the
    smallest, 0 the number of nonzero elements, another number ``sum(|x|**p) ** (1/p)``. Floats;
    integers become the default float. The result is real and lacks the axes unless ``keepdims``.
    Raises `AxisError`, `ArgumentError` for an ``ord`` that is no number.

    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = unary("vector_norm", x, FLOATING)
    p = _number("vector_norm", ord)
    over: object = normalize_axes("vector_norm", axis, x.ndim) if axis is not None else None
    wide = widen(x)
    result = _power_norm(wide, p, over, keepdims)
    return convert(result, real_dtype(x.dtype))


def _power_norm(x: Tracer, p: float, axis: object, keepdims: bool) -> Tracer:
    over: Any = {"axis": axis, "keepdims": keepdims}
    result: Tracer
    if np.isinf(p):
        result = (max if p > 0 else min)(abs(x), **over)
    elif p == 0:
        result = sum(convert(x != 0, real_dtype(x.dtype)), **over)
    elif p == 1:
        result = sum(abs(x), **over)
    elif p == 2:
        result = sqrt(sum(squared_abs(x), **over))
    else:
        result = sum(abs(x) ** p, **over) ** (1 / p)
    return result


@operation(static=("keepdims", "ord"), weak_by="none")
def matrix_norm(x: Tracer, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tracer:
    """Returns the norms (...) of matrices (..., m, n).

    ``ord`` is "fro" (None too), the root of the sum of squares; "nuc", the sum of the singular
    values; 2 or -2, the largest or smallest of them; 1 or -1, the largest or smallest sum of a
    column's absolute values; infinity or minus infinity, the largest or smallest sum of a row's.
    Floats; integers become the default float. The result is real. Raises `ShapeError` for fewer
    than two dimensions, `ArgumentError` for another ``ord``.

    >>> xp.linalg.matrix_norm(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    x = read_matrices("matrix_norm", x)
    wide = widen(x)
    norm = _matrix_norm(wide, "fro" if ord is None else ord)
    if keepdims:
        norm = reshape(norm, (*norm.shape, 1, 1))
    return convert(norm, real_dtype(x.dtype))


def _matrix_norm(x: Tracer, ord: object) -> Tracer:
    sums = {1: (-2, max), -1: (-2, min), np.inf: (-1, max), -np.inf: (-1, min)}
    result: Tracer
    if ord == "fro":
        result = sqrt(sum(squared_abs(x), axis=(-2, -1)))
    elif ord == "nuc":
        result = sum(svdvals(x), axis=-1)
    elif ord in (2, -2):
        result = (max if ord == 2 else min)(svdvals(x), axis=-1)
    elif ord in sums:
        axis, choose = sums[ord]
        result = choose(sum(abs(x), axis=axis), axis=-1)
    else:
        raise ArgumentError(
            f"ord of matrix_norm is {ord!r}; it takes 'fro', 'nuc', 1, -1, 2, -2, inf and -inf"
        )
    return result


def _number(function: str, ord: object) -> float:
    if isinstance(ord, bool) or not isinstance(ord, int | float | np.integer | np.floating):
        raise ArgumentError(f"ord of {function} is {ord!r}; it takes a number, inf and -inf too")
    return float(ord)


__all__ = ["matrix_norm", "vector_norm"]
