"""`eye`, `tril`, `triu` and `diagonal`."""

from __future__ import annotations

import operator

import numpy as np

from plugrt.array_api.device_argument import make_on_device
from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ShapeError
from plugrt.execution.arrays.array import Array
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing import emit
from plugrt.tracing.argument_checks import normalize_shape
from plugrt.tracing.emit import (
    compare,
    constant,
    convert,
    hlo,
    iota,
    reshape,
    select,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import default_float
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DeviceLike, DTypeLike

Dtype = np.dtype[np.generic]
_INT32 = np.dtype(np.int32)


@with_argument_errors
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Returns ones on the ``k``-th diagonal (above the main one if positive) of zeros.

    The shape is (``n_rows``, ``n_cols``), the dtype the default float unless given. Raises
    `ShapeError` for a negative size, `UnsupportedDtype`.

    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    shape = normalize_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    target = default_float() if dtype is None else as_dtype(dtype)
    if isinstance(device, Sharding):
        device.check_rank(2)
    return make_on_device(device, _eye, shape=shape, k=operator.index(k), dtype=target)


@operation(static=("shape", "k", "dtype"))
def _eye(*, shape: tuple[int, int], k: int, dtype: Dtype) -> Tracer:
    return convert(compare(*_diagonals(shape, k), "EQ"), dtype)


@operation(static=("k",))
def tril(x: Tracer, /, k: int = 0) -> Tracer:
    """Returns the matrices ``x`` with zeros above the ``k``-th diagonal.

    Stacks of matrices of any dtype. Raises `ShapeError` for fewer than two dimensions.

    >>> xp.tril(xp.ones((3, 3)), k=-1)
    Array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    return _triangle("tril", x, k, "LE")


@operation(static=("k",))
def triu(x: Tracer, /, k: int = 0) -> Tracer:
    """Returns the matrices ``x`` with zeros below the ``k``-th diagonal.

    Stacks of matrices of any dtype. Raises `ShapeError` for fewer than two dimensions.
    """
    return _triangle("triu", x, k, "GE")


def _triangle(function: str, x: Tracer, k: int, kept: str) -> Tracer:
    if x.ndim < 2:
        raise ShapeError(f"{function} got x of shape {x.shape}; it takes two dimensions or more")
    inside = compare(*_diagonals(x.shape, operator.index(k)), kept)
    return select(inside, emit.strong(x), emit.full(x.shape, 0, x.dtype))


def _diagonals(shape: tuple[int, ...], k: int) -> tuple[Tracer, Tracer]:
    # An element is on the k-th diagonal where its column is its row + k, which must not overflow.
    k = max(-shape[-2], min(k, shape[-1]))
    row, column = (iota(shape, len(shape) - d, _INT32) for d in (2, 1))
    moved = emit.emit(hlo.add, row, emit.broadcast_to(constant(np.int32(k)), shape))
    return column, moved


@operation(static=("offset",))
def diagonal(x: Tracer, /, *, offset: int = 0) -> Tracer:
    """Returns the diagonals of matrices (..., m, n), ``offset`` places above the main one.

    The last dimension of the result has as many elements as that diagonal. Any dtype. Raises
    `ShapeError` for fewer than two dimensions.

    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    if x.ndim < 2:
        raise ShapeError(f"diagonal got x of shape {x.shape}; it takes two dimensions or more")
    m, n = x.shape[-2:]
    above = operator.index(offset)
    down, right = (0, above) if above >= 0 else (-above, 0)
    size = max(min(m - down, n - right), 0)
    if not size:
        return reshape(x[..., :0, :0], (*x.shape[:-2], 0))
    # In the flattened matrix, diagonal elements are n + 1 elements apart.
    flat = reshape(x, (*x.shape[:-2], m * n))
    first = down * n + right
    return flat[..., first : first + (size - 1) * (n + 1) + 1 : n + 1]
