"""`bessel_i0e`: Bessel's I0 as two Chebyshev series, since StableHLO and CHLO lack it.

For ``x`` up to 8 the series is in x, above in 1/x, as in Cephes and in ``jax.lax``; the
coefficients are not copied from there but follow from the integral that defines the function.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.exponential import sqrt
from plugrt.array_api.elementwise.float_properties import maximum, minimum
from plugrt.array_api.searching import where
from plugrt.lax.operand_checks import check_dtype_kind
from plugrt.lax.special_functions.iterations import Real, evaluate, interpolate
from plugrt.tracing.emit import in_wide_floats, strong
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer

_BORDER = 8.0
_DEGREES = {4: (17, 7), 8: (29, 24)}
"""The degrees of both series, by the bytes of a float."""


@operation
def bessel_i0e(x: Tracer) -> Tracer:
    """Returns exp(-|x|) times Bessel's I0(x), elementwise.

    Floats (else `DtypeError`); the result has the shape and dtype of x, and is within 4 ulps.
    Floats of fewer than 32 bits are computed in float32. As ``jax.lax.bessel_i0e``.

    >>> round(float(lax.bessel_i0e(xp.asarray(1.0))), 5)
    0.46576
    """
    check_dtype_kind("bessel_i0e", "x", x.dtype, "f")
    return in_wide_floats(_bessel_i0e, strong(x))


def _bessel_i0e(x: Tracer) -> Tracer:
    near, far = _coefficients(*_DEGREES[x.dtype.itemsize])
    x = abs(x)
    small, large = minimum(x, _BORDER), maximum(x, _BORDER)
    by_series = evaluate(small * (2 / _BORDER) - 1, near)
    by_inverse = evaluate(2 * _BORDER / large - 1, far) / sqrt(large)
    result: Tracer = where(x <= _BORDER, by_series, by_inverse)
    return result


@cache
def _coefficients(near: int, far: int) -> tuple[Real, Real]:
    """Returns the series of the function for x up to 8, and of sqrt(x) times it for x above."""

    def above(share: Real) -> Real:
        x = _BORDER / share
        values: Real = np.sqrt(x) * _integrate(x)
        return values

    return interpolate(_integrate, 0.0, _BORDER, near), interpolate(above, 0.0, 1.0, far)


def _integrate(x: Real) -> Real:
    """Returns the mean of exp(x (cos(angle) - 1)) over the circle: the function's definition.

    The mean over n angles differs from the mean over all by exp(-n**2 / (2 x)), since the function
    is periodic; ``x`` is at most 10,000 here.
    """
    quarter = np.arctan(np.longdouble(1))
    half_angles = np.arange(_ANGLES) * (4 * quarter / _ANGLES)
    values = np.exp(-2 * x[:, None] * np.sin(half_angles) ** 2)
    mean: Real = values.mean(axis=1)
    return mean


_ANGLES = 1024
