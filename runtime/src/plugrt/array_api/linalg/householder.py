"""`qr`: orthogonal factors, by Householder's reflections as in LAPACK's ``geqrf``."""

from __future__ import annotations

import builtins
from typing import Literal, NamedTuple

from plugrt.array_api.diagonals import triu
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.linalg.matrices import (
    adjoint,
    conj,
    count,
    identity,
    product,
    read_matrices,
    real,
    repeat,
    squared_abs,
)
from plugrt.array_api.searching import where
from plugrt.array_api.statistics import max, sum
from plugrt.errors import ArgumentError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.slicing import dynamic_index_in_dim
from plugrt.tracing.emit import broadcast_to, constant, convert, widen
from plugrt.tracing.operation import operation
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike


class QRResult(NamedTuple):
    """The result of `qr`: ``x = Q @ R``."""

    Q: Array
    R: Array


@with_argument_errors
def qr(x: ArrayLike, /, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Returns Q, whose columns are orthonormal, and the upper triangular R with ``x = Q @ R``.

    For ``x`` of shape (..., m, n) and k = min(m, n), Q has the shape (..., m, k) and R (..., k, n)
    if ``mode`` is "reduced", else (..., m, m) and (..., m, n). Signs are LAPACK's, so that NumPy
    returns the same. Floats; integers become the default float, half precision is computed in
    float32. Raises `ShapeError` for fewer than two dimensions, `ArgumentError` for another mode.

    >>> xp.linalg.qr(xp.asarray([[3.0, 1.0], [4.0, 2.0]])).R
    Array([[-5. , -2.2],
           [ 0. ,  0.4]], dtype=float32)
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode of qr is {mode!r}; it takes 'reduced' and 'complete'")
    return QRResult(*_qr(x, complete=mode == "complete"))


@operation(static=("complete",), weak_by="none")
def _qr(x: Tracer, *, complete: bool) -> tuple[Tracer, Tracer]:
    x = read_matrices("qr", x)
    q, r = factor_qr(widen(x), complete=complete)
    return convert(q, x.dtype), convert(r, x.dtype)


def factor_qr(x: Tracer, *, complete: bool = False) -> tuple[Tracer, Tracer]:
    """Returns Q and R of matrices of float32 or wider; see `qr`."""
    q, r = _factorization(x, complete=complete)
    return q, r


def _result_types(x: Tracer, *, complete: bool) -> list[TensorType]:
    *leading, m, n = x.shape
    k = m if complete else builtins.min(m, n)
    return [TensorType((*leading, *shape), x.dtype) for shape in ((m, k), (k, n))]


def _factor(x: Tracer, *, complete: bool) -> tuple[Tracer, Tracer]:
    m, n = x.shape[-2:]
    columns = m if complete else min(m, n)
    packed, scales = _reflect(x)
    r = triu(packed[..., :columns, :])
    return _multiply_reflections(packed, scales, columns), r


_factorization = PlatformOperation("plugrt.linalg.qr", _factor, _result_types)


def _reflect(x: Tracer) -> tuple[Tracer, Tracer]:
    """Returns R with the vectors of the reflections below its diagonal, and their factors.

    Reflection k is ``1 - factor * v v^H``; v has 1 at k and zeros above.
    """
    m, n = x.shape[-2:]
    k = min(m, n)
    rows, columns = count(m)[:, None], count(n)

    def step(k: Tracer, state: tuple[Tracer, Tracer]) -> tuple[Tracer, Tracer]:
        x, scales = state
        column = dynamic_index_in_dim(x, k, -1)
        head = dynamic_index_in_dim(column, k, -2)
        tail = where(rows > k, column, 0)
        length = _norm(where(rows >= k, column, 0))
        beta = _negate_pivot(length, real(head))
        flat = (_norm(tail) == 0) & (head == convert(real(head), x.dtype))
        beta = convert(where(flat, real(head), beta), x.dtype)
        scale = where(flat, 0, (beta - head) / where(beta == 0, 1, beta))
        v = where(flat, 0, tail / where(flat, 1, head - beta)) + convert(rows == k, x.dtype)
        x_right = where(columns > k, x, 0)
        x = x - conj(scale) * v * product(adjoint(v), x_right)
        mine = where(rows == k, beta, where(rows > k, v, column))
        x = where(columns == k, mine, x)
        scales = where(count(scales.shape[-1]) == k, scale[..., 0], scales)
        return x, scales

    scales = broadcast_to(constant(0, x.dtype), (*x.shape[:-2], k))
    return repeat("the QR factorization", k, step, (x, scales))


def _negate_pivot(length: Tracer, head: Tracer) -> Tracer:
    # Has the opposite sign of the first element, so that their difference loses no digits.
    result: Tracer = where(head >= 0, -length, length)
    return result


def _norm(column: Tracer) -> Tracer:
    """Returns the Euclidean norms of columns (..., m, 1), without overflow of the squares."""
    largest = max(abs(column), axis=-2, keepdims=True)
    scale = where(largest == 0, 1, largest)
    squares = squared_abs(column / convert(scale, column.dtype))
    result: Tracer = scale * sqrt(sum(squares, axis=-2, keepdims=True))
    return result


def _multiply_reflections(packed: Tracer, scales: Tracer, columns: int) -> Tracer:
    """Returns the first ``columns`` columns of the product of the reflections."""
    m = packed.shape[-2]
    k = scales.shape[-1]
    rows = count(m)[:, None]

    def step(i: Tracer, q: Tracer) -> Tracer:
        last = k - 1 - i
        column = dynamic_index_in_dim(packed, last, -1)
        v = where(rows > last, column, 0) + convert(rows == last, q.dtype)
        scale = dynamic_index_in_dim(scales, last, -1)[..., None]
        result: Tracer = q - scale * v * product(adjoint(v), q)
        return result

    return repeat("the product of reflections", k, step, identity(packed, m, columns))
