"""Executables of a backend as bytes, and programs compiled for absent devices."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from plugrt.errors import (
    DataLoss,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    PlugrtError,
    Unimplemented,
)
from plugrt.interface import Client, CompileOptions, DeviceAssignment, DeviceDescription, Program
from plugrt.plugins import LibraryPlugin, Plugin
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk import BackendClient, BackendPlugin, Compiled, SavesPrograms
from plugrt_sdk.export import export_capsule
from plugrt_sdk.topology import BackendTopology
from support.late_client import Adder

ADD = b"""func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %b : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
ONE = np.float32([1, 2, 3])


class Saving(Adder):
    """Stores a word with each executable; compiles for devices that are elsewhere."""

    def __init__(self, devices: int = 1) -> None:
        super().__init__(devices)
        self.loaded: list[tuple[bytes, Any]] = []

    def serialize(self, compiled: Compiled) -> Any:
        return b"word of " + compiled.program.name.encode()

    def deserialize(self, content: bytes, program: Program, options: CompileOptions) -> Any:
        self.loaded.append((content, options.device_assignment))
        return self.compile(program, options)

    def topologies(self, name: str, options: Any) -> Any:
        if not name.isdecimal():
            raise InvalidArgument(f"{name!r} is no number of chips")
        return [DeviceDescription(i, 0, "far", "", {"coords": [i]}) for i in range(int(name))]


class Again(SavesPrograms, Adder):
    """Saves the program, and compiles it again when it loads."""


def _compiled(client: Client) -> Any:
    return client.compile(Program(ADD, name="sum"), CompileOptions())


def _runs(client: Client, loaded: Any, device: int = 0) -> bool:
    x = client.buffer_from_host(ONE, client.devices()[device])
    [[result]] = loaded.execute([(x,), (x,)])
    return bool((result.to_host() == 2 * ONE).all()) and result.device is client.devices()[device]


def _as_host(client: Client, exported: bool) -> Client:
    if not exported:
        return client
    return LibraryPlugin("x", c_api=export_capsule(lambda: client)).create_client({})


@pytest.mark.parametrize("kind", [Saving, Again])
@pytest.mark.parametrize("exported", [False, True])
def test_an_executable_is_loaded_by_another_client(kind: Any, exported: bool) -> None:
    first, second = (_as_host(BackendClient(kind(2)), exported) for _ in range(2))
    assert first.capabilities.executable_serialization
    saved = _compiled(first).executable.serialize()
    loaded = second.deserialize_executable(saved)
    assert _runs(second, loaded)
    assert [str(kind) for kind in loaded.executable.output_types] == ["float32[3]"]


@pytest.mark.parametrize("exported", [False, True])
def test_a_program_that_divided_itself_is_loaded_as_it_was_compiled(exported: bool) -> None:
    """Over a mesh with the devices in another order; the backend gets the same options."""
    seen: list[CompileOptions] = []

    class Noting(NumpyBackend):
        def deserialize(self, content: bytes, program: Program, options: CompileOptions) -> Any:
            seen.append(options)
            return super().deserialize(content, program, options)

    asked = CompileOptions(
        num_partitions=2, use_spmd_partitioning=True, use_shardy_partitioner=True,
        use_auto_spmd_partitioning=True, auto_spmd_partitioning_mesh_shape=(2,),
        auto_spmd_partitioning_mesh_ids=(1, 0), parameter_is_tupled=True,
        allow_spmd_sharding_propagation_to_parameters=(True, False),
        allow_spmd_sharding_propagation_to_output=(False,),
    )  # fmt: skip
    client = _as_host(BackendClient(Noting(2)), exported)
    code = ADD.replace(b"tensor<3xf32>", b"tensor<4xf32>")
    first = client.compile(Program(code, name="sum"), asked)
    again = client.deserialize_executable(first.executable.serialize())
    of_lists = [field.name for field in fields(CompileOptions)][3:-2]
    assert [getattr(seen[0], name) for name in of_lists] == [getattr(asked, n) for n in of_lists]
    stated = [e.executable.parameter_shardings() for e in (first, again)]
    assert stated[0] == stated[1] != [b"", b""]
    assert again.executable.fingerprint() == first.executable.fingerprint()
    other = client.compile(
        Program(code, name="sum"), replace(asked, allow_spmd_sharding_propagation_to_output=(True,))
    )
    assert other.executable.fingerprint() != first.executable.fingerprint()
    halves = [
        client.buffer_from_host(part, device)
        for part, device in zip(np.float32([[3, 4], [1, 2]]), client.devices(), strict=True)
    ]
    for loaded in (first, again):
        [results] = loaded.execute([halves, halves])
        np.testing.assert_array_equal(results[0].to_host(), np.float32([2, 4, 6, 8]))


def test_the_backend_gets_its_bytes_and_the_devices_that_are_asked_for() -> None:
    client: Any = BackendClient(Saving(2))
    saved = _compiled(client).executable.serialize()
    there = DeviceAssignment(((1,),))
    loaded = client.deserialize_executable(saved, CompileOptions(device_assignment=there))
    assert client.backend.loaded == [(b"word of sum", there)]
    assert loaded.executable.name == "sum"
    assert loaded.executable.fingerprint() == _compiled(client).executable.fingerprint()
    assert _runs(client, loaded, 1)


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (lambda b: b"nonsense", InvalidArgument, "8 bytes are no executable"),
        (lambda b: b"", InvalidArgument, "0 bytes are no executable"),
        (lambda b: b[:-1], DataLoss, "cut off or damaged"),
        (lambda b: b[:-3] + b"xyz", DataLoss, "cut off or damaged"),
        (lambda b: b[:30], DataLoss, "cut off or damaged"),
    ],
)
def test_bytes_that_are_not_whole_are_refused(
    change: Any, kind: type[PlugrtError], says: str
) -> None:
    client = BackendClient(Saving())
    saved = _compiled(client).executable.serialize()
    with pytest.raises(kind, match=says):
        client.deserialize_executable(change(saved))


@pytest.mark.parametrize(
    ("attribute", "kind"), [("version", FailedPrecondition), ("platform", InvalidArgument)]
)
def test_another_version_or_platform_is_refused(attribute: str, kind: type[PlugrtError]) -> None:
    saved = _compiled(BackendClient(Saving())).executable.serialize()
    other: Any = Saving()
    setattr(other, attribute, "other")
    with pytest.raises(kind, match=r"'adder'.* 'other'"):
        BackendClient(other).deserialize_executable(saved)
    assert other.loaded == []


@pytest.mark.parametrize(("method", "expected"), [("serialize", "bytes"), ("deserialize", "a fun")])
def test_wrong_returns_are_the_backends_fault(method: str, expected: str) -> None:
    client: Any = BackendClient(Saving())
    saved = _compiled(client).executable.serialize()
    setattr(client.backend, method, lambda *_: None)
    with pytest.raises(Internal, match=rf"Saving.{method} .* returned None; {expected}"):
        client.deserialize_executable(saved) if method == "deserialize" else (
            _compiled(client).executable.serialize()
        )


@pytest.mark.parametrize("exported", [False, True])
def test_a_program_compiled_without_the_device_runs_where_it_is(exported: bool) -> None:
    class Absent(Saving):
        def devices(self) -> Any:
            raise AssertionError("there is no device here")

    def export(kind: type[Saving]) -> Plugin:
        plugin = BackendPlugin("adder", kind)
        if not exported:
            return plugin
        capsule = export_capsule(
            lambda: plugin.create_client({}), topology_factory=plugin.create_topology
        )
        return LibraryPlugin("x", c_api=capsule)

    topology = export(Absent).create_topology("4", {})
    assert [(d.id, d.attributes["coords"]) for d in topology.devices] == [
        (i, [i]) for i in range(4)
    ]
    saved = topology.compile(Program(ADD), CompileOptions()).serialize()
    client = export(Saving).create_client({})
    assert client.capabilities.topology
    assert _runs(client, client.deserialize_executable(saved))


def test_topologies_are_refused_by_name() -> None:
    plugin = BackendPlugin("adder", Saving)
    with pytest.raises(InvalidArgument, match="'x' is no number of chips"):
        plugin.create_topology("x", {})
    with pytest.raises(InvalidArgument, match="2 replicas x 1 partitions need 2 devices"):
        plugin.create_topology("1", {}).compile(Program(ADD), CompileOptions(2))
    far = CompileOptions(device_assignment=DeviceAssignment(((7,),)))
    with pytest.raises(InvalidArgument, match=r"'2' has the devices \[0, 1\]; .* on \[7\]"):
        plugin.create_topology("2", {}).compile(Program(ADD), far)
    with pytest.raises(Unimplemented, match=r"topologies is not implemented by .* 'adder'"):
        BackendPlugin("adder", Adder).create_topology("2", {})


def test_equal_topologies_have_equal_fingerprints() -> None:
    first, again, other = (BackendTopology(Saving(), n, {}) for n in ("2", "2", "3"))
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert first.serialize() == again.serialize() != other.serialize()


@pytest.mark.parametrize("wrong", [None, [], ["chip"]])
def test_wrong_topologies_are_the_backends_fault(wrong: Any) -> None:
    backend: Any = Saving()
    backend.topologies = lambda name, options: wrong
    with pytest.raises(Internal, match=r"Saving.topologies .* DeviceDescriptions"):
        BackendTopology(backend, "1", {})
