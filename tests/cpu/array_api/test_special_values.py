"""Zeros of both signs, infinities and NaN: results are jax.numpy's, or NumPy's, which follow C.

If XLA, and so jax.numpy, loses a sign of zero or computes NaN for an infinity, plugrt follows C99;
elsewhere it follows jax.numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import plugrt
import plugrt.array_api as xp
from support.jax_oracle import jax

Values: TypeAlias = npt.NDArray[Any]

SOME = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan]
REAL = np.array(SOME, np.float32)
COMPLEX = np.array([complex(a, b) for a in SOME for b in SOME], np.complex64)
PAIRS = np.array([(a, b) for a in SOME for b in SOME], np.float32).T

BOTH = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "exp",
    "expm1", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "negative",
    "positive", "real", "reciprocal", "round", "sign", "sin", "sinh", "sqrt", "square", "tan",
    "tanh",
]  # fmt: skip
OF_REALS = ["ceil", "floor", "signbit", "trunc"]
OF_TWO = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "hypot", "less", "logaddexp",
    "logical_and", "maximum", "minimum", "multiply", "nextafter", "pow", "remainder", "subtract",
]  # fmt: skip
CASES: list[tuple[str, tuple[Values, ...]]] = [
    *[(name, (REAL,)) for name in [*BOTH, *OF_REALS]],
    *[(name, (COMPLEX,)) for name in BOTH],
    *[(name, (PAIRS[0], PAIRS[1])) for name in OF_TWO],
]


def results(namespace: Any, compiled: Callable[..., Any]) -> list[Values]:
    def every(arguments: list[Any]) -> list[Any]:
        return [getattr(namespace, n)(*a) for (n, _), a in zip(CASES, arguments, strict=True)]

    found = compiled(every)([[namespace.asarray(x) for x in given] for _, given in CASES])
    return [np.asarray(x) for x in found]


def agree(a: Values, b: Values) -> Values:
    """Returns where values are near, with equal NaNs, and zeros of the same sign."""

    def parts_agree(x: Values, y: Values) -> Values:
        near = np.isclose(x, y, rtol=1e-4, atol=1e-6, equal_nan=True)
        both_zero = (x == 0) & (y == 0)
        return np.where(both_zero, np.signbit(x) == np.signbit(y), near)

    if a.dtype.kind == "b":
        return a == b  # type: ignore[no-any-return]
    return parts_agree(a.real, b.real) & parts_agree(a.imag, b.imag)


def left_open(name: str, given: Values) -> Values:
    """Returns the positions without a defined result."""
    if name in ("atan", "atanh") and given.dtype.kind == "c":
        return np.isnan(given)  # XLA gives the angle beside NaN either sign
    if name == "exp" and given.dtype.kind == "c":
        return np.isinf(given.imag) & (given.real == -np.inf)  # C does not define the sign of 0
    return np.zeros(given.shape, bool)


def test_each_matches_jax_or_c() -> None:
    wrong = []
    every = zip(CASES, results(xp, plugrt.jit), results(jax.numpy, jax.jit), strict=True)
    for (name, given), found, jaxs in every:
        with np.errstate(all="ignore"):
            cs = np.asarray(getattr(np, name)(*given))
        bad = ~(agree(found, jaxs) | agree(found, cs) | left_open(name, given[0]))
        wrong += [
            f"{name}({', '.join(str(x[i]) for x in given)}) = {found[i]}; jax.numpy {jaxs[i]}, "
            f"NumPy {cs[i]}"
            for i in np.flatnonzero(bad)
        ]
    assert wrong == []


def test_the_sign_of_zero_is_zero() -> None:
    """As in the standard and NumPy; XLA and JAX return -0 for -0."""
    for dtype in (np.float16, np.float32, np.complex64):
        found = np.asarray(xp.sign(xp.asarray(np.array([-0.0, 0.0], dtype))))
        assert not np.signbit(found.real).any()
        assert not np.signbit(found.imag).any()
        assert np.isnan(xp.sign(xp.asarray(np.array(np.nan, dtype))).item())
