"""Measures calls and transfers on an NVIDIA GPU, in plugrt and in JAX in turn, on one library.

Calls without a wait are queued, so their rows show the host's time until the queue is full. Needs a
GPU, and JAX with its CUDA plugin.
"""

from __future__ import annotations

import os

from harness import Row, arguments, compare, compare_timers, refuse_late, report

OPTIONS = arguments(__doc__)
refuse_late()
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["JAX_PLATFORMS"] = "cuda"
# Both use the GPU, so neither may preallocate three quarters of its memory.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from forms import both, donating, reading  # noqa: E402

import plugrt  # noqa: E402


def measure() -> list[Row]:
    """Returns a row for each question."""
    four = np.arange(4, dtype=np.float32)
    large = np.ones(1 << 24, np.float32)
    x, y = plugrt.device_put(four), jax.device_put(four)
    plus, plus_jax = plugrt.jit(lambda a, b: a + b), jax.jit(lambda a, b: a + b)
    named = [w(lambda a, n: a + n, static_argnames="n") for w in (plugrt.jit, jax.jit)]
    big, big_jax = plugrt.device_put(large), jax.device_put(large)
    return [
        compare("jitted call, 2 arguments", *both(lambda a, b: a + b, four, four)),
        compare("jitted call, 32 arguments", *both(lambda *a: sum(a[1:], a[0]), *[four] * 32)),
        compare("jitted call, 32 results", *both(lambda a: tuple(a + i for i in range(32)), four)),
        compare("two NumPy", lambda: plus(four, four), lambda: plus_jax(four, four)),
        compare("Python scalar + array", lambda: plus(x, 2.0), lambda: plus_jax(y, 2.0)),
        compare("dict of 2", *both(lambda d: d["a"] + d["b"], {"a": four, "b": four})),
        compare("one keyword", lambda: plus(x, b=x), lambda: plus_jax(y, b=y)),
        compare("static by name", lambda: named[0](x, n=3), lambda: named[1](y, n=3)),
        compare("donate one", *(donating(w) for w in (plugrt, jax))),
        compare("eager x + x", lambda: x + x, lambda: y + y),
        compare(
            "call and wait",
            lambda: plus(x, x).block_until_ready(),
            lambda: plus_jax(y, y).block_until_ready(),
        ),
        compare(
            "call and first read",
            lambda: np.asarray(plus(x, x)),
            lambda: np.asarray(plus_jax(y, y)),
        ),
        compare_timers(
            "first read", reading(lambda: plus(x, x)), reading(lambda: plus_jax(y, y)), most=500
        ),
        compare(
            "device_put of 16 B, awaited",
            lambda: plugrt.device_put(four).block_until_ready(),
            lambda: jax.device_put(four).block_until_ready(),
        ),
        compare(
            "device_put of 64 MB, awaited",
            lambda: plugrt.device_put(large).block_until_ready(),
            lambda: jax.device_put(large).block_until_ready(),
        ),
        compare(
            "read of 64 MB",
            lambda: np.asarray(plus(big, big)),
            lambda: np.asarray(plus_jax(big_jax, big_jax)),
        ),
    ]


if __name__ == "__main__":
    report(f"Calls on {plugrt.devices()[0].kind}", measure(), OPTIONS.json)
