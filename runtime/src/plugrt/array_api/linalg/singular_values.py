"""`svd`, `svdvals` and functions based on them: `pinv` and `matrix_rank`."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.indexing.functions import take_along_axis
from plugrt.array_api.linalg.householder import factor_qr
from plugrt.array_api.linalg.jacobi_rotations import (
    MAX_SWEEPS,
    find_rotation,
    move_on,
    rotate_columns,
)
from plugrt.array_api.linalg.matrices import (
    INDEX,
    adjoint,
    conj,
    diagonals,
    epsilon,
    identity,
    nan_unless_finite,
    orthonormalize,
    product,
    read_matrices,
    real_dtype,
    repeat,
    squared_abs,
    unit_phase,
)
from plugrt.array_api.searching import where
from plugrt.array_api.sorting import argsort
from plugrt.array_api.statistics import max, sum
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.control_flow.loops import emit_while
from plugrt.lax.shapes import pad
from plugrt.tracing.emit import broadcast_to, concatenate, constant, convert, widen
from plugrt.tracing.operation import operation
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.promotion import default_int
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

Columns = tuple[Tracer, Tracer]


class SVDResult(NamedTuple):
    """The result of `svd`: ``x = U @ diag(S) @ Vh``."""

    U: Array
    S: Array
    Vh: Array


@with_argument_errors
def svd(x: ArrayLike, /, full_matrices: bool = True) -> SVDResult:
    """Returns the singular value decomposition of matrices (..., m, n), k = min(m, n).

    ``S`` (..., k) is real and descending; the columns of ``U`` and the rows of ``Vh`` are
    orthonormal, of shape (..., m, m) and (..., n, n), or (..., m, k) and (..., k, n) without
    ``full_matrices``. Floats; integers become the default float, half precision is computed in
    float32. NaN and infinities give NaN. Raises `ShapeError` for fewer than two dimensions.

    >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    return SVDResult(*_svd(x, full_matrices=bool(full_matrices)))


@operation(static=("full_matrices",), weak_by="none")
def _svd(x: Tracer, *, full_matrices: bool) -> tuple[Tracer, Tracer, Tracer]:
    x = read_matrices("svd", x)
    u, s, vh = _decompose(widen(x), full_matrices=full_matrices)
    return convert(u, x.dtype), convert(s, real_dtype(x.dtype)), convert(vh, x.dtype)


@operation(weak_by="none")
def svdvals(x: Tracer, /) -> Tracer:
    """Returns the singular values (..., min(m, n)), real and descending, of matrices (..., m, n).

    As ``svd(x).S``. Raises `ShapeError` for fewer than two dimensions.
    """
    x = read_matrices("svdvals", x)
    return convert(_singular_values(widen(x)), real_dtype(x.dtype))


def _decompose(x: Tracer, *, full_matrices: bool = False, vectors: bool = True) -> list[Tracer]:
    return nan_unless_finite(
        x, lambda x: _decomposition(x, full_matrices=full_matrices, vectors=vectors)
    )


def _singular_values(x: Tracer) -> Tracer:
    return _decompose(x, vectors=False)[0]


def _result_types(x: Tracer, *, full_matrices: bool, vectors: bool) -> list[TensorType]:
    *leading, m, n = x.shape
    k = builtins.min(m, n)
    s = TensorType((*leading, k), real_dtype(x.dtype))
    if not vectors:
        return [s]
    rows, columns = (m, n) if full_matrices else (k, k)
    u, vh = (TensorType((*leading, *shape), x.dtype) for shape in ((m, rows), (columns, n)))
    return [u, s, vh]


def _rotate(x: Tracer, *, full_matrices: bool, vectors: bool) -> tuple[Tracer, ...]:
    u, s, vh = _find_factors(x, full_matrices=full_matrices)
    return (u, s, vh) if vectors else (s,)


_decomposition = PlatformOperation("plugrt.linalg.svd", _rotate, _result_types)


def _find_factors(x: Tracer, *, full_matrices: bool) -> tuple[Tracer, Tracer, Tracer]:
    m, n = x.shape[-2:]
    if m < n:
        u, s, vh = _find_factors(adjoint(x), full_matrices=full_matrices)
        return adjoint(vh), s, adjoint(u)
    if x.size == 0:
        leading = x.shape[:-2]
        s = broadcast_to(constant(0, real_dtype(x.dtype)), (*leading, n))
        return identity(x, m, m if full_matrices else n), s, identity(x, n)
    scale = max(abs(x), axis=(-2, -1), keepdims=True)
    scale = where(scale == 0, 1, scale)
    q, r = factor_qr(x / convert(scale, x.dtype), complete=full_matrices)
    u, s, v = _decompose_square(r[..., :n, :])
    inner = product(q[..., :n], u)
    u = concatenate([inner, q[..., n:]], x.ndim - 1) if full_matrices and m > n else inner
    return u, s * scale[..., 0], adjoint(v)


def _decompose_square(x: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """Returns U, S and V of square matrices.

    The columns of ``x V`` are orthogonal. Those with S = 0, in a matrix without full rank, have no
    direction, so U is computed by a QR factorization, whose Q is always orthonormal.
    """
    v = orthonormalize(_find_right_vectors(x))
    columns = product(x, v)
    s = sqrt(sum(squared_abs(columns), axis=-2))
    order = argsort(s, axis=-1, descending=True)
    everywhere = broadcast_to(order[..., None, :], x.shape)
    columns = take_along_axis(columns, everywhere, axis=-1)
    v = take_along_axis(v, everywhere, axis=-1)
    q, r = factor_qr(columns)  # r is diagonal, with signs
    u = q * unit_phase(diagonals(r))[..., None, :]
    return u, take_along_axis(s, order, axis=-1), v


def _find_right_vectors(x: Tracer) -> Tracer:
    """Returns the V whose ``x V`` has orthogonal columns, by one-sided Jacobi rotations.

    Golub and Van Loan, Matrix Computations, 8.6.3.
    """
    n = x.shape[-1]
    if n < 2:
        return identity(x, n)
    h = (n + 1) // 2

    def halve(a: Tracer) -> Columns:
        a = pad(a, constant(0, a.dtype), [(0, 0, 0)] * (a.ndim - 1) + [(0, 2 * h - n, 0)])
        return a[..., :h], a[..., h:]

    def unfinished(loop: tuple[Tracer, Tracer, tuple[Columns, Columns]]) -> Tracer:
        sweeps, worst, _ = loop
        return (worst > _tolerance(x)) & (sweeps < MAX_SWEEPS)

    def sweep(loop: tuple[Tracer, Tracer, object]) -> tuple[Tracer, Tracer, Any]:
        none = constant(0, real_dtype(x.dtype))
        worst, state = repeat("a sweep of svd", 2 * h - 1, _one_round, (none, loop[2]))
        return loop[0] + 1, worst, state

    start = (halve(x), halve(identity(x, n)))
    infinite = constant(float("inf"), real_dtype(x.dtype))
    ended = emit_while("svd", unfinished, sweep, (constant(0, INDEX), infinite, start))[2]
    return concatenate(ended[1], x.ndim - 1)[..., :n]


def _tolerance(columns: Tracer) -> float:
    """Returns the cosine below which columns count as orthogonal, as in LAPACK's gesvj."""
    result: float = float(columns.shape[-2]) ** 0.5 * epsilon(columns.dtype)
    return result


def _one_round(_: Tracer, state: Any) -> Any:
    worst, (columns, vectors) = state
    left, right = columns
    p, q = (sum(squared_abs(side), axis=-2) for side in columns)
    coupling = sum(conj(left) * right, axis=-2)
    angle = abs(coupling) / where((p == 0) | (q == 0), 1, sqrt(p) * sqrt(q))
    by = find_rotation(p, q, where(angle > _tolerance(left), coupling, 0))
    worst = where(max(angle) > worst, max(angle), worst)
    columns, vectors = (
        move_on(*rotate_columns(first, second, by), -1) for first, second in (columns, vectors)
    )
    return worst, (columns, vectors)


@operation(weak_by="none")
def pinv(x: Tracer, /, rtol: Tracer | None = None) -> Tracer:
    """Returns the Moore-Penrose pseudo-inverses (..., n, m) of matrices (..., m, n).

    Singular values below ``rtol`` times the largest count as 0; ``rtol`` broadcasts against the
    leading dimensions and is ``max(m, n) * eps`` unless given (JAX: 10 times that). Floats.
    Raises `ShapeError` for fewer than two dimensions.

    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    x = read_matrices("pinv", x)
    u, s, vh = _decompose(widen(x))
    kept = _is_kept(s, x, rtol)
    inverse = where(kept, 1 / where(kept, s, 1), 0)
    scaled = adjoint(vh) * convert(inverse, vh.dtype)[..., None, :]
    return convert(product(scaled, adjoint(u)), x.dtype)


@operation(weak_by="none")
def matrix_rank(x: Tracer, /, rtol: Tracer | None = None) -> Tracer:
    """Returns the ranks (...) of matrices (..., m, n) in the default integer dtype.

    The rank is the number of singular values above ``rtol`` times the largest one; ``rtol``
    broadcasts against the leading dimensions and is ``max(m, n) * eps`` unless given. Raises
    `ShapeError` for fewer than two dimensions.

    >>> xp.linalg.matrix_rank(xp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    x = read_matrices("matrix_rank", x)
    s = _singular_values(widen(x))
    result: Tracer = sum(convert(_is_kept(s, x, rtol), default_int()), axis=-1)
    return result


def _is_kept(s: Tracer, x: Tracer, rtol: Tracer | None) -> Tracer:
    """Whether the singular values, descending, of ``x`` count as more than 0."""
    if rtol is None:
        smallest = constant(builtins.max(x.shape[-2:]) * epsilon(s.dtype), s.dtype)
    else:
        smallest = convert(rtol, s.dtype)[..., None]
    kept: Tracer = s > s[..., :1] * smallest
    return kept


__all__ = ["SVDResult", "matrix_rank", "pinv", "svd", "svdvals"]
