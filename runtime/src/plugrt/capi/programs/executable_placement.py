"""Where a loaded program runs and where its results lie, as its library states it."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi import proto_wire
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.devices.devices import ClientBase, Device
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.programs.executable import Executable
from plugrt.errors import InvalidReply, Unimplemented
from plugrt.interface import DeviceAssignment


def read_addressable_devices(client: ClientBase, pointer: Any) -> tuple[Device, ...]:
    """Returns the devices of this process that a ``PJRT_LoadedExecutable`` runs on."""
    library = client.handle().library
    args = library.call("LoadedExecutable_AddressableDevices", executable=pointer)
    found = library.distinct_devices(args, "addressable_devices", "num_addressable_devices")
    return tuple(client.device_at(p, args) for p in found)


def read_device_assignment(handle: ClientHandle, pointer: Any) -> DeviceAssignment:
    """Returns the devices of all replicas and partitions, other processes' too (PJRT 0.79)."""
    library = handle.library
    args = library.call("LoadedExecutable_GetDeviceAssignment", executable=pointer)
    encoded = library.owned_bytes(
        args,
        "serialized_bytes",
        "serialized_device_assignment",
        "serialized_device_assignment_deleter",
    )
    with library.reading(args, "serialized_bytes"):
        return proto_wire.read_device_assignment(encoded)


def read_logical_device_ids(handle: ClientHandle, pointer: Any) -> list[tuple[int, int]]:
    """Returns (replica, partition) of each device of this process (PJRT 0.96)."""
    library = handle.library
    args = library.call("LoadedExecutable_AddressableDeviceLogicalIds", executable=pointer)
    ids = library.items(
        args, "addressable_device_logical_ids", "num_addressable_device_logical_ids"
    )
    return [(i.replica, i.partition) for i in ids]


def result_specs(handle: ClientHandle, executable: Executable, device: Device) -> list[BufferSpec]:
    """Returns the specs of the results on a device: types and memories."""
    types = executable.output_types
    try:
        memory_kinds = executable.output_memory_kinds
    except Unimplemented:
        memory_kinds = [""] * len(types)
    if len(memory_kinds) != len(types):
        raise InvalidReply(
            f"{handle.library.owner} states {len(types)} results of "
            f"{executable.name!r} and the memories of {len(memory_kinds)}"
        )
    memories = {memory.kind: memory for memory in device.memories()}
    return [
        BufferSpec(handle, t.shape, t.dtype, device, memories.get(memory_kind), t.layout)
        for t, memory_kind in zip(types, memory_kinds, strict=True)
    ]
