"""Arguments that name dimensions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, ShapeError


def dimension_of(function: str, dimension: int, ndim: int) -> int:
    """Returns a dimension counted from 0; negative ones count from the end."""
    try:
        index = operator.index(dimension)
    except TypeError as error:
        raise ArgumentTypeError(
            f"a dimension of lax.{function} is {dimension!r}, which is not an integer"
        ) from error
    if not -ndim <= index < ndim:
        raise ShapeError(
            f"lax.{function} was asked for dimension {index}, and the array has {ndim}"
        )
    return index % ndim


def dimensions_of(function: str, dimensions: Sequence[int] | int, ndim: int) -> tuple[int, ...]:
    """Returns dimensions counted from 0, none twice."""
    listed = (dimensions,) if isinstance(dimensions, int | np.integer) else tuple(dimensions)
    found = tuple(dimension_of(function, d, ndim) for d in listed)
    if len(set(found)) < len(found):
        raise ShapeError(f"lax.{function} was asked for a dimension twice: {listed}")
    return found


def per_dimension(
    function: str, name: str, values: Sequence[Any] | None, ndim: int, default: int = 1
) -> list[int]:
    """Returns one integer for each dimension; ``default`` for all if there are none."""
    if values is None:
        return [default] * ndim
    listed = [int(v) for v in values]
    if len(listed) != ndim:
        raise ArgumentError(
            f"{name} of lax.{function} needs {ndim} numbers, one for each dimension; got {listed}"
        )
    return listed
