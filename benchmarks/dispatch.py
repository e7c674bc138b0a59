"""Measures calls: jitted and eager, few and many arguments and results, and the first call.

Runs on the cpu plugin, or with ``--platform xla_cpu`` on a PJRT library. `cores.py` runs it for
each platform and core.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness import (
    Row,
    arguments,
    compare,
    compare_timers,
    prepare_platform,
    report,
    row,
    sample,
)

OPTIONS = arguments(__doc__, platform="cpu, or xla_cpu: the library of xla-cpu-pjrt")
PLATFORM = prepare_platform(OPTIONS.platform, devices=2)

import cores  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from forms import both, donating, reading  # noqa: E402

import plugrt  # noqa: E402

jax.config.update("jax_enable_x64", False)


class Pair(NamedTuple):
    """A named tuple as an argument."""

    a: Any
    b: Any


@dataclass
class Record:
    """A dataclass as an argument."""

    a: Any
    b: Any


jax.tree_util.register_dataclass(Record, ["a", "b"], [])
plugrt.tree.register_dataclass(Record)


def first_calls(rounds: int = 7) -> Row:
    """Times the first call of new functions: trace, lower, compile and run."""
    fresh = itertools.count()
    x = np.ones((16, 16), np.float32)
    mine, others = plugrt.device_put(x), jax.device_put(x)

    def first(jit: Callable[..., Any], argument: Any) -> float:
        n = next(fresh)

        def function(v: Any) -> Any:
            for i in range(4):
                v = v * (1.0 + n) + v / (2.0 + i)
            return v.sum()

        return sample(lambda: jit(function)(argument).block_until_ready(), 1)

    first(plugrt.jit, mine), first(jax.jit, others)
    pairs = [(first(plugrt.jit, mine), first(jax.jit, others)) for _ in range(rounds)]
    return row("first call of a new function (13 operations)", pairs, 0.9)


def call_forms(four: Any) -> list[Row]:
    """Returns a row for each common form of call."""
    x, y = plugrt.device_put(four), jax.device_put(four)
    there, there_jax = plugrt.devices()[1], jax.devices()[1]
    a, b = plugrt.device_put(four, there), jax.device_put(four, there_jax)
    plus, plus_jax = plugrt.jit(lambda a, b: a + b), jax.jit(lambda a, b: a + b)
    named = [w(lambda a, n: a + n, static_argnames="n") for w in (plugrt.jit, jax.jit)]
    turned = [w(lambda a, n: a.transpose(n), static_argnums=1) for w in (plugrt.jit, jax.jit)]
    compiled = plus.lower(x, x).compile(), plus_jax.lower(y, y).compile()
    leaves = {f"k{i}": four for i in range(40)}
    large = np.ones(16_384, np.float32)
    return [
        compare("NumPy + array", lambda: plus(four, x), lambda: plus_jax(four, y), 2.0),
        compare("two NumPy", lambda: plus(four, four), lambda: plus_jax(four, four)),
        compare(
            "two NumPy of 64 kB, awaited",
            lambda: plus(large, large).block_until_ready(),
            lambda: plus_jax(large, large).block_until_ready(),
        ),
        compare("Python scalar + array", lambda: plus(x, 2.0), lambda: plus_jax(y, 2.0)),
        compare(
            "a new Python float + array", with_new_floats(plus, x), with_new_floats(plus_jax, y)
        ),
        compare("dict of 2", *both(lambda d: d["a"] + d["b"], {"a": four, "b": four})),
        compare("namedtuple", *both(lambda p: p.a + p.b, Pair(four, four))),
        compare("registered dataclass", *both(lambda p: p.a + p.b, Record(four, four))),
        compare("None beside an array", *both(lambda a, b: a + 1 if b is None else b, four, None)),
        compare("one keyword", lambda: plus(x, b=x), lambda: plus_jax(y, b=y)),
        compare("static by name", lambda: named[0](x, n=3), lambda: named[1](y, n=3)),
        compare("a static tuple", lambda: turned[0](x, (0,)), lambda: turned[1](y, (0,))),
        compare("donate one", *(donating(w) for w in (plugrt, jax))),
        compare("donate one, NumPy beside it", *(donating(w, four) for w in (plugrt, jax))),
        compare(
            "tree of 40 in and out",
            *both(lambda d: {k: v + 1 for k, v in d.items()}, leaves),
        ),
        compare("committed + NumPy", lambda: plus(a, four), lambda: plus_jax(b, four), 2.0),
        compare("committed + uncommitted", lambda: plus(a, x), lambda: plus_jax(b, y), 1.5),
        compare(
            "call and wait",
            lambda: plus(x, x).block_until_ready(),
            lambda: plus_jax(y, y).block_until_ready(),
        ),
        compare("is_ready", x.is_ready, y.is_ready),
        compare(
            "call and first read",
            lambda: np.asarray(plus(x, x)),
            lambda: np.asarray(plus_jax(y, y)),
            1.6,
        ),
        compare_timers(
            "first read", reading(lambda: plus(x, x)), reading(lambda: plus_jax(y, y)), most=500
        ),
        compare("compiled object", lambda: compiled[0](x, x), lambda: compiled[1](y, y)),
        compare(
            "device_put of 16 B",
            lambda: plugrt.device_put(four),
            lambda: jax.device_put(four),
            0.3,
        ),
        compare("list(x)", lambda: list(x), lambda: list(y), 1.5),
    ]


def with_new_floats(plus: Callable[..., Any], x: Any) -> Callable[[], Any]:
    """Returns a call whose Python number changes each time."""
    numbers = itertools.count(0.5)
    return lambda: plus(x, next(numbers))


def measure() -> list[Row]:
    """Returns a row for each question."""
    four = np.arange(4, dtype=np.float32)
    many = [four] * 32
    x, y = plugrt.device_put(four), jax.device_put(four)
    return [
        compare("jitted call, 2 arguments", *both(lambda a, b: a + b, four, four)),
        compare("jitted call, 1 argument", *both(lambda a: a + 1, four)),
        compare("jitted call, 32 arguments", *both(lambda *a: sum(a[1:], a[0]), *many)),
        compare("jitted call, 32 results", *both(lambda a: tuple(a + i for i in range(32)), four)),
        *call_forms(four),
        compare("eager x + x", lambda: x + x, lambda: y + y, 0.8),
        compare("eager x + 2", lambda: x + 2, lambda: y + 2),
        compare("eager x[1]", lambda: x[1], lambda: y[1]),
        compare("eager x.sum()", lambda: x.sum(), lambda: y.sum()),
        first_calls(),
    ]


if __name__ == "__main__":
    rows = cores.judge(measure(), PLATFORM, cores.BUDGETS)
    report(f"Dispatch on {PLATFORM}", rows, OPTIONS.json)
