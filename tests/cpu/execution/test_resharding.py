"""Divided arrays are moved from device to device, not through the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import device_put, devices, jit, lax, monitoring
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec, PmapSharding, SingleDeviceSharding
from support.behaviour import behaviour
from support.compiles import counting
from support.effort import seeds
from support.shardings import check_contents, check_moves
from support.traffic import Traffic, move_by_programs, watch

X = np.arange(60, dtype=np.float32).reshape(4, 3, 5)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    move_by_programs(monkeypatch)
    with watch(devices()[0].client, "put", "read") as found:
        yield found


def parts() -> Any:
    """Returns X divided over four devices, as a result of pmap."""
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
@pytest.mark.usefixtures("puts")
def test_parts_are_used_without_the_host(use: str, traffic: Traffic) -> None:
    run, expected = USES[use]
    for first in (True, False):
        x = parts()
        traffic.clear()
        y = run(x)
        if first:  # literals in the source are put once and cached
            assert {transfer.kind for transfer in traffic} <= {"put"}
            assert [array for array, _ in traffic.arrays if np.shape(array)] == []
        else:
            assert traffic == []
        np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5)


@behaviour(
    109, "from any sharding to any other, in another order or on other devices, without the host"
)
@pytest.mark.parametrize("seed", seeds(6))
def test_from_any_sharding_to_any_other(seed: int, traffic: Traffic) -> None:
    check_moves(np.random.default_rng(seed), [*devices()], traffic)


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_numbers_of_less_than_a_byte_are_put_together(name: str, traffic: Traffic) -> None:
    """Earlier, XLA's CPU compiler ended the process when it concatenated them."""
    host = np.array([[0, 1], [1, 1]]).astype(getattr(ml_dtypes, name))
    x = device_put(host, NamedSharding(Mesh(devices()[:2], "x"), PartitionSpec("x")))
    traffic.clear()
    y = device_put(x, devices()[3])
    assert traffic == []
    check_contents(y, host, SingleDeviceSharding(devices()[3]))


@pytest.mark.parametrize("seed", range(10))
def test_arrays_without_elements(seed: int, traffic: Traffic) -> None:
    check_moves(np.random.default_rng(seed), [*devices()[:2]], traffic, smallest=0)


@behaviour(109, "parts on the right device are kept, and others sent whole; nothing is compiled")
def test_parts_that_lie_right_are_kept_and_others_sent_as_they_are(traffic: Traffic) -> None:
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


@behaviour(109, "functions that split and join arrays are compiled once")
def test_functions_that_move_parts_are_compiled_once(traffic: Traffic) -> None:
    x, y = device_put(X, PmapSharding(devices()[:4])), device_put(-X, PmapSharding(devices()[:4]))
    target = PmapSharding(devices()[:3], 1)
    plugrt.clear_caches()
    for expected in (2, 0):  # one program slices, one concatenates, on all devices
        with counting() as counts:
            for array in (x, y, x):
                device_put(array, target)
        assert counts[monitoring.COMPILE] == expected
    plugrt.clear_caches()
    with counting() as counts:
        check_contents(device_put(y, target), -X, target)
    assert counts[monitoring.COMPILE] == 2


def test_parts_from_and_to_other_memories(traffic: Traffic) -> None:
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
    """Clears the programs that other tests compiled to move arrays."""
    plugrt.clear_caches()


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("seed", seeds(10))
def test_small_arrays_are_put_together_in_main_memory_without_a_program(seed: int) -> None:
    with counting() as counts:
        check_moves(np.random.default_rng(seed), [*devices()], [])
    assert counts[monitoring.COMPILE] == 0


@pytest.mark.usefixtures("on_host")
def test_parts_joined_on_the_host_are_copied_once(puts: Traffic) -> None:
    x = parts()
    reads = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
    puts.clear()
    y = device_put(x, devices()[5])
    [(host, device)] = puts.arrays
    assert device is devices()[5]
    assert y.unsafe_buffer_pointer() == host.__array_interface__["data"][0]
    assert y.unsafe_buffer_pointer() not in reads
    check_contents(y, X, SingleDeviceSharding(devices()[5]))
