"""`igamma` and `igammac`: the regularized incomplete gamma functions.

The lower one is computed by its power series, the upper one by Legendre's continued fraction, or
each as one minus the other, whichever converges fast without cancellation
(https://dlmf.nist.gov/8.11, https://dlmf.nist.gov/8.9).
"""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.arithmetic import sign
from plugrt.array_api.elementwise.exponential import exp, expm1, log, sqrt
from plugrt.array_api.elementwise.float_properties import clip, isnan, maximum, minimum
from plugrt.array_api.searching import where
from plugrt.lax.binary import prepare_operands
from plugrt.lax.special_functions.gamma_function import (
    LARGE,
    log1p_minus,
    log_gamma_ratio,
    reciprocal_gamma,
    stirling_remainder,
)
from plugrt.lax.special_functions.iterations import continued_fraction, power_series
from plugrt.lax.unary import erfc
from plugrt.tracing.emit import full, in_wide_floats
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer

HUGE = 1e6
"""From this ``a`` on, Temme's expansion computes the values."""


@operation
def igamma(a: Tracer, x: Tracer) -> Tracer:
    """Returns the regularized lower incomplete gamma function P(a, x), elementwise.

    It is the integral of t**(a - 1) exp(-t) from 0 to x, over gamma(a), for a and x of 0 or more;
    NaN for others and where both are 0. Real floats of one dtype and shape (scalars combine with
    any); floats of fewer than 32 bits are computed in float32. Raises `DtypeError` or `ShapeError`.
    As ``jax.lax.igamma``, which is less exact for a above 10 and gives NaN for a = 0 with x below
    1.

    >>> round(float(lax.igamma(xp.asarray(2.0), 1.0)), 5)
    0.26424
    """
    return in_wide_floats(_lower, *prepare_operands("igamma", a, x, "f", "ax"))


@operation
def igammac(a: Tracer, x: Tracer) -> Tracer:
    """Returns the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x), elementwise.

    It keeps its digits where P is near 1, and where a is near 0. Real floats as for `igamma`.
    Raises `DtypeError` or `ShapeError`. As ``jax.lax.igammac``, which is less exact for a above 10
    and x below 1.

    >>> round(float(lax.igammac(xp.asarray(2.0), 1.0)), 5)
    0.73576
    """
    return in_wide_floats(_upper, *prepare_operands("igammac", a, x, "f", "ax"))


def _lower(a: Tracer, x: Tracer) -> Tracer:
    lower, upper = _compute(a, x, (x >= 1) & (x > a))
    result: Tracer = where(isnan(lower), 1 - upper, lower)
    result = where(a > HUGE, _uniform(a, x, -1), result)
    result = where((x == np.inf) | (a == 0), 1, where((x == 0) | (a == np.inf), 0, result))
    found: Tracer = where(_is_undefined(a, x), np.nan, result)
    return found


def _upper(a: Tracer, x: Tracer) -> Tracer:
    lower, upper = _compute(a, x, (x >= 1) & (x >= a))
    result: Tracer = where(isnan(upper), 1 - lower, upper)
    result = where((x < 1) & (a < 1), _upper_near_origin(a, x), result)
    result = where(a > HUGE, _uniform(a, x, 1), result)
    result = where((x == np.inf) | (a == 0), 0, where((x == 0) | (a == np.inf), 1, result))
    found: Tracer = where(_is_undefined(a, x), np.nan, result)
    return found


def _compute(a: Tracer, x: Tracer, by_fraction: Tracer) -> tuple[Tracer, Tracer]:
    """Returns P and Q, each NaN where the other one was computed."""
    weight = density(a, x)
    wanted = (weight > 0) & (a <= HUGE)
    upper = weight * a * _fraction(a, x, wanted & by_fraction)
    lower = weight * _series(a, x, wanted & ~by_fraction)
    return where(by_fraction, np.nan, lower), where(by_fraction, upper, np.nan)


def _is_undefined(a: Tracer, x: Tracer) -> Tracer:
    result: Tracer = isnan(a) | isnan(x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    return result


def density(a: Tracer, x: Tracer) -> Tracer:
    """Returns x**a exp(-x) / gamma(1 + a)."""
    few, some = minimum(a, LARGE), minimum(x, 1000)
    root = exp(-some / 2)  # exp(-some) may underflow although the product does not
    small = some**few * root * reciprocal_gamma(few) * root
    many = maximum(a, LARGE)
    exponent = many * log1p_minus((x - many) / many) - stirling_remainder(many)
    large = exp(exponent) / sqrt(2 * np.pi * many)
    result: Tracer = where(a < LARGE, small, large)
    return result


def _series(a: Tracer, x: Tracer, wanted: Tracer) -> Tracer:
    """Returns the sum of x**n / ((a + 1) ... (a + n)) over n from 0."""
    return power_series("igamma", lambda n: x / (a + n), x, wanted)


def _fraction(a: Tracer, x: Tracer, wanted: Tracer) -> Tracer:
    """Returns 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))."""
    return continued_fraction(
        "igammac",
        x + 1 - a,
        lambda n: (-n * (n - a), x - a + (2 * n + 1)),
        wanted,
    )


def _uniform(a: Tracer, x: Tracer, side: int) -> Tracer:
    """Returns Q (``side`` 1) or P (-1) for huge a, by Temme's expansion in two orders of 1 / a.

    https://dlmf.nist.gov/8.12; the omitted terms are below the digits of float64 for a above 1e6,
    where the other two methods would need thousands of steps.
    """
    a = maximum(a, HUGE)
    u = (x - a) / a
    exponent = a * log1p_minus(u)
    eta = sign(u) * sqrt(-2 / a * exponent)
    near = clip(eta, -0.1, 0.1)  # beyond, P and Q are 0 and 1 to all digits
    correction, _, _ = uniform_correction(near, a)
    rest = exp(exponent) / sqrt(2 * np.pi * a) * correction
    result: Tracer = erfc(side * sign(u) * sqrt(-exponent)) / 2 + side * rest
    return result


def uniform_correction(eta: Tracer, a: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """Returns two orders of the correction in Temme's expansion; its derivatives by eta and a."""
    first = -1 / 3 + eta * (1 / 12 + eta * (-2 / 135 + eta * (1 / 864 + eta / 2835)))
    second = -1 / 540 - eta / 288
    slope = 1 / 12 + eta * (-4 / 135 + eta * (3 / 864 + eta * 4 / 2835)) - 1 / (288 * a)
    return first + second / a, slope, -second / (a * a)


def _upper_near_origin(a: Tracer, x: Tracer) -> Tracer:
    """Returns Q for a and x below 1, where 1 - P would cancel.

    With w = a log(x) - log(gamma(1 + a)), P is exp(w) (1 + a sum), and the sum is of
    (-x)**n / (n! (a + n)) over n from 1.
    """
    a, x = clip(a, 0, 1), clip(x, np.finfo(x.dtype).tiny, 1)
    total, power = full(a.shape, 0, a.dtype), full(a.shape, 1, a.dtype)
    for n in range(1, 21):
        power = power * (-x / n)
        total = total + power / (a + n)
    w = a * (log(x) - log_gamma_ratio(a))
    result: Tracer = -expm1(w) - exp(w) * a * total
    return result
