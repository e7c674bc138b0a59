"""`Bridge`: the functions that the core in C calls, implemented by the client interface."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt import interface
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.element_types import (
    dtype_to_element_type,
    element_type_to_dtype,
    supported_dtypes,
)
from plugrt.capi.abi.proto_wire import read_compile_options
from plugrt.capi.client.create import KeyValueStore
from plugrt.errors import ArgumentTypeError, Unimplemented, error_from_code
from plugrt.execution.compilation.narrow_types import compute_narrow_types
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
    TensorType,
)
from plugrt.wire.hlo_proto import shape_proto
from plugrt.wire.protobuf import message, messages
from plugrt_sdk.export.describing import (
    describe_client,
    describe_executable,
    describe_loaded,
    major_to_minor,
)
from plugrt_sdk.export.exceptions import describe
from plugrt_sdk.export.handlers import Handlers
from plugrt_sdk.export.host_arrays import Layout, view, write
from plugrt_sdk.export.native import HostMemory, close, configure
from plugrt_sdk.export.topologies import MadeTopology, TopologyFactory, make_topology, read_topology

ClientFactory = Callable[..., Client]
"""Makes a client from a host's create options, given as keyword arguments.

A factory with a parameter ``kv_store`` can be one of several processes: it gets there the host's
key-value store (`plugrt.capi.client.create.KeyValueStore`), usable while the client lives,
and the options ``node_id`` and ``num_nodes``; None where the host is one process.
"""

_SEMANTICS = tuple(HostBufferSemantics)


class Bridge:
    """One exported plugin. Its methods are called by the core, with the GIL, from any thread."""

    def __init__(
        self,
        factory: ClientFactory,
        platform: str | None = None,
        topology_factory: TopologyFactory | None = None,
    ) -> None:
        self._factory = factory
        self._platform = platform
        self._topology_factory = topology_factory
        self._handlers = Handlers(platform)
        self.makes_topologies = topology_factory is not None
        """Read once by the core, which refuses topologies itself where it is False."""

    def create_client(
        self, options: dict[str, OptionValue], store: KeyValueStore | None
    ) -> tuple[Any, ...]:
        """Makes a client and describes it."""
        client = self._factory(**self._arguments(options, store))
        if not isinstance(client, Client):
            raise ArgumentTypeError(
                f"the factory of the exported plugin returned {client!r:.60}, no Client"
            )
        self._handlers.add_client(client)
        return describe_client(client, self._platform)

    def close_client(self, client: Client) -> None:
        """Closes a client that the host does not use any more."""
        self._handlers.drop_client(client)
        client.close()

    def register_handler(self, target: str, address: int, platform: str) -> None:
        """Registers a C function for custom calls to ``target`` with the clients of a platform."""
        self._handlers.register(target, address, platform)

    def register_type(self, name: str, type_id: int, deleter: int) -> int:
        """Registers a type of handlers' states, or of a launch's data, and returns its id."""
        from plugrt.capi.extensions.ffi_types import register_type

        return register_type(name, type_id, deleter)

    def execute_with(
        self, data: dict[int, int], execute: Callable[..., Any], arguments: Any, options: Any
    ) -> Any:
        """Launches a program whose handlers find the host's data: addresses by types' ids."""
        from plugrt.capi.extensions.ffi_functions import launch_data

        with launch_data(data):
            return execute(arguments, options)

    def _arguments(
        self, options: dict[str, OptionValue], store: KeyValueStore | None
    ) -> dict[str, Any]:
        """Returns the factory's arguments, without a key-value store if the host is one process.

        JAX passes a store in that case, too, but it has no service, and reading it ends the
        process. The option ``num_nodes`` states whether there are several processes. Raises
        `Unimplemented` if there are, and the factory has no parameter ``kv_store``.
        """
        count = options.get("num_nodes")
        if "kv_store" in inspect.signature(self._factory).parameters:
            return {**options, "kv_store": None if count is None else store}
        if isinstance(count, int) and count > 1:
            raise Unimplemented(
                f"the host is one of {count} processes, and the exported plugin is made for one: "
                f"its factory {getattr(self._factory, '__qualname__', self._factory)!s:.60} has no "
                "parameter kv_store, for the key-value store by which they find each other"
            )
        return {k: v for k, v in options.items() if k not in ("node_id", "num_nodes")}

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
        minor_to_major: tuple[int, ...] | None,
    ) -> Buffer:
        """Puts an array of the host on a device, in the requested order of dimensions."""
        array = view(host, element_type_to_dtype(element_type), shape, strides, offset)
        if minor_to_major is None:
            return client.buffer_from_host(array, device, memory, _SEMANTICS[semantics])
        layout = interface.Layout(minor_to_major[::-1])
        return client.buffer_from_host(array, device, memory, _SEMANTICS[semantics], layout)

    def read(self, buffer: Buffer, host: HostMemory, layout: Layout) -> None:
        """Copies an array to the host's memory."""
        write(buffer.to_host(), host, layout, major_to_minor(buffer))

    def copy(self, buffer: Buffer, device: Device, memory: Memory) -> Buffer:
        """Copies an array to a memory of a device, through the host where the backend cannot.

        The copy has the array's layout, on which hosts rely.
        """
        copied, order = self._copy(buffer, device, memory), major_to_minor(buffer)
        if major_to_minor(copied) != order:
            raise Unimplemented(
                f"a copy of an array with the dimension order {order}: the backend's copy has "
                f"{major_to_minor(copied)}"
            )
        return copied

    def _copy(self, buffer: Buffer, device: Device, memory: Memory) -> Buffer:
        try:
            if buffer.device is device or memory is not device.default_memory():
                return buffer.copy_to_memory(memory)
            return buffer.copy_to_device(device)
        except Unimplemented:
            host: npt.NDArray[Any] = np.array(buffer.to_host())
            return device.client.buffer_from_host(host, device, memory)

    def bitcast(
        self,
        buffer: Buffer,
        element_type: int,
        shape: tuple[int, ...],
        device: Device,
        memory: Memory,
    ) -> Buffer:
        """Puts the bytes of an array as an array of another dtype and shape."""
        host = np.ascontiguousarray(buffer.to_host()).reshape(-1)
        array = host.view(element_type_to_dtype(element_type)).reshape(shape)
        return device.client.buffer_from_host(array, device, memory)

    def shape_proto(self, element_type: int, shape: tuple[int, ...]) -> bytes:
        """Returns the ``ShapeProto`` of a row-major array."""
        return shape_proto(TensorType(shape, element_type_to_dtype(element_type)))

    def compile(
        self, client: Client, code: bytes, program_format: str, encoded: bytes
    ) -> tuple[Any, ...]:
        """Compiles a program for the devices that the options name, and describes it."""
        options = read_compile_options(encoded)
        assignment = options.device_assignment or client.default_device_assignment(
            options.num_replicas, options.num_partitions
        )
        program = Program(code, program_format)
        loaded = client.compile(compute_narrow_types(program, client, options), options)
        return describe_loaded(loaded, assignment, options, program)

    def deserialize(
        self, client: Client, serialized: bytes, encoded: bytes | None
    ) -> tuple[Any, ...]:
        """Loads the bytes of `Executable.serialize`, and describes the program."""
        options = None if encoded is None else read_compile_options(encoded)
        loaded = client.deserialize_executable(serialized, options)
        assignment = _assignment_of(loaded)
        if options is None:
            options = CompileOptions(assignment.num_replicas, assignment.num_partitions, assignment)
        return describe_loaded(loaded, assignment, options)

    def load(self, client: Client, executable: Executable, encoded: bytes) -> tuple[Any, ...]:
        """Loads a program that `compile_for` compiled, and describes it."""
        return self.deserialize(client, executable.serialize(), encoded or None)

    def create_topology(self, name: str, options: dict[str, OptionValue]) -> tuple[Any, ...]:
        """Makes a topology of devices that may not be there, and describes it."""
        assert self._topology_factory is not None
        return make_topology(self._topology_factory, name, options, self._platform)

    def read_topology(self, serialized: bytes) -> tuple[Any, ...]:
        """Makes a topology from the bytes that `serialize_topology` returned."""
        assert self._topology_factory is not None
        return read_topology(self._topology_factory, serialized, self._platform)

    def serialize_topology(self, topology: MadeTopology | Client) -> bytes:
        """Returns bytes for `read_topology`."""
        if isinstance(topology, MadeTopology):
            return topology.serialize()
        return topology.topology().serialize()

    def topology_fingerprint(self, topology: MadeTopology | Client) -> int:
        """Returns a number that is equal for equal topologies."""
        return topology.topology().fingerprint()

    def compile_for(
        self, topology: MadeTopology | Client, code: bytes, program_format: str, encoded: bytes
    ) -> tuple[Any, ...]:
        """Compiles a program for devices that may not be there, and describes it."""
        options = read_compile_options(encoded)
        program = Program(code, program_format)
        executable = _compile(topology, program, options)
        return describe_executable(executable, options.device_assignment, options, program)

    def execute_options(self, launch_id: int, kept: tuple[int, ...]) -> ExecuteOptions:
        """Returns the options of a launch."""
        return ExecuteOptions(launch_id, kept)

    def fingerprint(self, executable: Executable) -> bytes:
        """Returns the executable's fingerprint."""
        return executable.fingerprint()

    def optimized_program(self, executable: Executable) -> tuple[bytes, str]:
        """Returns the code and the format of the program after optimisation.

        Hosts accept no bare HLO module here: this adds a configuration to it.
        """
        program = executable.optimized_program()
        if program.format == "hlo":
            return _with_config(program.code), "hlo_with_config"
        return program.code, program.format


def _compile(
    topology: MadeTopology | Client, program: Program, options: CompileOptions
) -> Executable:
    """Compiles for a topology; for a client's devices by the client, if it has no topology."""
    try:
        target = topology.topology()
        return target.compile(compute_narrow_types(program, target, options), options)
    except Unimplemented:
        if isinstance(topology, MadeTopology):
            raise
        program = compute_narrow_types(program, topology, options)
        return topology.compile(program, options).executable


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


configure(describe, error_from_code, _element_sizes())
atexit.register(close)
