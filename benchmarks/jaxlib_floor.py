"""Measures jaxlib's part of a call on cpu, beside whole calls of JAX and plugrt.

No host can be faster than jaxlib's functions alone. They are called from Python on the program that
plugrt compiled: the launch, and the creation of arrays for the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Row, arguments, compare, prepare, report

prepare()

import jax  # noqa: E402
import numpy as np  # noqa: E402

import plugrt  # noqa: E402

FOUR = np.arange(4, dtype=np.float32)
TREE = {f"k{i}": FOUR for i in range(40)}
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]] = {
    "two arrays": (lambda a, b: a + b, (FOUR, FOUR), ()),
    "32 arguments": (lambda *a: sum(a[1:], a[0]), (FOUR,) * 32, ()),
    "32 results": (lambda a: tuple(a + i for i in range(32)), (FOUR,), ()),
    "tree of 40 in and out": (lambda d: {k: v + 1 for k, v in d.items()}, (TREE,), ()),
    "donate one": (lambda a, b: a + b, (FOUR, FOUR), (0,)),
}
"""Functions, their arguments, and the indices of the donated arguments."""


def calling(package: Any, function: Callable[..., Any], given: Any, donated: Any) -> Any:
    """Returns a call of the jitted function; a donated argument is the last result."""
    jitted, values = package.jit(function, donate_argnums=donated), [*package.device_put(given)]

    def call() -> None:
        made = jitted(*values)
        if donated:
            values[0] = made

    return call


def calling_jaxlib(function: Callable[..., Any], given: Any, donated: Any, take: bool) -> Any:
    """Returns a launch by jaxlib alone; if ``take``, it also makes arrays of the results."""
    jitted, values = plugrt.jit(function, donate_argnums=donated), plugrt.device_put(given)
    steps = jitted.lower(*values).compile().runtime_executable().launch_steps
    if steps is None:
        raise SystemExit("this backend has no launch in steps")
    leaves, _ = jax.tree_util.tree_flatten(values)
    raws = [leaf._shards for leaf in leaves]

    def call() -> None:
        made = steps.launch(raws)
        if take:
            results = steps.take(made, *steps.take_arguments)
            if donated:
                raws[0] = results[0]

    return call


def sides(name: str) -> tuple[Callable[[], None], ...]:
    """Returns three functions for a call: jaxlib's launch with results, plugrt's call and JAX's."""
    function, given, donated = CALLS[name]
    return (
        calling_jaxlib(function, given, donated, take=True),
        calling(plugrt, function, given, donated),
        calling(jax, function, given, donated),
    )


def measure() -> list[Row]:
    """Returns the rows of each call: jaxlib's launch, with results, and plugrt's whole call."""
    rows = []
    for name, (function, given, donated) in CALLS.items():
        theirs = calling(jax, function, given, donated)
        for what, take in (("jaxlib's launch", False), ("launch and results", True)):
            # a donated argument can be used once, so the result replaces it
            if take or not donated:
                alone = calling_jaxlib(function, given, donated, take)
                rows.append(compare(f"{name}: {what}", alone, theirs))
        ours = calling(plugrt, function, given, donated)
        rows.append(compare(f"{name}: plugrt's call", ours, theirs))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("jaxlib's part of JAX's call, on cpu", measure(), options.json)
