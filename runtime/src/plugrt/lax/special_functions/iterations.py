"""Sums and continued fractions, looped until all have converged; Chebyshev series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.searching import where
from plugrt.array_api.utility import any
from plugrt.lax.control_flow.loops import emit_while
from plugrt.tracing.emit import full
from plugrt.tracing.tracer import Tracer

_MOST = 20_000
"""After so many steps the value is used without further checks; float64 needs 9,000 for arguments
of 1e6.
"""
State: TypeAlias = tuple[Tracer, ...]


def power_series(
    title: str, ratio: Callable[[Tracer], Tracer], like: Tracer, wanted: Tracer
) -> Tracer:
    """Returns 1 + ratio(1) + ratio(1) ratio(2) + ..., for positive terms that converge to 0.

    All arrays have the shape and dtype of ``like``; the value is 1 where ``wanted`` is False.
    """
    epsilon = float(np.finfo(like.dtype).eps)

    def step(n: Tracer, state: State) -> tuple[Tracer, State]:
        total, term = state
        term = term * ratio(n)
        return term > total * (epsilon / 4), (total + term, term)

    one = full(like.shape, 1, like.dtype)
    return iterate(title, step, wanted, (one, one))[0]


def continued_fraction(
    title: str, first: Tracer, terms: Callable[[Tracer], tuple[Tracer, Any]], wanted: Tracer
) -> Tracer:
    """Returns 1 / (first + p(1) / (q(1) + p(2) / (q(2) + ...))), ``terms(n)`` being p(n) and q(n).

    By Lentz's algorithm, as Thompson and Barnett modified it: no denominator of its recurrences is
    0. Where ``wanted`` is False, the value is 1 / first.
    """
    epsilon = float(np.finfo(first.dtype).eps)

    def step(n: Tracer, state: State) -> tuple[Tracer, State]:
        value, c, d = state
        p, q = terms(n)
        c = keep_from_zero(q + p / c)
        d = 1 / keep_from_zero(q + p * d)
        return abs(c * d - 1) > epsilon / 2, (value * (c * d), c, d)

    start = keep_from_zero(first)
    zero = full(first.shape, 0, first.dtype)
    return 1 / iterate(title, step, wanted, (start, start, zero))[0]


def keep_from_zero(x: Tracer) -> Tracer:
    """Replaces a denominator near 0 by a number with a finite reciprocal."""
    info = np.finfo(x.dtype)
    tiny = float(info.tiny) / float(info.eps)
    result: Tracer = where(abs(x) < tiny, tiny, x)
    return result


def iterate(
    title: str,
    step: Callable[[Tracer, State], tuple[Tracer, State]],
    wanted: Tracer,
    start: State,
) -> State:
    """Returns the state after ``going, state = step(n, state)`` for n from 1, until none is going.

    Each element keeps its state once it is not ``going``, or if it was never ``wanted``.
    """

    def unfinished(loop: tuple[Tracer, Tracer, State]) -> Tracer:
        result: Tracer = any(loop[1]) & (loop[0] < _MOST)
        return result

    def advance(loop: tuple[Tracer, Tracer, State]) -> tuple[Tracer, Tracer, State]:
        n, active, state = loop
        going, after = step(n, state)
        kept = tuple(where(active, new, old) for new, old in zip(after, state, strict=True))
        return n + 1, active & going, kept

    first = full((), 1, start[0].dtype)
    ended: State = emit_while(title, unfinished, advance, (first, wanted, start))[2]
    return ended


Real: TypeAlias = npt.NDArray[np.floating[Any]]


def interpolate(function: Callable[[Real], Real], low: float, high: float, degree: int) -> Real:
    """Returns the coefficients, by degree, of the Chebyshev series that interpolates ``function``.

    They are computed in NumPy's longest float, and so are exact if that has more digits.
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
