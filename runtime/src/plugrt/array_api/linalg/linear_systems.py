"""`solve`, `inv`, `det`, `slogdet` and `cholesky`, and the LU factorization for the first four.

StableHLO has no operation for LU. If the platform has none either, panels of columns are factored
one column at a time in a loop; one matrix product for each panel updates the rest of the matrix
(the right-looking algorithm of Golub and Van Loan, Matrix Computations, 3.4 and 3.6).
"""

from __future__ import annotations

from typing import NamedTuple

from plugrt.array_api.diagonals import tril, triu
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import log
from plugrt.array_api.elementwise.operands import FLOATING, common_dtype
from plugrt.array_api.indexing.functions import take_along_axis
from plugrt.array_api.linalg.matrices import (
    INDEX,
    broadcast_stacks,
    count,
    diagonals,
    identity,
    product,
    read_matrices,
    real_dtype,
    repeat,
    solve_triangular,
    unit_phase,
)
from plugrt.array_api.searching import argmax, where
from plugrt.array_api.statistics import prod, sum
from plugrt.errors import ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.slicing import dynamic_index_in_dim
from plugrt.tracing.emit import broadcast_to, concatenate, constant, convert, emit, hlo, widen
from plugrt.tracing.operation import operation
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """The result of `slogdet`: the determinant is ``sign * exp(logabsdet)``."""

    sign: Array
    logabsdet: Array


@operation(static=("upper",), weak_by="none")
def cholesky(x: Tracer, /, *, upper: bool = False) -> Tracer:
    """Returns the lower triangular L with ``x = L @ L^H``, or the upper U with ``x = U^H @ U``.

    ``x`` are Hermitian positive definite matrices (..., n, n); only one triangle is read. A matrix
    that is not positive definite gives NaN, as in JAX; NumPy raises. Floats; half precision is
    computed in float32. Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = read_matrices("cholesky", x, square=True)
    [factor] = _cholesky_factorization(widen(x), upper=bool(upper))
    return convert(triu(factor) if upper else tril(factor), x.dtype)


def _factor_cholesky(x: Tracer, *, upper: bool) -> tuple[Tracer]:
    return (emit(hlo.cholesky, x, lower=not upper),)


_cholesky_factorization = PlatformOperation(
    "plugrt.linalg.cholesky", _factor_cholesky, lambda x, **_: [TensorType(x.shape, x.dtype)]
)


@operation(weak_by="none")
def solve(x1: Tracer, x2: Tracer, /) -> Tracer:
    """Returns the ``X`` of ``x1 @ X = x2``, by LU factorization with partial pivoting.

    ``x1`` are square matrices (..., n, n), ``x2`` is one vector (n,) or matrices (..., n, k); the
    leading dimensions broadcast. Singular matrices give infinities and NaN, as in JAX; NumPy
    raises. Floats, promoted. Raises `ShapeError` where the sizes do not fit.

    >>> xp.linalg.solve(xp.asarray([[2.0, 1.0], [1.0, 3.0]]), xp.asarray([3.0, 5.0]))
    Array([0.8, 1.4], dtype=float32)
    """
    dtype = common_dtype("solve", (x1, x2), FLOATING, ("x1", "x2"))
    a, b = convert(x1, dtype), convert(x2, dtype)
    a = read_matrices("solve", a, square=True, name="x1")
    vector = b.ndim == 1
    if not b.ndim or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ShapeError(
            f"solve got x1 of shape {a.shape} and x2 of shape {b.shape}; x2 must be a vector of "
            f"{a.shape[-1]} elements, or matrices of {a.shape[-1]} rows"
        )
    a, b = broadcast_stacks("solve", a, b[:, None] if vector else b)
    x = solve_factored(factor_lu(widen(a)), widen(b))
    return convert(x[..., 0] if vector else x, dtype)


def solve_factored(lu: LU, b: Tracer) -> Tracer:
    """Returns the X of ``a X = b`` from the factors of a; leading dimensions are equal."""
    y = solve_triangular(lu.factors, take_rows(b, lu.permutation), lower=True, unit_diagonal=True)
    return solve_triangular(lu.factors, y, lower=False)


@operation(weak_by="none")
def inv(x: Tracer, /) -> Tracer:
    """Returns the inverses of square matrices (..., n, n).

    Singular ones give infinities and NaN, as in JAX; NumPy raises. Floats; integers become the
    default float. Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = read_matrices("inv", x, square=True)
    wide = widen(x)
    return convert(solve_factored(factor_lu(wide), identity(wide, x.shape[-1])), x.dtype)


@operation(weak_by="none")
def det(x: Tracer, /) -> Tracer:
    """Returns the determinants (...) of square matrices (..., n, n), by LU factorization.

    Floats; integers become the default float. `ShapeError` for matrices that are not square.

    >>> xp.linalg.det(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = read_matrices("det", x, square=True)
    lu = factor_lu(widen(x))
    return convert(_parity(lu) * prod(diagonals(lu.factors), axis=-1), x.dtype)


@with_argument_errors
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Returns the sign and the logarithm of the absolute value of determinants.

    For square matrices (..., n, n) both have the shape (...). The sign is a number of absolute
    value 1, or 0 for a singular matrix, whose logarithm is minus infinity; the logarithm is real.
    Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.slogdet(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).sign
    Array(-1., dtype=float32)
    """
    return SlogdetResult(*_slogdet(x))


@operation(weak_by="none")
def _slogdet(x: Tracer) -> tuple[Tracer, Tracer]:
    x = read_matrices("slogdet", x, square=True)
    lu = factor_lu(widen(x))
    diagonal = diagonals(lu.factors)
    singular = (diagonal == 0).any(axis=-1)
    sign = where(singular, 0, _parity(lu) * prod(unit_phase(diagonal), axis=-1))
    logarithm = sum(log(abs(diagonal)), axis=-1)
    return convert(sign, x.dtype), convert(logarithm, real_dtype(x.dtype))


def _parity(lu: LU) -> Tracer:
    odd = lu.swaps % 2 != 0
    return convert(where(odd, -1, 1), lu.factors.dtype)


__all__ = ["SlogdetResult", "cholesky", "det", "inv", "slogdet", "solve", "solve_factored"]


_PANEL = 128
"""Columns of a panel; JAX's width on TPUs."""


class LU(NamedTuple):
    """``x[permutation] = L @ U``, both in ``factors``: L, with ones on its diagonal, below U's."""

    factors: Tracer
    permutation: Tracer  # (..., m), int32
    swaps: Tracer  # (...), int32: how many rows were exchanged


def factor_lu(x: Tracer) -> LU:
    """Returns the LU factorization of matrices ``(..., m, n)`` of float32 or wider.

    A column without a pivot leaves 0 on the diagonal of U.
    """
    return LU(*_factorization(x))


def _result_types(x: Tracer) -> list[TensorType]:
    return [
        TensorType(x.shape, x.dtype),
        TensorType(x.shape[:-1], INDEX),
        TensorType(x.shape[:-2], INDEX),
    ]


def _factor(x: Tracer) -> LU:
    m, n = x.shape[-2:]
    permutation = broadcast_to(count(m), (*x.shape[:-2], m))
    swaps = broadcast_to(constant(0, INDEX), x.shape[:-2])
    for start in range(0, min(m, n), _PANEL):
        end = min(start + _PANEL, m, n)
        panel, order, more = _factor_panel(x[..., start:, start:end])
        swaps = swaps + more
        below = order + start
        kept = broadcast_to(count(start), (*x.shape[:-2], start))
        whole = concatenate([kept, below], x.ndim - 2)
        permutation = take_along_axis(permutation, whole, axis=-1)
        left = take_rows(x[..., start:, :start], order)
        right = take_rows(x[..., start:, end:], order)
        size = end - start
        upper = solve_triangular(
            panel[..., :size, :], right[..., :size, :], lower=True, unit_diagonal=True
        )
        rest = right[..., size:, :] - product(panel[..., size:, :], upper)
        right = concatenate([upper, rest], x.ndim - 2)
        lower = concatenate([left, panel, right], x.ndim - 1)
        x = concatenate([x[..., :start, :], lower], x.ndim - 2)
    return LU(x, permutation, swaps)


_factorization = PlatformOperation("plugrt.linalg.lu", _factor, _result_types)


def take_rows(x: Tracer, order: Tracer) -> Tracer:
    """Returns the rows of matrices ``(..., m, n)`` in the order ``(..., m)``."""
    result: Tracer = take_along_axis(x, broadcast_to(order[..., None], x.shape), axis=-2)
    return result


def _factor_panel(x: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    m, n = x.shape[-2:]
    rows, columns = count(m), count(n)

    def step(k: Tracer, state: tuple[Tracer, Tracer, Tracer]) -> tuple[Tracer, Tracer, Tracer]:
        x, order, swaps = state
        column = dynamic_index_in_dim(x, k, -1, keepdims=False)
        pivot = convert(argmax(where(rows >= k, abs(column), -1), axis=-1), INDEX)[..., None]
        exchange = where(rows == k, pivot, where(rows == pivot, k, rows))
        x = take_rows(x, exchange)
        order = take_along_axis(order, exchange, axis=-1)
        column = dynamic_index_in_dim(x, k, -1)
        row = dynamic_index_in_dim(x, k, -2)
        head = dynamic_index_in_dim(row, k, -1)
        factor = where(rows[:, None] > k, column / where(head == 0, 1, head), 0)
        x = x - factor * where(columns > k, row, 0)
        x = where((rows[:, None] > k) & (columns == k), factor, x)
        return x, order, swaps + convert(pivot[..., 0] != k, INDEX)

    leading = x.shape[:-2]
    order = broadcast_to(rows, (*leading, m))
    none = broadcast_to(constant(0, INDEX), leading)
    return repeat("the LU factorization", min(m, n), step, (x, order, none))
