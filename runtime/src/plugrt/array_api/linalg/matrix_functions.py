"""`matrix_power`, `cross`, `outer`, `diagonal`, `trace` and the norms."""

from __future__ import annotations

import operator

from plugrt.array_api.diagonals import diagonal
from plugrt.array_api.elementwise.operands import (
    NUMERIC,
    binary,
)
from plugrt.array_api.linalg.linear_systems import inv
from plugrt.array_api.linalg.matrices import identity, read_matrices
from plugrt.array_api.manipulation import moveaxis, stack
from plugrt.array_api.matrix_products import matmul
from plugrt.array_api.statistics import sum
from plugrt.errors import ShapeError
from plugrt.tracing.argument_checks import normalize_axis
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


@operation(static=("n",), weak_by="none")
def matrix_power(x: Tracer, n: int, /) -> Tracer:
    """Returns the ``n``-th power of square matrices (..., k, k), by repeated squaring.

    ``n`` is an integer; for a negative one the inverse is multiplied, in floats. Numeric dtypes.
    Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.matrix_power(xp.asarray([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    power = operator.index(n)
    if x.dtype.kind not in "iu" or power < 0:
        x = read_matrices("matrix_power", x, square=True)
    elif x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power got x of shape {x.shape}; it takes square matrices")
    if power < 0:
        result: Tracer = matrix_power(inv(x), -power)
        return result
    result = identity(x, x.shape[-1])
    while power:
        if power & 1:
            result = matmul(result, x)
        power >>= 1
        x = matmul(x, x) if power else x
    return result


@operation(static=("axis",))
def cross(x1: Tracer, x2: Tracer, /, *, axis: int = -1) -> Tracer:
    """Returns the cross products of the vectors of three elements along ``axis``.

    Numeric dtypes, promoted; the shapes broadcast, but for ``axis``, whose size is 3 in both.
    ``axis`` means the same axis in both only if it is counted from the back, or both have the same
    number of dimensions. Raises `ShapeError`, `AxisError`.

    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    at1 = normalize_axis("cross", axis, x1.ndim)
    at2 = normalize_axis("cross", axis, x2.ndim)
    if x1.shape[at1] != 3 or x2.shape[at2] != 3:
        raise ShapeError(
            f"cross got x1 of shape {x1.shape} and x2 of shape {x2.shape}; along axis {axis} both "
            "must have 3 elements"
        )
    x1, x2 = binary("cross", moveaxis(x1, at1, -1), moveaxis(x2, at2, -1), NUMERIC)
    a, b = ([x[..., i] for i in range(3)] for x in (x1, x2))
    parts = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    where = at1 if axis >= 0 else axis
    result: Tracer = stack(parts, axis=where)
    return result


@operation
def outer(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the products of each element of the vector ``x1`` with each of ``x2``.

    Shapes (m,) and (n,) give (m, n). Numeric dtypes, promoted. Raises `ShapeError` for arrays that
    are not of one dimension.

    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(
            f"outer got x1 of shape {x1.shape} and x2 of shape {x2.shape}; it takes two vectors"
        )
    x1, x2 = binary("outer", x1[:, None], x2[None, :], NUMERIC)
    return x1 * x2


@operation(static=("offset", "dtype"), weak_by="none")
def trace(x: Tracer, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tracer:
    """Returns the sums of the diagonals of matrices (..., m, n); see `diagonal`.

    The dtype is the same as for ``xp.sum``. Raises `ShapeError` for fewer than two dimensions.

    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    if x.ndim < 2:
        raise ShapeError(f"trace got x of shape {x.shape}; it takes two dimensions or more")
    result: Tracer = sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)
    return result
