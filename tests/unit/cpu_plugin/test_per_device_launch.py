"""Small programs whose parts exchange no data are launched device by device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import devices
from plugrt.capi.programs.launch_order import are_independent, is_small
from plugrt.errors import DeletedBuffer, FailedPrecondition, InvalidArgument, Unimplemented
from plugrt.interface import Client, CompileOptions, DeviceAssignment, ExecuteOptions
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec
from plugrt.wire import protobuf
from plugrt_cpu import adapter, plugin, serialization
from plugrt_cpu.jaxlib_import import jaxlib_minor
from plugrt_cpu.one_part import for_one_device
from plugrt_cpu.shards import await_all
from support.behaviour import behaviour
from support.cpu_launches import of_cpu_launches
from support.cpu_programs import add, all_reduce, matmul
from support.watched_calls import at_calls

FOUR = CompileOptions(num_replicas=4)
COMES_APART = jaxlib_minor() >= (0, 10)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    made = plugin.create_client({"num_devices": 4})
    yield made
    made.close()


def put(client: Client, size: int = 4, offset: int = 0) -> Any:
    """Returns shards filled with the device's id plus ``offset``."""
    devices = client.devices()[:4]
    buffers = [client.buffer_from_host(np.full(size, d.id + offset, "f4"), d) for d in devices]
    return client.shards(buffers)


def values(shards: Any) -> list[float]:
    return [float(b.to_host()[0]) for b in shards]


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("%r = f32[4] add(f32[4] %a, f32[4] %b)", True),
        ("%sender = f32[4] multiply(f32[4] %a, f32[4] %b)", True),
        ("%r = f32[4] all-reduce(f32[4] %a), replica_groups={{0,1}}", False),
        ("%r = f32[4] all-gather-start(f32[4] %a)", False),
        ("%r = f32[4] collective-permute(f32[4] %a)", False),
        ("%r = u32[] replica-id()", True),
        ("%r = u32[] partition-id()", True),
        ("%r = f32[4] custom-call(f32[4] %a)", False),
        ("%r = f32[4] rng(f32[] %a, f32[] %b)", False),
        ("%r = (s32[], f32[4]) while((s32[], f32[4]) %t), condition=%c, body=%b", False),
    ],
)
def test_operations_that_exchange_data(line: str, alone: bool) -> None:
    assert are_independent(f"ENTRY %main {{\n  {line}\n}}") is alone


@pytest.mark.parametrize(("name", "alone"), [("partition-id", True), ("all-reduce", False)])
def test_operations_that_exchange_data_in_bytes(name: str, alone: bool) -> None:
    assert are_independent(b"\x12" + bytes([len(name)]) + name.encode() + b"\x1a") is alone


def test_results_are_apart_and_go_on_as_they_are(client: Client) -> None:
    loaded = client.compile(add(), FOUR)
    first = loaded.execute([put(client), put(client, offset=10)])[0]
    assert first.is_split == COMES_APART  # type: ignore[attr-defined]
    second = loaded.execute([first, first])[0]
    assert values(second) == [20, 24, 28, 32]
    assert [b.device for b in second] == list(client.devices()[:4])
    assert not second[1].is_deleted()
    second[2].block_until_ready()
    assert second[2].ready_event().is_ready()


def test_whole_and_apart_meet(client: Client) -> None:
    reduce = client.compile(all_reduce((4,), 4), FOUR)
    loaded = client.compile(add(), FOUR)
    total, double = reduce.execute([put(client)])
    assert not total.is_split  # type: ignore[attr-defined]
    mixed = loaded.execute([total, put(client)])[0]
    assert values(mixed) == [6, 7, 8, 9]
    apart = loaded.execute([put(client), put(client)])[0]
    assert values(reduce.execute([apart])[0]) == [12] * 4
    assert values(double) == [0, 2, 4, 6]


def test_devices_in_another_order(client: Client) -> None:
    ids = (3, 0, 2)
    options = CompileOptions(
        num_replicas=3, device_assignment=DeviceAssignment(tuple((i,) for i in ids))
    )
    loaded = client.compile(add(), options)
    buffers = [client.buffer_from_host(np.full(4, i, "f4"), client.devices()[i]) for i in ids]
    for _ in range(2):
        result = loaded.execute([buffers, buffers])[0]
        assert values(result) == [6, 0, 4]
        assert [b.device.id for b in result] == [3, 0, 2]


def test_donation(client: Client) -> None:
    loaded = client.compile(add(donate=True), FOUR)
    for _ in range(2):
        given, kept = put(client), put(client, offset=1)
        result = loaded.execute([given, kept])[0]
        assert all(b.is_deleted() for b in given)
        assert not any(b.is_deleted() for b in kept)
        with pytest.raises(DeletedBuffer):
            loaded.execute([given, kept])
        with pytest.raises(InvalidArgument, match="donated and passed twice"):
            loaded.execute([kept, kept])
        assert values(kept) == [1, 2, 3, 4]
        assert values(result) == [1, 3, 5, 7]
    kept = put(client)
    loaded.execute([kept, put(client)], ExecuteOptions(non_donatable_input_indices=(0,)))
    assert values(kept) == [0, 1, 2, 3]


@pytest.mark.parametrize("exchanges", [False, True])
@pytest.mark.parametrize("by_core", [False, True])
def test_donated_parts_that_a_view_keeps_are_deleted_while_nothing_is_launched(
    client: Client, exchanges: bool, by_core: bool
) -> None:
    """jaxlib crashes if a launch on several devices finds a deleted array."""
    loaded = client.compile(add(donate=True), FOUR)
    if exchanges:  # as for programs that exchange data
        loaded._replicas, loaded._fresh = None, False  # type: ignore[attr-defined]
    locks: list[Any] = []
    given, kept = put(client), put(client)
    views = [buffer.to_host() for buffer in given]
    launch = loaded.launcher if by_core else loaded.execute
    with at_calls([adapter._delete_if_free], lambda inputs, _: locks.append(inputs["launch_lock"])):
        launch([given, kept])
    assert all(b.is_deleted() for b in given)
    assert locks
    assert {*map(id, locks)} == {id(client.launch_lock)}  # type: ignore[attr-defined]
    assert [view[0] for view in views] == [0, 1, 2, 3]


def test_refusals_come_before_any_launch(client: Client) -> None:
    loaded = client.compile(add(), FOUR)
    good = put(client)
    for wrong in (put(client, size=3), [good[1], good[0], good[2], good[3]]):
        with pytest.raises(InvalidArgument):
            loaded.execute([good, wrong])
    good[3].delete()
    with pytest.raises(DeletedBuffer):
        loaded.execute([put(client), good])
    loaded.delete()
    with pytest.raises(FailedPrecondition):
        loaded.execute([put(client), put(client)])


def test_larger_work_is_done_together(client: Client) -> None:
    loaded = client.compile(matmul(400, 30), FOUR)
    eyes = [client.buffer_from_host(np.eye(400, dtype="f4"), d) for d in client.devices()[:4]]
    result = loaded.execute([eyes])[0]
    assert not result.is_split  # type: ignore[attr-defined]
    assert [np.trace(b.to_host()) for b in result] == [400] * 4


@pytest.mark.parametrize(
    ("analysis", "small"),
    [
        ({}, True),
        ({"flops": 1000.0, "bytes accessed": 8000.0, "utilization": 1e9}, True),
        ({"flops": 1e5}, False),
        ({"transcendentals": 1e4}, False),
        ({"bytes accessed": 1e6}, False),
        ({"flops": -1.0}, False),
    ],
)
def test_small_programs_by_their_analysis(analysis: dict[str, float], small: bool) -> None:
    assert is_small(analysis) is small


def over(*entries: Any) -> NamedSharding:
    mesh = Mesh(np.array(devices()[:4]).reshape(2, 2), ("x", "y"))
    return NamedSharding(mesh, PartitionSpec(*entries))


SMALL: dict[str, tuple[Any, tuple[tuple[Any, ...], ...]]] = {
    "one argument": (lambda a: a + 1, (("x", "y"),)),
    "several, some whole": (
        lambda a, b, c: (a * b, b - c, c), ((None, "x"), (None, "x"), (None, "x"))
    ),
    "over one axis": (lambda a, b: (a + b, b), ((("x", "y"),), (("x", "y"),))),
    "all whole": (lambda a: a @ a, ((),)),
    "donated": (lambda a: -a, (("x",),)),
    "parts of what is whole, by their numbers": (lambda a, b: a + b, (("y", "x"), ())),
}  # fmt: skip


@behaviour(112, "on cpu, small programs without exchange are launched device by device")
@of_cpu_launches
@pytest.mark.skipif(not COMES_APART, reason="needs jaxlib 0.10")
@pytest.mark.parametrize("name", SMALL)
def test_partitions_that_exchange_nothing_are_launched_apart(name: str) -> None:
    function, specs = SMALL[name]
    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    expected = function(*[host] * len(specs))
    f = plugrt.jit(function, donate_argnums=(0,) if name == "donated" else ())
    for _ in range(2):
        args = [plugrt.device_put(host, over(*spec)) for spec in specs]
        found = f(*args)
        for one, wanted in zip(plugrt.tree.leaves(found), plugrt.tree.leaves(expected)):  # noqa: B905
            assert one._live().is_split
            assert one.sharding.num_devices == 4
            np.testing.assert_array_equal(one, wanted)
        assert args[0].is_deleted() == (name == "donated")


@of_cpu_launches
@pytest.mark.skipif(not COMES_APART, reason="needs jaxlib 0.10")
def test_results_of_one_call_are_waited_for_by_what_tells_its_ends() -> None:
    x = plugrt.device_put(np.ones((8, 8), np.float32), over("x", "y"))
    f = plugrt.jit(lambda a: (a + 1, a - 1))
    for _ in range(2):
        first, second = (array._live() for array in f(x))
        assert first._ends is second._ends
        assert len(first._ends) == len(first) == 4
        assert await_all([first, second])
        assert all(part.is_ready() for part in (*first.parts(), *second.parts()))
    second[1].delete()
    assert await_all([first])
    assert not await_all([first, second])


@of_cpu_launches
@pytest.mark.skipif(not COMES_APART, reason="needs jaxlib 0.10")
def test_parts_that_are_launched_apart_have_their_numbers() -> None:
    order = [plugrt.devices()[i] for i in (3, 0, 2, 1)]
    mesh = Mesh(np.array(order).reshape(2, 2), ("x", "y"))
    both = plugrt.shard_map(
        lambda v: v + 10 * plugrt.lax.axis_index("x") + plugrt.lax.axis_index("y"),
        mesh=mesh,
        in_specs=PartitionSpec("x", "y"),
        out_specs=PartitionSpec("x", "y"),
    )
    each = plugrt.pmap(lambda v: v + plugrt.lax.axis_index("i"), "i", devices=order)
    host = np.zeros((2, 2), np.int32)
    of_mesh = plugrt.device_put(host, NamedSharding(mesh, PartitionSpec("x", "y")))
    for f, given, expected in (
        (plugrt.jit(both), of_mesh, [[0, 1], [10, 11]]),
        (each, np.zeros(4, np.int32), [0, 1, 2, 3]),
    ):
        for _ in range(2):
            found = f(given)
            assert found._live().is_split
            np.testing.assert_array_equal(found, expected)


@behaviour(112, "on cpu, programs that exchange data are launched on all devices at once")
@of_cpu_launches
def test_partitions_that_exchange_data_are_launched_together() -> None:
    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    rows = plugrt.device_put(host, over(("x", "y")))
    for f, expected in ((lambda a: xp.sum(a, axis=0), host.sum(0)), (lambda a: a @ a, host @ host)):
        found = plugrt.jit(f)(rows)
        assert not found._live().is_split
        np.testing.assert_allclose(found, expected)


def test_a_format_that_is_not_known_is_not_edited(client: Client) -> None:
    payload = serialization.unpack(client.compile(add(), FOUR).executable.serialize()).payload
    size, start = protobuf.read_varint(memoryview(payload), 0)
    head = protobuf.without(payload[start : start + size], {1: None}) + protobuf.integer(1, 4)
    with pytest.raises(Unimplemented, match="version not known here"):
        for_one_device(protobuf.varint(len(head)) + head + payload[start + size :], 4, 1)
