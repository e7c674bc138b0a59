"""jaxlib's own part of a call on cpu, beside JAX's whole call and plugrt's: what no host can save.

jaxlib's functions are called from Python with nothing around them, on the program that plugrt
compiled: its launch, and what makes arrays of the results.
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
"""Functions, their arguments, and the numbers of those that are donated."""


def calling(package: Any, function: Callable[..., Any], given: Any, donated: Any) -> Any:
    """Returns a call of the jitted function; a donated argument is its last result."""
    jitted, values = package.jit(function, donate_argnums=donated), [*package.device_put(given)]

    def call() -> None:
        made = jitted(*values)
        if donated:
            values[0] = made

    return call


def calling_jaxlib(function: Callable[..., Any], given: Any, donated: Any, take: bool) -> Any:
    """Returns a launch by jaxlib alone, and where ``take`` is true the making of its results."""
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
    """Returns the call of that name: jaxlib's launch with its results, plugrt's call and JAX's."""
    function, given, donated = CALLS[name]
    return (
        calling_jaxlib(function, given, donated, take=True),
        calling(plugrt, function, given, donated),
        calling(jax, function, given, donated),
    )


def measure() -> list[Row]:
    """Returns for each call jaxlib's launch, that with its results, and plugrt's whole call."""
    rows = []
    for name, (function, given, donated) in CALLS.items():
        theirs = calling(jax, function, given, donated)
        for what, take in (("jaxlib's launch", False), ("launch and results", True)):
            if take or not donated:  # a donated argument is there once: the result takes its place
                alone = calling_jaxlib(function, given, donated, take)
                rows.append(compare(f"{name}: {what}", alone, theirs))
        ours = calling(plugrt, function, given, donated)
        rows.append(compare(f"{name}: plugrt's call", ours, theirs))
    return rows


if __name__ == "__main__":
    options = arguments(__doc__)
    report("jaxlib's part of JAX's call, on cpu", measure(), options.json)
