"""Parsing of ``lax`` arguments that name dimensions or hold one number for each."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from plugrt.errors import ArgumentError, ArgumentTypeError, AxisError
from plugrt.tracing.argument_checks import normalize_axes, normalize_axis


def normalize_dimension(function: str, dimension: int, ndim: int) -> int:
    """Returns a dimension counted from 0; negative ones count from the end."""
    return normalize_axis(f"lax.{function}", dimension, ndim, "a dimension")


def normalize_dimensions(
    function: str, dimensions: Sequence[int] | int, ndim: int
) -> tuple[int, ...]:
    """Returns dimensions counted from 0, none twice; None is none."""
    if dimensions is None:
        raise AxisError(f"lax.{function} takes dimensions, one integer or several; found None")
    return normalize_axes(f"lax.{function}", dimensions, ndim, "a dimension")


def per_dimension(
    function: str, name: str, values: Sequence[Any] | None, ndim: int, default: int = 1
) -> list[int]:
    """Returns one integer for each dimension; ``default`` for all if there are none."""
    if values is None:
        return [default] * ndim
    try:
        listed = [operator.index(v) for v in values]
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name} of lax.{function} is {values!r}; it takes a sequence of integers"
        ) from error
    if len(listed) != ndim:
        raise ArgumentError(
            f"{name} of lax.{function} needs {ndim} numbers, one for each dimension; got {listed}"
        )
    return listed
