"""Parts that cannot be joined on a device are joined on the host."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from plugrt.errors import DeviceMismatch, Internal, PjrtError, ShapeError
from plugrt.execution.arrays.array_making import array_of_shards
from plugrt.execution.shardings.index_boxes import device_boxes
from plugrt.execution.transfers import exchange_plan
from plugrt.execution.transfers.exchanges import exchange
from plugrt.execution.transfers.resharding import reshard
from plugrt.execution.transfers.sharded_transfer import put_sharded
from plugrt.execution.transfers.whole_arrays import move
from plugrt.interface import Buffer, Capabilities, CompileOptions, LoadedExecutable, Program
from plugrt.sharding import Mesh, NamedSharding, PartitionSpec, PmapSharding, SingleDeviceSharding
from support.fake_client import FakeClient, FakeDevice
from support.native_core import python_calls

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Copying(FakeClient):
    """A client that copies from device to device and compiles nothing."""

    def __init__(
        self, error: PjrtError | None = None, formats: tuple[str, ...] = ("mlir",), count: int = 3
    ) -> None:
        super().__init__(count=count)
        self.error, self.compiled = error, list[Program]()
        self._can = Capabilities(device_to_device_copy=True, program_formats=formats)

    capabilities = property(lambda self: self._can)

    def compile(self, program: Program, options: CompileOptions) -> LoadedExecutable:
        self.compiled.append(program)
        if self.error is not None:
            raise self.error
        return super().compile(program, options)


def test_without_copies_from_device_to_device() -> None:
    client = FakeClient(count=3)
    x = put_sharded(X, PmapSharding(client.devices()[:2]))
    for target in (PmapSharding(client.devices(), 1), SingleDeviceSharding(client.devices()[2])):
        assert exchange(x, target) is None
        np.testing.assert_array_equal(reshard(x, target), X)
    np.testing.assert_array_equal(move(x, client.devices()[2], False), X)


@pytest.mark.parametrize("error", [None, Internal("a fault of the compiler")])
def test_a_failed_compilation_moves_by_the_host(
    error: PjrtError | None, caplog: pytest.LogCaptureFixture
) -> None:
    client = Copying(error)
    x = put_sharded(X, PmapSharding(client.devices()[:2]))
    with caplog.at_level(logging.WARNING, "plugrt.compile"):
        for _ in range(2):
            np.testing.assert_array_equal(move(x, client.devices()[2], True), X)
    assert len(client.compiled) == 1  # `compile` is not called again
    assert ("a fault of the compiler" in caplog.text) == (error is not None)


def test_without_a_format_for_the_program() -> None:
    client = Copying(formats=("hlo",))
    x = put_sharded(X, PmapSharding(client.devices()[:2]))
    np.testing.assert_array_equal(move(x, client.devices()[2], True), X)
    assert client.compiled == []


def test_between_clients() -> None:
    one, other = Copying(), Copying()
    x = put_sharded(X, PmapSharding(one.devices()[:2]))
    for target in (PmapSharding(other.devices()[:2]), PmapSharding(other.devices(), 1)):
        y = reshard(x, target)
        np.testing.assert_array_equal(y, X)
        assert y.sharding == target
    assert one.compiled == other.compiled == []


def test_parts_in_other_processes_stay_there() -> None:
    here, there = FakeClient(count=2, processes=2).devices()
    part = here.client.buffer_from_host(X[0], here)
    x = array_of_shards(X.shape, X.dtype, PmapSharding([here, there]), [part])
    with pytest.raises(DeviceMismatch, match=rf"devices \[{here.id}, {there.id}\].*\[{here.id}\]"):
        reshard(x, PmapSharding([here], None))


def test_whole_copies_of_which_some_are_in_other_processes() -> None:
    here, there = FakeClient(count=2, processes=2).devices()
    part: Buffer = here.client.buffer_from_host(X, here)
    x = array_of_shards(X.shape, X.dtype, PmapSharding([here, there], None), [part])
    assert move(x, here, True)._live()[0] is part
    assert reshard(x, PmapSharding([here], None))._live()[0] is part


def test_unequal_parts_are_refused() -> None:
    devices: list[FakeDevice] = [*FakeClient(count=3).devices()]  # type: ignore[list-item]
    with pytest.raises(ShapeError, match="3 equal parts"):
        reshard(put_sharded(X, PmapSharding(devices[:2])), PmapSharding(devices))


@pytest.mark.parametrize(
    ("source", "target", "most"),
    [
        ("reversed rows", "rows", 0),
        ("rows", "whole on each", 64),
        ("whole on each", "rows", 64),
        ("rows", "halves", 2 * 64),
    ],
)
def test_planning_looks_at_each_pair_of_different_parts_once(
    source: str, target: str, most: int
) -> None:
    devices = [*Copying(count=64).devices()]
    line, pairs = Mesh(devices, "x"), Mesh(np.array(devices).reshape(2, 32), ("x", "y"))
    shardings = {
        "rows": NamedSharding(line, PartitionSpec("x")),
        "reversed rows": NamedSharding(Mesh(devices[::-1], "x"), PartitionSpec("x")),
        "whole on each": NamedSharding(line, PartitionSpec()),
        "halves": NamedSharding(pairs, PartitionSpec("x")),
    }
    with python_calls() as seen:
        plan = exchange_plan.ExchangePlan((64, 3), shardings[source], shardings[target])
    assert min(most, 1) <= seen.count("overlap") <= most
    boxes = device_boxes(shardings[target], (64, 3))
    for device, pieces in plan._pieces.items():
        rows = sorted(row for _, piece in pieces for row in range(*piece[0]))
        assert rows == [*range(*boxes[device][0])]
        if source == "whole on each":
            assert [i for i, _ in pieces] == [devices.index(device)]
