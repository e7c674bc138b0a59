"""Replicas, partitions and collectives over several devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from plugrt.capi.abi import proto_wire
from plugrt.errors import DeletedBuffer, InvalidArgument, Unimplemented
from plugrt.interface import (
    Buffer,
    Client,
    CompileOptions,
    DeviceAssignment,
    ExecuteOptions,
    Program,
)
from support.cpu_programs import add, all_reduce, partitioned_sum

Put = Callable[..., list[Buffer]]


@pytest.fixture
def put(client: Client) -> Put:
    """Puts a float32 vector of two on each device, with the device's id in it."""

    def on_each(devices: Any = None, size: int = 2) -> list[Buffer]:
        return [
            client.buffer_from_host(np.full(size, d.id, "f4"), d)
            for d in devices or client.devices()
        ]

    return on_each


@pytest.fixture(scope="module")
def summed(client: Client) -> Any:
    return client.compile(all_reduce((2,), 4), CompileOptions(num_replicas=4))


def values(shards: Any) -> list[Any]:
    return [b.to_host().tolist() for b in shards]


@pytest.mark.parametrize("wait", [False, True])
def test_a_warm_program_still_checks_its_arguments(
    client: Client, summed: Any, put: Put, wait: bool
) -> None:
    def launch(arguments: Any) -> Any:
        return summed.execute_with_wait(arguments)[0] if wait else summed.execute(arguments)

    given = client.shards(put())
    for _ in range(2):
        assert values(launch([given])[0]) == [[6, 6]] * 4
    for wrong in ([], [given, given], [client.shards(put(size=3))]):
        with pytest.raises(InvalidArgument):
            launch(wrong)
    lost = client.shards(put())
    lost[2].delete()
    with pytest.raises(DeletedBuffer):
        launch([lost])
    assert values(launch([given])[0]) == [[6, 6]] * 4


def test_other_devices_in_another_order(client: Client, put: Put) -> None:
    devices = [client.devices()[i] for i in (3, 1)]
    options = CompileOptions(num_replicas=2, device_assignment=DeviceAssignment(((3,), (1,))))
    loaded = client.compile(all_reduce((2,), 2), options)
    assert list(loaded.addressable_devices) == devices
    total, double = loaded.execute([put(devices)])
    assert values(total) == [[4, 4]] * 2
    assert values(double) == [[6, 6], [2, 2]]
    with pytest.raises(InvalidArgument, match="cpu:3"):
        loaded.execute([put(devices[::-1])])
    with pytest.raises(InvalidArgument, match="was given to a program on"):
        loaded.execute([client.shards(put(devices[::-1]))])  # type: ignore[attr-defined]


@pytest.mark.parametrize("shardy", [False, True])
def test_partitions(client: Client, put: Put, shardy: bool) -> None:
    options = CompileOptions(
        num_partitions=4, use_spmd_partitioning=True, use_shardy_partitioner=shardy
    )
    loaded = client.compile(partitioned_sum(8, 4), options)
    assert (loaded.executable.num_replicas, loaded.executable.num_partitions) == (1, 4)
    double, total = loaded.execute([put()])
    assert values(double) == [[0, 0], [2, 2], [4, 4], [6, 6]]
    assert values(total) == [12.0] * 4
    assert [t.shape for t in loaded.executable.output_types] == [(2,), ()]


def test_shardings_that_the_compiler_would_choose_are_refused(client: Client) -> None:
    """jaxlib ends the process: "LLVM ERROR: auto-partitioner callback wasn't registered"."""
    options = CompileOptions(
        num_partitions=4, use_spmd_partitioning=True, use_auto_spmd_partitioning=True,
        auto_spmd_partitioning_mesh_shape=(2, 2), auto_spmd_partitioning_mesh_ids=(0, 1, 2, 3),
    )  # fmt: skip
    assert not client.capabilities.auto_partitioning
    for asked in (options, CompileOptions(encoded=proto_wire.compile_options(options))):
        with pytest.raises(Unimplemented, match="capability auto_partitioning"):
            client.compile(partitioned_sum(8, 4), asked)


def test_replicas_of_partitions(client: Client) -> None:
    options = CompileOptions(num_replicas=2, num_partitions=2, use_spmd_partitioning=True)
    attributes = b"attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32"
    program = Program(add().code.replace(b"attributes {", attributes))
    loaded = client.compile(program, options)
    assert (loaded.executable.num_replicas, loaded.executable.num_partitions) == (2, 2)
    shards = [client.buffer_from_host(np.full(4, d.id, "f4"), d) for d in client.devices()]
    assert values(loaded.execute([shards, shards])[0]) == [[2.0 * i] * 4 for i in range(4)]
    with pytest.raises(
        Unimplemented, match="2 replicas x 2 partitions"
    ):  # jaxlib-replicas-and-partitions
        client.compile(partitioned_sum(4, 2), options)


def test_donation(client: Client) -> None:
    loaded = client.compile(add(donate=True), CompileOptions(num_replicas=4))
    make = lambda: [client.buffer_from_host(np.ones(4, "f4"), d) for d in client.devices()]  # noqa: E731
    first, second = make(), make()
    (result,) = loaded.execute([first, second])
    assert all(b.is_deleted() for b in first)
    assert not any(b.is_deleted() for b in second)
    (again,) = loaded.execute([result, second])
    assert all(b.is_deleted() for b in result)
    with pytest.raises(DeletedBuffer):
        result[1].to_host()
    with pytest.raises(DeletedBuffer):
        loaded.execute([result, second])
    with pytest.raises(InvalidArgument, match="passed twice"):
        loaded.execute([again, again])
    loaded.execute([again, second], ExecuteOptions(non_donatable_input_indices=(0,)))
    assert values(again) == [[3] * 4] * 4


def test_bad_arguments_do_not_crash(client: Client, summed: Any, put: Put) -> None:
    """jaxlib itself crashes on each of these."""
    for arguments, match in (
        ([], "takes 1 arguments; 0"),
        ([put(), put()], "takes 1 arguments; 2"),
        ([put(size=3)], r"float32\[2\]; float32\[3\]"),
        ([put()[:3]], "3 buffers for the 4 devices"),
        ([put()[::-1]], "cpu:3"),
        ([[*put()[:3], *put(size=3)[3:]]], "types"),
        ([["x"] * 4], "another backend"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            summed.execute(arguments)


@pytest.mark.parametrize("index", range(4))
def test_one_buffer_deleted(client: Client, summed: Any, put: Put, index: int) -> None:
    buffers = put()
    shards = client.shards(buffers)  # type: ignore[attr-defined]
    result = summed.execute([buffers])[1]
    for deleted in (buffers, result):
        deleted[index].delete()
        assert [b.is_deleted() for b in deleted] == [i == index for i in range(4)]
        with pytest.raises(DeletedBuffer):
            summed.execute([deleted])
        assert deleted[index - 1].to_host().shape == (2,)
    with pytest.raises(DeletedBuffer):
        summed.execute([shards])


def test_two_threads_with_collectives(client: Client, summed: Any, put: Put) -> None:
    other = client.compile(
        all_reduce((2,), 4),
        CompileOptions(
            num_replicas=4, device_assignment=DeviceAssignment(((3,), (2,), (1,), (0,)))
        ),
    )
    failures: list[BaseException] = []

    def work(loaded: Any, devices: Any) -> None:
        try:
            for _ in range(25):
                total, _ = loaded.execute([put(devices)])
                assert values(total) == [[6, 6]] * 4
        except BaseException as error:
            failures.append(error)
            raise

    jobs = [(summed, client.devices()), (other, client.devices()[::-1])]
    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(t.is_alive() for t in threads)
    assert not failures


def test_an_array_of_no_buffers_is_refused(client: Client) -> None:
    """XLA ends the process over a sharding without devices."""
    with pytest.raises(InvalidArgument, match="at least one buffer; got none"):
        client.shards(())
