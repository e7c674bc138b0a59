"""Arrays made by a callback for each part, of arrays on devices, and of a process's own data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices
from plugrt.errors import ArgumentError, DtypeError, InvalidArgument, NotAnArray, ShapeError
from plugrt.sharding import Mesh, NamedSharding, PmapSharding, SingleDeviceSharding
from plugrt.sharding import PartitionSpec as P
from support.behaviour import behaviour
from support.fake_client import FakeClient

A = np.arange(48, dtype=np.float32).reshape(8, 6)


def over(*entries: Any) -> NamedSharding:
    return NamedSharding(plugrt.make_mesh((4, 2), ("x", "y")), P(*entries))


@behaviour(110, "`make_array_from_callback` asks once for each part, and puts it on each device")
@pytest.mark.parametrize(
    "sharding", [over("x", "y"), over("x"), over(), over(("y", "x")), PmapSharding(devices()[:8]),
                 SingleDeviceSharding(devices()[3])], ids=["tiles", "rows", "whole", "all", "pmap",
                                                           "one"]
)  # fmt: skip
def test_an_array_from_a_callback(sharding: Any) -> None:
    asked: list[Any] = []

    def part(index: Any) -> np.ndarray:
        asked.append(index)
        return A[index]

    x = plugrt.make_array_from_callback(A.shape, sharding, part)
    np.testing.assert_array_equal(x, A)
    assert (x.sharding, x.dtype) == (sharding, A.dtype)
    assert len(asked) == len({repr(shard.index) for shard in x.addressable_shards})
    again = plugrt.make_array_from_single_device_arrays(
        x.shape, sharding, [shard.data for shard in x.addressable_shards[::-1]]
    )
    np.testing.assert_array_equal(again, A)
    assert again.sharding == sharding
    local = plugrt.make_array_from_process_local_data(sharding, A, A.shape)
    np.testing.assert_array_equal(local, A)


@behaviour(110, "`global_shards` and `addressable_shards` number the devices that have a part")
def test_shards() -> None:
    x = plugrt.device_put(A, over("x"))
    assert [s.replica_id for s in x.global_shards] == [0, 1] * 4
    assert [s.device for s in x.global_shards] == [s.device for s in x.addressable_shards]
    for shard in x.global_shards:
        np.testing.assert_array_equal(shard.data, A[shard.index])
        assert shard.data.devices() == {shard.device}


def test_an_array_from_the_data_of_one_of_two_processes() -> None:
    """Each process has every other device of four: this one 0 and 2."""
    client = FakeClient(count=4, processes=2)
    mesh = Mesh(np.array(client.devices()).reshape(2, 2), ("here", "process"))
    rows = NamedSharding(mesh, P("process"))
    x = plugrt.make_array_from_process_local_data(rows, A[:4])
    assert (x.shape, x.is_fully_addressable) == ((8, 6), False)
    assert [s.data is None for s in x.global_shards] == [False, True, False, True]
    for shard in x.addressable_shards:
        assert (shard.index[0], shard.replica_id) == (
            slice(0, 4),
            client.devices().index(shard.device) // 2,
        )
        np.testing.assert_array_equal(shard.data, A[:4])
    whole = plugrt.make_array_from_process_local_data(rows, A, (8, 6))
    np.testing.assert_array_equal(whole.addressable_shards[0].data, A[:4])
    both = NamedSharding(mesh, P("here", "process"))
    grid = plugrt.make_array_from_process_local_data(both, A[:, :3])
    assert grid.shape == (8, 6)
    np.testing.assert_array_equal(grid.addressable_shards[1].data, A[4:, :3])
    with pytest.raises(ShapeError, match=r"have \(4, 6\) of the shape \(8, 6\); .* \(3, 6\)"):
        plugrt.make_array_from_process_local_data(rows, A[:3], (8, 6))
    with pytest.raises(ShapeError, match="size 3, and the devices of this process divide"):
        plugrt.make_array_from_process_local_data(both, A[:3, :3])
    elsewhere = SingleDeviceSharding(client.devices()[1])
    with pytest.raises(ArgumentError, match="no device of this process"):
        plugrt.make_array_from_process_local_data(elsewhere, A)
    with pytest.raises(ArgumentError, match="no part has the dtype"):
        plugrt.make_array_from_callback((2,), elsewhere, lambda index: A[0])
    empty = plugrt.make_array_from_callback((2,), elsewhere, lambda index: A[0], np.float32)
    assert (empty.shape, empty.addressable_shards) == ((2,), [])


@behaviour(110, "parts of a wrong shape, dtype or place are refused, each with the numbers")
def test_wrong_parts() -> None:
    make = plugrt.make_array_from_callback
    with pytest.raises(ShapeError, match=r"for \(slice\(0, 2.*\(3, 6\); each part .*\(2, 6\)"):
        make(A.shape, over("x"), lambda index: A[:3])
    with pytest.raises(DtypeError, match="float64; the array's is float32"):
        make(A.shape, over("x"), lambda index: A[index].astype(float), np.float32)
    with pytest.raises(ShapeError, match="cannot be divided by 4"):
        make((7, 6), over("x"), lambda index: A[index])
    with pytest.raises(NotAnArray):
        make(A.shape, over("x"), lambda index: "part")  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="it takes a sharding of"):
        make(A.shape, devices()[0], lambda index: A)  # type: ignore[arg-type]
    parts = [shard.data for shard in plugrt.device_put(A, over("x", "y")).addressable_shards]
    join = plugrt.make_array_from_single_device_arrays
    for arrays, error, said in (
        (parts[:7], ArgumentError, "the arrays are on .*; NamedSharding.*has, in this process"),
        ([*parts[:7], parts[0]], ArgumentError, r"arrays\[7\] is the second on"),
        ([*parts[:7], A[:2, :3]], NotAnArray, "device_put it first"),
        ([*parts[:7], parts[7][:1]], ShapeError, r"arrays\[7\] is of the shape \(1, 3\)"),
        ([*parts[:7], xp.astype(parts[7], np.int32)], DtypeError, "int32; the array"),
        ([plugrt.device_put(A, over("x"))], ArgumentError, r"arrays\[0\] is on several devices"),
    ):
        with pytest.raises(error, match=said):
            join(A.shape, over("x", "y"), arrays)
    deleted = [*parts]
    deleted[0].delete()
    with pytest.raises(RuntimeError, match="deleted"):
        join(A.shape, over("x", "y"), deleted)


def test_local_data_go_to_a_device_or_a_spec_of_the_context() -> None:
    """Same as JAX: a device or a spec in `make_array_from_process_local_data`."""
    there = plugrt.make_array_from_process_local_data(devices()[3], {"a": A}, (8, 6))["a"]
    assert there.sharding == SingleDeviceSharding(devices()[3])
    assert there.tolist() == A.tolist()
    mesh = plugrt.make_mesh((4, 2), ("x", "y"))
    with plugrt.set_mesh(mesh):
        rows = plugrt.make_array_from_process_local_data(P("x"), A)
    assert rows.sharding == NamedSharding(mesh, P("x"))
    assert rows.tolist() == A.tolist()
    with pytest.raises(InvalidArgument, match=r"process_local_data has .* no mesh in the context"):
        plugrt.make_array_from_process_local_data(P("x"), A)
