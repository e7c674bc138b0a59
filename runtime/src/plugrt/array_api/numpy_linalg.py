"""``numpy.linalg`` on plugrt's arrays, for functions that differ from the standard's `linalg`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from plugrt.array_api import linalg
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.elementwise.complex import conj
from plugrt.array_api.elementwise.float_properties import isnan
from plugrt.array_api.manipulation import expand_dims, moveaxis, ravel, reshape
from plugrt.array_api.matrix_products import matmul, matrix_transpose
from plugrt.array_api.searching import where
from plugrt.array_api.statistics import sum
from plugrt.errors import ArgumentError, ShapeError
from plugrt.tracing.argument_checks import normalize_axes


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Returns the norm of vectors along one axis or of matrices along two; None is all of ``x``."""
    x = asarray(x)
    whole = ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)
    if axis is None and whole:
        total = linalg.vector_norm(ravel(x))
        return reshape(total, (1,) * x.ndim) if keepdims else total
    axes = normalize_axes("numpy.linalg.norm", axis, x.ndim)
    if len(axes) == 1:
        given = 2 if ord is None else ord
        return linalg.vector_norm(x, axis=axes[0], keepdims=keepdims, ord=given)
    if len(axes) != 2:
        raise ArgumentError(
            f"numpy.linalg.norm takes the norm of vectors or matrices; found axes {axes} of shape "
            f"{x.shape}"
        )
    kind = "fro" if ord in (None, "f") else ord
    found = linalg.matrix_norm(moveaxis(x, axes, (-2, -1)), ord=kind)
    return expand_dims(found, axis=tuple(sorted(axes))) if keepdims else found


def cond(x: Any, p: Any = None) -> Any:
    """Returns the condition numbers of matrices in a norm; infinity for singular ones."""
    x = asarray(x)
    if p in (None, 2, -2):
        s = linalg.svdvals(x)
        found = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        found = norm(x, p, (-2, -1)) * norm(linalg.inv(x), p, (-2, -1))
    unknown = isnan(x).any(axis=(-2, -1))
    return where(isnan(found) & ~unknown, float("inf"), found)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
    """Returns the x with the least ``|b - a x|``, squared residuals, the rank, singular values.

    The residuals are returned also without full rank, as in JAX (NumPy: an empty array). They are
    empty unless there are more rows than columns.
    """
    a, b = asarray(a), asarray(b)
    columns = b if b.ndim > 1 else b[:, None]
    x = matmul(linalg.pinv(a, rtol=rcond), columns)
    remaining = columns - matmul(a, x)
    squares = sum((remaining * conj(remaining)).real, axis=0)
    squares = squares if a.shape[0] > a.shape[1] else squares[:0]
    rank = linalg.matrix_rank(a, rtol=rcond)
    return x if b.ndim > 1 else x[:, 0], squares, rank, linalg.svdvals(a)


def multi_dot(arrays: Sequence[object]) -> object:
    """Returns the product of matrices, from left to right; the first and last may be vectors."""
    return reduce(matmul, arrays)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Returns the decomposition or only the singular values; ``hermitian`` has no effect."""
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def qr(a: object, mode: str = "reduced") -> Any:
    """Returns Q and R, or with mode "r" only R."""
    return linalg.qr(a).R if mode == "r" else linalg.qr(a, mode=mode)  # type: ignore[arg-type]


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, rtol: Any = None) -> Any:
    """Returns the pseudo-inverse; ``rcond`` is ``rtol``, and ``hermitian`` has no effect."""
    return linalg.pinv(a, rtol=rcond if rtol is None else rtol)


def matrix_rank(a: Any, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Any:
    """Returns the number of singular values above ``tol``, or ``rtol`` times the largest."""
    a = asarray(a)
    if a.ndim < 2:
        return (a != 0).any().astype(int)
    if tol is None:
        return linalg.matrix_rank(a, rtol=rtol)
    return (linalg.svdvals(a) > asarray(tol)[..., None]).sum(axis=-1)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> object:
    """Returns the x with ``tensordot(a, x, x.ndim) == b``; first moves ``axes`` of ``a`` last."""
    a, b = asarray(a), asarray(b)
    if axes is not None:
        a = moveaxis(a, tuple(axes), tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if b.size != math.prod(shape):
        raise ShapeError(
            f"numpy.linalg.tensorsolve got a of shape {a.shape} and b of {b.size} elements; the "
            f"sizes of a behind the first {b.ndim} must multiply to that number, too"
        )
    return reshape(linalg.solve(reshape(a, (b.size, b.size)), ravel(b)), shape)


def tensorinv(a: Any, ind: int = 2) -> object:
    """Returns the inverse for ``tensordot`` over the first ``ind`` axes."""
    a = asarray(a)
    n, m = math.prod(a.shape[:ind]), math.prod(a.shape[ind:])
    if ind < 1 or n != m:
        raise ShapeError(
            f"numpy.linalg.tensorinv got shape {a.shape} and ind {ind}; the product of the first "
            "ind sizes must be equal to that of the others"
        )
    return reshape(linalg.inv(reshape(a, (n, n))), a.shape[ind:] + a.shape[:ind])


def _wrap_triangle(function: Callable[[Any], object]) -> Callable[..., object]:
    def of_triangle(a: Any, UPLO: str = "L") -> object:
        if UPLO.upper() not in ("L", "U"):
            raise ArgumentError(f"UPLO is {UPLO!r}; it takes 'L' and 'U'")
        a = asarray(a)
        lower = a if UPLO.upper() == "L" else matrix_transpose(a)
        return function(conj(lower) if UPLO.upper() == "U" and a.dtype.kind == "c" else lower)

    return of_triangle


FUNCTIONS: dict[str, Callable[..., object]] = {
    "cond": cond,
    "eigh": _wrap_triangle(linalg.eigh),
    "eigvalsh": _wrap_triangle(linalg.eigvalsh),
    "lstsq": lstsq,
    "matrix_rank": matrix_rank,
    "multi_dot": multi_dot,
    "norm": norm,
    "pinv": pinv,
    "qr": qr,
    "svd": svd,
    "tensorinv": tensorinv,
    "tensorsolve": tensorsolve,
}
"""The functions by NumPy's names, with NumPy's parameters; others come from `linalg`."""
