"""NumPy's functions whose parameters differ from the standard's, on plugrt's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.array_api import (
    fft,
    linalg,
    numpy_distributions,
    numpy_linalg,
    numpy_numerics,
    numpy_shapes,
    numpy_signals,
    numpy_statistics,
)
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype
from plugrt.array_api.elementwise import float_properties
from plugrt.array_api.manipulation import moveaxis, stack
from plugrt.array_api.manipulation import reshape as reshape_
from plugrt.array_api.methods import METHODS
from plugrt.array_api.numpy_functions import concatenate, hstack, vstack
from plugrt.array_api.numpy_options import is_known
from plugrt.array_api.searching import nonzero
from plugrt.array_api.searching import where as where_
from plugrt.errors import ArgumentError, InvalidIndex


def clip(
    a: Any, a_min: object = None, a_max: object = None, *, min: object = None, max: object = None
) -> Any:
    """Returns an array limited to two bounds, which have two names each."""
    lower, upper = (b if a is None else a for a, b in ((a_min, min), (a_max, max)))
    a = asarray(a)
    return float_properties.clip(a, _keep_in_range(lower, a), _keep_in_range(upper, a))


def _keep_in_range(bound: object, a: Any) -> object:
    """Clamps a Python integer, as a bound, to the range of an integer dtype, as NumPy does."""
    if type(bound) is not int or np.dtype(a.dtype).kind not in "iu":
        return bound
    return int(np.clip(bound, np.iinfo(a.dtype).min, np.iinfo(a.dtype).max))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Returns elements of two arrays; without them the indices where the condition is true."""
    return nonzero(asarray(condition)) if x is None else where_(condition, x, y)


def size(a: Any, axis: Any = None) -> int:
    """Returns the number of elements, or the length of an axis."""
    return int(np.size(np.broadcast_to(0, np.shape(a)), axis))


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Returns the elements in another shape, in row-major or column-major order."""
    return reshape_(a, shape, copy=copy, order="C" if order == "A" else order)


def ravel(a: object, order: str = "C") -> Any:
    """Returns the elements in one dimension, in row-major or column-major order."""
    return reshape(a, -1, "C" if order == "K" else order)


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
    """Returns elements along an axis; ``mode`` treats indices out of bounds.

    In a trace "raise" gives the nearest element.
    """
    a, positions = asarray(a), asarray(indices)
    n = a.size if axis is None else a.shape[axis]
    if mode == "clip":
        positions = float_properties.clip(positions, 0, n - 1)
    elif mode == "wrap":
        positions = positions % n
    elif mode != "raise":
        raise ArgumentError(f"mode of numpy.take is {mode!r}; it takes 'raise', 'wrap' and 'clip'")
    elif is_known(positions) and ((positions < -n) | (positions >= n)).any():
        raise InvalidIndex(f"indices of numpy.take go beyond the {n} elements along the axis")
    return METHODS["take"](a, positions, axis=axis)


def _wrap_joined_along(function: Callable[..., Any]) -> Callable[..., object]:
    def joined(arrays: Sequence[object], axis: int | None = 0, *, dtype: Any = None) -> Any:
        found = function(arrays, axis=axis)
        return found if dtype is None else astype(found, dtype)

    return joined


def _wrap_joined(function: Callable[..., Any]) -> Callable[..., object]:
    def joined(tup: Sequence[object], *, dtype: Any = None) -> Any:
        found = function(tup)
        return found if dtype is None else astype(found, dtype)

    return joined


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Returns the diagonals of the matrices along two axes."""
    return linalg.diagonal(moveaxis(asarray(a), (axis1, axis2), (-2, -1)), offset=offset)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Returns the sums of the diagonals of the matrices along two axes."""
    matrices = moveaxis(asarray(a), (axis1, axis2), (-2, -1))
    return linalg.trace(matrices, offset=offset, dtype=dtype)


def _wrap_binary(function: Callable[..., object]) -> Callable[..., object]:
    def over_two(
        a: object, s: object = None, axes: object = (-2, -1), norm: str = "backward"
    ) -> object:
        return function(a, s=s, axes=axes, norm=norm)

    return over_two


COUNTERPARTS: dict[str, dict[str, Callable[..., object]]] = {
    "numpy": {
        "amax": METHODS["max"],
        "amin": METHODS["min"],
        "clip": clip,
        "concatenate": _wrap_joined_along(concatenate),
        "copy": lambda a: asarray(a, copy=True),
        "diagonal": diagonal,
        "hstack": _wrap_joined(hstack),
        "iscomplexobj": lambda x: x.dtype.kind == "c",
        "isrealobj": lambda x: x.dtype.kind != "c",
        "ndim": lambda a: a.ndim,
        "ravel": ravel,
        "reshape": reshape,
        "shape": lambda a: a.shape,
        "size": size,
        "stack": _wrap_joined_along(stack),
        "take": take,
        "trace": trace,
        "vstack": _wrap_joined(vstack),
        "where": where,
        **numpy_distributions.FUNCTIONS,
        **numpy_numerics.FUNCTIONS,
        **numpy_shapes.FUNCTIONS,
        **numpy_signals.FUNCTIONS,
        **numpy_statistics.FUNCTIONS,
    },
    "linalg": numpy_linalg.FUNCTIONS,
    "fft": {
        "fft2": _wrap_binary(fft.fftn),
        "ifft2": _wrap_binary(fft.ifftn),
        "irfft2": _wrap_binary(fft.irfftn),
        "rfft2": _wrap_binary(fft.rfftn),
    },
}
"""The functions by NumPy's module and name; each has NumPy's parameters."""
