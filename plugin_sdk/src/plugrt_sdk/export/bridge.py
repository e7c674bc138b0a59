"""`Bridge`: what the core in C calls, in terms of the client interface."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import (
    dtype_to_element_type,
    element_type_to_dtype,
    supported_dtypes,
)
from plugrt.capi.abi.proto_wire import read_compile_options
from plugrt.errors import ArgumentTypeError, Unimplemented
from plugrt.interface import (
    Buffer,
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    Executable,
    ExecuteOptions,
    HostBufferSemantics,
    LoadedExecutable,
    Memory,
    OptionValue,
    Program,
)
from plugrt.protobuf import message, messages
from plugrt_sdk.export._core import HostMemory, close, configure
from plugrt_sdk.export.describing import describe_client, describe_loaded
from plugrt_sdk.export.exceptions import describe
from plugrt_sdk.export.host_arrays import Layout, refuse_layout, view, write

ClientFactory = Callable[..., Client]
"""Makes a client from a host's create options, given as keyword arguments."""

_SEMANTICS = tuple(HostBufferSemantics)


class Bridge:
    """One exported plugin. Its methods are called by the core, with the GIL, from any thread."""

    def __init__(self, factory: ClientFactory, platform: str | None = None) -> None:
        self._factory = factory
        self._platform = platform

    def create_client(self, options: dict[str, OptionValue]) -> tuple[Any, ...]:
        """Makes a client and describes it."""
        client = self._factory(**options)
        if not isinstance(client, Client):
            raise ArgumentTypeError(
                f"the factory of the exported plugin returned {client!r:.60}, no Client"
            )
        return describe_client(client, self._platform)

    def default_assignment(self, client: Client, replicas: int, partitions: int) -> tuple[int, ...]:
        """Returns the devices that the backend would choose, replica-major."""
        return client.default_device_assignment(replicas, partitions).flat

    def put(
        self,
        client: Client,
        host: HostMemory,
        offset: int,
        element_type: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        device: Device,
        memory: Memory | None,
        semantics: int,
        layout: Layout,
    ) -> Buffer:
        """Puts an array of the host on a device."""
        if layout is not None:
            refuse_layout(layout, len(shape))
        array = view(host, element_type_to_dtype(element_type), shape, strides, offset)
        return client.buffer_from_host(array, device, memory, _SEMANTICS[semantics])

    def read(self, buffer: Buffer, host: HostMemory, layout: Layout) -> None:
        """Copies an array to the host's memory."""
        write(buffer.to_host(), host, layout)

    def copy(self, buffer: Buffer, device: Device, memory: Memory) -> Buffer:
        """Copies an array to a memory of a device, through the host where the backend cannot."""
        try:
            if buffer.device is device or memory is not device.default_memory():
                return buffer.copy_to_memory(memory)
            return buffer.copy_to_device(device)
        except Unimplemented:
            host: npt.NDArray[Any] = np.array(buffer.to_host())
            return device.client.buffer_from_host(host, device, memory)

    def compile(
        self, client: Client, code: bytes, program_format: str, encoded: bytes
    ) -> tuple[Any, ...]:
        """Compiles a program for the devices that the options name, and describes it."""
        options = read_compile_options(encoded)
        assignment = options.device_assignment or client.default_device_assignment(
            options.num_replicas, options.num_partitions
        )
        program = Program(code, program_format)
        loaded = client.compile(program, options)
        return describe_loaded(loaded, assignment, options, program)

    def deserialize(
        self, client: Client, serialized: bytes, encoded: bytes | None
    ) -> tuple[Any, ...]:
        """Loads what `Executable.serialize` gave, and describes it."""
        options = None if encoded is None else read_compile_options(encoded)
        loaded = client.deserialize_executable(serialized, options)
        assignment = _assignment_of(loaded)
        if options is None:
            options = CompileOptions(assignment.num_replicas, assignment.num_partitions, assignment)
        return describe_loaded(loaded, assignment, options)

    def execute_options(self, launch_id: int, kept: tuple[int, ...]) -> ExecuteOptions:
        """Returns the options of a launch."""
        return ExecuteOptions(launch_id, kept)

    def fingerprint(self, executable: Executable) -> bytes:
        """Returns the executable's fingerprint."""
        return executable.fingerprint()

    def optimized_program(self, executable: Executable) -> tuple[bytes, str]:
        """Returns the code and the format of the program after optimisation.

        Hosts take no bare HLO module here: it becomes one with a configuration.
        """
        program = executable.optimized_program()
        if program.format == "hlo":
            return _with_config(program.code), "hlo_with_config"
        return program.code, program.format


def _with_config(module: bytes) -> bytes:
    """Returns an ``HloModuleProtoWithConfig`` of an ``HloModuleProto``.

    The configuration is the layout of the entry computation (without one XLA's reader aborts the
    process): the module's ``host_program_shape``.
    """
    [shape] = messages(module, 4)
    return message(1, module) + message(2, message(1, bytes(shape)))


def _assignment_of(loaded: LoadedExecutable) -> DeviceAssignment:
    executable = loaded.executable
    ids = [device.id for device in loaded.addressable_devices]
    grid = np.array(ids).reshape(executable.num_replicas, executable.num_partitions)
    return DeviceAssignment(tuple(tuple(map(int, row)) for row in grid))


def _element_sizes() -> bytes:
    dtypes = map(np.dtype, supported_dtypes(API_MINOR))
    sizes = {dtype_to_element_type(dtype, API_MINOR): dtype.itemsize for dtype in dtypes}
    return bytes(sizes.get(value, 0) for value in range(max(sizes) + 1))


configure(describe, _element_sizes())
atexit.register(close)
