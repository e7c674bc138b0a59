"""Chebyshev series on the device, with coefficients that are computed when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.tracing.tracer import Tracer

Real: TypeAlias = npt.NDArray[np.floating[Any]]


def interpolate(function: Callable[[Real], Real], low: float, high: float, degree: int) -> Real:
    """Returns the coefficients, by degree, of the series that interpolates ``function`` in between.

    It is computed in NumPy's longest float, so that they are exact where that has more digits.
    """
    n = degree + 1
    angles = (np.arange(n) + np.longdouble(0.5)) * (_PI / n)
    middle, half = np.longdouble(low + high) / 2, np.longdouble(high - low) / 2
    values = function(middle + half * np.cos(angles))
    found = np.cos(np.arange(n)[:, None] * angles) @ values * np.longdouble(2) / n
    found[0] /= 2
    coefficients: Real = found.astype(np.float64)
    return coefficients


_PI = np.longdouble(4) * np.arctan(np.longdouble(1))


def evaluate(t: Tracer, coefficients: Sequence[float] | Real) -> Tracer:
    """Returns the sum of the series at ``t`` between -1 and 1, by Clenshaw's recurrence."""
    first, *rest = (float(c) for c in coefficients)
    following: Any = 0.0
    afterwards: object = 0.0
    twice = t + t
    for c in reversed(rest):
        following, afterwards = twice * following - afterwards + c, following
    result: Tracer = t * following - afterwards + first
    return result
