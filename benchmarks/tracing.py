"""Measures tracing a function and lowering it to StableHLO."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from harness import Row, arguments, prepare, report, row, sample

prepare()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import plugrt  # noqa: E402
from plugrt import array_api as xp  # noqa: E402

ROUNDS = 7


def lowering(jit: Callable[..., Any], function: Callable[..., Any], argument: Any) -> float:
    """Returns the seconds to trace and lower ``function``, which is a new function each time."""
    return sample(lambda: jit(lambda x: function(x)).lower(argument), 1)


def chain(count: int) -> Callable[[Any], Any]:
    """Returns a function with ``count`` additions and multiplications by operators."""

    def function(x: Any) -> Any:
        for i in range(count // 2):
            x = x * 1.5 + x if i % 2 else x + x * 0.5
        return x

    return function


def mixed(names: Any, count: int) -> Callable[[Any], Any]:
    """Returns a function with ``count`` calls of an array namespace."""
    functions = [names.sin, names.exp, names.abs, lambda v: names.sum(v, axis=0, keepdims=True) + v]

    def function(x: Any) -> Any:
        for f in itertools.islice(itertools.cycle(functions), count):
            x = f(x)
        return x

    return function


def measure() -> list[Row]:
    """Returns a row for each question."""
    x = np.ones((4, 4), np.float32)
    rows = []
    for name, ours, theirs, budget in (
        ("trace and lower 1,000 operators", chain(1000), chain(1000), 0.3),
        ("trace and lower 1,000 function calls", mixed(xp, 1000), mixed(jnp, 1000), None),
        ("trace and lower 1 operator", chain(2), chain(2), None),
    ):
        lowering(plugrt.jit, ours, x), lowering(jax.jit, theirs, x)
        pairs = [
            (lowering(plugrt.jit, ours, x), lowering(jax.jit, theirs, x)) for _ in range(ROUNDS)
        ]
        rows.append(row(name, pairs, budget))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Tracing and lowering", measure(), options.json)
