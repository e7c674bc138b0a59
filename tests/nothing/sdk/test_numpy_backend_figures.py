"""The NumPy backend's costs of programs, memory statistics, and absent devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrt
from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, Program
from plugrt_numpy import plugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient
from plugrt_sdk.testing import programs

ONE = np.float32([1, 2, 3])
MANUAL = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<3xf32>) {
      %1 = stablehlo.add %b, %b : tensor<3xf32>
      sdy.return %1 : tensor<3xf32>
    } : (tensor<6xf32>) -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}"""


def costs(text: str, **options: Any) -> dict[str, Any]:
    client = BackendClient(NumpyBackend(2))
    executable = client.compile(Program(text.encode()), CompileOptions(**options)).executable
    return dict(executable.cost_analysis())


def test_the_costs_of_a_sum() -> None:
    assert costs(programs.ADD) == {
        "flops": 3, "bytes accessed": 36, "bytes accessed0{}": 12, "bytes accessed1{}": 12,
        "bytes accessedout{}": 12,
    }  # fmt: skip


def test_a_loop_counts_once_and_the_dearest_branch() -> None:
    assert costs(programs.COUNT_UP)["flops"] == 2
    branches = """func.func public @main(%p: tensor<i1>, %a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.sine %a : tensor<8xf32>
        stablehlo.return %1 : tensor<8xf32>
      }, {
        %1 = stablehlo.add %a, %a : tensor<8xf32>
        %2 = stablehlo.add %1, %a : tensor<8xf32>
        stablehlo.return %2 : tensor<8xf32>
      }) : (tensor<i1>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    found = costs(branches)
    assert (found["flops"], found["transcendentals"], found["bytes accessed"]) == (16, 8, 192)


@pytest.mark.parametrize("text", [programs.PARTITIONED_ADD, MANUAL])
def test_costs_are_those_of_one_device(text: str) -> None:
    found = costs(text, num_partitions=2)
    assert (found["flops"], found["bytes accessed"]) == (3, 36)
    assert costs(programs.ALL_REDUCE, num_replicas=2)["flops"] == 3


def test_a_function_that_is_called_twice_counts_twice() -> None:
    text = """func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.exponential %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.composite "x.f" %0 {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>
      %2 = chlo.erf_inv %1 : tensor<4xf32> -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }"""
    found = costs(text)
    assert found["transcendentals"] >= 8
    assert found["flops"] > 4  # counted on the expansion of chlo.erf_inv


def test_the_memory_of_each_device() -> None:
    client = BackendClient(NumpyBackend(2))
    near, far = client.devices()

    def held() -> list[tuple[int, int]]:
        both = (device.memory_stats() for device in (near, far))
        return [(found["bytes_in_use"], found["num_allocs"]) for found in both]

    x = client.buffer_from_host(ONE, far)
    assert held() == [(0, 0), (12, 1)]
    y = x.copy_to_device(near)
    view = y.to_host()
    y.delete()
    assert held() == [(12, 1), (12, 1)]  # the NumPy array still holds the memory
    del view
    assert held() == [(0, 0), (12, 1)]
    where = plugrt.interface.DeviceAssignment(((1,),))
    options = CompileOptions(device_assignment=where)
    program = client.compile(Program(programs.DONATING_ADD.encode()), options)
    [[total]] = program.execute([[x], [client.buffer_from_host(ONE, far)]])
    assert x.is_deleted()
    assert held() == [(0, 0), (12, 1)]
    del total
    assert held() == [(0, 0), (0, 0)]


def test_the_memory_of_a_launch_on_several_devices() -> None:
    client = BackendClient(NumpyBackend(2))
    program = client.compile(Program(programs.ALL_REDUCE.encode()), CompileOptions(num_replicas=2))
    x = [client.buffer_from_host(ONE, device) for device in client.devices()]
    results = program.execute([x])
    del x
    assert [d.memory_stats()["bytes_in_use"] for d in client.devices()] == [12, 12]
    del results
    assert [d.memory_stats()["bytes_in_use"] for d in client.devices()] == [0, 0]


def test_a_program_compiled_for_more_devices_runs_where_they_are() -> None:
    topology = plugin.create_topology("2", {})
    assert [(d.id, d.kind) for d in topology.devices] == [(0, "NumPy"), (1, "NumPy")]
    options = CompileOptions(num_partitions=2, use_shardy_partitioner=True)
    executable = topology.compile(Program(programs.PARTITIONED_ADD.encode()), options)
    assert executable.cost_analysis()["flops"] == 3
    client = plugin.create_client({"num_devices": 2})
    loaded = client.deserialize_executable(executable.serialize())
    x = [client.buffer_from_host(ONE, device) for device in client.devices()]
    for shard in loaded.execute([x])[0]:
        np.testing.assert_array_equal(shard.to_host(), 2 * ONE)


def test_a_client_is_of_the_topology_of_its_devices() -> None:
    assert len(plugin.create_client({"num_devices": 3}).topology().devices) == 3
    assert len(plugin.create_topology("", {}).devices) == 1


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("two", {}, "the name of a topology must be a number from 1 to 65536; 'two' was given"),
        ("0", {}, "must be a number from 1"),
        ("2", {"num_devices": 4}, r"have no options; found \['num_devices'\]"),
    ],
)
def test_other_topologies_are_refused(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        plugin.create_topology(name, options)
