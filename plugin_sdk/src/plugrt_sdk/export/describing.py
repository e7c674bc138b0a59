"""Descriptions of clients and programs, as the tuples that the core in C reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.capi.abi.proto_wire import compile_options, device_assignment
from plugrt.errors import Unimplemented, UnsupportedDtype
from plugrt.interface import (
    Buffer,
    Capabilities,
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    DeviceDescription,
    Executable,
    ExecuteOptions,
    Layout,
    LoadedExecutable,
    Memory,
    OptionValue,
    Program,
    Shards,
    TensorType,
)
from plugrt_sdk.export.shardings import shardings_of

_T = TypeVar("_T")


def describe_client(client: Client, platform: str | None) -> tuple[Any, ...]:
    """Returns a client's names, memories, devices, and which devices address each memory."""
    devices, capabilities = list(client.devices()), client.capabilities
    memories = _memories(devices)
    kinds = list(dict.fromkeys(memory.kind for memory in memories))
    name = platform or client.platform
    return (
        client,
        name,
        client.platform_version,
        client.process_index,
        (
            capabilities.asynchronous_dispatch,
            capabilities.donation,
            client.process_count > 1,
            is_on_host(capabilities),
            is_on_host(capabilities) and capabilities.zero_copy_put,
            capabilities.layout_put,
            capabilities.custom_calls,
        ),
        [_describe_memory(memory, kinds.index(memory.kind), name) for memory in memories],
        [_describe_device(device, memories, name) for device in devices],
        [_indices(memory.addressable_by_devices(), devices) for memory in memories],
        _topology_attributes(capabilities),
    )


def _topology_attributes(capabilities: Capabilities) -> dict[str, OptionValue]:
    """Returns what a client's own topology states: plugrt reads it, other hosts show it."""
    stated: dict[str, OptionValue] = {}
    if (bound := capabilities.tuple_arguments_above) is not None:
        stated["tuple_arguments_above"] = bound
    if capabilities.auto_partitioning:
        stated["auto_partitioning"] = True
    if capabilities.custom_calls:
        # Handlers get NumPy's memory, even if hosts may not read arrays in place.
        stated["host_callbacks"] = True
    return stated


def is_on_host(capabilities: Capabilities) -> bool:
    """Returns whether hosts may read an array where it is (``PJRT_Buffer_IsOnCpu``).

    A client says so by declaring that its buffers are read without a copy and have an address.
    """
    return capabilities.zero_copy_get and capabilities.unsafe_pointer


def _memories(devices: Sequence[Device]) -> list[Memory]:
    found: list[Memory] = []
    for device in devices:
        for memory in device.memories():
            if not any(memory is known for known in found):
                found.append(memory)
    return found


def _indices(items: Iterable[object], among: Sequence[object]) -> list[int]:
    places = {id(item): i for i, item in enumerate(among)}
    return [places[id(item)] for item in items]


def _describe_memory(memory: Memory, kind_id: int, platform: str) -> tuple[Any, ...]:
    text = f"{platform} memory {memory.id} ({memory.kind})"
    return memory, memory.id, kind_id, memory.kind, text, text


def _describe_device(device: Device, memories: list[Memory], platform: str) -> tuple[Any, ...]:
    own = list(device.memories())
    return (
        device,
        describe_device(device, platform),
        device.local_hardware_id,
        device.is_addressable,
        _indices(own, memories),
        _indices([device.default_memory()], own)[0],
    )


def describe_device(device: Device | DeviceDescription, platform: str) -> tuple[Any, ...]:
    """Returns the attributes of a device, present or absent."""
    return (
        device.id,
        device.process_index,
        device.kind,
        f"{platform}:{device.id} ({device.kind})",
        f"{platform.capitalize()}Device(id={device.id})",
        device.attributes,
    )


def describe_loaded(
    loaded: LoadedExecutable,
    assignment: DeviceAssignment,
    options: CompileOptions,
    program: Program | None = None,
) -> tuple[Any, ...]:
    """Returns a program with its launch function, its devices and its attributes."""
    ours = {device.id for device in loaded.addressable_devices}
    places = [
        (device_id, replica, partition)
        for replica, row in enumerate(assignment.device_ids)
        for partition, device_id in enumerate(row)
        if device_id in ours
    ]
    kind = loaded.addressable_devices[0].default_memory().kind if loaded.addressable_devices else ""
    described = describe_executable(loaded.executable, assignment, options, program, kind)
    ends_late = loaded.client.capabilities.asynchronous_dispatch
    execute = loaded.execute
    if ends_late and not loaded.executable.output_types:
        execute = partial(_execute_to_end, loaded)
    return loaded, execute, tuple(places), described


def _execute_to_end(
    loaded: LoadedExecutable, arguments: Sequence[Shards], options: ExecuteOptions | None = None
) -> Sequence[Shards]:
    """Launches a program without results and waits: hosts can only await results."""
    try:
        results, wait = loaded.execute_with_wait(arguments, options)
    except Unimplemented:
        return loaded.execute(arguments, options)
    wait()
    return results


def describe_executable(
    executable: Executable,
    assignment: DeviceAssignment | None,
    options: CompileOptions,
    program: Program | None = None,
    memory_kind: str = "",
) -> tuple[Any, ...]:
    """Returns a program's attributes; None for those that the backend does not provide.

    ``memory_kind`` is used for results where the backend states none: the devices' default.
    """
    outputs = executable.output_types
    output_kinds = _ask(lambda: tuple(executable.output_memory_kinds))
    if output_kinds is None and memory_kind:
        output_kinds = (memory_kind,) * len(outputs)
    parameter_shardings, output_shardings = shardings_of(executable, program)
    return (
        executable,
        executable.name,
        executable.num_replicas,
        executable.num_partitions,
        tuple((_type_of(t.dtype), t.shape, _minor_to_major(t)) for t in outputs),
        output_kinds,
        b"" if assignment is None else device_assignment(assignment),
        compile_options(options),
        output_shardings,
        parameter_shardings,
        _ask(lambda: tuple(executable.parameter_memory_kinds)),
        _parameter_orders(executable),
    )


def _parameter_orders(executable: Executable) -> tuple[tuple[int, ...], ...] | None:
    stated = _ask(executable.parameter_layouts)
    if stated is not None:
        return tuple(layout.major_to_minor[::-1] for layout in stated)
    return _ask(lambda: tuple(map(_minor_to_major, executable.input_types)))


def major_to_minor(buffer: Buffer) -> tuple[int, ...]:
    """Returns the order of a buffer's dimensions in memory."""
    if buffer.device.client.capabilities.layouts:
        return buffer.layout.major_to_minor
    return tuple(range(len(buffer.shape)))


def _minor_to_major(tensor_type: TensorType) -> tuple[int, ...]:
    """Returns the order of an array's dimensions in memory, minor first, as hosts receive it.

    Raises `Unimplemented` for tiles, which the exported table does not state.
    """
    layout = tensor_type.layout or Layout.row_major(len(tensor_type.shape))
    if layout.tiling:
        raise Unimplemented(f"a program with the tiled type {tensor_type} is not exported")
    return layout.major_to_minor[::-1]


def _type_of(dtype: Any) -> int:
    try:
        return ELEMENT_TYPES[dtype]
    except KeyError:
        raise UnsupportedDtype(f"a result has the dtype {dtype}, which PJRT lacks") from None


def _ask(ask: Callable[[], _T]) -> _T | None:
    """Calls a method of the backend; returns None if it raises `Unimplemented`."""
    try:
        return ask()
    except Unimplemented:
        return None
