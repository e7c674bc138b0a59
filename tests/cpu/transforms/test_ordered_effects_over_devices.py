"""`io_callback(ordered=True)` over several devices: order, failures, threads, launches within."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices, lax
from plugrt.errors import FailedPrecondition, Internal, Unimplemented
from plugrt.sharding import Mesh, NamedSharding
from plugrt.sharding import PartitionSpec as P
from support import effort
from support.behaviour import behaviour

A = np.arange(8, dtype=np.float32)
WHOLE = plugrt.ShapeDtypeStruct((8,), "float32")
INDEX = plugrt.ShapeDtypeStruct((), "int32")
WAIT = 100.0
"""Seconds after which the test counts threads as deadlocked."""


@pytest.fixture(autouse=True)
def nothing_under_way() -> Iterator[None]:
    yield
    plugrt.effects_barrier()


def over(*ids: int) -> Any:
    """Returns `A` divided over some devices."""
    return plugrt.device_put(A, NamedSharding(mesh_of(*ids), P("x")))


def mesh_of(*ids: int) -> Mesh:
    return Mesh([devices()[i] for i in ids], "x")


def run_threads(work: Callable[[int], None], count: int) -> None:
    """Runs a function on some threads; raises the first exception of any."""
    failed: list[BaseException] = []

    def call(thread: int) -> None:
        try:
            work(thread)
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)

    threads = [threading.Thread(target=call, args=(t,), daemon=True) for t in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    for error in failed:
        raise error


def run_in(host: str) -> dict[str, Any]:
    """Runs `cpu.transforms.ordered_effects` with a library; returns the calls by case."""
    ended = subprocess.run(
        [sys.executable, "-m", "cpu.transforms.ordered_effects", host],
        capture_output=True, text=True, timeout=270, check=False,
        cwd=Path(__file__).parents[2], env=os.environ,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    cases = map(json.loads, ended.stdout.splitlines())
    return {f"{way}, {meshes}, {count} calls": found for way, meshes, count, found in cases}


@behaviour(
    111,
    "ordered `io_callback` is called once in jit over a mesh, by each device in shard_map, in the "
    "order of the program and of the thread's launches, on whatever devices",
)
@pytest.mark.timeout(560)
def test_calls_and_their_order_are_as_in_jax() -> None:
    """Compares some of ten ways to call, five sequences of meshes, and three numbers of launches.

    Same as JAX: `io_callback(ordered=True)` over several devices: called once in `jit` over a mesh,
    by each device in `shard_map`, in the order of the thread's launches on whatever devices.
    """
    pytest.importorskip("jax")
    expected, found = run_in("jax"), run_in("plugrt")
    assert len(expected) == (150 if effort.WHOLE else 40)
    assert found == expected


def test_calls_by_python_come_after_launches_on_other_devices() -> None:
    seen: list[int] = []

    def note(n: Any) -> None:
        seen.append(int(n))

    late = plugrt.jit(lambda m: lax.fori_loop(0, 50, lambda _, v: (v @ v) * 1e-3, m))

    @plugrt.jit
    def f(x: Any, m: Any, n: Any) -> Any:
        n = n + (late(m)[0, 0] * 0).astype("int32")
        plugrt.io_callback(note, None, n, ordered=True)
        return x

    m = np.ones((200, 200), np.float32)
    for n in range(0, 12, 3):
        f(over(0, 1), m, np.int32(n))
        f(plugrt.device_put(A, devices()[2]), m, np.int32(n + 1))
        plugrt.io_callback(note, None, n + 2, ordered=True)
    assert seen == [*range(12)]


@behaviour(111, "threads that launch one program on meshes of their own keep their orders")
def test_threads_with_meshes_of_their_own() -> None:
    seen: dict[int, list[int]] = {t: [] for t in range(4)}
    f = plugrt.jit(
        lambda x, t, n: x
        + plugrt.io_callback(lambda t, n: (seen[int(t)].append(int(n)), n)[1], INDEX, t, n,
                             ordered=True)
    )  # fmt: skip
    meshes = [(0, 1), (1, 0), (2, 3), (0, 1, 2, 3), (3,)]

    def work(thread: int) -> None:
        for n in range(15):
            x = over(*meshes[(n + thread) % len(meshes)])
            np.testing.assert_array_equal(f(x, np.int32(thread), np.int32(n)), A + n)

    run_threads(work, 4)
    assert all(found == [*range(15)] for found in seen.values())


def fail_below_zero(value: Any, seen: list[float]) -> Any:
    """Records its argument; raises for negative numbers."""
    if value.min() < 0:
        raise ValueError("below zero")
    seen.append(float(value.min()))
    return value


def _whole(seen: list[float]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        x = plugrt.io_callback(lambda v: fail_below_zero(v, seen), WHOLE, x, ordered=True)
        return x + plugrt.io_callback(lambda v: (seen.append(-1.0), v)[1], WHOLE, x, ordered=True)

    return f


def _parts(seen: list[float]) -> Callable[[Any], Any]:
    part = plugrt.ShapeDtypeStruct((2,), "float32")

    def f(x: Any) -> Any:
        x = plugrt.io_callback(lambda v: fail_below_zero(v, seen), part, x, ordered=True)
        plugrt.io_callback(lambda: seen.append(-1.0), None, ordered=True)
        return x + 0 * lax.psum(x, "x")

    return plugrt.shard_map(f, mesh=mesh_of(0, 1, 2, 3), in_specs=P("x"), out_specs=P("x"))


@behaviour(111, "where an ordered call over devices fails, nothing after it is called, the launch "
           "has the error, and the next launch runs",
           jax="waits for ever, or refuses all that is ordered from then on")  # fmt: skip
@pytest.mark.parametrize("make", [_whole, _parts])
def test_a_failure_ends_the_launch_and_no_other(make: Callable[[Any], Any]) -> None:
    """All devices wait for the call (``_whole``), or each calls before an exchange (``_parts``).

    Differs from JAX: an ordered `io_callback` over several devices fails | the others wait, and XLA
    ends the process; else all ordered calls of the thread fail from then on | the launch has the
    error, and the next one runs.
    """
    seen: list[float] = []
    f, x = plugrt.jit(make(seen)), over(0, 1, 2, 3)
    for _ in range(2):
        with pytest.raises(Internal, match=r"of io_callback, called at .*: below zero"):
            f(x - 100).block_until_ready()
        assert seen == []
        f(x).block_until_ready()
        assert seen.count(-1) in (1, 4)  # the later call of the program was made as well
        seen.clear()
        f(over(0, 1, 2, 3)).block_until_ready()
        seen.clear()
    for _ in range(2):
        try:
            plugrt.effects_barrier()
        except Internal as error:
            assert "below zero" in str(error)  # noqa: PT017  # where no launch raised it itself


def _launch_on(ids: Sequence[int]) -> Callable[[Any], None]:
    inner = plugrt.jit(lambda x: xp.sum(x))

    def launch(value: Any) -> None:
        float(inner(plugrt.device_put(value, over(*ids).sharding)))

    return launch


@behaviour(111, "a function in order that launches on a device runs; one that launches its own "
           "program again is refused at once", jax="waits for ever")  # fmt: skip
def test_launches_within() -> None:
    launch = _launch_on([1])
    runs = plugrt.jit(
        lambda x: plugrt.io_callback(lambda v: (launch(v), v)[1], WHOLE, x, ordered=True)
    )
    np.testing.assert_array_equal(runs(over(0, 1)), A)
    refused: list[str] = []

    def again(value: Any) -> Any:
        with pytest.raises(FailedPrecondition) as caught:
            np.asarray(f(over(0, 1)))
        refused.append(str(caught.value))
        return value

    f = plugrt.jit(lambda x: plugrt.io_callback(again, WHOLE, x, ordered=True))
    np.testing.assert_array_equal(f(over(0, 1)), A)
    assert len(refused) == 1
    assert "launches a program on 2 devices while the program" in refused[0]


def test_an_ordered_launch_within_an_ordered_call_comes_in_between() -> None:
    seen: list[str] = []
    inner = plugrt.jit(
        lambda x: (plugrt.io_callback(lambda: seen.append("inner"), None, ordered=True), x)[1]
    )

    def outer(value: Any) -> Any:
        np.asarray(inner(plugrt.device_put(value, devices()[0])))
        seen.append("outer")
        return value

    f = plugrt.jit(lambda x: plugrt.io_callback(outer, WHOLE, x, ordered=True))
    for ids in ((0, 1), (1, 0)):
        np.testing.assert_array_equal(f(over(*ids)), A)
    assert seen == ["inner", "outer"] * 2


@behaviour(111, "a shard_map without arguments and results calls in order, too",
           jax="fails")  # fmt: skip
def test_a_region_without_arrays() -> None:
    seen: list[int] = []

    def body() -> None:
        for n in range(3):
            plugrt.io_callback(lambda n=n: seen.append(n), None, ordered=True)

    f = plugrt.jit(plugrt.shard_map(body, mesh=mesh_of(0, 1), in_specs=(), out_specs=P()))
    f()
    plugrt.effects_barrier()
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]
    assert (seen[0], seen[-1]) == (0, 2)


def test_regions_within_regions_are_refused() -> None:
    """Differs from JAX: an ordered `io_callback` in a `shard_map` within another | XLA ends the
    process | `Unimplemented`.
    """
    mesh = Mesh(np.array(devices()[:4]).reshape(2, 2), ("x", "y"))

    def tell(x: Any) -> Any:
        plugrt.io_callback(lambda v: None, None, x, ordered=True)
        return x

    def over_axis(f: Callable[[Any], Any], name: str) -> Any:
        specs = P(name)
        return plugrt.shard_map(f, mesh=mesh, in_specs=specs, out_specs=specs, axis_names={name})

    for f in (tell, plugrt.jit(tell)):
        with pytest.raises(Unimplemented, match=r"over \['y'\] within one over \['x'\]"):
            plugrt.jit(over_axis(over_axis(f, "y"), "x"))(A)


def test_under_gspmd() -> None:
    if not plugrt.get_backend().platform_version.startswith("jaxlib"):
        pytest.skip("no compiler known to have GSPMD here")
    seen: list[Any] = []

    def whole(x: Any) -> Any:
        return plugrt.io_callback(lambda v: (seen.append("whole"), v)[1], WHOLE, x, ordered=True)

    def part(x: Any) -> Any:
        for n in range(2):
            tell = lambda i, n=n: seen.append((int(i), n))  # noqa: E731
            plugrt.io_callback(tell, None, lax.axis_index("x"), ordered=True)
        return x

    mapped = plugrt.shard_map(part, mesh=mesh_of(0, 1), in_specs=P("x"), out_specs=P("x"))
    with plugrt.config.override(use_shardy_partitioner=False):
        np.testing.assert_array_equal(plugrt.jit(lambda x: mapped(whole(x)))(over(0, 1)), A)
    assert seen[0] == "whole"
    for device in (0, 1):
        assert [call[1] for call in seen[1:] if call[0] == device] == [0, 1]
