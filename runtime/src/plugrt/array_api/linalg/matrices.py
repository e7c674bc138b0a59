"""Helpers of `linalg`: operands, products, triangular systems and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from plugrt.array_api.elementwise import complex as elementwise_complex
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.float_properties import isfinite
from plugrt.array_api.elementwise.operands import FLOATING, broadcast_shapes, unary
from plugrt.array_api.matrix_products import dot, matrix_transpose
from plugrt.array_api.searching import where
from plugrt.array_api.utility import all
from plugrt.errors import ShapeError
from plugrt.interface import TensorType
from plugrt.lax.control_flow.loops import emit_while
from plugrt.tracing.emit import broadcast_to, constant, convert, emit, hlo, iota, reshape
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.tracer import Tracer

T = TypeVar("T")
Dtype = np.dtype[Any]
INDEX = np.dtype(np.int32)
"""The dtype of row and column numbers."""


def read_matrices(function: str, x: Tracer, *, square: bool = False, name: str = "x") -> Tracer:
    """Returns matrices ``(..., m, n)`` as floats; integers and bool become the default float.

    Raises `ShapeError` for fewer than two dimensions, and with ``square`` for other matrices.
    """
    x = unary(function, x, FLOATING)
    if x.ndim < 2:
        raise ShapeError(
            f"{function} got {name} of shape {x.shape}; it takes matrices, whose dimensions are "
            "the last two"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{function} got {name} of shape {x.shape}; it takes square matrices, whose last two "
            "dimensions are of one size"
        )
    return x


def real_dtype(dtype: Dtype) -> Dtype:
    """Returns the dtype of the real part of numbers of ``dtype``."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def epsilon(dtype: Dtype) -> float:
    """Returns the distance from 1 to the next number of ``dtype``, float32 or wider."""
    return float(np.finfo(dtype).eps)


def adjoint(x: Tracer) -> Tracer:
    """Returns the conjugate transposes of matrices."""
    return conj(matrix_transpose(x))


def conj(x: Tracer) -> Tracer:
    """Returns the conjugates of complex numbers; real ones unchanged."""
    return elementwise_complex.conj(x) if x.dtype.kind == "c" else x


def real(x: Tracer) -> Tracer:
    """Returns the real parts of complex numbers; real ones unchanged."""
    return elementwise_complex.real(x) if x.dtype.kind == "c" else x


def squared_abs(x: Tracer) -> Tracer:
    """Returns the squares of the absolute values, as real numbers."""
    return real(x) ** 2 + elementwise_complex.imag(x) ** 2 if x.dtype.kind == "c" else x * x


def unit_phase(x: Tracer) -> Tracer:
    """Returns ``x / |x|``, 1 where ``x`` is 0."""
    size = abs(x)
    safe = where(size == 0, 1, size)
    result: Tracer = where(size == 0, 1, x / convert(safe, x.dtype))
    return result


def product(x: Tracer, y: Tracer) -> Tracer:
    """Returns the products of matrices of the same leading dimensions, at the highest precision.

    The default precision of a TPU is too low for factorizations.
    """
    n = x.ndim - 2
    return dot(x, y, [n + 1], [n], range(n), precision_name="highest")


def orthonormalize(v: Tracer) -> Tracer:
    """Returns the nearest orthonormal matrices, to correct the rounding of thousands of rotations.

    One step of Newton and Schulz, which squares the error.
    """
    return 1.5 * v - 0.5 * product(v, product(adjoint(v), v))


def solve_triangular(
    a: Tracer,
    b: Tracer,
    *,
    lower: bool,
    left: bool = True,
    unit_diagonal: bool = False,
    adjoint: bool = False,
) -> Tracer:
    """Returns the X of ``a X = b`` (``left``) or ``X a = b``; the other triangle is not read."""
    return _triangular_solution(
        a, b, lower=lower, left=left, unit_diagonal=unit_diagonal, adjoint=adjoint
    )[0]


def _solve_triangular(
    a: Tracer, b: Tracer, *, lower: bool, left: bool, unit_diagonal: bool, adjoint: bool
) -> tuple[Tracer]:
    transposed = "ADJOINT" if adjoint else "NO_TRANSPOSE"
    solved = emit(
        hlo.triangular_solve,
        a,
        b,
        left_side=left,
        lower=lower,
        unit_diagonal=unit_diagonal,
        transpose_a=hlo.TransposeAttr.get(transposed),
    )
    return (solved,)


_triangular_solution = PlatformOperation(
    "plugrt.linalg.triangular_solve",
    _solve_triangular,
    lambda a, b, **_: [TensorType(b.shape, b.dtype)],
)


def identity(x: Tracer, rows: int, columns: int | None = None) -> Tracer:
    """Returns an identity matrix for each matrix of ``x``, in its dtype."""
    shape = (rows, rows if columns is None else columns)
    ones = convert(iota(shape, 0, INDEX) == iota(shape, 1, INDEX), x.dtype)
    return broadcast_to(ones, (*x.shape[:-2], *shape))


def count(n: int) -> Tracer:
    """Returns the indices of ``n`` rows or columns, from 0."""
    return iota((n,), 0, INDEX)


def diagonals(x: Tracer) -> Tracer:
    """Returns the main diagonals of matrices, of shape ``(..., min(m, n))``."""
    k = min(x.shape[-2:])
    square = x[..., :k, :k]
    on = count(k)[:, None] == count(k)
    result: Tracer = where(on, square, 0).sum(axis=-1)
    return result


def nan_unless_finite(x: Tracer, compute: Callable[[Tracer], Sequence[Tracer]]) -> list[Tracer]:
    """Returns ``compute``'s results for matrices, with NaN for those that are not finite.

    Iterative algorithms return numbers for some of these, and LAPACK writes to stderr, so the
    computation gets zeros instead.
    """
    finite = all(isfinite(x), axis=(-2, -1))

    def select(value: Tracer, other: float) -> Tracer:
        ones = (1,) * (value.ndim - finite.ndim)
        result: Tracer = where(reshape(finite, (*finite.shape, *ones)), value, other)
        return result

    return [select(result, float("nan")) for result in compute(select(x, 0))]


def repeat(title: str, steps: int, body: Callable[[Tracer, T], T], initial: T) -> T:
    """Returns the value after ``value = body(k, value)`` for each k below ``steps``."""

    if not steps:
        return initial

    def advance(state: tuple[Tracer, T]) -> tuple[Tracer, T]:
        return state[0] + 1, body(state[0], state[1])

    first = constant(0, INDEX)
    ended: T = emit_while(title, lambda s: s[0] < steps, advance, (first, initial))[1]
    return ended


def broadcast_stacks(function: str, a: Tracer, b: Tracer) -> tuple[Tracer, Tracer]:
    """Returns two stacks of matrices with their leading dimensions broadcast to each other."""
    leading = broadcast_shapes((a.shape[:-2], b.shape[:-2]))
    if leading is None:
        raise ShapeError(
            f"{function} got x1 of shape {a.shape} and x2 of shape {b.shape}, whose dimensions "
            "before the last two do not broadcast"
        )
    return (
        broadcast_to(a, (*leading, *a.shape[-2:])),
        broadcast_to(b, (*leading, *b.shape[-2:])),
    )
