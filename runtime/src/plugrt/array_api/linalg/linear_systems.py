"""`solve`, `inv`, `det`, `slogdet` and `cholesky`."""

from __future__ import annotations

from typing import NamedTuple

from plugrt.array_api.diagonals import tril, triu
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import log
from plugrt.array_api.elementwise.operands import FLOATING, common_dtype
from plugrt.array_api.linalg.lu_factorization import LU, factor_lu, take_rows
from plugrt.array_api.linalg.matrices import (
    broadcast_stacks,
    diagonals,
    identity,
    read_matrices,
    real_dtype,
    solve_triangular,
    unit_phase,
)
from plugrt.array_api.searching import where
from plugrt.array_api.statistics import prod, sum
from plugrt.errors import ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.tracing.emit import convert, emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.tracer import Tracer
from plugrt.tracing.wide_floats import widen
from plugrt.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """What `slogdet` returns: the determinant is ``sign * exp(logabsdet)``."""

    sign: Array
    logabsdet: Array


@operation(static=("upper",), weak_by="none")
def cholesky(x: Tracer, /, *, upper: bool = False) -> Tracer:
    """Returns the lower triangular L with ``x = L @ L^H``, or the upper U with ``x = U^H @ U``.

    ``x`` are Hermitian positive definite matrices (..., n, n), of which the one triangle is read.
    A matrix that is not positive definite gives NaN, as in JAX; NumPy raises. Floats; half
    precision is computed in float32. Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = read_matrices("cholesky", x, square=True)
    [factor] = _factorization(widen(x), upper=bool(upper))
    return convert(triu(factor) if upper else tril(factor), x.dtype)


def _factor(x: Tracer, *, upper: bool) -> tuple[Tracer]:
    return (emit(hlo.cholesky, x, lower=not upper),)


_factorization = PlatformOperation(
    "plugrt.linalg.cholesky", _factor, lambda x, **_: [TensorType(x.shape, x.dtype)]
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
