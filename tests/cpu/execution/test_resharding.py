"""Arrays in parts go to where they are used from device to device, not through the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, lax, monitoring
from plugrt.execution.transfers import exchanges, host_assembly
from plugrt.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    PmapSharding,
    Sharding,
    SingleDeviceSharding,
)
from support.behaviour import behaviour
from support.compiles import counting
from support.effort import seeds
from support.puts import Puts
from support.shardings import check_contents, check_moves
from support.traffic import watch

X = np.arange(60, dtype=np.float32).reshape(4, 3, 5)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch(monkeypatch, devices()[0].client)


def parts() -> Any:
    """Returns what pmap gives of X, on four devices."""
    return plugrt.pmap(lambda x: x)(X)


USES: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "jit": (jit(lambda x: x + x), 2 * X),
    "jit elsewhere": (jit(lambda x: x * x, device=devices()[6]), X * X),
    "jit that donates": (jit(lambda x: -x, donate_argnums=0), -X),
    "operator": (lambda x: x + x, 2 * X),
    "function": (lambda x: xp.sum(x, axis=0), X.sum(0)),
    "index": (lambda x: x[:, 1:, None], X[:, 1:, None]),
    "cond": (lambda x: lax.cond(xp.sum(x) > 0, lambda v: v * v, lambda v: v, x), X * X),
    "switch": (lambda x: lax.switch(xp.astype(x[0, 0, 1], np.int32), [xp.abs, xp.sin], x),
               np.sin(X)),
    "while": (lambda x: lax.while_loop(lambda v: xp.sum(v) < 1e5, lambda v: v + v, x), X * 64),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), x[0] - x[0], x)[0], X.sum(0)),
    "pmap over another dimension": (
        plugrt.pmap(lambda v: v + v, in_axes=2, out_axes=1, devices=devices()[2:7]),
        np.moveaxis(2 * X, 2, 1),
    ),
    "compiled": (
        lambda x: plugrt.jit(lambda v: v * 2 + 1).lower(x).compile()(x), 2 * X + 1
    ),
    "pmap with it whole": (
        lambda x: plugrt.pmap(lambda i, v: v + v, in_axes=(0, None))(x, x)[3], 2 * X
    ),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_parts_are_used_without_the_host(use: str, puts: Puts, traffic: list[str]) -> None:
    run, expected = USES[use]
    for first in (True, False):
        x = parts()
        puts.clear()
        traffic.clear()
        y = run(x)
        if first:  # numbers that stand in the source are put once and kept
            assert [s for s in traffic if not s.endswith("()") and s != "put 4 parts"] == []
            assert [array for array, _ in puts if np.shape(array)] == []
        else:
            assert (puts, traffic) == ([], [])
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5)


@behaviour(
    109, "from any sharding to any other, in another order or on other devices, without the host"
)
@pytest.mark.parametrize("seed", seeds(6))
def test_from_any_sharding_to_any_other(seed: int, traffic: list[str]) -> None:
    check_moves(np.random.default_rng(seed), [*devices()], traffic)


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_numbers_of_less_than_a_byte_are_put_together(name: str, traffic: list[str]) -> None:
    """XLA's CPU compiler ended the process over their concatenation."""
    host = np.array([[0, 1], [1, 1]]).astype(getattr(ml_dtypes, name))
    x = device_put(host, NamedSharding(Mesh(devices()[:2], "x"), PartitionSpec("x")))
    traffic.clear()
    y = device_put(x, devices()[3])
    assert traffic == []
    check_contents(y, host, SingleDeviceSharding(devices()[3]))


@pytest.mark.parametrize("seed", range(10))
def test_arrays_without_elements(seed: int, traffic: list[str]) -> None:
    check_moves(np.random.default_rng(seed), [*devices()[:2]], traffic, smallest=0)


def test_parts_that_are_scalars(traffic: list[str]) -> None:
    host = np.arange(4, dtype=np.int8)
    apart = device_put(host, PmapSharding(devices()[2:6]))
    traffic.clear()
    together = device_put(apart, devices()[0])
    again = device_put(together, apart.sharding)
    assert traffic == []
    check_contents(together, host, SingleDeviceSharding(devices()[0]))
    check_contents(again, host, apart.sharding)


@behaviour(
    109, "parts that lie right are kept as they are, others sent as they are; nothing is compiled"
)
def test_parts_that_lie_right_are_kept_and_others_sent_as_they_are(traffic: list[str]) -> None:
    x = device_put(X, PmapSharding(devices()[:4]))
    traffic.clear()
    with counting() as counts:
        y = device_put(x, PmapSharding([devices()[0], *devices()[5:8]]))
    assert (counts[monitoring.COMPILE], traffic) == (0, [])
    first, second = (
        [s.data.unsafe_buffer_pointer() for s in array.addressable_shards] for array in (x, y)
    )
    assert first[0] == second[0]
    assert not {*first} & {*second[1:]}
    check_contents(y, X, y.sharding)


@behaviour(109, "what takes parts out of others and puts them together is compiled once")
def test_what_moves_parts_is_compiled_once(traffic: list[str]) -> None:
    x, y = device_put(X, PmapSharding(devices()[:4])), device_put(-X, PmapSharding(devices()[:4]))
    target = PmapSharding(devices()[:3], 1)
    plugrt.clear_caches()
    for expected in (2, 0):  # all devices run the same two: one slices, one concatenates
        with counting() as counts:
            for array in (x, y, x):
                device_put(array, target)
        assert counts[monitoring.COMPILE] == expected
    plugrt.clear_caches()
    with counting() as counts:
        check_contents(device_put(y, target), -X, target)
    assert counts[monitoring.COMPILE] == 2


def test_where_an_array_has_to_be_moved_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask again takes as long as to move a small array."""
    over = [
        Mesh(np.array(devices()[:4]).reshape(2, 2), names) for names in (("x", "y"), ("v", "w"))
    ]
    rows, same = (
        NamedSharding(over[0], PartitionSpec("x")),
        NamedSharding(over[1], PartitionSpec("v")),
    )
    columns = NamedSharding(over[0], PartitionSpec(None, "y"))
    host, asked, is_equivalent = X[:, :2, 0], list[object](), Sharding.is_equivalent_to
    x = device_put(host, rows)

    def ask(sharding: Sharding, other: Sharding, ndim: int) -> bool:
        asked.append(other)
        return is_equivalent(sharding, other, ndim)

    monkeypatch.setattr(Sharding, "is_equivalent_to", ask)
    for expected in ([columns], []):
        asked.clear()
        check_contents(device_put(x, columns), host, columns)
        assert asked == expected
    pointers = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
    for may_alias in (False, None):  # parts that lie right are copied where that is asked for
        y = device_put(x, same, may_alias=may_alias)
        found = [s.data.unsafe_buffer_pointer() for s in y.addressable_shards]
        assert (found == pointers) is (may_alias is None)
        check_contents(y, host, same)


def test_results_of_parts_stay_committed_and_where_they_were() -> None:
    x = parts()
    for y in (x + x, jit(lambda v: v - v)(x)):
        assert (y.committed, y.sharding) == (True, x.sharding)


def test_parts_are_unharmed_by_a_launch_that_donates_what_was_made_of_them() -> None:
    x = parts()
    whole = device_put(x, devices()[1])
    jit(lambda v: v + 1, donate_argnums=0)(whole)
    check_contents(x, X, x.sharding)


def test_parts_from_and_to_other_memories(traffic: list[str]) -> None:
    device, x = devices()[1], device_put(X, PmapSharding(devices()[:4]))
    kinds = {memory.kind for memory in device.memories()}
    assert len(kinds) > 1
    for kind in kinds:
        there = SingleDeviceSharding(device, memory_kind=kind)
        traffic.clear()
        whole = device_put(x, there)
        again = device_put(whole, x.sharding)
        assert traffic == []
        check_contents(whole, X, there)
        check_contents(again, X, x.sharding)
        [buffer] = whole._live()
        assert buffer.memory.kind == kind


@pytest.fixture
def on_host() -> None:
    """Forgets how other tests moved arrays: by programs."""
    exchanges._exchanges.clear()


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("seed", seeds(10))
def test_small_arrays_are_put_together_in_main_memory_without_a_program(seed: int) -> None:
    with counting() as counts:
        check_moves(np.random.default_rng(seed), [*devices()], [])
    assert counts[monitoring.COMPILE] == 0


@pytest.mark.usefixtures("on_host")
def test_what_is_put_together_in_main_memory_is_copied_once(puts: Puts) -> None:
    x = parts()
    reads = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
    puts.clear()
    y = device_put(x, devices()[5])
    [(host, device)] = puts
    assert device is devices()[5]
    assert y.unsafe_buffer_pointer() == host.__array_interface__["data"][0]
    assert y.unsafe_buffer_pointer() not in reads
    check_contents(y, X, SingleDeviceSharding(devices()[5]))


@pytest.mark.usefixtures("on_host")
def test_large_arrays_are_moved_by_programs() -> None:
    large = np.zeros((4, host_assembly.MAX_BYTES), np.int8)
    x = device_put(large, PmapSharding(devices()[:4]))
    with counting() as counts:
        device_put(x, devices()[0])
    assert counts[monitoring.COMPILE] == 1


@pytest.mark.usefixtures("on_host")
def test_what_was_put_together_in_main_memory_may_be_donated_and_deleted() -> None:
    x = parts()
    for _ in range(3):
        whole = device_put(x, devices()[1])
        y = jit(lambda v: v + 1, donate_argnums=0)(whole)
        assert whole.is_deleted()
        np.testing.assert_array_equal(np.asarray(y), X + 1)
        device_put(x, devices()[1]).delete()
    check_contents(x, X, x.sharding)
