"""Inputs of programs over several devices reach them with the least traffic, which is counted."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import devices, monitoring
from plugrt.sharding import GSPMDSharding, Mesh, NamedSharding, PmapSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.shardings import DTYPES
from support.traffic import Traffic, move_by_programs, watch

A = np.arange(32, dtype=np.float32).reshape(4, 8)


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((2, 4), ("x", "y")), P(*entries))


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traffic]:
    move_by_programs(monkeypatch)
    with watch(devices()[0].client) as found:
        yield found


def totals(traffic: Traffic) -> list[tuple[int, int]]:
    """Returns the numbers and bytes of arrays that were put, read, and copied between devices."""
    return [traffic.total(kind) for kind in ("put", "read", "copied")]


@behaviour(104, "a Python scalar beside an array over a mesh is put on its devices once, and kept")
def test_scalars_are_put_once(traffic: Traffic) -> None:
    x = plugrt.device_put(A.astype(np.int16), over("x", "y"))
    f = plugrt.jit(lambda v, s: v * s)
    for use in (lambda: x + 17, lambda: 17 - x, lambda: x * np.int16(17), lambda: f(x, 17)):
        first = use()
        traffic.clear()
        again = use()
        assert traffic == []
        assert first.dtype == again.dtype == np.int16  # the scalar is weakly typed
        assert (again.committed, again.sharding.devices) == (True, x.sharding.devices)
    np.testing.assert_array_equal(x + 17, A + 17)
    np.testing.assert_array_equal(f(x, 17), A * 17)
    for zero in (0.0, -0.0):  # equal, but not the same object
        y = plugrt.device_put(np.float32([1, 1, 1, 1]), over("x")) * zero
        assert np.signbit(y).all() == np.signbit(zero)


@behaviour(104, "a scalar that pmap gives to all devices is put once, too")
def test_scalars_of_pmap(traffic: Traffic) -> None:
    f = plugrt.pmap(lambda v, s: v * s, in_axes=(0, None))
    x = plugrt.device_put(A, PmapSharding(devices()[:4]))
    f(x, 1.5)
    traffic.clear()
    np.testing.assert_array_equal(f(x, 1.5), 1.5 * A)
    assert traffic.total("put") == (0, 0)


def elsewhere(*entries: Any) -> NamedSharding:
    """Returns a sharding like `over`, with the devices in another order."""
    return NamedSharding(Mesh(np.array(devices()[7::-1]).reshape(2, 4), ("x", "y")), P(*entries))


def tiled(*entries: Any) -> GSPMDSharding:
    """Returns a sharding equivalent to `over`, of another class."""
    named = over(*entries)
    return GSPMDSharding.from_tiling(named.devices, named.tiling(A.ndim))


@contextlib.contextmanager
def told_bytes() -> Iterator[dict[str, list[int]]]:
    """Collects the bytes that events report, by event."""
    told: dict[str, list[int]] = defaultdict(list)

    def listen(event: str, duration: float, **facts: Any) -> None:
        if "bytes" in facts:
            told[event].append(facts["bytes"])

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield told
    finally:
        monitoring.unregister_event_duration_listener(listen)


@behaviour(109, "an event tells the bytes that go from device to device, of `device_put` and of "
           "arguments; `device_put` also those put", jax="has no such event")  # fmt: skip
def test_bytes_between_devices() -> None:
    with told_bytes() as told:
        x = plugrt.device_put(A, over())
        plugrt.device_put(x, over("x", "y"))
        y = plugrt.device_put(x, PmapSharding(devices()[:4]))
        np.testing.assert_array_equal(plugrt.jit(lambda v: v + v)(y), 2 * A)
        plugrt.device_put(y, over("x"))
    row, rows = A[0].nbytes, 2 * A[0].nbytes  # two devices have one of their two rows
    assert told[monitoring.DEVICE_PUT] == [8 * A.nbytes, 0, 0, 2 * row + 6 * rows]
    assert told[monitoring.RESHARD] == [0, 0, 2 * row + 6 * rows]


# The argument's and the program's sharding; the numbers and bytes of arrays put and copied.
INPUTS: dict[str, tuple[Any, Any, tuple[int, int], tuple[int, int]]] = {
    "a NumPy array, in tiles": (None, lambda: over("x", "y"), (8, 128), (0, 0)),
    "a NumPy array, in rows": (None, lambda: over("x"), (8, 512), (0, 0)),
    "a NumPy array, whole on each": (None, lambda: over(), (8, 1024), (0, 0)),
    "right parts in place": (lambda: over("x"), lambda: over("x"), (0, 0), (0, 0)),
    "right parts, by a sharding of another class": (
        lambda: tiled("x", "y"), lambda: over("x", "y"), (0, 0), (0, 0)
    ),
    "right parts on other devices": (
        lambda: elsewhere("x", "y"), lambda: over("x", "y"), (0, 0), (8, 128)
    ),
    "right parts, half of them in place": (
        lambda: NamedSharding(Mesh(devices()[:4], "z"), P("z")),
        lambda: NamedSharding(Mesh([*devices()[:2], *devices()[6:8]], "z"), P("z")),
        (0, 0), (2, 64),
    ),
    "a part that more devices take": (
        lambda: PmapSharding(devices()[:1], None), lambda: over(), (0, 0), (7, 896)
    ),
    "the whole on each, of which parts are wanted": (
        lambda: over(), lambda: over("x", "y"), (0, 0), (0, 0)
    ),
    "slices of pmap": (
        lambda: PmapSharding(devices()[:4]),
        lambda: NamedSharding(Mesh(devices()[:4], "z"), P("z")), (0, 0), (0, 0),
    ),
    "rows, of which columns are wanted": (
        lambda: NamedSharding(Mesh(devices()[:2], "z"), P("z")),
        lambda: NamedSharding(Mesh(devices()[:2], "z"), P(None, "z")), (0, 0), (2, 64),
    ),
}  # fmt: skip


@behaviour(104, "arguments reach their devices in the fewest copies, counted: host data in "
           "slices, parts on the right device without a copy, others by programs on the devices, "
           "never through the host")  # fmt: skip
@pytest.mark.usefixtures("parts_are_put")
@pytest.mark.parametrize("name", INPUTS)
def test_the_cheapest_path(name: str, traffic: Traffic) -> None:
    given, taken, put, copied = INPUTS[name]
    x = A if given is None else plugrt.device_put(A, given())
    sharding = taken()
    traffic.clear()
    if given is None:
        y = plugrt.jit(lambda v: v, in_shardings=sharding, out_shardings=sharding)(x)
    else:
        with told_bytes() as told:
            y = plugrt.device_put(x, sharding)
        assert sum(told[monitoring.RESHARD]) == sum(told[monitoring.DEVICE_PUT]) == copied[1]
    assert totals(traffic) == [put, (0, 0), copied]
    assert y.sharding == sharding
    np.testing.assert_array_equal(y, A)
    f = plugrt.jit(lambda v: v * 2, in_shardings=sharding)
    f(y)
    traffic.clear()
    z = f(y)
    assert traffic == []
    np.testing.assert_array_equal(z, 2 * A)


@behaviour(104, "arguments of every dtype go to a mesh and from mesh to mesh unchanged")
def test_every_dtype(traffic: Traffic) -> None:
    tiles = over("x", "y")
    whole = plugrt.jit(lambda v: v, in_shardings=tiles, out_shardings=tiles)
    for dtype in DTYPES:
        host = (np.arange(32).reshape(4, 8) % 2).astype(dtype)
        y = whole(host)
        traffic.clear()
        moved = plugrt.device_put(y, elsewhere("x", "y"))
        assert totals(traffic) == [(0, 0), (0, 0), (8, host.nbytes)], dtype
        for found in (y, moved):
            assert found.dtype == dtype
            assert np.asarray(found).tobytes() == host.tobytes()
    nothing = np.zeros((4, 8), [("float0", "V")])
    y = whole(nothing)
    assert (y.dtype, y.sharding) == (np.dtype(bool), tiles)
    assert not np.asarray(y).any()
