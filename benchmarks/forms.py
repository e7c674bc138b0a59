"""Forms of calls that benchmarks make in plugrt and in JAX.

Imports both packages, so import this module after setting their environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import plugrt
from harness import Timer, sample


def both(function: Callable[..., Any], *args: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns ``function`` jitted by plugrt and by JAX, as calls on arguments that each has put."""
    ours, theirs = plugrt.jit(function), jax.jit(function)
    mine, others = plugrt.device_put(args), jax.device_put(args)
    return lambda: ours(*mine), lambda: theirs(*others)


def reading(call: Callable[[], Any]) -> Timer:
    """Returns the timer of first reads of results, which are ready before the clock starts."""

    def timer(count: int) -> float:
        made = [call().block_until_ready() for _ in range(count)]
        return sample(map(np.asarray, made).__next__, count)

    return timer


def donating(package: Any, other: Any = None) -> Callable[[], Any]:
    """Returns a call that donates its first argument, the result of the last call."""
    step = package.jit(lambda a, b: a + b, donate_argnums=0)
    put = np.zeros(4, np.float32)
    state = [package.device_put(put)]
    other = package.device_put(put) if other is None else other

    def call() -> Any:
        state[0] = step(state[0], other)

    return call
