"""Methods of arrays as in NumPy and JAX, each a call of a function of `array_api`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from plugrt.array_api import (
    data_types,
    manipulation,
    matrix_products,
    repetition,
    searching,
    sorting,
)
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.elementwise import complex as elementwise_complex
from plugrt.array_api.elementwise import float_properties, rounding
from plugrt.array_api.fold import refuse_out
from plugrt.array_api.indexing import functions
from plugrt.array_api.indexing.at import IndexUpdateHelper, setitem
from plugrt.array_api.reduction_methods import REDUCTION_METHODS
from plugrt.errors import InvalidArgument
from plugrt.tracing.promotion import default_int
from plugrt.tracing.trace import current_trace

Axis = int | Sequence[int] | None


_ROWS = 100  # read by one launch, as in JAX


def iterate(self: Any) -> Iterator[Any]:
    """Returns an iterator over ``x[0]``, ``x[1]`` and so on; one launch reads a hundred of them."""
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    rows = range(self.shape[0])
    if current_trace() is not None or self.sharding.plain_device is None:
        return (self[i] for i in rows)
    if len(rows) <= _ROWS:
        return iter(manipulation.unstack(self) if rows else ())
    return chain.from_iterable(manipulation.unstack(self[i : i + _ROWS]) for i in rows[::_ROWS])


def _sort_method(name: str, function: Callable[..., object]) -> Callable[..., object]:
    def method(self: object, axis: int = -1, **options: object) -> Any:
        return function(self, axis=axis, **options)

    method.__doc__ = f"Returns ``array_api.{name}`` along ``axis``."
    return method


def astype(self: Any, dtype: Any, *, copy: bool = True) -> Any:
    """Returns the array in another dtype."""
    return data_types.astype(self, dtype, copy=copy)


def reshape(self: object, *shape: object, **options: object) -> Any:
    """Returns the elements in another shape, given as integers or as one tuple."""
    return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, **options)


def transpose(self: Any, *axes: Any) -> Any:
    """Returns the array with its axes in an order, given as integers or a tuple; else reversed."""
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return manipulation.permute_dims(self, tuple(order) if order else tuple(range(self.ndim))[::-1])


def ravel(self: Any) -> Any:
    """Returns the elements in one dimension, in row-major order."""
    return manipulation.reshape(self, (math.prod(self.shape),))


def squeeze(self: Any, axis: Axis = None) -> Any:
    """Returns the array without the named axes of size 1; None means all of them."""
    every = tuple(i for i, n in enumerate(self.shape) if n == 1)
    return manipulation.squeeze(self, axis=every if axis is None else axis)


def swapaxes(self: object, axis1: int, axis2: int) -> Any:
    """Returns the array with two axes exchanged."""
    return manipulation.swapaxes(self, axis1, axis2)


def take(self: Any, indices: Any, axis: int | None = None) -> Any:
    """Returns the elements at ``indices`` along ``axis``; None means flattened."""
    indices = asarray(indices)
    if axis is None:
        return take(ravel(self), indices, 0)
    flat = functions.take(self, ravel(indices), axis=axis)
    axis %= self.ndim
    return manipulation.reshape(flat, (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :]))


def repeat(self: Any, repeats: Any, axis: int | None = None) -> Any:
    """Returns each element repeated, along ``axis`` or flattened."""
    return repetition.repeat(self, repeats, axis=axis)


def nonzero(self: Any) -> Any:
    """Returns the indices of the elements that are not 0, an array for each axis."""
    return searching.nonzero(self)


def conj(self: object) -> Any:
    """Returns the complex conjugate."""
    return elementwise_complex.conj(self)


def round_(self: object, decimals: int = 0, out: None = None) -> Any:
    """Returns the array rounded to ``decimals`` places, halves to even."""
    refuse_out("round", out)
    return rounding.round(self, decimals)


def __round__(self: Any, ndigits: int | None = None, /) -> Any:
    """Returns the array rounded; without ``ndigits`` as integers, as in JAX.

    The integers have the default dtype, or int64 for an array of 64 bits, also for uint64.
    """
    if ndigits is not None:
        return rounding.round(self, ndigits)
    wide = self.dtype.itemsize == 8 and self.dtype.kind != "c"
    return data_types.astype(rounding.round(self), np.dtype(np.int64) if wide else default_int())


def clip(self: object, min: object = None, max: object = None, out: None = None) -> Any:
    """Returns the array limited to ``min`` and ``max``."""
    refuse_out("clip", out)
    return float_properties.clip(self, min, max)


def dot(self: Any, other: Any) -> Any:
    """Returns NumPy's product over the last axis and the last but one of ``other``."""
    other = asarray(other)
    if not self.ndim or not other.ndim:
        return self * other
    return matrix_products.tensordot(
        self, other, axes=((self.ndim - 1,), (max(other.ndim - 2, 0),))
    )


def copy(self: Any) -> Any:
    """Returns a copy in memory of its own."""
    return asarray(self, copy=True)


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Returns the array on a device or sharding; there are no streams to choose."""
    if stream is not None:
        raise InvalidArgument(f"to_device got stream {stream!r}; the backend orders its own work")
    return asarray(self, device=device)


def view(self: Any, dtype: Any) -> Any:
    """Returns the bits of the array as elements of another dtype, in memory of their own."""
    return data_types.view(self, dtype)


METHODS: dict[str, Callable[..., object]] = {
    **REDUCTION_METHODS,
    "sort": _sort_method("sort", sorting.sort),
    "argsort": _sort_method("argsort", sorting.argsort),
    "__round__": __round__,
    "__getitem__": functions.getitem,
    "__iter__": iterate,
    "__setitem__": setitem,
    "astype": astype,
    "clip": clip,
    "conj": conj,
    "copy": copy,
    "dot": dot,
    "flatten": ravel,
    "nonzero": nonzero,
    "ravel": ravel,
    "repeat": repeat,
    "reshape": reshape,
    "round": round_,
    "squeeze": squeeze,
    "swapaxes": swapaxes,
    "take": take,
    "to_device": to_device,
    "transpose": transpose,
    "view": view,
}

PROPERTIES: dict[str, Callable[[Any], object]] = {
    "T": transpose,
    "at": IndexUpdateHelper,
    "imag": elementwise_complex.imag,
    "mT": matrix_products.matrix_transpose,
    "real": elementwise_complex.real,
}
