"""Axes of arrays: the ``axis`` and ``keepdims`` arguments that many functions take."""

from __future__ import annotations

import operator
from typing import Any

from plugrt.errors import AxisError
from plugrt.typing import Axes

__all__ = ["Axes", "normal_axes", "normal_axis", "reduced_shape"]


def normal_axis(function: str, axis: Any, ndim: int, name: str = "axis") -> int:
    """Returns ``axis`` counted from the front; negative ones count from the back.

    Raises `AxisError` for what is no integer or not an axis of an array with ``ndim`` dimensions.
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


def normal_axes(function: str, axis: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Returns one axis or several as a tuple counted from the front; None means all of them.

    Raises `AxisError`, also for an axis that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (normal_axis(function, axis, ndim, name),)
    axes = tuple(normal_axis(function, a, ndim, name) for a in axis)
    if len(set(axes)) < len(axes):
        raise AxisError(f"{name} of {function} is {axis}, which names an axis twice")
    return axes


def reduced_shape(
    shape: tuple[int, ...], axes: tuple[int, ...], *, keepdims: bool
) -> tuple[int, ...]:
    """Returns the shape after a reduction over ``axes``, which stay with size 1 or go."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
