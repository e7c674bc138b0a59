"""Forms of calls that benchmarks make in plugrt and in JAX alike.

It imports both, so it is imported when the environment that they read is set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import plugrt
from harness import Timer, sample


def both(function: Callable[..., Any], *args: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns ``function`` jitted by each, as calls on arguments put by each."""
    ours, theirs = plugrt.jit(function), jax.jit(function)
    mine, others = plugrt.device_put(args), jax.device_put(args)
    return lambda: ours(*mine), lambda: theirs(*others)


def reading(call: Callable[[], Any]) -> Timer:
    """Returns the timer of the first reads of its results, which are made and waited for before."""

    def timer(count: int) -> float:
        made = [call().block_until_ready() for _ in range(count)]
        return sample(map(np.asarray, made).__next__, count)

    return timer


def donating(package: Any, other: Any = None) -> Callable[[], Any]:
    """Returns a call that donates its first argument, which is the last result."""
    step = package.jit(lambda a, b: a + b, donate_argnums=0)
    put = np.zeros(4, np.float32)
    state = [package.device_put(put)]
    other = package.device_put(put) if other is None else other

    def call() -> Any:
        state[0] = step(state[0], other)

    return call
