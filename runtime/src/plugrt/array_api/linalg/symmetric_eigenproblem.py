"""`eigh` and `eigvalsh`, by Jacobi's method if the platform has no better one."""

from __future__ import annotations

from typing import NamedTuple

from plugrt.array_api.diagonals import tril
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.indexing.functions import take_along_axis
from plugrt.array_api.linalg.jacobi_rotations import (
    MAX_SWEEPS,
    Rotation,
    find_rotation,
    move_on,
    rotate_columns,
)
from plugrt.array_api.linalg.matrices import (
    INDEX,
    adjoint,
    conj,
    count,
    diagonals,
    epsilon,
    identity,
    nan_unless_finite,
    orthonormalize,
    product,
    read_matrices,
    real,
    real_dtype,
    repeat,
    squared_abs,
)
from plugrt.array_api.searching import where
from plugrt.array_api.sorting import argsort
from plugrt.array_api.statistics import max, sum
from plugrt.array_api.utility import any
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.control_flow.loops import emit_while
from plugrt.lax.shapes import pad
from plugrt.tracing.emit import broadcast_to, concatenate, constant, convert, widen
from plugrt.tracing.operation import operation
from plugrt.tracing.platform_operations import PlatformOperation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike


class EighResult(NamedTuple):
    """The result of `eigh`: ``x @ eigenvectors = eigenvectors * eigenvalues``."""

    eigenvalues: Array
    eigenvectors: Array


@with_argument_errors
def eigh(x: ArrayLike, /) -> EighResult:
    """Returns the eigenvalues, ascending, and the eigenvectors of Hermitian matrices.

    For ``x`` of shape (..., n, n) (only the lower triangle is read) the eigenvalues are real of
    shape (..., n) and the columns of the eigenvectors (..., n, n) orthonormal. Floats; integers
    become the default float, half precision is computed in float32. NaN and infinities give NaN.
    Raises `ShapeError` for matrices that are not square.

    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    return EighResult(*_eigh(x))


@operation(weak_by="none")
def _eigh(x: Tracer) -> tuple[Tracer, Tracer]:
    x = read_matrices("eigh", x, square=True)
    values, vectors = _diagonalize(widen(x), vectors=True)
    return convert(values, real_dtype(x.dtype)), convert(vectors, x.dtype)


@operation(weak_by="none")
def eigvalsh(x: Tracer, /) -> Tracer:
    """Returns the eigenvalues (..., n), real and ascending, of Hermitian matrices (..., n, n).

    As the first result of `eigh`, up to rounding; only the lower triangle is read. Floats; integers
    become the default float. Raises `ShapeError` for matrices that are not square.
    """
    x = read_matrices("eigvalsh", x, square=True)
    return convert(_diagonalize(widen(x), vectors=False)[0], real_dtype(x.dtype))


def _diagonalize(x: Tracer, *, vectors: bool) -> list[Tracer]:
    return nan_unless_finite(tril(x), lambda x: _diagonalization(x, vectors=vectors))


def _result_types(x: Tracer, *, vectors: bool) -> list[TensorType]:
    values = TensorType(x.shape[:-1], real_dtype(x.dtype))
    return [values, TensorType(x.shape, x.dtype)] if vectors else [values]


def _rotate(x: Tracer, *, vectors: bool) -> tuple[Tracer, ...]:
    found = _find_eigenpairs(x)
    return found if vectors else found[:1]


_diagonalization = PlatformOperation("plugrt.linalg.eigh", _rotate, _result_types)


def _find_eigenpairs(x: Tracer) -> tuple[Tracer, Tracer]:
    n = x.shape[-1]
    lower = tril(x, k=-1)
    on_diagonal = count(n)[:, None] == count(n)
    x = lower + adjoint(lower) + where(on_diagonal, convert(real(x), x.dtype), 0)
    if n < 2 or x.size == 0:
        return real(diagonals(x)), identity(x, n)
    # Squares of scaled values neither overflow nor vanish.
    scale = max(abs(x), axis=(-2, -1), keepdims=True)
    scale = where(scale == 0, 1, scale)
    x = x / convert(scale, x.dtype)
    vectors = orthonormalize(_rotate_until_diagonal(x))
    values = sum(real(conj(vectors) * product(x, vectors)), axis=-2)  # Rayleigh's quotients
    order = argsort(values, axis=-1)
    vectors = take_along_axis(vectors, broadcast_to(order[..., None, :], vectors.shape), axis=-1)
    return take_along_axis(values, order, axis=-1) * scale[..., 0], vectors


class _State(NamedTuple):
    """The matrix as four blocks (..., h, h), and the rotations so far, as two (..., n, h)."""

    blocks: tuple[Tracer, Tracer, Tracer, Tracer]
    vectors: tuple[Tracer, Tracer]


def _rotate_until_diagonal(x: Tracer) -> Tracer:
    """Returns the eigenvectors, in no order."""
    n = x.shape[-1]
    h = (n + 1) // 2
    rounds = 2 * h - 1
    tolerance = (epsilon(x.dtype) / 2) ** 2

    def advance(k: Tracer, state: _State) -> _State:
        return _one_round(state)

    def unfinished(loop: tuple[Tracer, _State]) -> Tracer:
        sweeps, state = loop
        off, whole = _squared_norms(state.blocks)
        result: Tracer = any(off > tolerance * whole) & (sweeps < MAX_SWEEPS)
        return result

    def sweep(loop: tuple[Tracer, _State]) -> tuple[Tracer, _State]:
        return loop[0] + 1, repeat("a sweep of eigh", rounds, advance, loop[1])

    padded = pad(x, constant(0, x.dtype), [(0, 0, 0)] * (x.ndim - 2) + [(0, 2 * h - n, 0)] * 2)
    top, bottom = padded[..., :h, :], padded[..., h:, :]
    blocks = top[..., :h], top[..., h:], bottom[..., :h], bottom[..., h:]
    unit = identity(x, n, 2 * h)
    start = _State(blocks, (unit[..., :h], unit[..., h:]))
    ended = emit_while("eigh", unfinished, sweep, (constant(0, INDEX), start))[1]
    # After whole sweeps the columns are in their initial order: padding is last.
    return concatenate(ended.vectors, x.ndim - 1)[..., :n]


def _one_round(state: _State) -> _State:
    a, b, c, d = state.blocks
    first, second = real(diagonals(a)), real(diagonals(d))
    by = find_rotation(first, second, diagonals(b))
    a, b = rotate_columns(a, b, by)
    c, d = rotate_columns(c, d, by)
    a, c = _rotate_rows(a, c, by)
    b, d = _rotate_rows(b, d, by)
    # Sets the diagonals exactly, so that the off-diagonal norm has none of their rounding errors.
    a, b = _set_diagonal(a, first - by.gain), _set_diagonal(b, 0 * first)
    c, d = _set_diagonal(c, 0 * first), _set_diagonal(d, second + by.gain)
    a, b = move_on(a, b, -1)
    c, d = move_on(c, d, -1)
    a, c = move_on(a, c, -2)
    b, d = move_on(b, d, -2)
    left, right = move_on(*rotate_columns(*state.vectors, by), -1)
    return _State((a, b, c, d), (left, right))


def _rotate_rows(upper: Tracer, lower: Tracer, by: Rotation) -> tuple[Tracer, Tracer]:
    c, s = by.cosine[..., None], by.sine[..., None]
    return upper * c - lower * s, upper * conj(s) + lower * c


def _set_diagonal(x: Tracer, values: Tracer) -> Tracer:
    h = x.shape[-1]
    result: Tracer = where(count(h)[:, None] == count(h), convert(values, x.dtype)[..., None], x)
    return result


def _squared_norms(blocks: tuple[Tracer, ...]) -> tuple[Tracer, Tracer]:
    """Returns the squared norms of the matrices without and with their diagonals."""
    a, b, c, d = map(squared_abs, blocks)
    beside = sum(b, axis=(-2, -1)) + sum(c, axis=(-2, -1))
    h = a.shape[-1]
    off = count(h)[:, None] != count(h)
    off_diagonal = beside + sum(where(off, a, 0) + where(off, d, 0), axis=(-2, -1))
    return off_diagonal, beside + sum(a + d, axis=(-2, -1))


__all__ = ["EighResult", "eigh", "eigvalsh"]
