"""Launches on several devices: all are made alike, and host work grows linearly."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import lax
from plugrt.sharding import NamedSharding, PartitionSpec
from support.behaviour import behaviour

X = np.arange(8, dtype=np.float32)
MOST = 2.5
"""The largest allowed growth for twice as many devices or arguments: linear is 2, quadratic 4."""


def rows_of(count: int) -> NamedSharding:
    mesh = plugrt.sharding.Mesh(np.array(plugrt.devices()[:count]), ("x",))
    return NamedSharding(mesh, PartitionSpec("x"))


@behaviour(
    101,
    "jit over a mesh is one replica of n partitions, as `shard_map` is, pmap n replicas: one kind "
    "of launch and of loaded programs",
)
def test_one_kind_of_launch() -> None:
    rows, spec = rows_of(4), PartitionSpec("x")
    four = plugrt.devices()[:4]
    inner = plugrt.shard_map(
        lambda v: lax.psum(v, "x"), mesh=rows.mesh, in_specs=spec, out_specs=PartitionSpec()
    )
    made = []
    for lowered, counts in (
        (plugrt.jit(lambda v: v + 1).lower(X), (1, 1)),
        (plugrt.jit(lambda v: v + 2).lower(plugrt.device_put(X, rows)), (1, 4)),
        (plugrt.pmap(lambda v: lax.psum(v, "i"), "i", devices=four).lower(X[:4]), (4, 1)),
        (plugrt.jit(lambda v: inner(v)).lower(X), (1, 4)),
    ):
        made.append(lowered.compile())
        executable = made[-1].runtime_executable().executable
        assert (executable.num_replicas, executable.num_partitions) == counts
    assert len({type(compiled) for compiled in made}) == 1


@behaviour(
    101, "a function is traced once for arrays over 2, 4 and 8 devices, and compiled for each"
)
def test_one_trace() -> None:
    traced = []

    @plugrt.jit
    def f(v: Any) -> Any:
        traced.append(v)
        return v * 3

    for count in (2, 4, 8):
        np.testing.assert_array_equal(f(plugrt.device_put(X, rows_of(count))), X * 3)
    assert len(traced) == 1


def count_calls(call: Callable[[], object]) -> int:
    """Returns the number of Python and C functions that a call calls on the host."""
    found = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@behaviour(113, "what the host does for a call grows no faster than the number of devices")
@pytest.mark.parametrize("what", ["jit", "exchange", "put", "read"])
def test_growth_with_devices(what: str) -> None:
    def measure(devices: int) -> int:
        rows = rows_of(devices)
        x = plugrt.device_put(X, rows)
        f: Callable[[], Any] = {
            "jit": lambda: run(x),
            "exchange": lambda: run(x),
            "put": lambda: plugrt.device_put(X, rows),
            "read": lambda: np.asarray(plugrt.jit(lambda v: v + 3)(x)),
        }[what]
        run = plugrt.jit((lambda v: v * 7) if what == "jit" else (lambda v: v - v[::-1]))
        for _ in range(3):
            f()
        return min(count_calls(f) for _ in range(5))

    two, four, eight = map(measure, (2, 4, 8))
    assert four <= MOST * two
    assert eight <= MOST * four


@behaviour(113, "what the host does for a call grows no faster than the number of arguments")
def test_growth_with_arguments() -> None:
    def measure(arguments: int) -> int:
        values = [plugrt.device_put(X + i, rows_of(4)) for i in range(arguments)]
        run = plugrt.jit(lambda *v: [a + 1 for a in v])
        for _ in range(3):
            run(*values)
        return min(count_calls(lambda: run(*values)) for _ in range(5))

    eight, sixteen, many = map(measure, (8, 16, 32))
    assert sixteen <= MOST * eight
    assert many <= MOST * sixteen
