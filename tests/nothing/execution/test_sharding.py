"""Shardings: their devices, shapes and indices."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import plugrt.sharding
from plugrt.errors import InvalidArgument, ShapeError
from plugrt.sharding import NamedSharding, PartitionSpec, PmapSharding, SingleDeviceSharding
from support.fake_client import FakeClient


@pytest.fixture
def devices() -> list[Any]:
    return list(FakeClient(count=4).devices())


def test_one_object_for_each_device_and_memory(devices: list[Any]) -> None:
    here = SingleDeviceSharding(devices[0])
    assert SingleDeviceSharding(devices[0]) is here
    assert SingleDeviceSharding(devices[1]) is not here
    assert SingleDeviceSharding(devices[0], memory_kind="device") is here
    assert here.memory_kind is None
    named = SingleDeviceSharding(devices[0], memory_kind="host")
    assert named is SingleDeviceSharding(devices[0], memory_kind="host")
    assert (named != here, named.memory_kind) == (True, "host")
    assert repr(named) == "SingleDeviceSharding(fake:0, memory_kind='host')"
    with pytest.raises(InvalidArgument, match="no memory of kind 'vram'"):
        SingleDeviceSharding(devices[0], memory_kind="vram")
    with pytest.raises(InvalidArgument, match="takes a device"):
        SingleDeviceSharding("cpu")  # type: ignore[arg-type]


def test_a_single_device_has_all(devices: list[Any]) -> None:
    here = SingleDeviceSharding(devices[2])
    assert (here.devices, here.device, here.device_set) == ((devices[2],), devices[2], {devices[2]})
    assert here.is_fully_replicated
    assert here.is_fully_addressable
    assert here.shard_shape((2, 3)) == (2, 3)
    assert here.devices_indices_map((2, 3)) == {devices[2]: (slice(None), slice(None))}


def test_single_device_shardings_go_with_their_client() -> None:
    client = FakeClient(count=1)
    gone = weakref.ref(client)
    SingleDeviceSharding(client.devices()[0])
    del client
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("dim", "shape", "part"),
    [(0, (4, 2), (1, 2)), (1, (3, 4), (3, 1)), (2, (5, 6, 4), (5, 6, 1)), (0, (8,), (2,))],
)
def test_one_slice_on_each(
    devices: list[Any], dim: int, shape: tuple[int, ...], part: tuple[int, ...]
) -> None:
    sharding = PmapSharding(devices, dim)
    assert sharding.shard_shape(shape) == part
    host = np.arange(np.prod(shape)).reshape(shape)
    where = sharding.devices_indices_map(shape)
    assert list(where) == devices
    for i, device in enumerate(devices):
        np.testing.assert_array_equal(host[where[device]], np.split(host, 4, dim)[i])
    assert not sharding.is_fully_replicated


def test_the_whole_on_each(devices: list[Any]) -> None:
    sharding = PmapSharding(devices, None)
    assert sharding.is_fully_replicated
    assert sharding.shard_shape((7, 3)) == (7, 3)
    whole = (slice(None), slice(None))
    assert list(sharding.devices_indices_map((7, 3)).values()) == [whole] * 4


def test_one_device_is_replicated_and_has_a_slice(devices: list[Any]) -> None:
    sharding = PmapSharding(devices[:1])
    assert sharding.is_fully_replicated
    assert sharding.shard_shape((1, 5)) == (1, 5)


@pytest.mark.parametrize("shape", [(3, 4), (), (5,)])
def test_shapes_that_do_not_divide(devices: list[Any], shape: tuple[int, ...]) -> None:
    sharding = PmapSharding(devices)
    for ask in (sharding.shard_shape, sharding.devices_indices_map):
        with pytest.raises(ShapeError, match=r"dimension 0 into 4 equal parts|names 1 dimension"):
            ask(shape)


def test_equality_is_of_devices_in_order_and_dimension(devices: list[Any]) -> None:
    sharding = PmapSharding(devices, 1)
    assert sharding == PmapSharding(tuple(devices), 1)
    assert hash(sharding) == hash(PmapSharding(devices, 1))
    others = [PmapSharding(devices, 0), PmapSharding(devices[::-1], 1), PmapSharding(devices, None)]
    assert all(sharding != other for other in others)
    assert sharding != SingleDeviceSharding(devices[0])
    assert sharding == NamedSharding(sharding.mesh, PartitionSpec(None, *sharding.mesh.axis_names))


def test_devices_that_make_no_sense(devices: list[Any]) -> None:
    for wrong, said in (([], "at least one"), ([devices[0]] * 2, "twice"), (["cpu"], "'cpu'")):
        with pytest.raises(InvalidArgument, match=said):
            PmapSharding(wrong)
    for dim in (-1, 0.5, True):
        with pytest.raises(InvalidArgument, match="sharded_dim"):
            PmapSharding(devices, dim)  # type: ignore[arg-type]


def test_the_default_for_a_shape(devices: list[Any]) -> None:
    assert PmapSharding.default((2, 4), 1, devices) == PmapSharding(devices, 1)
    assert PmapSharding.default((2, 4), None, devices) == PmapSharding(devices, None)
    for shape, dim in (((3,), 0), ((5,), 0), ((4,), 1), ((), 0)):
        with pytest.raises(ShapeError):
            PmapSharding.default(shape, dim, devices)


def test_memories_of_other_kinds(devices: list[Any]) -> None:
    one = SingleDeviceSharding(devices[0])
    assert one.with_memory_kind("device") is one
    for sharding in (
        PmapSharding(devices),
        plugrt.sharding.PositionalSharding(devices),
        plugrt.sharding.GSPMDSharding.get_replicated(devices),
    ):
        same = sharding.with_memory_kind("device")
        assert (same, hash(same), same.memory_kind) == (sharding, hash(sharding), None)


def test_devices_of_other_processes() -> None:
    devices = FakeClient(count=4, processes=2).devices()
    sharding = PmapSharding(devices)
    assert not sharding.is_fully_addressable
    assert sharding.addressable_devices == (devices[0], devices[2])
    assert len(sharding.device_set) == 4


def test_shardings_of_one_device_are_not_pickled(devices: list[Any]) -> None:
    with pytest.raises(TypeError, match="cannot be pickled; pickle the array"):
        pickle.dumps(SingleDeviceSharding(devices[0]))


def test_public_names() -> None:
    assert plugrt.sharding.PmapSharding is PmapSharding
    assert set(plugrt.sharding.__all__) <= set(dir(plugrt.sharding))
