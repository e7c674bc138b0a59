"""Parts of the gamma function that keep all digits of incomplete integrals.

``exp(a log(x) - x - lgamma(a))`` would lose as many digits as its exponents have. Here the large
terms of an exponent are combined before any rounding.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from plugrt.array_api.elementwise.exponential import exp, log1p
from plugrt.array_api.elementwise.float_properties import clip
from plugrt.array_api.elementwise.rounding import floor
from plugrt.array_api.searching import where
from plugrt.lax.special_functions.iterations import Real, evaluate, interpolate
from plugrt.tracing.emit import full
from plugrt.tracing.tracer import Tracer

LARGE = 10
"""From this argument on, Stirling's series gives all digits of float64."""
_STIRLING = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400
)  # fmt: skip
_DEGREES = {4: 9, 8: 19}
"""The degree of the series of `log_gamma_ratio`, by the bytes of a float."""
_TERMS = {4: 8, 8: 17}
"""The number of terms of the arc tangent's series, by the bytes of a float."""


def stirling_remainder(a: Tracer) -> Tracer:
    """Returns log(gamma(a)) - (a - 1/2) log(a) + a - log(2 pi) / 2 for ``a`` from `LARGE` on."""
    inverse = 1 / a
    square = inverse * inverse
    total: Tracer = full(square.shape, 0, square.dtype)
    for coefficient in reversed(_STIRLING):
        total = total * square + coefficient
    return total * inverse


def log1p_minus(u: Tracer) -> Tracer:
    """Returns log(1 + u) - u, whose relative error is small also where ``u`` is."""
    s = u / (2 + u)
    square = s * s
    total: Tracer = full(square.shape, 0, square.dtype)
    for k in reversed(range(1, _TERMS[u.dtype.itemsize])):
        total = (total + 1 / (2 * k + 1)) * square
    near = (u >= -0.5) & (u <= 1)
    result: Tracer = where(near, s * (2 * total - u), log1p(u) - u)
    return result


def log_gamma_ratio(t: Tracer) -> Tracer:
    """Returns log(gamma(1 + t)) / t for ``t`` from 0 to 1; at 0 it is minus Euler's constant."""
    return evaluate(2 * t - 1, _log_gamma_ratios(_DEGREES[t.dtype.itemsize]))


def reciprocal_gamma(a: Tracer) -> Tracer:
    """Returns 1 / gamma(1 + a) for ``a`` from 0 to twice `LARGE`; clamps other values."""
    a = clip(a, 0, 2 * LARGE)
    t = a - floor(a)
    product: Tracer = full(t.shape, 1, t.dtype)
    for j in range(1, 2 * LARGE + 1):
        product = where(a >= j, product * (t + j), product)
    result: Tracer = exp(-t * log_gamma_ratio(t)) / product
    return result


@cache
def _log_gamma_ratios(degree: int) -> Real:
    """Returns the Chebyshev series of log(gamma(1 + t)) / t from 0 to 1.

    gamma(1 + t) is gamma(m + t) over the product of the t + j for j below m; the values at t = 0 of
    both are subtracted before any rounding.
    """
    m = np.longdouble(17)
    factors = np.arange(1, 17, dtype=np.longdouble)

    def ratio(t: Real) -> Real:
        remainders = sum(
            c * ((m + t) ** (-1 - 2 * k) - m ** (-1 - 2 * k)) for k, c in enumerate(_STIRLING)
        )
        shifted = t * np.log(m) + (m + t - 0.5) * np.log1p(t / m) - t + remainders
        found: Real = shifted - np.log1p(t[:, None] / factors).sum(axis=1)
        return found / t

    return interpolate(ratio, 0.0, 1.0, degree)
