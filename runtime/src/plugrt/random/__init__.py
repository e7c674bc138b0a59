"""Random numbers from keys, equal on every backend and to ``jax.random``'s.

Names, arguments and numbers are ``jax.random``'s (``jax_threefry_partitionable``), so that a key
gives the same numbers as in JAX. Keys are scalars of a special dtype, made by `key`; words, arrays
``uint32[2]`` made by `PRNGKey`, are accepted too. Use a key once; `split` and `fold_in` make new
ones from it.
"""

from __future__ import annotations

from plugrt.random.continuous import (
    bits,
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
    uniform,
)
from plugrt.random.counts import binomial, geometric, multinomial, poisson
from plugrt.random.derived import (
    ball,
    double_sided_maxwell,
    generalized_normal,
    lognormal,
    maxwell,
    multivariate_normal,
    orthogonal,
    pareto,
    rayleigh,
    triangular,
    wald,
    weibull_min,
)
from plugrt.random.discrete import bernoulli, categorical, rademacher, randint
from plugrt.random.gamma_family import beta, chisquare, dirichlet, f, gamma, loggamma, t
from plugrt.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from plugrt.random.shuffling import choice, permutation

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]


def __dir__() -> list[str]:
    # Without the names of submodules.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
