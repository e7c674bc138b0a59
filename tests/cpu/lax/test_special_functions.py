"""`betainc`, `igamma`, `igammac`, `bessel_i0e` against SciPy, `mulhi` against Python's integers.

SciPy computes the results for float32 in float64, so that its rounding does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special

import plugrt
from plugrt import lax
from plugrt.errors import DtypeError, ShapeError
from support.behaviour import behaviour
from support.effort import EFFORT
from support.jax_oracle import jax

Arrays = tuple[np.ndarray[Any, Any], ...]
SciPy = Callable[..., Any]
FUNCTIONS: dict[str, SciPy] = {
    "igamma": special.gammainc, "igammac": special.gammaincc, "betainc": special.betainc,
    "bessel_i0e": special.i0e,
}  # fmt: skip


def draw_gamma(rng: np.random.Generator, n: int) -> Arrays:
    """Returns a and x of all magnitudes, some of them near x = a, where P rises from 0 to 1."""
    a = 10 ** rng.uniform(-8, 4, n)
    x = a * 10 ** rng.uniform(-1, 1, n)
    steep = np.abs(a + rng.uniform(-3, 3, n) * np.sqrt(a))
    x = np.where(rng.uniform(size=n) < 0.5, x, steep)
    return a, np.where((a < 1) & (rng.uniform(size=n) < 0.5), rng.uniform(0, 1.5, n), x)


def draw_beta(rng: np.random.Generator, n: int) -> Arrays:
    a, b = 10 ** rng.uniform(-2, 3, (2, n))
    return a, b, np.maximum(rng.beta(a, b), 1e-25)


def draw_bessel(rng: np.random.Generator, n: int) -> Arrays:
    return (rng.choice([-1, 1], n) * 10 ** rng.uniform(-4, 4.5, n),)


DRAW: dict[str, Callable[[np.random.Generator, int], Arrays]] = {
    "igamma": draw_gamma, "igammac": draw_gamma, "betainc": draw_beta, "bessel_i0e": draw_bessel,
}  # fmt: skip
FACTOR = {"igamma": 4, "igammac": 4, "betainc": 25, "bessel_i0e": 1}
MEDIAN = 2.5


def allowed(name: str, expected: Any) -> np.ndarray[Any, Any]:
    """Returns the allowed error in ulps.

    exp(y) loses as many digits as y has before the point; 1 - y loses the digits that cancel; the
    continued fraction of `betainc` rounds in each step.
    """
    expected = np.maximum(expected, 1e-300)
    cancelled = 1 / expected if name == "betainc" else 0
    result: np.ndarray[Any, Any] = FACTOR[name] * (5 + np.abs(np.log(expected)) + cancelled)
    return result


def ulps(found: Any, expected: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Returns errors in units of the last place; 0 for subnormal results and slightly above."""
    info: Any = ml_dtypes.finfo(dtype)
    normal = expected > 1e3 * float(info.tiny)
    errors = np.abs(np.asarray(found).astype(np.float64) - expected)
    return np.divide(errors, expected * float(info.eps), where=normal, out=np.zeros_like(errors))


@behaviour(
    19,
    "`lax.betainc`, `igamma`, `igammac` and `bessel_i0e` are SciPy's to some ulps",
    jax="up to a thousand times the error",
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_are_as_exact_as_their_digits(name: str) -> None:
    operands = [x.astype(np.float32) for x in DRAW[name](np.random.default_rng(0), 2000 * EFFORT)]
    expected = FUNCTIONS[name](*(x.astype(np.float64) for x in operands))
    found = getattr(lax, name)(*operands)
    errors = ulps(found, expected, np.float32)
    assert found.dtype == np.float32
    assert (errors < allowed(name, expected)).all()
    assert np.median(errors) < MEDIAN
    np.testing.assert_array_equal(plugrt.jit(getattr(lax, name))(*operands), found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float64(name: str) -> None:
    operands = [x.astype(np.float64) for x in DRAW[name](np.random.default_rng(1), 500)]
    operands[0] = np.minimum(operands[0], 100)  # SciPy loses digits in the tails of larger a
    expected = FUNCTIONS[name](*operands)
    errors = ulps(getattr(lax, name)(*operands), expected, np.float64)
    assert (errors < 15 * allowed(name, expected)).all()
    assert np.median(errors) < MEDIAN


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_computed_in_float32(name: str, dtype: Any) -> None:
    operands = [x.astype(dtype) for x in DRAW[name](np.random.default_rng(2), 100)]
    expected = FUNCTIONS[name](*(x.astype(np.float64) for x in operands))
    found = getattr(lax, name)(*operands)
    assert found.dtype == np.dtype(dtype)
    assert (ulps(found, expected, dtype) < 1.1).all()


def exact_igamma(a: float, x: float) -> float:
    """Returns P(a, x) by its series in long double; log1p keeps the digits of the first term."""
    n = np.arange(200_000, dtype=np.longdouble)
    terms = np.cumsum(np.log(np.longdouble(x)) - np.log(np.longdouble(a) + 1 + n))
    total = 1 + np.exp(terms).sum()
    u = (np.longdouble(x) - np.longdouble(a)) / np.longdouble(a)
    first = np.exp(a * (np.log1p(u) - u) - 1 / (12 * np.longdouble(a)))
    return float(first / np.sqrt(2 * np.pi * np.longdouble(a)) * total)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="the machine has no longer floats")
@pytest.mark.parametrize(("a", "sigmas"), [(9e5, -3), (2e6, -4), (1e8, -5.9), (1e8, 1)])
def test_huge_arguments(a: float, sigmas: float) -> None:
    """SciPy's value is wrong by a third for a = 1e8 and x 5.9 standard deviations below a."""
    x = a + sigmas * a**0.5
    expected = exact_igamma(a, x)
    assert lax.igamma(np.float64(a), np.float64(x)).item() == pytest.approx(expected, rel=1e-9)
    assert lax.igammac(np.float64(a), np.float64(x)).item() == pytest.approx(1 - expected, rel=1e-9)


EDGES = np.array([0.0, 0.5, 1.0, 3.0, 1e3, np.inf, -1.0, -np.inf, np.nan], np.float32)


def cross(*axes: Sequence[float] | np.ndarray[Any, Any]) -> Arrays:
    return tuple(x.ravel().astype(np.float32) for x in np.meshgrid(*axes, indexing="ij"))


@pytest.mark.parametrize("name", ["igamma", "igammac", "betainc", "bessel_i0e"])
def test_edges_are_jaxs_or_right(name: str) -> None:
    """Where JAX gives NaN, the result is compared with SciPy's."""
    rest = {"betainc": (EDGES, [0, 0.25, 1, -0.1, 1.1, np.nan]), "bessel_i0e": ()}
    operands = cross(EDGES, *rest.get(name, (EDGES,)))
    found = np.asarray(getattr(lax, name)(*operands))
    of_jax = np.asarray(getattr(jax.lax, name)(*operands))
    of_scipy = FUNCTIONS[name](*(x.astype(np.float64) for x in operands))
    expected = np.where(np.isnan(of_jax) & np.isfinite(of_scipy), of_scipy, of_jax)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_wrong_arguments_of_special_functions() -> None:
    x, y = np.ones(2, np.float32), np.ones(3, np.float32)
    for call, error, words in (
        (lambda: lax.igamma(np.ones(2, np.int32), 1), DtypeError, "lax.igamma got argument 'a'"),
        (lambda: lax.igammac(x, x.astype(np.float64)), DtypeError, "one dtype; found a float32"),
        (lambda: lax.betainc(x, y, x), ShapeError, r"lax.betainc .* a \(2,\), b \(3,\)"),
        (lambda: lax.betainc(x, 1j, x), DtypeError, "lax.betainc takes arrays of one dtype"),
        (lambda: lax.bessel_i0e(1j * x), DtypeError, "lax.bessel_i0e got argument 'x'"),
        (lambda: lax.mulhi(x, x), DtypeError, "lax.mulhi got argument 'x' of dtype float32"),
        (lambda: lax.mulhi(np.True_, np.True_), DtypeError, "lax.mulhi"),
    ):
        with pytest.raises(error, match=words):
            call()


@behaviour(19, "`lax.mulhi` gives the upper half of the bits of products, of each integer dtype")
def test_mulhi() -> None:
    rng = np.random.default_rng(3)
    kinds = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]

    def all_kinds(*operands: Any) -> list[Any]:
        pairs = zip(operands[::2], operands[1::2], strict=True)
        return [lax.mulhi(x, y) for x, y in pairs]

    operands = []
    for kind in kinds:
        info = np.iinfo(kind)
        edges = np.array([info.min, info.max, 0, 1, info.max // 2 + 1], kind)
        x = np.concatenate([edges, rng.integers(info.min, info.max, 50, kind, endpoint=True)])
        operands += [x, rng.permutation(x)]
    found = plugrt.jit(all_kinds)(*operands)
    for i, kind in enumerate(kinds):
        x, y = operands[2 * i : 2 * i + 2]
        bits = np.iinfo(kind).bits
        exact = [int(p) * int(q) >> bits for p, q in zip(x, y, strict=True)]
        np.testing.assert_array_equal(found[i], np.array(exact, kind))


def test_parts_below_the_range_of_float32() -> None:
    """exp(-89) is subnormal in float32; the result, exp(-89) times x**a, is normal."""
    a, x = np.float32(9.94), np.float32(89)
    expected = special.gammaincc(float(a), float(x))
    assert expected < 1e-25
    assert lax.igammac(a, x).item() == pytest.approx(expected, rel=1e-5)
