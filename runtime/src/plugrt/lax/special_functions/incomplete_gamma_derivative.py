"""`igamma_grad_a` and `random_gamma_grad`: derivatives of the incomplete gamma function by ``a``.

Both are computed from one ratio: the derivative of Q(a, x) by a, over x**a exp(-x) / gamma(1 + a).
It is computed from the series of P and the continued fraction of Q, differentiated term by term,
and for huge a from Temme's expansion (https://dlmf.nist.gov/8.12).
"""

from __future__ import annotations

import numpy as np

from plugrt.array_api.elementwise.arithmetic import abs, sign
from plugrt.array_api.elementwise.exponential import exp, log, log1p, sqrt
from plugrt.array_api.elementwise.float_properties import isnan, maximum
from plugrt.array_api.searching import where
from plugrt.lax.binary import prepare_operands
from plugrt.lax.special_functions.gamma_function import LARGE, log1p_minus, stirling_remainder
from plugrt.lax.special_functions.incomplete_gamma import HUGE, density, uniform_correction
from plugrt.lax.special_functions.iterations import State, iterate, keep_from_zero
from plugrt.lax.unary import digamma
from plugrt.tracing.emit import full, in_wide_floats
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer

_NEAR = 0.1
"""The greatest distance of x / a from 1 for Temme's expansion; beyond, others converge fast."""
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""The coefficients of log(a) + 1 / (2 a) - digamma(1 + a), by powers of 1 / a**2."""


@operation
def igamma_grad_a(a: Tracer, x: Tracer) -> Tracer:
    """Returns the derivative by ``a`` of `igamma`, P(a, x), elementwise.

    Finite real floats as for `igamma`, with a above 0; NaN for others, and 0 where x is 0. Raises
    `DtypeError` or `ShapeError`. As ``jax.lax.igamma_grad_a``, which is less exact for a above 10.

    >>> round(float(lax.igamma_grad_a(xp.asarray(2.0), 1.0)), 5)
    -0.2762
    """
    operands = prepare_operands("igamma_grad_a", a, x, "f", "ax")
    return in_wide_floats(lambda a, x: _known(a, x, -density(a, x) * _ratio(a, x)), *operands)


@operation
def random_gamma_grad(a: Tracer, x: Tracer) -> Tracer:
    """Returns the derivative by ``a`` of a sample ``x`` of the gamma distribution, elementwise.

    It is the derivative of x with P(a, x) constant: minus `igamma_grad_a` over the density at x.
    Real floats as for `igamma_grad_a`. Raises `DtypeError` or `ShapeError`. As
    ``jax.lax.random_gamma_grad``, which is less exact for a above 10.

    >>> round(float(lax.random_gamma_grad(xp.asarray(2.0), 1.0)), 5)
    0.75078
    """
    operands = prepare_operands("random_gamma_grad", a, x, "f", "ax")
    return in_wide_floats(lambda a, x: _known(a, x, x / a * _ratio(a, x)), *operands)


def _known(a: Tracer, x: Tracer, found: Tracer) -> Tracer:
    undefined = isnan(a) | isnan(x) | (a <= 0) | (x < 0)
    infinite = (x == np.inf) | (a == np.inf)
    result: Tracer = where(undefined, np.nan, where(x == 0, 0, where(infinite, np.nan, found)))
    return result


def _ratio(a: Tracer, x: Tracer) -> Tracer:
    """Returns the derivative of Q by a, over x**a exp(-x) / gamma(1 + a)."""
    fits = (a > 0) & (a < np.inf) & (x > 0) & (x < np.inf)
    a, x = where(fits, a, 1), where(fits, x, 1)
    is_uniform = (a > HUGE) & (abs(x - a) < _NEAR * a)
    by_fraction = (x >= 1) & (x > a)
    difference = _log_minus_digamma(a, x)
    total, slope = _series(a, x, ~is_uniform & ~by_fraction)
    lower = -(total * difference + slope)
    fraction, fraction_slope = _fraction(a, x, ~is_uniform & by_fraction)
    upper = a * fraction * (difference + 1 / a + fraction_slope)
    result: Tracer = where(is_uniform, _uniform(a, x), where(by_fraction, upper, lower))
    return result


def _log_minus_digamma(a: Tracer, x: Tracer) -> Tracer:
    """Returns log(x) - digamma(1 + a), for large a without a difference of large numbers."""
    many = maximum(a, LARGE)
    square = 1 / (many * many)
    total: Tracer = full(square.shape, 0, square.dtype)
    for coefficient in reversed(_DIGAMMA):
        total = (total + coefficient) * square
    large = log_ratio(x, many) - 0.5 / many + total
    result: Tracer = where(a < LARGE, log(x) - digamma(1 + a), large)
    return result


def log_ratio(x: Tracer, a: Tracer) -> Tracer:
    """Returns log(x / a), to all digits where x is near a."""
    u = (x - a) / a
    result: Tracer = where(abs(u) < 0.5, log1p(u), log(x) - log(a))
    return result


def _series(a: Tracer, x: Tracer, wanted: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the sum of x**n / ((a + 1) ... (a + n)) over n from 0, and its derivative by a."""
    epsilon = float(np.finfo(x.dtype).eps)

    def step(n: Tracer, state: State) -> tuple[Tracer, State]:
        total, slope, term, harmonic = state
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        going = (term > total * (epsilon / 4)) | (term * harmonic > slope * (epsilon / 4))
        return going, (total + term, slope + term * harmonic, term, harmonic)

    one, zero = full(x.shape, 1, x.dtype), full(x.shape, 0, x.dtype)
    total, slope, _, _ = iterate("igamma_grad_a", step, wanted, (one, zero, one, zero))
    return total, -slope


def _fraction(a: Tracer, x: Tracer, wanted: Tracer) -> tuple[Tracer, Tracer]:
    """Returns the fraction of `igammac`, and the derivative by a of its logarithm.

    Lentz's algorithm gives the reciprocal as a product, and so its logarithm as a sum.
    """
    epsilon = float(np.finfo(x.dtype).eps)

    def step(n: Tracer, state: State) -> tuple[Tracer, State]:
        value, slope, c, c_slope, d, d_slope = state
        p, q = -n * (n - a), x - a + (2 * n + 1)  # their derivatives are n and -1
        c_slope = -1 + n / c - p * c_slope / (c * c)
        c = keep_from_zero(q + p / c)
        d_slope = -1 + n * d + p * d_slope
        d = 1 / keep_from_zero(q + p * d)
        d_slope = -d * d * d_slope
        more = c_slope / c + d_slope / d
        going = (abs(c * d - 1) > epsilon / 2) | (abs(more) > abs(slope) * (epsilon / 2))
        return going, (value * (c * d), slope + more, c, c_slope, d, d_slope)

    first = keep_from_zero(x + 1 - a)
    zero, minus = full(x.shape, 0, x.dtype), full(x.shape, -1, x.dtype)
    start = (first, -1 / first, first, minus, zero, zero)
    value, slope, *_ = iterate("igamma_grad_a", step, wanted, start)
    return 1 / value, -slope


def _uniform(a: Tracer, x: Tracer) -> Tracer:
    """Returns the ratio for huge a, by the derivative of the expansion in `igamma`.

    With eta**2 / 2 = u - log(1 + u), Q is erfc(eta (a / 2)**0.5) / 2 and a correction; u / eta and
    log(1 + u) / eta are series in eta.
    """
    a = maximum(a, HUGE)
    u = (x - a) / a
    exponent = log1p_minus(u)
    eta = sign(u) * sqrt(-2 * exponent)
    u_by_eta = 1 + eta * (
        1 / 3 + eta * (1 / 36 + eta * (-1 / 270 + eta * (1 / 4320 + eta / 17010)))
    )
    correction, by_eta, by_a = uniform_correction(eta, a)
    found = (u_by_eta - eta / 2) + correction * (log1p(u) - 0.5 / a)
    found = found - by_eta * u_by_eta / a + by_a
    result: Tracer = exp(stirling_remainder(a)) * found
    return result
