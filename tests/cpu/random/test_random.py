"""`plugrt.random`: keys, distributions and shuffles beside jax.random.

Same as JAX: random numbers: the same key gives the same bits.
"""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

from plugrt import config, jit, random
from plugrt.errors import ArgumentError, DtypeError, IntegerOverflow, NotAnArray, ShapeError
from support.jax_oracle import same

KEY = np.array([7, 11], np.uint32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
GRID = np.arange(30, dtype=np.float32).reshape(5, 6)


@pytest.mark.parametrize("seed", [(3 << 32) + 4, -(5 << 40) - 7, 2**63 - 1, -1])
@pytest.mark.parametrize("x64", [None, True, False])
def test_keys_of_wide_python_integers_match_jax(seed: int, x64: bool | None) -> None:
    with config.override(enable_x64=x64), jax.enable_x64(bool(x64)):
        same(random.PRNGKey(seed), jax.random.PRNGKey(seed))


def test_keys_of_64_bit_arrays_keep_both_words() -> None:
    seed = np.int64(-1)
    assert np.asarray(random.PRNGKey(seed)).tolist() == [2**32 - 1, 2**32 - 1]
    assert np.asarray(jit(random.PRNGKey)(seed)).tolist() == [2**32 - 1, 2**32 - 1]


SAMPLERS = ["uniform", "normal", "exponential", "gumbel", "cauchy", "laplace", "logistic"]


@pytest.mark.parametrize("name", SAMPLERS)
def test_shapes_and_dtypes_of_samples(name: str) -> None:
    assert getattr(random, name)(KEY).shape == ()
    assert getattr(random, name)(KEY, 3).shape == (3,)
    assert getattr(random, name)(KEY, (0, 2)).shape == (0, 2)
    with pytest.raises(DtypeError, match=f"{name} makes"):
        getattr(random, name)(KEY, (), np.int32)


def test_nothing_is_permuted() -> None:
    assert random.permutation(KEY, 0).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.split(KEY.astype(np.int32)), DtypeError, "must be uint32; found int32"),
        (lambda: random.normal(np.zeros((2, 2), np.uint32)), ShapeError, r"keys of shape \(2,\)"),
        (lambda: random.normal("key"), NotAnArray, "argument 'key' of normal"),
        (lambda: random.normal(KEY, (-1,)), ShapeError, "negative number"),
        (lambda: random.PRNGKey(1.5), DtypeError, "a seed is an integer"),
        (lambda: random.PRNGKey(np.zeros(2, np.int32)), ShapeError, "a seed is a scalar"),
        (lambda: random.PRNGKey(0, impl="philox"), ArgumentError, "threefry2x32, rbg"),
        (lambda: random.key(0, impl="rbg", dtype="rbg"), ArgumentError, "not both"),
        (lambda: random.key(random.key(0)), DtypeError, "does not accept dtype key<fry>"),
        (lambda: random.key(1 << 63), IntegerOverflow, "does not fit int64"),
        (lambda: random.fold_in(KEY, 0.5), DtypeError, "takes an integer"),
        (lambda: random.fold_in(random.key(0), 1 << 32), IntegerOverflow, "does not fit int32"),
        (lambda: random.uniform(KEY, (3,), minval=np.zeros(2)), ShapeError, "'minval'"),
        (lambda: random.randint(KEY, (3,), 0, 2.5), DtypeError, "'maxval'"),
        (lambda: random.randint(KEY, (3,), 0, 2, np.float32), DtypeError, "makes integers"),
        (lambda: random.bernoulli(KEY, 1), DtypeError, "'p' of random.bernoulli"),
        (lambda: random.bernoulli(KEY, 0.5, mode="mid"), ArgumentError, "'low' or 'high'"),
        (lambda: random.gumbel(KEY, mode="mid"), ArgumentError, "'low' or 'high'"),
        (lambda: random.permutation(KEY, np.float32(3)), ShapeError, "0-d array"),
        (lambda: random.choice(KEY, 3, (4,), False), ArgumentError, "4 of 3 places"),
        (lambda: random.choice(KEY, 0, (4,)), ArgumentError, "nothing to choose from"),
        (lambda: random.choice(KEY, 3, p=np.ones(4)), ShapeError, "each of 3 places"),
        (lambda: random.categorical(KEY, GRID, shape=(4,)), ShapeError, r"must end with \(5,\)"),
        (lambda: random.categorical(KEY, GRID, 2), ShapeError, "axis of random.categorical is 2"),
        (
            lambda: random.categorical(KEY, GRID, shape=(7, 5), replace=False),
            ArgumentError,
            "cannot draw 7 of 6",
        ),
    ],
)
def test_wrong_keys_and_shapes_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


NUMBER = np.float32(0.5)
TAKE_A_KEY = {
    "ball": (2,),
    "beta": (NUMBER, NUMBER),
    "binomial": (NUMBER, NUMBER),
    "chisquare": (NUMBER,),
    "dirichlet": (GRID,),
    "double_sided_maxwell": (NUMBER, NUMBER),
    "f": (NUMBER, NUMBER),
    "gamma": (NUMBER,),
    "generalized_normal": (NUMBER,),
    "geometric": (NUMBER,),
    "loggamma": (NUMBER,),
    "lognormal": (),
    "maxwell": (),
    "multinomial": (NUMBER, GRID),
    "multivariate_normal": (GRID[0, :2], GRID[:2, :2]),
    "orthogonal": (2,),
    "pareto": (NUMBER,),
    "poisson": (NUMBER,),
    "rayleigh": (NUMBER,),
    "t": (NUMBER,),
    "triangular": (NUMBER, NUMBER, NUMBER),
    "wald": (NUMBER,),
    "weibull_min": (NUMBER, NUMBER),
    "bernoulli": (),
    "bits": (),
    "categorical": (GRID,),
    "cauchy": (),
    "choice": (5,),
    "exponential": (),
    "fold_in": (3,),
    "gumbel": (),
    "laplace": (),
    "logistic": (),
    "normal": (),
    "permutation": (5,),
    "rademacher": (),
    "randint": ((2,), 0, 5),
    "split": (),
    "truncated_normal": (-1.0, 1.0),
    "uniform": (),
}
MAKE_KEYS = {"PRNGKey", "clone", "key", "key_data", "key_dtype", "key_impl", "wrap_key_data"}


def test_each_function_names_itself_where_its_key_is_none() -> None:
    assert TAKE_A_KEY.keys() | MAKE_KEYS == set(random.__all__)
    for name, rest in TAKE_A_KEY.items():
        function = getattr(random, name)
        with pytest.raises(DtypeError, match=rf"key of random\.{name} must be uint32; found int32"):
            function(KEY.astype(np.int32), *rest)
        with pytest.raises(ShapeError, match=rf"random\.{name} takes one key"):
            function(np.stack([KEY, KEY]), *rest)
