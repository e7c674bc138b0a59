"""Set functions: `unique_all`, `unique_counts`, `unique_inverse`, `unique_values`.

The results' sizes depend on the data, so all of these wait for the array, compute on the host and
put their results on the array's devices. Traced arrays raise `DataDependentShape`. Elements are
compared by ``==``, so every NaN is distinct and -0.0 is 0.0, as in the standard. In plugrt the
distinct elements are sorted, NaNs last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plugrt.errors import DataDependentShape
from plugrt.execution.arrays.array import Array
from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.transfers.whole_arrays import put_beside
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.tracing.promotion import default_int, dtype_kind
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike


def require_concrete(function: str, x: object, cure: str, name: str = "x") -> Array:
    """Returns an argument as a concrete array.

    Raises `DataDependentShape` with the ``cure`` for a traced array, `NotAnArray` for others.
    """
    if type(x) is Tracer:
        where = f" ({x.origin})" if x.origin else ""
        raise DataDependentShape(
            f"{name} of {function} is the traced array {x!r}{where}, and the shape of what "
            f"{function} returns depends on its data, which are not known while "
            f"{x.trace.name!r} is traced. {cure}; or leave this part outside of the traced function"
        )
    return as_array(x, f"argument {name!r} of {function}")


def put_like(x: Array, host: npt.NDArray[Any]) -> Array:
    """Returns host data as an array replicated over the devices of ``x``; committed if ``x`` is."""
    host = np.ascontiguousarray(host).reshape(host.shape)
    return put_beside(host, x.sharding, x.committed)


_SORTABLE = {"i": np.int8, "u": np.uint8, "f": np.float32}
_CURE = "array_api.sort(x) keeps the shape"


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


@with_argument_errors
def unique_all(x: ArrayLike, /) -> UniqueAll:
    """Returns the distinct ``values`` of ``x``, flattened, with three integer arrays.

    ``indices`` are their first positions in the flattened ``x``, ``inverse_indices`` (with the
    shape of ``x``) the index of each element in ``values``, ``counts`` the number of occurrences.
    Any dtype. Raises `DataDependentShape` for a traced ``x``.
    """
    array = require_concrete("unique_all", x, _CURE)
    values, indices, inverse, counts = _unique(array)
    return UniqueAll(
        put_like(array, values),
        _put_positions(array, indices),
        _put_positions(array, inverse.reshape(array.shape)),
        _put_positions(array, counts),
    )


@with_argument_errors
def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """Returns the distinct ``values`` of ``x``, flattened, and their ``counts``.

    Any dtype. Raises `DataDependentShape` for a traced ``x``.

    >>> xp.unique_counts(xp.asarray([2, 1, 2])).counts
    Array([1, 2], dtype=int32)
    """
    array = require_concrete("unique_counts", x, _CURE)
    values, _, _, counts = _unique(array)
    return UniqueCounts(put_like(array, values), _put_positions(array, counts))


@with_argument_errors
def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """Returns the distinct ``values`` of ``x`` and the index of each element in them.

    ``inverse_indices`` have the shape of ``x``: ``values[inverse_indices]`` gives ``x`` again. Any
    dtype. Raises `DataDependentShape` for a traced ``x``.

    >>> values, inverse = xp.unique_inverse(xp.asarray([2, 1, 2]))
    >>> values[inverse]
    Array([2, 1, 2], dtype=int32)
    """
    array = require_concrete("unique_inverse", x, _CURE)
    values, _, inverse, _ = _unique(array)
    return UniqueInverse(
        put_like(array, values), _put_positions(array, inverse.reshape(array.shape))
    )


@with_argument_errors
def unique_values(x: ArrayLike, /) -> Array:
    """Returns the distinct elements of ``x`` as an array of one dimension.

    Any dtype. Raises `DataDependentShape` for a traced ``x``.
    """
    array = require_concrete("unique_values", x, _CURE)
    return put_like(array, _unique(array)[0])


def _unique(x: Array) -> tuple[npt.NDArray[np.generic], ...]:
    flat = np.asarray(x).reshape(-1)
    # NumPy 2 does not sort NaNs of ml_dtypes' floats last; float32 and int8 hold all values.
    _, indices, inverse, counts = np.unique(
        flat.astype(_SORTABLE[dtype_kind(x.dtype)]) if x.dtype.kind == "V" else flat,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        equal_nan=False,
    )
    return flat[indices], indices, inverse, counts


def _put_positions(x: Array, positions: npt.NDArray[np.generic]) -> Array:
    return put_like(x, positions.astype(default_int()))


__all__ = [
    "UniqueAll", "UniqueCounts", "UniqueInverse",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip
