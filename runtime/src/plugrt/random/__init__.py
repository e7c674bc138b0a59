"""Random numbers from keys, equal on every backend and to ``jax.random``'s.

Names, arguments and numbers are ``jax.random``'s with its default generator (Threefry-2x32,
``jax_threefry_partitionable``), so that a key gives here what it gives there. Keys are plain arrays
``uint32[2]``: a key is used once, and `split` or `fold_in` make new ones of it.
"""

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


def __dir__() -> list[str]:
    # Without the modules that the names come from.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
