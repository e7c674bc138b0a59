"""`pmap`: what is not done twice: transfers, traces, compilations."""

from __future__ import annotations

import contextlib
import gc
import pickle
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plugrt import (
    Array,
    clear_caches,
    config,
    device_put,
    device_put_replicated,
    device_put_sharded,
    devices,
    get_backend,
    monitoring,
    pmap,
)
from plugrt.errors import DeletedBuffer
from plugrt.lax import psum
from plugrt.sharding import PmapSharding
from support.compiles import compilations, counting
from support.ops import add, mul, total

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@contextlib.contextmanager
def transfers() -> Iterator[Counter[str]]:
    """Counts what goes from the host, to the host and between devices of the default backend.

    What a backend does within one of its methods is not counted: it may put several arrays one by
    one.
    """
    client = get_backend()
    buffer = type(client.buffer_from_host(X, devices()[0]))
    counts: Counter[str] = Counter()
    running: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (type(client), "buffer_from_host"),
            (type(client), "buffers_from_host"),
            (buffer, "to_host"),
            (buffer, "copy_to_device"),
            (buffer, "copy_to_memory"),
        ):
            patch.setattr(owner, name, _counted(getattr(owner, name), name, counts, running))
        yield counts


def _counted(real: Any, name: str, counts: Counter[str], running: list[str]) -> Any:
    def counted(*args: Any) -> Any:
        if not running:
            counts[name] += 1
        running.append(name)
        try:
            return real(*args)
        finally:
            running.pop()

    return counted


# --- transfers -------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_results_go_on_without_a_copy(axis: int) -> None:
    f = pmap(lambda x: add(x, 1), in_axes=axis, out_axes=axis)
    g = pmap(lambda x: psum(x, "i"), "i", in_axes=axis, out_axes=axis)
    once = f(X)
    with transfers() as counts:
        last = f(g(f(once)))
        last.block_until_ready()
    assert counts == {}
    expected = np.broadcast_to((X + 2).sum(axis, keepdims=True), X.shape) + 1
    np.testing.assert_array_equal(last, expected)


@pytest.mark.usefixtures("parts_are_put")
def test_a_host_array_is_put_once_for_each_device() -> None:
    f = pmap(lambda x, y: add(x, y), in_axes=(0, None))
    with transfers() as counts:
        f(X, np.float32(1))
    assert counts == {"buffers_from_host": 2}


def test_replicated_results_go_on_without_a_copy() -> None:
    step = pmap(lambda w, x: add(w, psum(x, "i")), "i", in_axes=(None, 0), out_axes=None)
    x = device_put(X, PmapSharding(devices()[:4]))
    weights = step(np.zeros(3, np.float32), x)
    with transfers() as counts:
        for _ in range(3):
            weights = step(weights, x)
    assert counts == {}
    np.testing.assert_array_equal(weights, X.sum(0) * 4)


def test_put_arrays_are_used_as_they_are() -> None:
    f = pmap(add)
    x = device_put_sharded(list(X), devices()[:4])
    y = device_put_replicated(X[0], devices()[:4])
    with transfers() as counts:
        result = f(x, y)
    assert counts == {}
    np.testing.assert_array_equal(result, X + X[0])


def test_closures_are_replicated_once() -> None:
    large = device_put(np.ones((3,), np.float32))
    f = pmap(lambda x: add(x, large))
    x = f(X)
    f(x)
    with transfers() as counts:
        f(x)
    assert counts == {}


@pytest.mark.usefixtures("parts_are_put")
def test_unused_arguments_stay_where_they_are() -> None:
    f = pmap(lambda x, y: add(x, 1))
    x = f(X, X)
    with transfers() as counts:
        np.testing.assert_array_equal(f(X, X), x)
    assert counts["buffers_from_host"] == 1
    assert counts["buffer_from_host"] == 0
    with transfers() as counts:
        f(x, X)
    assert counts == {}


# --- programs --------------------------------------------------------------------------------


def test_one_program_for_every_origin_of_the_data() -> None:
    f = pmap(lambda x: mul(x, x))
    spread = device_put(X, PmapSharding(devices()[:4]))
    calls = [X, spread, device_put(X), device_put(X, devices()[6]), X.astype(np.int32), X[:3], X]
    for elsewhere in calls[2:4]:
        device_put(elsewhere, spread.sharding)  # what takes them apart is compiled here
    assert compilations(f, *[(x,) for x in calls]) == [1, 0, 0, 0, 1, 1, 0]


def test_what_else_is_part_of_the_key() -> None:
    def body(x: Any, n: int) -> Any:
        return add(x, n)

    f = pmap(body, static_broadcasted_argnums=1)
    assert compilations(f, (X, 1), (X, 2), (X, 1), (X, 1.0)) == [1, 1, 0, 1]
    chosen = [pmap(body, static_broadcasted_argnums=1, devices=d) for d in (devices()[4:],) * 2]
    assert compilations(chosen[0], (X, 1)) == [1]
    assert compilations(chosen[1], (X, 1)) == [0]  # the cache is the function's
    with config.override(enable_x64=True):
        assert compilations(f, (X, 1)) == [1]
    assert compilations(pmap(body, in_axes=(1, None), static_broadcasted_argnums=1), (X, 1)) == [1]
    assert compilations(pmap(body, out_axes=1, static_broadcasted_argnums=1), (X, 1)) == [1]
    assert compilations(pmap(body, "i", static_broadcasted_argnums=1), (X, 1)) == [1]


def test_clearing() -> None:
    f = pmap(lambda x: add(x, 1))
    assert compilations(f, (X,), (X,)) == [1, 0]
    f.clear_cache()
    assert compilations(f, (X,), (X,)) == [1, 0]
    clear_caches()
    assert compilations(f, (X,), (X,)) == [1, 0]


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


# --- outputs that are arguments --------------------------------------------------------------


def test_nothing_is_compiled_where_nothing_is_computed() -> None:
    constant = device_put(np.float32(5))
    f = pmap(lambda x, c: (x, c, constant), in_axes=(0, None), out_axes=(0, None, None))
    with counting() as counts:
        x, c, five = f(X, np.arange(2))
    assert counts[monitoring.COMPILE] == 0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(c, [0, 1])
    np.testing.assert_array_equal(five, 5)
    x, c, five = pmap(lambda x, c: (x, c, constant), in_axes=(0, None), out_axes=(1, 0, 0))(
        X, np.arange(2)
    )
    np.testing.assert_array_equal(x, X.T)
    np.testing.assert_array_equal(c, [[0, 1]] * 4)
    np.testing.assert_array_equal(five, [5] * 4)


def test_forwarded_arguments_are_the_same_buffers_only_where_the_caller_spread_them() -> None:
    f = pmap(lambda x, c: (x, c), in_axes=(0, None), out_axes=(0, None))
    single = device_put(np.ones(3, np.float32))
    x, c = f(X, single)
    single.delete()
    np.testing.assert_array_equal(c, np.ones(3))
    with transfers() as counts:
        again = f(x, c)
    assert counts == {}
    np.testing.assert_array_equal(again[0], X)


# --- donation --------------------------------------------------------------------------------


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


def test_donation_from_elsewhere() -> None:
    f = pmap(lambda x, y: add(x, y), donate_argnums=(0,))
    x = device_put(X)
    np.testing.assert_array_equal(f(x, X), X + X)
    assert x.is_deleted()
    host = X.copy()
    np.testing.assert_array_equal(f(host, X), X + X)
    np.testing.assert_array_equal(host, X)


def test_keywords_are_not_donated() -> None:
    f = pmap(lambda x, y: add(x, y), donate_argnums=1)
    y = device_put(X, PmapSharding(devices()[:4]))
    f(X, y=y)
    assert not y.is_deleted()


def test_a_donation_that_cannot_be_used_warns() -> None:
    f = pmap(lambda x: total(x), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"not usable: float32\[1,3\]"):
        f(X)


# --- arrays over several devices -------------------------------------------------------------


def test_what_sharded_results_can_do() -> None:
    result: Array = pmap(lambda x: add(x, 1), out_axes=1)(X)
    assert result.shape == (3, 4)
    assert not result.is_fully_replicated
    assert result.is_fully_addressable
    shards = result.addressable_shards
    assert [s.index for s in shards] == [(slice(None), slice(i, i + 1)) for i in range(4)]
    assert [s.data.shape for s in shards] == [(3, 1)] * 4
    np.testing.assert_array_equal(result.addressable_data(2), X[2:3].T + 1)
    assert isinstance(result.block_until_ready(), Array)
    assert result.is_ready()
    back = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(back, X.T + 1)
    assert len(back.devices()) == 1
    result.delete()
    assert result.is_deleted()
    with pytest.raises(DeletedBuffer):
        np.asarray(result)
    with pytest.raises(DeletedBuffer):
        result.block_until_ready()


def test_a_single_replica() -> None:
    result = pmap(lambda x: add(x, 1))(X[:1])
    assert (result.shape, len(result.devices())) == ((1, 3), 1)
    np.testing.assert_array_equal(result, X[:1] + 1)
    moved = device_put(result, devices()[1])
    np.testing.assert_array_equal(moved, X[:1] + 1)
    np.testing.assert_array_equal(add(result, 1), X[:1] + 2)
    np.testing.assert_array_equal(pmap(lambda x: add(x, 1))(result), X[:1] + 2)


def test_no_warning_is_left() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pmap(lambda x: add(x, 1), donate_argnums=0)(X)
