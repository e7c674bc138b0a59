"""plugrt's `CompileOptions` as jaxlib's."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.capi.abi.proto_wire import assignment_in
from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt.interface.checks import EFFORTS, require_auto_partitioning
from plugrt.wire.protobuf import fields
from plugrt_cpu import adapter


def to_jaxlib(options: CompileOptions, assignment: DeviceAssignment) -> Any:
    """Returns jaxlib's options for a program that runs on these devices; raises like `place`."""
    if options.encoded is not None:
        raw = parse(options.encoded)
    else:
        raw = adapter.compile_options()
        raw.parameter_is_tupled_arguments = options.parameter_is_tupled
        build = raw.executable_build_options
        build.use_spmd_partitioning = options.use_spmd_partitioning
        build.use_shardy_partitioner = options.use_shardy_partitioner
        build.use_auto_spmd_partitioning = options.use_auto_spmd_partitioning
        if allowed := options.allow_spmd_sharding_propagation_to_parameters:
            build.allow_spmd_sharding_propagation_to_parameters = [*allowed]
        if allowed := options.allow_spmd_sharding_propagation_to_output:
            build.allow_spmd_sharding_propagation_to_output = [*allowed]
        overrides = dict(options.env_overrides)
        for name in EFFORTS.keys() & overrides:
            setattr(build, name, overrides.pop(name))
        raw.env_option_overrides = list(overrides.items())
    return place(raw, assignment)


def place(raw: Any, assignment: DeviceAssignment) -> Any:
    """Writes the devices into jaxlib's options and returns them.

    Raises `Unimplemented` for options that leave shardings to the compiler, and for a program that
    is compiled for no device.
    """
    if raw.compile_portable_executable:
        raise Unimplemented(
            "the cpu plugin compiles for devices that are named, and not for any device "
            "(compile_portable_executable); compile the program for each"
        )
    build = raw.executable_build_options
    require_auto_partitioning(build.use_auto_spmd_partitioning, False, "the cpu plugin")
    ids = np.array(assignment.device_ids, dtype=np.int32)
    raw.num_replicas, raw.num_partitions = build.num_replicas, build.num_partitions = ids.shape
    raw.device_assignment = build.device_assignment = adapter.device_assignment(ids)
    return raw


def parse(encoded: bytes) -> Any:
    """Returns jaxlib's options for a serialised ``CompileOptionsProto``.

    jaxlib 0.10 reads invalid protobuf bytes as empty options; this raises an error.
    """
    try:
        # Workaround for jaxlib-invalid-options
        for _ in fields(encoded):
            pass
        return adapter.parse_compile_options(encoded)
    except (ValueError, RuntimeError) as error:
        raise InvalidArgument(
            f"CompileOptions.encoded ({len(encoded)} bytes) is not a CompileOptionsProto: {error}"
        ) from error


def read_assignment(encoded: bytes) -> DeviceAssignment | tuple[int, int]:
    """Returns the device assignment in an encoded proto, else its (replicas, partitions)."""
    raw = parse(encoded)
    stated = assignment_in(encoded)
    if stated is not None:
        return stated
    build = raw.executable_build_options
    return max(1, build.num_replicas), max(1, build.num_partitions)
