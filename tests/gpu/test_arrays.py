"""Arrays on a GPU: put and read, in each dtype, order and size; memory of the device."""

from __future__ import annotations

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt.interface import Device


def test_each_dtype_makes_the_round_trip(gpu: Device) -> None:
    rng = np.random.default_rng(0)
    for dtype in gpu.client.capabilities.dtypes:
        if np.dtype(dtype).itemsize == 8 and np.dtype(dtype).kind in "iuf":
            continue  # 64 bits are off by default
        host = rng.integers(0, 2, (5, 7)).astype(dtype)
        buffer = gpu.client.buffer_from_host(host, gpu)
        back = buffer.to_host()
        assert back.dtype == host.dtype
        assert back.tobytes() == host.tobytes(), dtype


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7, 5, 3), (1 << 20,)])
def test_each_shape(gpu: Device, shape: tuple[int, ...]) -> None:
    host = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    x = plugrt.device_put(host, gpu)
    assert x.shape == shape
    np.testing.assert_array_equal(np.asarray(x), host)


@pytest.mark.parametrize("order", ["strided", "reversed", "fortran", "broadcast"])
def test_each_order_of_the_host(gpu: Device, order: str) -> None:
    whole = np.random.default_rng(2).standard_normal((64, 48)).astype(np.float32)
    host = {
        "strided": whole[::2, ::3],
        "reversed": whole[::-1],
        "fortran": np.asfortranarray(whole),
        "broadcast": np.broadcast_to(whole[0], (5, 48)),
    }[order]
    np.testing.assert_array_equal(np.asarray(plugrt.device_put(host, gpu)), host)


def test_a_large_array_that_is_changed_after_the_put(gpu: Device) -> None:
    host = np.random.default_rng(3).integers(0, 100, 1 << 25).astype(np.int32)
    kept = host.copy()
    x = plugrt.device_put(host, gpu)
    host[:] = -1
    np.testing.assert_array_equal(np.asarray(x), kept)


def test_reads_are_copies_that_live_on(gpu: Device) -> None:
    x = plugrt.device_put(np.arange(1000, dtype=np.float32), gpu)
    read = np.asarray(x)
    x.delete()
    np.testing.assert_array_equal(read, np.arange(1000))
    with pytest.raises(plugrt.errors.PlugrtError, match="deleted"):
        np.asarray(x)


def test_memory_is_counted_and_freed(gpu: Device) -> None:
    before = gpu.memory_stats()["bytes_in_use"]
    x = plugrt.device_put(np.ones(1 << 24, np.float32), gpu).block_until_ready()
    during = gpu.memory_stats()["bytes_in_use"]
    x.delete()
    del x
    after = gpu.memory_stats()["bytes_in_use"]
    assert during - before >= 1 << 26
    assert after - before < 1 << 26


def test_memory_kinds(gpu: Device) -> None:
    kinds = {memory.kind for memory in gpu.memories()}
    assert {"device", "pinned_host"} <= kinds
    host = np.arange(4096, dtype=np.float32)
    x = plugrt.device_put(host, gpu)
    pinned = plugrt.device_put(x, x.sharding.with_memory_kind("pinned_host"))
    assert pinned.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(pinned), host)
    back = plugrt.device_put(pinned, x.sharding.with_memory_kind("device"))
    np.testing.assert_array_equal(np.asarray(back + 1), host + 1)


def test_too_large_an_array_is_refused_and_the_next_is_made(gpu: Device) -> None:
    with plugrt.default_device(gpu), pytest.raises(plugrt.errors.ResourceExhausted):
        xp.zeros((1 << 40,), dtype=xp.float32).block_until_ready()
    with plugrt.default_device(gpu):
        assert float(xp.sum(xp.ones(8))) == 8


def test_layouts(gpu: Device) -> None:
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = plugrt.device_put(host, gpu)
    turned = plugrt.jit(lambda v: v.T)(x)
    np.testing.assert_array_equal(np.asarray(turned), host.T)
    assert turned.format is not None
