"""Compiles programs by jaxlib, and loads compiled ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import (
    HOST_CALLBACK,
    CompileOptions,
    DeviceAssignment,
    Handler,
    HostCallback,
    Program,
)
from plugrt.wire.checked_fields import built
from plugrt_cpu import adapter, compile_options, lapack, serialization
from plugrt_cpu.device import ClientBase, CpuDevice
from plugrt_cpu.errors import JAXLIB_ERRORS, translate
from plugrt_cpu.executable import CpuExecutable
from plugrt_cpu.interrupts import run_uninterrupted
from plugrt_cpu.loaded_executable import CpuLoadedExecutable
from plugrt_cpu.many_device_executable import ManyDeviceExecutable
from plugrt_cpu.programs import read_stablehlo, require_one_dimension

_OF_JAX = b"python_cpu_callback"
"""Part of the targets of JAX's callbacks on CPUs: ``xla_ffi_[partitioned_]python_cpu_callback``."""


def compile_program(
    client: ClientBase, program: Program, options: CompileOptions
) -> CpuLoadedExecutable:
    """Compiles StableHLO (format ``mlir``) or a serialised ``HloModuleProto`` (``hlo``).

    XLA reports a text that it cannot parse as `Unknown`, with line and column in the message.
    """
    raw_client = client.require_open()
    assignment = _assignment(client, options)
    require_one_dimension(program, assignment)
    raw_options = compile_options.to_jaxlib(options, assignment)
    devices = _find_devices(client, assignment)
    if len(devices) > 1:
        adapter.prepare_several_devices()
    lapack.register_if_called(program.code)
    callbacks = _callbacks_of(client, program)
    try:
        code: Any = read_stablehlo(program)
        functions: dict[str, Any] = {}
        if callbacks is not None:
            # Imported here, since it imports StableHLO's bindings.
            from plugrt_cpu.host_callbacks import bind_callbacks

            code, called = bind_callbacks(code, program.name, callbacks)
            functions["host_callbacks"] = called
        raw = run_uninterrupted(
            lambda: raw_client.compile_and_load(
                code, adapter.device_list([d.raw for d in devices]), raw_options, **functions
            )
        )
    except JAXLIB_ERRORS as error:
        raise translate(error) from error
    calls_python = callbacks is not None
    return _load(client, raw, program, assignment, devices, raw_options, calls_python=calls_python)


def _callbacks_of(
    client: ClientBase, program: Program
) -> Mapping[int, HostCallback] | Handler | None:
    """Returns the Python functions that a program calls, or the handler that calls them.

    Raises `Unimplemented` for JAX's calls by an index into its own client's functions: without them
    jaxlib ends the process.
    """
    if _OF_JAX in program.code:
        raise Unimplemented(
            f"the program {program.name!r} calls Python functions by an index that JAX's own CPU "
            f"client has ({_OF_JAX.decode()}), and none were passed with it; in JAX give the "
            "plugin a name of its own and call plugrt_sdk.export.jax_functions.connect_functions"
        )
    if program.callbacks:
        return program.callbacks
    return client.callback_handler if HOST_CALLBACK.encode() in program.code else None


def load_serialized(
    client: ClientBase, serialized: bytes, options: CompileOptions | None = None
) -> CpuLoadedExecutable:
    """Loads the bytes of `CpuExecutable.serialize`; ``options`` may name other devices."""
    raw_client = client.require_open()
    # Not bytes() of any object: bytes() of an integer is as many zeros.
    packed = serialization.unpack(bytes(memoryview(serialized)))
    assignment = packed.assignment
    if options is not None and options.device_assignment is not None:
        assignment = options.device_assignment
    with built("the options"):
        raw_options = compile_options.place(compile_options.parse(packed.options), assignment)
    devices = _find_devices(client, assignment)
    if len(devices) > 1:
        adapter.prepare_several_devices()
    lapack.register_if_called(packed.payload)
    try:
        raw = raw_client.deserialize_executable(
            packed.payload, adapter.device_list([d.raw for d in devices]), raw_options
        )
    except JAXLIB_ERRORS as error:
        raise translate(error) from error
    program = Program(b"", name=packed.name)
    return _load(client, raw, program, assignment, devices, raw_options, packed.payload)


def _assignment(client: ClientBase, options: CompileOptions) -> DeviceAssignment:
    replicas, partitions = options.num_replicas, options.num_partitions
    if options.device_assignment is not None:
        return options.device_assignment
    if options.encoded is not None:
        found = compile_options.read_assignment(options.encoded)
        if isinstance(found, DeviceAssignment):
            return found
        replicas, partitions = found
    return client.default_device_assignment(replicas, partitions)


def _find_devices(client: ClientBase, assignment: DeviceAssignment) -> tuple[CpuDevice, ...]:
    try:
        return tuple([client.by_id[i] for replica in assignment.device_ids for i in replica])
    except KeyError:
        raise InvalidArgument(
            f"the program is for devices {assignment.flat}; this client has {sorted(client.by_id)}"
        ) from None


def _load(
    client: ClientBase,
    raw: Any,
    program: Program,
    assignment: DeviceAssignment,
    devices: tuple[CpuDevice, ...],
    raw_options: Any,
    payload: bytes | None = None,
    *,
    calls_python: bool = False,
) -> CpuLoadedExecutable:
    executable_class = CpuLoadedExecutable if len(devices) == 1 else ManyDeviceExecutable
    try:  # jaxlib reads the program's types from it, which a damaged one may lack
        executable = CpuExecutable(
            raw,
            program.name,
            assignment,
            raw_options.SerializeAsString(),
            payload,
            memory_kind=devices[0].place.memory_kind,
            calls_python=calls_python,
        )
        return executable_class(client, executable, devices)
    except JAXLIB_ERRORS as error:
        raise translate(error) from error
