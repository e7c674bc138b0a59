"""Arrays over several devices: putting, moving between shardings, gathering."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from plugrt import device_get, device_put, device_put_replicated, device_put_sharded, devices
from plugrt.errors import ArgumentError, InvalidArgument, NotAnArray, ShapeError, StructureError
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.sharded_transfer import gather
from plugrt.execution.transfers.whole_arrays import move
from plugrt.sharding import PmapSharding, Sharding, SingleDeviceSharding
from support.ops import add

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
FOUR = PmapSharding(devices()[:4], 1)


def shardings() -> list[Sharding]:
    ours = devices()
    return [
        SingleDeviceSharding(ours[0]),
        SingleDeviceSharding(ours[5]),
        PmapSharding(ours[:3], 0),
        PmapSharding(ours[3:6], 0),
        PmapSharding(ours[:4], 1),
        PmapSharding(ours[:5], 2),
        PmapSharding(ours[:4], None),
        PmapSharding([ours[6], ours[0]], None),
    ]


@pytest.mark.parametrize("source", range(8))
@pytest.mark.parametrize("target", range(8))
def test_from_every_sharding_to_every_other(source: int, target: int) -> None:
    x = device_put(X, shardings()[source])
    y = device_put(x, shardings()[target])
    assert y.sharding == shardings()[target]
    assert y.committed
    np.testing.assert_array_equal(y, X)
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, X[shard.index])
        assert shard.data.devices() == {shard.device}


def test_what_lies_right_is_kept() -> None:
    x = device_put(X, FOUR)
    assert reshard(x, PmapSharding(devices()[:4], 1)) is x
    whole = device_put(X, PmapSharding(devices()[:3], None))
    fewer = reshard(whole, PmapSharding(devices()[:2], None))
    assert [s.data.unsafe_buffer_pointer() for s in fewer.addressable_shards] == [
        s.data.unsafe_buffer_pointer() for s in whole.addressable_shards[:2]
    ]
    apart = reshard(whole, PmapSharding(devices()[:2], None), share=False)
    assert not {s.data.unsafe_buffer_pointer() for s in apart.addressable_shards} & {
        s.data.unsafe_buffer_pointer() for s in whole.addressable_shards
    }


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, ml_dtypes.bfloat16, ml_dtypes.int4, "c8"])
def test_gathering_any_dtype(dtype: Any) -> None:
    host = (np.arange(24).reshape(2, 3, 4) % 2).astype(dtype)
    x = device_put(host, PmapSharding(devices()[:3], 1))
    for result in (gather(x), np.asarray(move(x, devices()[1], True)), device_get(x)):
        assert result.dtype == host.dtype
        np.testing.assert_array_equal(result, host)


@pytest.mark.parametrize("shape", [(2,), (2, 0), (0, 2)])
def test_gathering_scalars_and_nothing(shape: tuple[int, ...]) -> None:
    dim = shape.index(2)
    x = device_put(np.ones(shape, np.float32), PmapSharding(devices()[:2], dim))
    np.testing.assert_array_equal(move(x, devices()[3], False), np.ones(shape))


def test_moving_a_replicated_array_takes_the_part_that_is_there() -> None:
    x = device_put(X, PmapSharding(devices()[:3], None))
    there = x.addressable_shards[2].data.unsafe_buffer_pointer()
    assert move(x, devices()[2], True).unsafe_buffer_pointer() == there
    np.testing.assert_array_equal(move(x, devices()[7], True), X)


def test_one_device_alone_still_has_its_dimension() -> None:
    x = device_put(X[:1], PmapSharding(devices()[:1]))
    assert x.addressable_shards[0].data.shape == (1, 4, 5)
    moved = device_put(x, devices()[0])
    assert (moved.shape, moved.sharding) == ((1, 4, 5), SingleDeviceSharding(devices()[0]))
    np.testing.assert_array_equal(moved, X[:1])


def test_donating_what_is_spread() -> None:
    x = device_put(X)
    y = device_put(x, PmapSharding(devices()[:3], None), donate=True)
    assert x.is_deleted()
    np.testing.assert_array_equal(y, X)
    z = device_put(y, devices()[1], donate=True)
    assert y.is_deleted()
    np.testing.assert_array_equal(z, X)


def test_a_copy_shares_nothing() -> None:
    x = device_put(X, FOUR)
    y = device_put(x, FOUR, may_alias=False)
    x.delete()
    np.testing.assert_array_equal(y, X)


def test_pytrees_are_spread() -> None:
    placed = device_put({"a": X, "b": [X[:, :, 0]]}, PmapSharding(devices()[:3]))
    assert placed["a"].addressable_shards[1].data.shape == (1, 4, 5)
    np.testing.assert_array_equal(placed["b"][0].addressable_shards[2].data, X[2:, :, 0])


def test_shapes_that_do_not_divide() -> None:
    with pytest.raises(ShapeError, match=r"dimension 0 into 4 equal parts.*\(3, 4, 5\).*3"):
        device_put(X, PmapSharding(devices()[:4]))
    with pytest.raises(ShapeError, match="names 2 dimensions, and the array has 1"):
        device_put(np.ones(4), PmapSharding(devices()[:4], 1))


# --- device_put_sharded and device_put_replicated --------------------------------------------


def test_one_shard_for_each_device() -> None:
    shards = [{"x": X[i], "n": i} for i in range(3)]
    result = device_put_sharded(shards, devices()[2:5])
    assert result["x"].sharding == PmapSharding(devices()[2:5])
    np.testing.assert_array_equal(result["x"], X)
    np.testing.assert_array_equal(result["n"], [0, 1, 2])


def test_shards_may_be_arrays_anywhere() -> None:
    parts = [device_put(X[0], devices()[4]), device_put(X[1]), X[2]]
    np.testing.assert_array_equal(device_put_sharded(parts, devices()[:3]), X)


def test_shards_that_do_not_go_together() -> None:
    with pytest.raises(ArgumentError, match="3 shards for 2 devices"):
        device_put_sharded(list(X), devices()[:2])
    with pytest.raises(ArgumentError, match="0 shards"):
        device_put_sharded([], [])
    with pytest.raises(StructureError, match="shards 0 and 1"):
        device_put_sharded([{"a": X}, {"b": X}], devices()[:2])
    with pytest.raises(ShapeError, match=r"shards 0 and 1.*float32\[4,5\].*float32\[3,4,5\]"):
        device_put_sharded([X[0], X], devices()[:2])
    with pytest.raises(ShapeError, match=r"float64"):
        device_put_sharded([X[0], X[0].astype("f8")], devices()[:2])
    with pytest.raises(NotAnArray):
        device_put_sharded([X[0], "text"], devices()[:2])


def test_one_value_on_every_device() -> None:
    result = device_put_replicated({"w": X[0], "s": 2.0}, devices()[1:4])
    assert result["w"].sharding == PmapSharding(devices()[1:4])
    np.testing.assert_array_equal(result["w"], np.stack([X[0]] * 3))
    np.testing.assert_array_equal(result["s"], np.float32([2, 2, 2]))
    again = device_put_replicated(device_put(X, devices()[6]), [devices()[6], devices()[0]])
    np.testing.assert_array_equal(again, np.stack([X, X]))
    with pytest.raises(ArgumentError, match="at least one device"):
        device_put_replicated(X, [])


def test_devices_must_be_devices() -> None:
    with pytest.raises(InvalidArgument, match="cpu:0"):
        device_put_replicated(X, ["cpu:0"])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="twice"):
        device_put_sharded([X, X], [devices()[0]] * 2)


def test_operations_leave_parts_where_they_are() -> None:
    x = device_put(X, FOUR)
    result = add(x, 1)
    np.testing.assert_array_equal(result, X + 1)
    assert result.sharding == FOUR
