"""What the core keeps of a client and of a program, as the tuples that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.capi.abi.proto_wire import compile_options, device_assignment
from plugrt.errors import Unimplemented, UnsupportedDtype
from plugrt.interface import (
    Client,
    CompileOptions,
    Device,
    DeviceAssignment,
    Executable,
    LoadedExecutable,
    Memory,
    Program,
)
from plugrt_sdk.export.shardings import shardings_of


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
        capabilities.asynchronous_dispatch,
        capabilities.donation,
        client.process_count > 1,
        [_describe_memory(memory, kinds.index(memory.kind), name) for memory in memories],
        [_describe_device(device, memories, name) for device in devices],
        [_indices(memory.addressable_by_devices(), devices) for memory in memories],
        {},
    )


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
        device.id,
        device.process_index,
        device.local_hardware_id,
        device.is_addressable,
        device.kind,
        f"{platform}:{device.id} ({device.kind})",
        f"{platform.capitalize()}Device(id={device.id})",
        device.attributes,
        _indices(own, memories),
        _indices([device.default_memory()], own)[0],
    )


def describe_loaded(
    loaded: LoadedExecutable,
    assignment: DeviceAssignment,
    options: CompileOptions,
    program: Program | None = None,
) -> tuple[Any, ...]:
    """Returns a program, how to launch it, where its devices are, and what is known of it."""
    ours = {device.id for device in loaded.addressable_devices}
    places = [
        (device_id, replica, partition)
        for replica, row in enumerate(assignment.device_ids)
        for partition, device_id in enumerate(row)
        if device_id in ours
    ]
    described = _describe_executable(loaded, assignment, options, program)
    return loaded, loaded.execute, tuple(places), described


def _describe_executable(
    loaded: LoadedExecutable,
    assignment: DeviceAssignment,
    options: CompileOptions,
    program: Program | None,
) -> tuple[Any, ...]:
    executable = loaded.executable
    kinds = _memory_kinds(loaded)
    outputs = [
        (_type_of(t.dtype), t.shape, kind)
        for t, kind in zip(executable.output_types, kinds, strict=True)
    ]
    parameter_shardings, output_shardings = shardings_of(executable, program)
    return (
        executable,
        executable.name,
        executable.num_replicas,
        executable.num_partitions,
        tuple(outputs),
        device_assignment(assignment),
        compile_options(options),
        output_shardings,
        parameter_shardings,
    )


def _type_of(dtype: Any) -> int:
    try:
        return ELEMENT_TYPES[dtype]
    except KeyError:
        raise UnsupportedDtype(f"a result has the dtype {dtype}, which PJRT lacks") from None


def _memory_kinds(loaded: LoadedExecutable) -> Sequence[str]:
    executable: Executable = loaded.executable
    try:
        return executable.output_memory_kinds
    except Unimplemented:
        kind = loaded.addressable_devices[0].default_memory().kind
        return [kind] * len(executable.output_types)
