"""plugrt's protocol buffers, compared with literals and with jaxlib's."""

from __future__ import annotations

import pytest

from plugrt.capi.abi import proto_wire
from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, DeviceAssignment


def test_whole_options_are_passed_on() -> None:
    encoded = bytes.fromhex("1a0420022801")
    assert proto_wire.encode_checked_options(CompileOptions(encoded=encoded)) == encoded


def test_options_that_end_the_process_of_a_real_library_are_refused() -> None:
    options = CompileOptions(
        num_partitions=2, use_auto_spmd_partitioning=True,
        auto_spmd_partitioning_mesh_shape=(2,), auto_spmd_partitioning_mesh_ids=(0, 1),
    )  # fmt: skip
    for asked in (options, CompileOptions(encoded=proto_wire.compile_options(options))):
        with pytest.raises(Unimplemented, match="capability auto_partitioning"):
            proto_wire.encode_checked_options(asked)


@pytest.mark.parametrize("options", [
    CompileOptions(2, 3, DeviceAssignment(((0, 2, 4), (1, 3, 5))), use_spmd_partitioning=True),
    CompileOptions(use_shardy_partitioner=True, parameter_is_tupled=True),
    CompileOptions(
        num_partitions=4,
        allow_spmd_sharding_propagation_to_parameters=(True, False, True),
        allow_spmd_sharding_propagation_to_output=(False, True),
    ),
    CompileOptions(
        num_partitions=4, use_auto_spmd_partitioning=True,
        auto_spmd_partitioning_mesh_shape=(2, 2), auto_spmd_partitioning_mesh_ids=(3, 0, 2, 1),
    ),
    CompileOptions(env_overrides={"a": True, "b": "x", "c": 7, "d": 0.5, "e": -1}),
])  # fmt: skip
def test_jaxlib_reads_the_same(options: CompileOptions) -> None:
    xla_client = pytest.importorskip("jaxlib._jax")
    read = xla_client.CompileOptions.ParseFromString(proto_wire.compile_options(options))
    build = read.executable_build_options
    assert (build.num_replicas, build.num_partitions) == (
        options.num_replicas, options.num_partitions,
    )  # fmt: skip
    assert build.use_spmd_partitioning == options.use_spmd_partitioning
    assert build.use_shardy_partitioner == options.use_shardy_partitioner
    again = proto_wire.read_compile_options(read.SerializeAsString())
    for name in proto_wire._LISTS.values():
        stated, found = getattr(options, name), tuple(getattr(build, name))
        # For an empty list XLA writes one False, which means all.
        assert found == stated or (not stated and not any(found))
        assert getattr(again, name) in (found, stated)
    assert (
        build.use_auto_spmd_partitioning
        == again.use_auto_spmd_partitioning
        == options.use_auto_spmd_partitioning
    )
    assert read.parameter_is_tupled_arguments == options.parameter_is_tupled
    overrides = {**dict(read.env_option_overrides)}
    assert overrides == dict(options.env_overrides)
    if options.device_assignment is not None:
        serialised = build.device_assignment.serialize()
        assert proto_wire.read_device_assignment(serialised) == options.device_assignment
