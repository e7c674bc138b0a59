"""Puts, moves between shardings, and gathers arrays over several devices."""

from __future__ import annotations

import numpy as np
import pytest

from plugrt import device_put, device_put_replicated, device_put_sharded, devices
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    InvalidArgument,
    NotAnArray,
    ShapeError,
    StructureError,
)
from plugrt.sharding import PmapSharding, Sharding, SingleDeviceSharding

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


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


def test_shapes_that_do_not_divide() -> None:
    with pytest.raises(ShapeError, match=r"dimension 0 into 4 equal parts.*\(3, 4, 5\).*3"):
        device_put(X, PmapSharding(devices()[:4]))
    with pytest.raises(ShapeError, match="names 2 dimensions, and the array has 1"):
        device_put(np.ones(4), PmapSharding(devices()[:4], 1))


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
    for shards in (X, {0: X[0], 1: X[1]}):
        with pytest.raises(ArgumentTypeError, match=r"a sequence of shards.*make a list"):
            device_put_sharded(shards, devices()[: len(shards)])  # type: ignore[arg-type]
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
