"""Arrays that share buffers with the array that they were made of: they outlive it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import Array, device_put, devices, jit
from plugrt.errors import DeletedBuffer
from plugrt.sharding import Mesh, NamedSharding, PmapSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.ops import add

N = np.arange(32, dtype=np.float32).reshape(4, 8)
take = jit(lambda x: add(x, 1), donate_argnums=0)
take_replicas = plugrt.pmap(lambda x: x + 1, donate_argnums=0)

HERE: dict[str, Callable[[Array], Array]] = {
    "device": lambda x: device_put(x, x.device),
    "sharding": lambda x: device_put(x, SingleDeviceSharding(devices()[0])),
    "mesh": lambda x: device_put(x, over(1, P())),
    "tree": lambda x: device_put({"a": [x]}, devices()[0])["a"][0],
    "aliased": lambda x: device_put(x, devices()[0], may_alias=True),
    "copied": lambda x: device_put(x, devices()[0], may_alias=False),
    "copy": lambda x: x.copy(),
    "identity": jit(lambda x: x),
}
"""Functions that make an array of an uncommitted one, on the same device."""


def over(count: int, spec: P) -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices()[:count]), ("a",)), spec)


def end(x: Array, how: str, donate: Callable[[Array], Array] = take) -> None:
    if how == "deleted":
        x.delete()
    else:
        np.testing.assert_array_equal(np.asarray(donate(x)), N + 1)
    assert x.is_deleted()


def require_devices(count: int) -> None:
    if len(devices()) < count:
        pytest.skip(f"no {count} devices here")


@pytest.mark.parametrize("how", ["donated", "deleted"])
@pytest.mark.parametrize("kind", HERE)
def test_an_array_put_where_it_is_outlives_the_other(kind: str, how: str) -> None:
    for other_ends in (False, True):
        x = add(device_put(N), 0)
        y = HERE[kind](x)
        assert y is not x
        x, y = (y, x) if other_ends else (x, y)
        end(x, how)
        assert not y.is_deleted()
        np.testing.assert_array_equal(np.asarray(y), N)
        end(y, how)


OVER: dict[str, Callable[[], Any]] = {
    "0": lambda: devices()[0],
    "1": lambda: devices()[1],
    "each of 4": lambda: over(4, P()),
    "each of 2": lambda: over(2, P()),
    "rows": lambda: over(4, P("a")),
    "slices": lambda: PmapSharding(devices()[:4]),
}


@pytest.mark.parametrize("how", ["donated", "deleted"])
@pytest.mark.parametrize("to", OVER)
@pytest.mark.parametrize("source", OVER)
def test_parts_put_where_they_are_outlive_the_other(source: str, to: str, how: str) -> None:
    require_devices(4)
    if source == to:
        return
    for other_ends in (False, True):
        x = device_put(N, OVER[source]())
        y = device_put(x, OVER[to]())
        x, y = (y, x) if other_ends else (x, y)
        end(x, how)
        assert not y.is_deleted()
        np.testing.assert_array_equal(np.asarray(y), N)
        end(y, how)


@pytest.mark.parametrize("how", ["donated", "deleted"])
def test_a_slice_of_what_pmap_divided_outlives_it(how: str) -> None:
    require_devices(4)
    x = plugrt.pmap(lambda x: x + 0)(N)
    rows = [x[1], *x]
    end(x, how, take_replicas)
    np.testing.assert_array_equal(np.stack([np.asarray(row) for row in rows]), N[[1, 0, 1, 2, 3]])


@pytest.mark.parametrize("how", ["donated", "deleted"])
def test_results_of_pmap_without_a_program_outlive_the_argument(how: str) -> None:
    require_devices(4)
    x = device_put(N, PmapSharding(devices()[:4]))
    with plugrt.disable_jit():
        y = plugrt.pmap(lambda x: x)(x)
    end(x, how, take_replicas)
    np.testing.assert_array_equal(np.asarray(y), N)


def test_the_last_that_has_the_buffers_gives_them_away() -> None:
    x = add(device_put(np.zeros(4096, np.float32)), 0)
    pointer = x.unsafe_buffer_pointer()
    y = device_put(x, devices()[0])
    assert y.unsafe_buffer_pointer() == pointer
    x.delete()
    assert take(y).unsafe_buffer_pointer() == pointer


@pytest.fixture
def quick_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("how", ["donated", "deleted"])
@pytest.mark.parametrize("way", ["device", "identity", "each of 2"])
def test_an_array_that_another_thread_ends_is_put_or_refused(way: str, how: str) -> None:
    source: Any = None
    put = HERE.get(way) or (lambda x: device_put(x, OVER[way]()))
    if way not in HERE:
        require_devices(2)
        source = devices()[0]
    current = [device_put(N, source)]
    stop = time.monotonic() + 0.7
    wrong: list[str] = []
    outlived = refused = 0

    def end_each() -> None:
        try:
            while time.monotonic() < stop:
                end(current[0], how)
                current[0] = device_put(N, source)
        except BaseException as error:  # the main thread checks the list
            wrong.append(repr(error))
            raise

    thread = threading.Thread(target=end_each)
    thread.start()
    while time.monotonic() < stop and not wrong:
        x = current[0]
        try:
            y = put(x)
        except DeletedBuffer:
            refused += 1
            continue
        if y.is_deleted() or not np.array_equal(np.asarray(y), N):
            wrong.append(f"{y!r:.200}")
        outlived += x.is_deleted()
    thread.join()
    assert not wrong
    assert outlived + refused
