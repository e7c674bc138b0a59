"""Random numbers from keys, equal on every backend and to ``jax.random``'s.

Names, arguments and numbers are ``jax.random``'s with its default generator (Threefry-2x32,
``jax_threefry_partitionable``), so that a key gives here what it gives there. Keys are plain arrays
``uint32[2]``: a key is used once, and `split` or `fold_in` make new ones of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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
from plugrt.random.discrete import bernoulli, categorical, rademacher, randint
from plugrt.random.keys import PRNGKey, fold_in, key, key_data, split, wrap_key_data
from plugrt.random.shuffling import choice, permutation

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "logistic",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]


_OF_JAX = (
    "ball", "beta", "binomial", "chisquare", "dirichlet", "double_sided_maxwell", "f", "gamma",
    "generalized_normal", "geometric", "loggamma", "lognormal", "maxwell", "multinomial",
    "multivariate_normal", "orthogonal", "pareto", "poisson", "rayleigh", "t", "triangular", "wald",
    "weibull_min",
)  # fmt: skip
"""Functions that ``jax.random`` has besides."""
_INSTEAD = {
    "clone": "keys are arrays, which may be used again",
    "key_dtype": "keys are arrays of uint32",
    "key_impl": "keys are threefry2x32",
    **{name: f"JAX's runs here: plugrt.from_jax(jax.random.{name})(key, …)" for name in _OF_JAX},
}


if not TYPE_CHECKING:  # to a type checker, a name that is not there is an error

    def __getattr__(name: str) -> object:
        text = f"module 'plugrt.random' has no attribute {name!r}"
        if name in _INSTEAD:
            text = f"{text}: {_INSTEAD[name]}"
        raise AttributeError(text, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    # Without the modules that the names come from.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
