"""``CompileOptionsProto`` and ``DeviceAssignmentProto``, written and read field by field.

Six bytes are a complete ``CompileOptionsProto``; a library uses its own defaults for omitted
fields. Field numbers are from ``xla/pjrt/proto/compile_options.proto`` and ``xla/xla_data.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt.interface.checks import EFFORTS, require_auto_partitioning
from plugrt.wire.protobuf import (
    Content,
    fields,
    fixed64,
    float32,
    integer,
    integers,
    message,
    messages,
    varint,
)

_BUILD_OPTIONS, _BUILD_ASSIGNMENT = 3, 9
_COMPUTATION_DEVICES, _REPLICA_IDS = 3, 1
_AUTO = 7
_LISTS = {
    12: "allow_spmd_sharding_propagation_to_output",
    16: "auto_spmd_partitioning_mesh_shape",
    17: "auto_spmd_partitioning_mesh_ids",
    18: "allow_spmd_sharding_propagation_to_parameters",
}
"""Fields of the build options that are lists, by number."""
_EFFORTS = {
    "exec_time_optimization_effort": 20,
    "memory_fitting_effort": 21,
    "optimization_level": 24,
    "memory_fitting_level": 25,
}
"""Compiler options that are fields of the build options, by name; the first two are floats."""
_OVERRIDES = 7
"""``env_option_overrides``: a map from names to an ``OptionOverrideProto`` each."""


def device_assignment(assignment: DeviceAssignment) -> bytes:
    """Returns a ``DeviceAssignmentProto``."""
    out = integer(1, assignment.num_replicas) + integer(2, assignment.num_partitions)
    for column in zip(*assignment.device_ids, strict=True):
        ids = b"".join(varint(i) for i in column)
        out += message(_COMPUTATION_DEVICES, message(_REPLICA_IDS, ids))
    return out


def read_device_assignment(encoded: Content) -> DeviceAssignment:
    """Returns the assignment of a ``DeviceAssignmentProto``; `ValueError` if it is malformed."""
    columns = [integers(m, _REPLICA_IDS) for m in messages(encoded, _COMPUTATION_DEVICES)]
    return DeviceAssignment(tuple(zip(*columns, strict=True)))


def assignment_in(options: bytes) -> DeviceAssignment | None:
    """Returns the device assignment in a ``CompileOptionsProto``, or None."""
    for build in messages(options, _BUILD_OPTIONS):
        for assignment in messages(build, _BUILD_ASSIGNMENT):
            return read_device_assignment(assignment)
    return None


def build_options(overrides: Mapping[str, str | bool | int | float]) -> bytes:
    """Returns the compiler options that are fields of the build options: efforts."""
    out = b""
    for name, number in _EFFORTS.items():
        if name in overrides:
            value = EFFORTS[name](overrides[name])
            out += integer(number, value) if type(value) is int else float32(number, value)
    return out


def _read_efforts(build: bytes) -> dict[str, str | bool | int | float]:
    found = {n: v for n, v in fields(build) if n in _EFFORTS.values()}
    return {
        name: value if isinstance(value := found[n], int) else struct.unpack("<f", value)[0]
        for name, n in _EFFORTS.items()
        if n in found
    }


def _override(name: str, value: str | bool | int | float) -> bytes:
    if isinstance(value, bool):
        encoded = integer(2, value)
    elif isinstance(value, int):
        encoded = integer(3, value)
    elif isinstance(value, float):
        encoded = fixed64(4, struct.pack("<d", value))
    elif isinstance(value, str):
        encoded = message(1, value.encode())
    else:
        raise InvalidArgument(
            f"the compiler option {name!r} is {value!r}; a string, bool, integer or float "
            "was expected"
        )
    return message(_OVERRIDES, message(1, name.encode()) + message(2, encoded))


def _read_overrides(options: bytes) -> dict[str, str | bool | int | float]:
    """Returns the compiler options by name; `ValueError` for one without a value."""
    found: dict[str, str | bool | int | float] = {}
    for entry in messages(options, _OVERRIDES):
        [name] = messages(entry, 1)
        [option] = messages(entry, 2)
        [(kind, value)] = fields(option)
        found[bytes(name).decode()] = _read_override(kind, value)
    return found


def _read_override(kind: int, value: int | memoryview) -> str | bool | int | float:
    if isinstance(value, int):
        signed = value - (1 << 64) if value >> 63 else value
        return bool(value) if kind == 2 else signed
    return bytes(value).decode() if kind == 1 else float(struct.unpack("<d", value)[0])


def compile_options(options: CompileOptions) -> bytes:
    """Returns a ``CompileOptionsProto``; ``options.encoded`` unchanged."""
    if options.encoded is not None:
        return options.encoded
    build = integer(4, options.num_replicas) + integer(5, options.num_partitions)
    if options.use_spmd_partitioning:
        build += integer(6, 1)
    if options.use_auto_spmd_partitioning:
        build += integer(_AUTO, 1)
    if options.device_assignment is not None:
        build += message(_BUILD_ASSIGNMENT, device_assignment(options.device_assignment))
    for number, name in _LISTS.items():
        if values := getattr(options, name):
            build += message(number, b"".join(map(varint, values)))
    if options.use_shardy_partitioner:
        build += integer(19, 1)
    build += build_options(options.env_overrides)
    out = message(_BUILD_OPTIONS, build)
    if options.parameter_is_tupled:
        out = integer(2, 1) + out
    overrides: Mapping[str, str | bool | int | float] = options.env_overrides
    return out + b"".join(_override(*i) for i in overrides.items() if i[0] not in _EFFORTS)


def read_compile_options(encoded: bytes) -> CompileOptions:
    """Returns the options that a ``CompileOptionsProto`` states, with the proto as ``encoded``.

    Counts that are left out are 1. Raises `InvalidArgument` for bytes that are no such proto.
    """
    try:
        build = b"".join(messages(encoded, _BUILD_OPTIONS))
        stated = {n: v for n, v in fields(build) if isinstance(v, int)}
        assignment = assignment_in(encoded)
        tupled = any(v for n, v in fields(encoded) if n == 2)
        overrides = {**_read_efforts(build), **_read_overrides(encoded)}
        lists = {name: tuple(integers(build, number)) for number, name in _LISTS.items()}
    except (ValueError, struct.error) as error:
        raise InvalidArgument(
            f"the compile options ({len(encoded)} bytes) are not a CompileOptionsProto: {error}"
        ) from error
    return CompileOptions(
        num_replicas=assignment.num_replicas if assignment else max(1, stated.get(4, 1)),
        num_partitions=assignment.num_partitions if assignment else max(1, stated.get(5, 1)),
        device_assignment=assignment,
        use_spmd_partitioning=bool(stated.get(6)),
        use_shardy_partitioner=bool(stated.get(19)),
        allow_spmd_sharding_propagation_to_parameters=tuple(
            map(bool, lists["allow_spmd_sharding_propagation_to_parameters"])
        ),
        allow_spmd_sharding_propagation_to_output=tuple(
            map(bool, lists["allow_spmd_sharding_propagation_to_output"])
        ),
        use_auto_spmd_partitioning=bool(stated.get(_AUTO)),
        auto_spmd_partitioning_mesh_shape=lists["auto_spmd_partitioning_mesh_shape"],
        auto_spmd_partitioning_mesh_ids=lists["auto_spmd_partitioning_mesh_ids"],
        parameter_is_tupled=tupled,
        env_overrides=overrides,
        encoded=bytes(encoded),
    )


def encode_checked_options(
    options: CompileOptions, chooses: Callable[[], bool] = lambda: False
) -> bytes:
    """Returns a ``CompileOptionsProto`` that names its replicas and partitions.

    Raises `InvalidArgument` when ``options.encoded`` does not: a real library aborts on that.
    Raises `Unimplemented` for options that leave shardings to the compiler of a library that has
    not declared that it ``chooses``: such a library may end the process.
    """
    encoded = compile_options(options)
    if _has_auto_shardings(encoded):
        require_auto_partitioning(True, chooses(), "the library")
    if not has_counts(encoded):
        raise InvalidArgument(
            "the encoded CompileOptionsProto names no positive num_replicas and num_partitions "
            "in its executable_build_options"
        )
    return encoded


def _has_auto_shardings(encoded: bytes) -> bool:
    try:
        build = b"".join(messages(encoded, _BUILD_OPTIONS))
        return any(number == _AUTO and value for number, value in fields(build))
    except ValueError:
        return False


def has_counts(encoded: bytes) -> bool:
    """Whether an encoded ``CompileOptionsProto`` names at least one replica and partition.

    Bytes that are no protocol buffer count as if they did: libraries refuse those cleanly.
    """
    try:
        build = b"".join(messages(encoded, _BUILD_OPTIONS))
        counts = {n: v for n, v in fields(build) if n in (4, 5) and isinstance(v, int)}
    except ValueError:
        return True
    return all(0 < counts.get(n, 0) < 1 << 31 for n in (4, 5))
