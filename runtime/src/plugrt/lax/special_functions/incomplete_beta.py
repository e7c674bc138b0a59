"""`betainc`: the regularized incomplete beta function, by its continued fraction."""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.exponential import exp, log, log1p, sqrt
from plugrt.array_api.elementwise.float_properties import isnan, maximum, minimum
from plugrt.array_api.elementwise.rounding import floor
from plugrt.array_api.searching import where
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype, same_shape
from plugrt.lax.special_functions.gamma_function import (
    LARGE,
    log1p_minus,
    reciprocal_gamma,
    stirling_remainder,
)
from plugrt.lax.special_functions.iterations import continued_fraction
from plugrt.tracing.emit import full, in_wide_floats
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer


@operation
def betainc(a: Tracer, b: Tracer, x: Tracer) -> Tracer:
    """Returns the regularized incomplete beta function I(x; a, b), elementwise.

    It is the integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, over the one from 0 to 1, for a
    and b of 0 or more and x from 0 to 1; NaN for others. Real floats of one dtype and shape
    (scalars combine with any); floats of fewer than 32 bits are computed in float32. Raises
    `DtypeError` or `ShapeError`. As ``jax.lax.betainc``, which is less exact for large a and b.

    >>> round(float(lax.betainc(xp.asarray(2.0), 2.0, 0.25)), 5)
    0.15625
    """
    operands = same_dtype("betainc", "abx", [a, b, x])
    check_dtype_kind("betainc", "a", operands[0].dtype, "f")
    return in_wide_floats(_betainc, *same_shape("betainc", "abx", operands))


def _betainc(a: Tracer, b: Tracer, x: Tracer) -> Tracer:
    y = 1 - x
    swapped = x >= (a + 1) / (a + b + 2)  # the fraction of 1 - x converges faster there
    p, q = where(swapped, b, a), where(swapped, a, b)
    ordered = a <= b
    density = _density(
        where(ordered, x, y),
        where(ordered, y, x),
        where(ordered, log1p(-x), log(x)),
        where(ordered, a, b),
        where(ordered, b, a),
    )
    fraction = _fraction(p, q, where(swapped, y, x), (density > 0) & (density < np.inf))
    part = density / p * fraction
    result: Tracer = where(swapped, 1 - part, part)
    left, right = (a == 0) | (b == np.inf), (b == 0) | (a == np.inf)  # all mass at 0 or at 1
    result = where((right & (x < 1)) | (x == 0), 0, result)
    result = where((left & (x > 0)) | (x == 1), 1, result)
    outside = (a < 0) | (b < 0) | (x < 0) | (x > 1) | (left & right)
    found: Tracer = where(outside | isnan(a) | isnan(b) | isnan(x), np.nan, result)
    return found


def _fraction(a: Tracer, b: Tracer, x: Tracer, wanted: Tracer) -> Tracer:
    """Returns 1 / (1 + d(1) / (1 + d(2) / ...)); https://dlmf.nist.gov/8.17.E22."""

    def term(n: Tracer) -> tuple[Tracer, float]:
        m = floor(n / 2)
        even = m / (a + n - 1) * ((b - m) / (a + n)) * x
        odd = (a + m) / (a + n - 1) * ((a + b + m) / (a + n)) * -x
        return where(n == 2 * m, even, odd), 1.0

    return continued_fraction("betainc", full(x.shape, 1, x.dtype), term, wanted)


def _density(x: Tracer, y: Tracer, log_y: Tracer, a: Tracer, b: Tracer) -> Tracer:
    """Returns x**a y**b gamma(a + b) / (gamma(a) gamma(b)) for a not above b and x + y = 1."""
    few, many = minimum(a, LARGE), maximum(b, LARGE)
    s = few + many
    quotient = many * log1p_minus(few / many) - log1p(few / many) / 2
    quotient = quotient + stirling_remainder(s) - stirling_remainder(many)  # gamma(s) / gamma(many)
    of_one = minimum(x * s, 1000) ** few * few * reciprocal_gamma(few)
    of_one = of_one * exp(many * log_y + quotient)
    few_b = minimum(b, LARGE)
    of_none = x**few * y**few_b * few * reciprocal_gamma(few)
    of_none = of_none * few_b * reciprocal_gamma(few_b)
    of_none = of_none / ((few + few_b) * reciprocal_gamma(few + few_b))
    result: Tracer = where(b < LARGE, of_none, where(a < LARGE, of_one, _peak(x, y, a, many)))
    return result


def _peak(x: Tracer, y: Tracer, a: Tracer, b: Tracer) -> Tracer:
    """Returns `_density` for large a and b, where it is as narrow as a normal density."""
    a = maximum(a, LARGE)
    s = a + b
    at = x * b - y * a
    exponent = a * log1p_minus(at / a) + b * log1p_minus(-at / b)
    remainders = stirling_remainder(s) - stirling_remainder(a) - stirling_remainder(b)
    result: Tracer = sqrt(a / s * b / (2 * np.pi)) * exp(exponent + remainders)
    return result
