"""Linear algebra of matrices and batches of them, and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, Function, compute_wide
from plugrt_numpy.operation import Lowering, Operation


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def cholesky(x: Array) -> Array:
    """Returns lower factors; of a matrix that is not positive definite NaNs, as XLA does."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return np.full_like(x, np.nan)
        return np.stack([cholesky(matrix) for matrix in x])


def _cholesky(op: Operation) -> Function:
    if op.flag("lower"):
        return compute_wide(cholesky, op.dtype)
    # The factor is computed from the upper triangle, whose adjoint NumPy reads.
    return compute_wide(lambda x: _adjoint(cholesky(_adjoint(np.triu(x)))), op.dtype)


_BLOCK = 16


def solve_lower(a: Array, b: Array, *, unit: bool) -> Array:
    """Returns ``x`` with ``a @ x == b``, of lower triangular ``a``, by halves and then by rows.

    A zero on the diagonal gives infinities and NaNs. Elements above the diagonal are not read.
    """
    size = a.shape[-1]
    if size > _BLOCK:
        half = size // 2
        top = solve_lower(a[..., :half, :half], b[..., :half, :], unit=unit)
        rest = b[..., half:, :] - a[..., half:, :half] @ top
        return np.concatenate([top, solve_lower(a[..., half:, half:], rest, unit=unit)], -2)
    x = np.empty(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], b.dtype)
    for i in range(size):
        row = b[..., i, :] - (a[..., i : i + 1, :i] @ x[..., :i, :])[..., 0, :]
        x[..., i, :] = row if unit else row / a[..., i, i, None]
    return x


def _triangular_solve(op: Operation) -> Function:
    left, lower, unit = op.flag("left_side"), op.flag("lower"), op.flag("unit_diagonal")
    transpose = op.word("transpose_a", "NO_TRANSPOSE")

    def solve(a: Array, b: Array) -> Array:
        is_lower = lower
        if transpose != "NO_TRANSPOSE":
            a, is_lower = np.swapaxes(a, -1, -2), not is_lower
        if transpose == "ADJOINT":
            a = np.conj(a)
        if not left:  # x @ a == b is a^T @ x^T == b^T
            a, b, is_lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not is_lower
        if not is_lower:  # an upper triangle, reversed, is a lower one
            a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
        x = solve_lower(a, b, unit=unit)
        x = x if is_lower else x[..., ::-1, :]
        return x if left else np.swapaxes(x, -1, -2)

    return compute_wide(solve, op.dtype)


_TRANSFORMS: dict[str, Any] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "IRFFT": np.fft.irfftn,
    "RFFT": np.fft.rfftn,
}


def _fft(op: Operation) -> Function:
    kind, lengths = op.word("fft_type"), op.ints("fft_length")
    transform = _TRANSFORMS[kind]
    axes = tuple(range(-len(lengths), 0))
    dtype, shape = op.dtype, op.shape
    if 0 in shape or 0 in op.operand_types[0].shape:
        return lambda x: np.zeros(shape, dtype)
    return lambda x: transform(x, lengths, axes).astype(dtype, copy=False)


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""Operation name to lowering."""
