"""Measures Python calls from a compiled program: pure, with an effect, ordered, in a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Row, arguments, compare, prepare, report

prepare()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import io_callback as jax_io_callback  # noqa: E402

import plugrt  # noqa: E402

X = np.ones(4, np.float32)


def same(x: Any) -> Any:
    """Returns its argument: the pure function that programs call."""
    return x


def nothing(x: Any) -> None:
    """Returns nothing: the function that programs call for its effect."""


def program(call: Callable[..., Any], shape: Any, **options: Any) -> Callable[[Any], Any]:
    """Returns a function that calls Python and computes with the result."""
    return lambda x: call(same, shape, x, **options) + 1


def measure() -> list[Row]:
    """Returns a row for each kind of callback."""
    ours, theirs = plugrt.device_put(X), jnp.asarray(X)
    mine, others = plugrt.ShapeDtypeStruct((4,), "float32"), jax.ShapeDtypeStruct((4,), "float32")
    ways: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
        ("pure_callback", program(plugrt.pure_callback, mine), program(jax.pure_callback, others)),
        ("io_callback", program(plugrt.io_callback, mine), program(jax_io_callback, others)),
        (
            "io_callback, ordered",
            program(plugrt.io_callback, mine, ordered=True),
            program(jax_io_callback, others, ordered=True),
        ),
        (
            "10 pure_callbacks in a loop",
            lambda x: plugrt.lax.fori_loop(
                0, 10, lambda _, v: plugrt.pure_callback(same, mine, v), x
            ),
            lambda x: jax.lax.fori_loop(0, 10, lambda _, v: jax.pure_callback(same, others, v), x),
        ),
    ]
    rows = []
    for name, one, other in ways:
        f, g = plugrt.jit(one), jax.jit(other)
        rows.append(
            compare(
                name,
                lambda f=f: f(ours).block_until_ready(),
                lambda g=g: g(theirs).block_until_ready(),
                None,
            )
        )
    return [*rows, measure_in_flight(), measure_barrier()]


def measure_in_flight() -> Row:
    """Returns the row of 20 launches before the first wait: more than the client allows."""
    ours, theirs = plugrt.device_put(X), jnp.asarray(X)
    mine, others = plugrt.ShapeDtypeStruct((4,), "float32"), jax.ShapeDtypeStruct((4,), "float32")
    f = plugrt.jit(program(plugrt.pure_callback, mine))
    g = jax.jit(program(jax.pure_callback, others))
    return compare(
        "20 launches with a pure_callback",
        lambda: [y.block_until_ready() for y in [f(ours) for _ in range(20)]],
        lambda: [y.block_until_ready() for y in [g(theirs) for _ in range(20)]],
        None,
    )


def measure_barrier() -> Row:
    """Returns the row of a call for its effect and the barrier after it."""
    ours, theirs = plugrt.device_put(X), jnp.asarray(X)
    f = plugrt.jit(lambda x: plugrt.debug.callback(nothing, x))
    g = jax.jit(lambda x: jax.debug.callback(nothing, x))
    return compare(
        "debug.callback, effects_barrier",
        lambda: (f(ours), plugrt.effects_barrier()),
        lambda: (g(theirs), jax.effects_barrier()),
        None,
    )


if __name__ == "__main__":
    options = arguments(__doc__)
    report("Calls of Python from programs, on the cpu plugin", measure(), options.json)
