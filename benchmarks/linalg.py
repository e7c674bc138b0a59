"""Measures linear algebra: `array_api.linalg` beside `jax.numpy.linalg`, both by LAPACK.

LAPACK is SciPy's OpenBLAS with one thread: on two busy cores its threads mostly wait for each
other, and a QR of 256 × 256 needs between 3 and 450 ms on either side.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from harness import Row, arguments, compare, prepare, report

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy and SciPy load OpenBLAS
prepare()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import plugrt  # noqa: E402

SIZES = (8, 64, 256)
NAMES = ("eigh", "svd", "qr", "cholesky", "inv", "det", "solve")


def call(namespace: Any, name: str) -> Callable[[Any], Any]:
    """Returns a namespace's function as a function of one matrix."""
    function = getattr(namespace, name)
    return lambda x: function(x, x) if name == "solve" else function(x)


def await_all(results: Any) -> None:
    """Waits for arrays of plugrt or JAX."""
    for result in results if isinstance(results, tuple) else (results,):
        result.block_until_ready()


def measure() -> list[Row]:
    """Returns a row for each function and size of positive definite float32 matrices."""
    rows = []
    for n in SIZES:
        a = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
        a = a @ a.T / n + np.eye(n, dtype=np.float32)
        ours, theirs = plugrt.device_put(a), jnp.asarray(a)
        for name in NAMES:
            f = plugrt.jit(call(plugrt.array_api.linalg, name))
            g = jax.jit(call(jnp.linalg, name))
            rows.append(
                compare(
                    f"{name} of {n} × {n}",
                    lambda f=f, x=ours: await_all(f(x)),
                    lambda g=g, x=theirs: await_all(g(x)),
                )
            )
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Linear algebra on the cpu plugin", measure(), options.json)
