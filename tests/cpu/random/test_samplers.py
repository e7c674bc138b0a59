"""Each sampler, compared with jax.random: the same compiler gives the same bits.

Same as JAX: samplers of all distributions of `jax.random`, from the same keys.

Each call is made with one dtype, shape and generator; with more effort, with all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeAlias

import jax
import ml_dtypes
import numpy as np
import pytest

from plugrt import config, get_backend, jit, random
from plugrt.errors import ArgumentError
from support.effort import some_of
from support.jax_oracle import same

Call: TypeAlias = Callable[[Any, Any, tuple[int, ...], Any], Any]
"""A function of jax.random or plugrt.random, a key, a shape and a dtype."""
X = np.linspace(0.05, 3, 7)
CHANCES = np.float32([0.2, 0.3, 0.5])
COV = np.asarray([[2, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]])
GRID = np.arange(30, dtype=np.float32).reshape(5, 6)
COUNTS = np.asarray([0, 0.5, 3, 9, 11, 400, np.nan])
WIDE = (np.float32, np.float64)
FLOATS = (*WIDE, np.float16, ml_dtypes.bfloat16)
COMPLEX = (np.complex64, np.complex128)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, *UNSIGNED)
ONE = (None,)
"""The dtypes of calls without a dtype parameter."""
SAMPLERS: dict[str, list[tuple[tuple[Any, ...], Call]]] = {
    "ball": [(FLOATS, lambda r, k, s, d: r.ball(k, 4, 1.5, s, d))],
    "bernoulli": [
        (ONE, lambda r, k, s, d: r.bernoulli(k, 0.3, s)),
        (ONE, lambda r, k, s, d: r.bernoulli(k, CHANCES)),
        (ONE, lambda r, k, s, d: r.bernoulli(k, CHANCES, (*s, 3), mode="high")),
    ],
    "beta": [(FLOATS, lambda r, k, s, d: r.beta(k, X.astype(d), X[::-1].astype(d), (*s, 7), d))],
    "binomial": [
        (WIDE, lambda r, k, s, d: r.binomial(k, d(9), d(0.3), s, d)),
        (WIDE, lambda r, k, s, d: r.binomial(k, np.asarray([5, 1e3, -1, np.nan, np.inf], d), 0.7)),
    ],
    "bits": [(UNSIGNED, lambda r, k, s, d: r.bits(k, s, d))],
    "categorical": [
        (FLOATS, lambda r, k, s, d: r.categorical(k, np.log1p(GRID).astype(d), shape=(*s, 5))),
        (WIDE, lambda r, k, s, d: r.categorical(k, np.log1p(GRID), axis=0, shape=(*s, 6))),
        (WIDE, lambda r, k, s, d: r.categorical(k, np.log1p(GRID), 1, (3, 5), False)),
        (ONE, lambda r, k, s, d: r.categorical(k, np.log1p(GRID), mode="high")),
    ],
    "cauchy": [(FLOATS, lambda r, k, s, d: r.cauchy(k, s, d))],
    "chisquare": [(FLOATS, lambda r, k, s, d: r.chisquare(k, X.astype(d), (*s, 7), d))],
    "choice": [
        (ONE, lambda r, k, s, d: r.choice(k, 10, s)),
        (ONE, lambda r, k, s, d: r.choice(k, 3, s, p=CHANCES)),
        (ONE, lambda r, k, s, d: r.choice(k, 10, s, replace=False)),
        (ONE, lambda r, k, s, d: r.choice(k, 3, (2,), replace=False, p=CHANCES)),
        (INTEGERS, lambda r, k, s, d: r.choice(k, GRID.astype(d), (2, 2), axis=1)),
        (FLOATS, lambda r, k, s, d: r.choice(k, GRID.astype(d), (3,), replace=False, axis=1)),
    ],
    "dirichlet": [(FLOATS, lambda r, k, s, d: r.dirichlet(k, X.astype(d), s, d))],
    "double_sided_maxwell": [
        (FLOATS, lambda r, k, s, d: r.double_sided_maxwell(k, d(0.5), d(1.5), s, d)),
    ],
    "exponential": [(FLOATS, lambda r, k, s, d: r.exponential(k, s, d))],
    "f": [
        (FLOATS, lambda r, k, s, d: r.f(k, X.astype(d), d(3), dtype=d)),
    ],
    "gamma": [(FLOATS, lambda r, k, s, d: r.gamma(k, X.astype(d), (*s, 7), d))],
    "generalized_normal": [(FLOATS, lambda r, k, s, d: r.generalized_normal(k, 1.5, s, d))],
    "geometric": [
        (INTEGERS, lambda r, k, s, d: r.geometric(k, (X / 4).astype(np.float32), (*s, 7), d)),
    ],
    "gumbel": [
        (FLOATS, lambda r, k, s, d: r.gumbel(k, s, d, mode="low")),
        (FLOATS, lambda r, k, s, d: r.gumbel(k, s, d, mode="high")),
    ],
    "laplace": [(FLOATS, lambda r, k, s, d: r.laplace(k, s, d))],
    "loggamma": [(FLOATS, lambda r, k, s, d: r.loggamma(k, X.astype(d), (*s, 7), d))],
    "logistic": [(FLOATS, lambda r, k, s, d: r.logistic(k, s, d))],
    "lognormal": [(FLOATS, lambda r, k, s, d: r.lognormal(k, X.astype(d), (*s, 7), d))],
    "maxwell": [(FLOATS, lambda r, k, s, d: r.maxwell(k, s, d))],
    "multinomial": [
        (WIDE, lambda r, k, s, d: r.multinomial(k, d(9), CHANCES.astype(d), shape=(*s, 3), dtype=d))
    ],
    "multivariate_normal": [
        (WIDE, lambda r, k, s, d: r.multivariate_normal(k, np.ones(3, d), COV.astype(d), s, d)),
        (WIDE, lambda r, k, s, d: r.multivariate_normal(k, np.ones(3, d), COV.astype(d), s, d,
            method="eigh")),
        (WIDE, lambda r, k, s, d: r.multivariate_normal(k, np.ones(3, d), COV.astype(d), s, d,
            method="svd")),
    ],
    "normal": [(FLOATS + COMPLEX, lambda r, k, s, d: r.normal(k, s, d))],
    "orthogonal": [
        (WIDE + COMPLEX, lambda r, k, s, d: r.orthogonal(k, 3, s, d)),
        (WIDE, lambda r, k, s, d: r.orthogonal(k, 3, s, d, m=5)),
    ],
    "pareto": [(FLOATS, lambda r, k, s, d: r.pareto(k, X.astype(d), (*s, 7), d))],
    "permutation": [
        (ONE, lambda r, k, s, d: r.permutation(k, 100)),
        (INTEGERS + FLOATS, lambda r, k, s, d: r.permutation(k, GRID.astype(d), 1)),
        (ONE, lambda r, k, s, d: r.permutation(k, GRID, -1, independent=True)),
        (ONE, lambda r, k, s, d: r.permutation(k, GRID)),
    ],
    "poisson": [
        (INTEGERS, lambda r, k, s, d: r.poisson(k, COUNTS.astype(np.float32), (*s, 7), d)),
    ],
    "rademacher": [(INTEGERS + FLOATS, lambda r, k, s, d: r.rademacher(k, s, d))],
    "randint": [
        (INTEGERS, lambda r, k, s, d: r.randint(k, s, 0, 100, d)),
        (INTEGERS, lambda r, k, s, d: r.randint(k, s, 9, 2, d)),
        (INTEGERS, lambda r, k, s, d: r.randint(k, (*s, 4), np.arange(4, dtype=d), d(50), d)),
        (INTEGERS, lambda r, k, s, d: r.randint(k, s, d(np.iinfo(d).min), d(np.iinfo(d).max), d)),
        ((np.uint8,), lambda r, k, s, d: r.randint(k, s, 0, 256, d)),
    ],
    "rayleigh": [(FLOATS, lambda r, k, s, d: r.rayleigh(k, X.astype(d), (*s, 7), d))],
    "t": [(FLOATS, lambda r, k, s, d: r.t(k, X.astype(d), (*s, 7), d))],
    "triangular": [
        (FLOATS, lambda r, k, s, d: r.triangular(k, d(-1), (X / 4).astype(d), d(2), (*s, 7), d)),
    ],
    "truncated_normal": [
        (FLOATS, lambda r, k, s, d: r.truncated_normal(k, d(-1), X.astype(d), (*s, 7), d)),
    ],
    "uniform": [
        (FLOATS, lambda r, k, s, d: r.uniform(k, s, d)),
        (FLOATS, lambda r, k, s, d: r.uniform(k, (*s, 7), d, minval=X.astype(d), maxval=9)),
    ],
    "wald": [(FLOATS, lambda r, k, s, d: r.wald(k, X.astype(d), (*s, 7), d))],
    "weibull_min": [(FLOATS, lambda r, k, s, d: r.weibull_min(k, d(2), X.astype(d), (*s, 7), d))],
}  # fmt: skip
SHAPES: list[tuple[int, ...]] = [(), (2, 3), (0, 2)]
GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]
OF_64_BITS = (np.float64, np.complex128, np.int64, np.uint64)
CASES = {
    f"{name}-{at}-{getattr(dtype, '__name__', '')}-{shape}-{generator}-{x64}":
        (name, call, shape, dtype, generator, x64)
    for name, calls in SAMPLERS.items()
    for at, (dtypes, call) in enumerate(calls)
    for shape, dtype, generator, x64 in some_of(
        [
            case for case in product(SHAPES, dtypes, GENERATORS, [False, True])
            if (case[3] or case[1] not in OF_64_BITS)
            and (name != "poisson" or case[2] == "threefry2x32")  # JAX has no other
        ],
        1, f"{name}{at}",
    )
}  # fmt: skip
NEAR = {
    "ball", "beta", "chisquare", "dirichlet", "double_sided_maxwell", "f", "gamma",
    "generalized_normal", "loggamma", "maxwell", "t", "truncated_normal",
}  # fmt: skip
"""Samplers with sums of products, which XLA's CPU compiler contracts by the code around them."""
OF_KEYS = {
    "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
}  # fmt: skip


def test_each_sampler_of_jax_is_compared() -> None:
    names = {n for n in dir(jax.random) if n[0] != "_" and callable(getattr(jax.random, n))}
    assert names - {"random_gamma_p"} == {*SAMPLERS} | OF_KEYS  # that one is a primitive


@pytest.mark.parametrize("case", CASES)
def test_samples_match_jax(case: str) -> None:
    name, call, shape, dtype, generator, x64 = CASES[case]
    with config.override(enable_x64=x64), jax.enable_x64(x64):
        expected = np.asarray(call(jax.random, jax.random.key(3, impl=generator), shape, dtype))
        found = np.asarray(call(random, random.key(3, impl=generator), shape, dtype))
    if not get_backend().platform_version.startswith("jaxlib"):
        if name == "multivariate_normal":  # the library chooses the eigenvectors' signs
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        else:  # a library has its own order of sums
            same(found, expected, rtol=1e-5)
        return
    rtol = 8 * float(ml_dtypes.finfo(found.dtype).eps) if name in NEAR else 0.0
    same(found, expected, rtol=rtol, atol=rtol if name == "truncated_normal" else 0.0)


def test_sums_of_squares_differ_in_the_last_bit() -> None:
    """Differs from JAX: bits of `random.ball`, `maxwell`, `double_sided_maxwell`, `gamma`, those
    made of it and `truncated_normal` | depend on the program around the call | some elements
    differ by a few units of the last place: XLA contracts sums of products in other ways.
    """
    expected = jax.random.maxwell(jax.random.key(3), (999,))
    same(random.maxwell(random.key(3), (999,)), expected, rtol=3e-7)
    low, high = np.float32([-1, 0.5])
    found = random.truncated_normal(random.key(3), low, high, (999,))
    expected = jax.random.truncated_normal(jax.random.key(3), low, high, (999,))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_no_choices_among_rows_have_the_shape_of_rows() -> None:
    """Differs from JAX: the shape of `random.choice(key, rows, (0,))` | `(0,)` | `(0, 6)`, as of
    any other number of rows, and NumPy's.
    """
    assert jax.random.choice(jax.random.key(3), GRID, (0,)).shape == (0,)
    assert random.choice(random.key(3), GRID, (0,)).shape == (0, 6)


def test_poisson_takes_keys_of_rbg() -> None:
    """Differs from JAX: `random.poisson` with a key of `rbg` | refused | samples."""
    with pytest.raises(NotImplementedError):
        jax.random.poisson(jax.random.key(3, impl="rbg"), 9.0)
    found = np.asarray(random.poisson(random.key(3, impl="rbg"), 9.0, (1000,)))
    assert abs(found.mean() - 9) < 0.5
    assert abs(found.var() - 9) < 2


def test_gumbel_has_no_highest_mode() -> None:
    """Differs from JAX: ``mode="highest"`` of `random.gumbel`, `categorical`, `choice` | bits of 64
    places | refused: ``"high"``.
    """
    assert jax.random.gumbel(jax.random.key(3), mode="highest").shape == ()
    with pytest.raises(ArgumentError, match="'low' or 'high'"):
        random.gumbel(random.key(3), mode="highest")


def test_fold_in_of_large_and_negative_integers() -> None:
    """Differs from JAX: `random.fold_in` of a Python integer below 0 | refused where the value is
    known | its low 32 bits, as in a function that is traced.
    """
    key, theirs = random.key(3), jax.random.key(3)
    with pytest.raises(OverflowError):
        jax.random.fold_in(theirs, -1)
    for data, same_data in ((1 << 31, 1 << 31), (2**32 - 1, 2**32 - 1), (-1, 2**32 - 1)):
        expected = jax.random.key_data(jax.random.fold_in(theirs, same_data))
        same(random.key_data(random.fold_in(key, data)), expected)


def test_samples_within_programs_match_jax() -> None:
    x = X.astype(np.float32)
    expected = jax.random.gamma(jax.random.key(3), x)
    same(jit(lambda key, a: random.gamma(key, a))(random.key(3), x), expected, rtol=1e-6)
