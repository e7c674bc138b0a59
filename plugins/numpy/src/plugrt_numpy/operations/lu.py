"""`factor_lu`: LU decompositions with partial pivoting, which NumPy does not offer, by blocks."""

from __future__ import annotations

import math

import numpy as np

from plugrt_numpy.data_types import Array, is_complex
from plugrt_numpy.operations.linear_algebra import solve_lower

_PANEL = 32


def factor_lu(x: Array) -> tuple[Array, Array, Array]:
    """Returns LAPACK's ``getrf`` of matrices: L and U in one, pivots, and the failures.

    ``x`` has the shape (..., m, n). The pivots, (..., min(m, n)) of int32, are the rows, from 1 on,
    that each row was exchanged with; the last, (...) of int32, is the first position on U's
    diagonal that is 0, from 1 on, or 0. Batches are factored together, column by column.
    """
    *batch, rows, columns = x.shape
    a = np.array(x).reshape(math.prod(batch), rows, columns)
    size = min(rows, columns)
    pivots = np.zeros((len(a), size), np.int32)
    for start in range(0, size, _PANEL):
        stop = min(start + _PANEL, size)
        for column in range(start, stop):
            _eliminate(a, pivots, column, stop)
        square = a[:, start:stop, start:stop]
        a[:, start:stop, stop:] = solve_lower(square, a[:, start:stop, stop:], unit=True)
        a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    zeros = np.diagonal(a, axis1=1, axis2=2) == 0
    failed = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0) if size else np.zeros(len(a))
    return (
        a.reshape(x.shape),
        (pivots + 1).reshape(*batch, size),
        failed.astype(np.int32).reshape(batch),
    )


def permutation_of(pivots: Array, rows: int) -> Array:
    """Returns the row order, (..., rows) of int32, after the exchanges, from 0 on.

    ``pivots`` are the row that each one was exchanged with, from 0 on.
    """
    batch = pivots.shape[:-1]
    flat = pivots.reshape(math.prod(batch), pivots.shape[-1])
    order = np.broadcast_to(np.arange(rows, dtype=np.int32), (len(flat), rows)).copy()
    each = np.arange(len(flat))
    for column, chosen in enumerate(flat.T):
        upper = order[:, column].copy()
        order[:, column] = order[each, chosen]
        order[each, chosen] = upper
    return order.reshape(*batch, rows)


def _eliminate(a: Array, pivots: Array, column: int, stop: int) -> None:
    """Moves the largest element of a column to the diagonal, and eliminates it from the panel."""
    below = a[:, column:, column]
    sizes = abs(below.real) + abs(below.imag) if is_complex(a.dtype) else abs(below)
    chosen = column + sizes.argmax(-1)
    pivots[:, column] = chosen
    each = np.arange(len(a))
    upper = a[:, column].copy()
    a[:, column] = a[each, chosen]
    a[each, chosen] = upper
    pivot = a[:, column : column + 1, column]
    a[:, column + 1 :, column] /= np.where(pivot == 0, pivot.dtype.type(1), pivot)
    factors, row = a[:, column + 1 :, column, None], a[:, column, None, column + 1 : stop]
    a[:, column + 1 :, column + 1 : stop] -= factors * row
