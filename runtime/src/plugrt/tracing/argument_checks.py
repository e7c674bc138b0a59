"""Checks of shape, axis and dtype arguments, shared by `array_api`, `lax` and `random`.

``function`` is the name used in messages, with its namespace unless that is ``array_api``: ``sum``,
``lax.reduce_sum``, ``random.normal``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import AxisError, DtypeError, ShapeError
from plugrt.tracing.promotion import dtype_kind

KIND_WORDS = {
    "b": "booleans",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floats",
    "c": "complex numbers",
}
"""The names of the letters of `dtype_kind`."""


def normalize_shape(
    function: str, shape: Any, *, least: int = 0, what: str = "shape"
) -> tuple[int, ...]:
    """Returns a shape, an integer or several in a sequence or array, as a tuple of integers.

    Raises `ShapeError` for any other value, and for sizes below ``least``.
    """
    several = isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str | bytes)
    try:
        sizes = tuple(map(operator.index, shape if several else (shape,)))
    except TypeError as error:
        raise ShapeError(f"{what} of {function} is {shape!r}; it takes integers") from error
    if any(n < least for n in sizes):
        raise ShapeError(f"{what} of {function} is {sizes}, which has a negative number")
    return sizes


def normalize_axis(function: str, axis: Any, ndim: int, name: str = "axis") -> int:
    """Returns ``axis`` counted from the front; negative ones count from the back.

    Raises `AxisError` for a value that is no integer or not an axis of an array with ``ndim``
    dimensions.
    """
    try:
        index = operator.index(axis)
    except TypeError as error:
        raise AxisError(f"{name} of {function} is {axis!r}, which is not an integer") from error
    if not -ndim <= index < ndim:
        raise AxisError(
            f"{name} of {function} is {index}, which is out of range for {ndim} dimensions"
            f"{f': {-ndim} to {ndim - 1}' if ndim else ''}"
        )
    return index % ndim


def normalize_axes(function: str, axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Returns one axis or several as a tuple counted from the front; None means all of them.

    Raises `AxisError`, also for an axis that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    several = isinstance(axis, Sequence | np.ndarray) and not isinstance(axis, str | bytes)
    axes = tuple(normalize_axis(function, a, ndim, name) for a in (axis if several else (axis,)))
    if len(set(axes)) < len(axes):
        raise AxisError(f"{name} of {function} is {axis}, which names an axis twice")
    return axes


def reduced_shape(
    shape: tuple[int, ...], axes: tuple[int, ...], *, keepdims: bool
) -> tuple[int, ...]:
    """Returns the shape after a reduction over ``axes``, which get size 1 or are removed."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def kind_words(kinds: str) -> str:
    """Returns the names of dtype kinds (letters of ``biufc``): ``integers, floats``."""
    words = [KIND_WORDS[kind] for kind in kinds]
    both = [KIND_WORDS["i"], KIND_WORDS["u"]]
    return ", ".join(words).replace(", ".join(both), "integers")


def check_dtype_kind(
    function: str, argument: str, dtype: np.dtype[np.generic], kinds: str, words: str | None = None
) -> None:
    """Raises `DtypeError` unless ``dtype`` is of one of ``kinds`` (letters of `dtype_kind`).

    ``words`` name these kinds, and a cure.
    """
    if dtype_kind(dtype) not in kinds:
        taken = words or ", ".join(KIND_WORDS[kind] for kind in kinds)
        raise DtypeError(f"{function} got {argument} of dtype {dtype.name}; it takes {taken}")
