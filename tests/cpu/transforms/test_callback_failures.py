"""A function that fails on one of several devices, which then meet in a collective."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, get_backend, lax
from plugrt.errors import Internal
from plugrt.sharding import PartitionSpec as P
from support import children
from support.behaviour import behaviour

X = np.arange(8, dtype=np.float32)


@pytest.fixture(autouse=True)
def needs_callbacks() -> None:
    found = get_backend().capabilities
    if len(devices()) < 4 or not (found.host_callbacks and found.partitions):
        pytest.skip("no 4 devices here that a program which calls Python is divided over")


def in_shard_map(function: Callable[..., Any]) -> Callable[..., Any]:
    mesh = plugrt.make_mesh((4,), ("i",), devices=plugrt.devices()[:4])
    mapped = plugrt.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P())
    return plugrt.jit(mapped)


def in_pmap(function: Callable[..., Any]) -> Callable[..., Any]:
    mapped = plugrt.pmap(function, axis_name="i", devices=plugrt.devices()[:4])
    return lambda x: mapped(x.reshape(4, 2))


MAPPED = {"shard_map": in_shard_map, "pmap": in_pmap}


@behaviour(
    111,
    "a callback that fails on one device before a collective raises, and nothing waits",
    jax="the other devices wait for it in the collective",
)
@pytest.mark.parametrize("name", MAPPED)
def test_a_failure_on_one_device_is_raised(name: str) -> None:
    failing = True
    later: list[Any] = []

    def fail(v: Any) -> Any:
        if failing and v[0] == 2:
            raise KeyError("the one of the second device")
        return v * 10

    def part(v: Any) -> Any:
        given = plugrt.pure_callback(fail, plugrt.ShapeDtypeStruct(v.shape, v.dtype), v)
        total = lax.psum(given, "i")
        plugrt.debug.callback(lambda t: later.append(t), total)
        return total

    f = MAPPED[name](part)
    for _ in range(2):
        with pytest.raises(Internal, match=r"'fail' of pure_callback, called at .*KeyError") as e:
            np.asarray(f(X))
        assert "in fail" in str(e.value)  # the traceback of the user's function
        assert isinstance(e.value.__cause__, KeyError)
    plugrt.effects_barrier()
    assert later == []  # the failure stops all later callbacks
    failing = False
    found = np.asarray(f(X))
    np.testing.assert_array_equal(found.reshape(-1)[:2], [120, 160])
    plugrt.effects_barrier()
    assert len(later) == 4
    np.testing.assert_array_equal(xp.asarray(X) + 1, X + 1)


@pytest.mark.parametrize("name", MAPPED)
def test_a_failed_effect_is_raised_once(name: str) -> None:
    def fail(v: Any) -> None:
        if v[0] == 2:
            raise KeyError("the one of the second device")

    def part(v: Any) -> Any:
        plugrt.debug.callback(fail, v)
        return lax.psum(v, "i")

    with pytest.raises(Internal, match=r"'fail' of debug.callback.*KeyError"):
        np.asarray(MAPPED[name](part)(X))
    plugrt.effects_barrier()


def test_no_part_of_a_failed_launch_is_left_for_the_collectives_of_the_next() -> None:
    def fail(v: Any) -> Any:
        if v[0] == 2:
            raise KeyError
        return v

    def part(v: Any) -> Any:
        return plugrt.pure_callback(fail, plugrt.ShapeDtypeStruct(v.shape, v.dtype), v)

    mesh = plugrt.make_mesh((4,), ("i",), devices=plugrt.devices()[:4])
    mapped = plugrt.shard_map(part, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    with pytest.raises(Internal, match=r"'fail' of pure_callback.*KeyError"):
        mapped(X)


@behaviour(
    111,
    "a function with `partitioned=True`, a handler of `plugrt.ffi` in Python and a function of "
    "pmap under `disable_jit` that fail in one part raise; a loop that goes on for as long as the "
    "function returns zeros is ended; Ctrl-C returns at once",
    jax="XLA ends the process after 40 s",
)
def test_failures_in_one_part_end_all() -> None:
    ended = children.run(
        [sys.executable, Path(__file__).with_name("failing_parts.py")], timeout=200
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    said = dict(line.split(" ", 1) for line in ended.stdout.splitlines())
    if type(get_backend()).__module__.startswith("plugrt_cpu"):
        assert "'fail' of debug.callback" in said["partitioned"]
    else:
        assert said["partitioned"].startswith("Unimplemented")
    assert said["handler"] == (
        "Internal: INTERNAL: the handler of 'fail_in_one' raised KeyError: 'the second part'"
    )
    assert "'fail' of pure_callback" in said["by_operation"]
    assert "'fail' of io_callback" in said["loop"]
    assert said["interrupt"] == "KeyboardInterrupt: left [0, 2, 4, 6]"
    assert said["next"] == "[12.0, 16.0]"
