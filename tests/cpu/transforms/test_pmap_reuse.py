"""`pmap`: reuse of transfers, traces and compilations."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from plugrt import (
    config,
    device_put,
    device_put_replicated,
    device_put_sharded,
    devices,
    get_backend,
    pmap,
)
from plugrt.errors import DeletedBuffer
from plugrt.lax import psum
from plugrt.sharding import PmapSharding
from support.compiles import compilations
from support.ops import add, mul
from support.traffic import watch

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("axis", [0, 1])
def test_results_go_on_without_a_copy(axis: int) -> None:
    f = pmap(lambda x: add(x, 1), in_axes=axis, out_axes=axis)
    g = pmap(lambda x: psum(x, "i"), "i", in_axes=axis, out_axes=axis)
    once = f(X)
    with watch(get_backend()) as traffic:
        last = f(g(f(once)))
        last.block_until_ready()
    assert traffic == []
    expected = np.broadcast_to((X + 2).sum(axis, keepdims=True), X.shape) + 1
    np.testing.assert_array_equal(last, expected)


@pytest.mark.usefixtures("parts_are_put")
def test_a_host_array_is_put_once_for_each_device() -> None:
    f = pmap(lambda x, y: add(x, y), in_axes=(0, None))
    with watch(get_backend()) as traffic:
        f(X, np.float32(1))
    assert [each.method for each in traffic] == ["buffers_from_host"] * 2


def test_put_arrays_are_used_as_they_are() -> None:
    f = pmap(add)
    x = device_put_sharded(list(X), devices()[:4])
    y = device_put_replicated(X[0], devices()[:4])
    with watch(get_backend()) as traffic:
        result = f(x, y)
    assert traffic == []
    np.testing.assert_array_equal(result, X + X[0])


def test_closures_are_replicated_once() -> None:
    large = device_put(np.ones((3,), np.float32))
    f = pmap(lambda x: add(x, large))
    x = f(X)
    f(x)
    with watch(get_backend()) as traffic:
        f(x)
    assert traffic == []


def test_one_program_for_every_origin_of_the_data() -> None:
    f = pmap(lambda x: mul(x, x))
    spread = device_put(X, PmapSharding(devices()[:4]))
    calls = [X, spread, device_put(X), device_put(X, devices()[6]), X.astype(np.int32), X[:3], X]
    for elsewhere in calls[2:4]:
        device_put(elsewhere, spread.sharding)  # compiles the program that splits it
    assert compilations(f, *[(x,) for x in calls]) == [1, 0, 0, 0, 1, 1, 0]


def test_static_values_devices_and_settings_are_part_of_the_key() -> None:
    def body(x: Any, n: int) -> Any:
        return add(x, n)

    f = pmap(body, static_broadcasted_argnums=1)
    assert compilations(f, (X, 1), (X, 2), (X, 1), (X, 1.0)) == [1, 1, 0, 1]
    chosen = [pmap(body, static_broadcasted_argnums=1, devices=d) for d in (devices()[4:],) * 2]
    assert compilations(chosen[0], (X, 1)) == [1]
    assert compilations(chosen[1], (X, 1)) == [0]  # both share the cache of `body`
    with config.override(enable_x64=True):
        assert compilations(f, (X, 1)) == [1]
    assert compilations(pmap(body, in_axes=(1, None), static_broadcasted_argnums=1), (X, 1)) == [1]
    assert compilations(pmap(body, out_axes=1, static_broadcasted_argnums=1), (X, 1)) == [1]
    assert compilations(pmap(body, "i", static_broadcasted_argnums=1), (X, 1)) == [1]


def test_the_function_is_held_weakly() -> None:
    def body(x: Any) -> Any:
        return add(x, 1)

    f = pmap(body)
    f(X)
    f(f(X))
    gone = weakref.ref(body)
    del f, body
    gc.collect()
    assert gone() is None


def test_donation() -> None:
    f = pmap(lambda x, y: add(x, y), donate_argnums=0)
    x, y = (device_put(X, PmapSharding(devices()[:4])) for _ in range(2))
    old = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
    result = f(x, y)
    assert x.is_deleted()
    assert not y.is_deleted()
    with pytest.raises(DeletedBuffer, match=r"donated to '<lambda>', called at .*test_pmap_reuse"):
        np.asarray(x)
    np.testing.assert_array_equal(result, X + X)
    new = [s.data.unsafe_buffer_pointer() for s in result.addressable_shards]
    assert sorted(old) == sorted(new)


def test_keywords_are_not_donated() -> None:
    f = pmap(lambda x, y: add(x, y), donate_argnums=1)
    y = device_put(X, PmapSharding(devices()[:4]))
    f(X, y=y)
    assert not y.is_deleted()
