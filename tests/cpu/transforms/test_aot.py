"""Compiling for absent devices, with a plugin that records its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import plugrt
from plugrt import array_api as xp
from plugrt import lax
from plugrt.errors import FailedPrecondition, InvalidArgument, Unimplemented, UnknownPlatform
from plugrt.interface import CompileOptions, DeviceDescription, Program
from plugrt.plugins import LibraryPlugin
from plugrt.programs.parsing import parse_program
from plugrt.sharding import AUTO, NamedSharding, PartitionSpec
from plugrt.stablehlo.modules import parse
from plugrt_numpy import plugin as numpy_plugin
from plugrt_sdk import Backend, BackendPlugin
from plugrt_sdk.export import export_capsule
from support.behaviour import behaviour
from support.fake_client import StartedPlugin
from support.fake_topology import FakeExecutable, FakeTopology, FarPlugin
from support.registries import as_own, registry

PAIR = plugrt.ShapeDtypeStruct((2,), np.float32)


@pytest.fixture
def far() -> Iterator[FarPlugin]:
    """Installs a plugin with a topology, which is never asked for a client."""
    plugin, here = FarPlugin(), plugrt.get_backend()
    with as_own(registry(StartedPlugin(here.platform, here), plugin)):
        yield plugin
    assert plugin.asked_for_clients == 0


def executable(compiled: Any) -> FakeExecutable:
    found = compiled.runtime_executable()
    assert isinstance(found, FakeExecutable)
    return found


@pytest.mark.parametrize("asked", [("far", "4"), ("far:4",)])
def test_a_topology_needs_no_client(far: FarPlugin, asked: tuple[str, ...]) -> None:
    found = plugrt.topology(*asked, wrap=[1, 0, 0])
    assert isinstance(found, FakeTopology)
    assert len(found.devices) == 4
    assert found.options == {"wrap": [1, 0, 0]}


def test_a_plugin_whose_client_failed_still_has_topologies() -> None:
    made = registry(JAX_PLATFORMS="far")
    made.register(FarPlugin())
    with pytest.raises(plugrt.errors.PluginUnavailable):
        plugrt.get_backend("far", made)
    [row] = [r for r in made.table.rows if r.name == "far"]
    assert row.state == "unavailable"
    assert len(made.topology("far", "2", {}).devices) == 2


def test_bad_names(far: FarPlugin) -> None:
    with pytest.raises(InvalidArgument, match="'two' is no number"):
        plugrt.topology("far:two")
    with pytest.raises(UnknownPlatform, match=r"did you mean 'far'\?"):
        plugrt.topology("fart:2")
    with pytest.raises(InvalidArgument, match="topology="):
        plugrt.jit(lambda x: x + 1).lower(PAIR).compile(topology=7)


def test_a_plugin_without_topologies_says_so() -> None:
    with pytest.raises(Unimplemented, match="'cpu' cannot compile for absent devices"):
        plugrt.topology("cpu:4")


def test_narrow_types_are_computed_in_int8_where_the_compiler_is_xlas_for_cpus(
    far: FarPlugin,
) -> None:
    pair = plugrt.ShapeDtypeStruct((2,), ml_dtypes.int4)
    lowered = plugrt.jit(lax.population_count).lower(pair)
    for platform, is_rewritten in (("far", False), ("cpu", True)):
        made = plugrt.topology("far:1", platform=platform)
        program = executable(lowered.compile(topology=made)).program
        assert ("xi8" in str(parse(program.code))) is is_rewritten


def test_a_jitted_function(far: FarPlugin) -> None:
    lowered = plugrt.jit(lambda tree: {"sum": tree["a"] + tree["b"]}).lower({"a": PAIR, "b": PAIR})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no warning about donations
        compiled = lowered.compile(topology="far:2")
    assert compiled.input_types is not None
    assert [str(t) for t in compiled.input_types] == ["float32[2]", "float32[2]"]
    assert compiled.out_info["sum"] == PAIR
    assert compiled.serialize() == b"artifact of <lambda>"
    assert compiled.cost_analysis()["flops"] == 12
    assert compiled.memory_analysis().temp_size_in_bytes == 56
    assert compiled.as_text() == "HloModule fake"
    assert compiled.fingerprint() == b"finger"
    assert "2 x Far 9000" in repr(compiled)
    assert b"StableHLO_v1.0.0" in executable(compiled).program.code


def test_it_cannot_be_called(far: FarPlugin) -> None:
    compiled = plugrt.jit(lambda x: x + 1).lower(PAIR).compile(topology="far:1")
    with pytest.raises(FailedPrecondition, match="cannot be called: those devices need not be"):
        compiled(np.zeros(2, np.float32))


def test_a_program_that_returns_its_arguments_is_compiled(far: FarPlugin) -> None:
    held = plugrt.device_put(np.ones(3, np.float32))
    compiled = plugrt.jit(lambda x, y: (held, 7, y)).lower(1, PAIR).compile(topology="far:1")
    assert compiled.input_types is not None
    assert [t.shape for t in compiled.input_types] == [(2,)]
    results = parse_program(executable(compiled).program)[2]
    assert [t.shape for t in results] == [(3,), (), (2,)]


def test_pmap_is_compiled_for_its_replicas(far: FarPlugin) -> None:
    count = plugrt.local_device_count()
    stack = plugrt.ShapeDtypeStruct((count, 2), np.float32)
    compiled = plugrt.pmap(lambda x: x + 1).lower(stack).compile(topology="far:8")
    assert executable(compiled).options.num_replicas == count
    assert compiled.out_info.shape == (count, 2)


def test_a_program_over_a_mesh_is_compiled_for_its_partitions(far: FarPlugin) -> None:
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), PartitionSpec("x"))
    x = plugrt.ShapeDtypeStruct((4, 2), np.float32)
    lowered = plugrt.jit(lambda x: (x + 1, xp.sum(x)), in_shardings=rows).lower(x)
    options = executable(lowered.compile(topology="far:4")).options
    assert (options.num_replicas, options.num_partitions) == (1, 4)
    assert options.use_spmd_partitioning
    assert options.device_assignment is None
    assert options.allow_spmd_sharding_propagation_to_output == (True, True)


@pytest.mark.parametrize("exported", [False, True], ids=["in process", "through the C API"])
@behaviour(
    102,
    "`AUTO` compiled for a topology: its compiler divides, and the program states the shardings",
)
def test_auto_is_chosen_by_the_topology_s_compiler(exported: bool) -> None:
    if plugrt.local_device_count() < 4:
        pytest.skip("no 4 devices here")
    capsule = export_capsule(
        lambda: numpy_plugin.create_client({}), topology_factory=numpy_plugin.create_topology
    )
    of_topology = LibraryPlugin("np", c_api=capsule) if exported else numpy_plugin
    mesh = plugrt.make_mesh((2, 2), ("x", "y"))
    rows, x = NamedSharding(mesh, PartitionSpec("x")), plugrt.ShapeDtypeStruct((8, 8), np.float32)
    f = plugrt.jit(
        lambda a, b: (a @ b, b), in_shardings=(AUTO(mesh), rows), out_shardings=AUTO(mesh)
    )
    whole, alone = f.lower(x, x), plugrt.jit(lambda a: a + 1).lower(x)
    with as_own(registry(of_topology)):
        compiled = whole.compile(topology=f"{of_topology.name}:4")
        one = alone.compile(topology=f"{of_topology.name}:1")
    both = NamedSharding(mesh, PartitionSpec(("x", "y")))
    assert compiled.input_shardings == ((both, rows), {})
    assert compiled.output_shardings == (NamedSharding(mesh, PartitionSpec()), rows)
    with pytest.raises(FailedPrecondition, match="those of a topology need not be here"):
        _ = one.input_shardings


def test_auto_for_a_topology_whose_compiler_does_not_choose_is_refused() -> None:
    program = Program(PROGRAM.encode(), "mlir", "f")
    asked = CompileOptions(
        num_partitions=2, use_spmd_partitioning=True, use_auto_spmd_partitioning=True,
        auto_spmd_partitioning_mesh_shape=(2,), auto_spmd_partitioning_mesh_ids=(0, 1),
    )  # fmt: skip
    with pytest.raises(
        Unimplemented, match=r"'plain' \(plugrt_sdk\).*capability auto_partitioning"
    ):
        BackendPlugin("plain", PlainTopologies).create_topology("2", {}).compile(program, asked)


class PlainTopologies(Backend):
    """A backend with topologies, whose compiler chooses no shardings."""

    platform = "plain"

    def topologies(self, name: str, options: Any) -> list[DeviceDescription]:
        return [DeviceDescription(i, 0, "Plain") for i in range(int(name))]

    def devices(self) -> Any:
        raise AssertionError("there is no device here")

    def put(self, array: Any, device: int) -> Any:
        raise AssertionError

    def get(self, handle: Any) -> Any:
        raise AssertionError

    def compile(self, program: Program, options: CompileOptions) -> Any:
        raise AssertionError("it was asked what it does not declare")


PROGRAM = "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


def test_a_program_from_elsewhere(far: FarPlugin) -> None:
    compiled = plugrt.compile(PROGRAM, topology="far:2", env_overrides={"xla_flag": True})
    assert compiled.input_types is not None
    assert [str(t) for t in compiled.input_types] == ["float32[2]"]
    assert compiled.out_info is None
    assert executable(compiled).options.env_overrides == {"xla_flag": True}


def test_a_refusal_names_the_program_and_the_devices(far: FarPlugin) -> None:
    refused = PROGRAM.replace("@main", "@refuse") + PROGRAM
    with pytest.raises(InvalidArgument, match=r"'main' for 'far' \(2 x Far 9000\) failed"):
        plugrt.compile(refused, topology="far:2")


def test_a_topology_or_a_device_but_not_both(far: FarPlugin) -> None:
    with pytest.raises(InvalidArgument, match="not several"):
        plugrt.compile(PROGRAM, topology="far:2", backend="cpu")  # type: ignore[call-overload]
