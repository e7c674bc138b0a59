"""Mutants of a library's objects: tables with some functions in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from mutants.changes import OK, Sound, moves, then
from mutants.tables import TableFaults, replace_function, sound_table
from plugrt.capi.abi._abi import ffi


def _fill_without_room(sound: Sound) -> Sound:
    """Writes a whole assignment, whatever the room is."""

    def assign(args: Any) -> Any:
        for i in range(min(args.num_replicas * args.num_partitions, 4)):
            args.default_assignment[i] = i
        return OK

    return assign


def _multiply_in_32_bits(sound: Sound) -> Sound:
    def assign(args: Any) -> Any:
        product = ctypes.c_int32(args.num_replicas * args.num_partitions).value
        return OK if product == 0 else sound(args)

    return assign


_SLICE = ffi.new("char[]", b"slice")


_OF_NO_TYPE = ffi.new(
    "PJRT_NamedValue*", {"name": _SLICE, "name_size": 5, "type": 99, "value_size": 1}
)


def _leave_out_the_last(args: Any) -> None:
    args.num_addressable_memories -= 1


def _say_of_no_type(args: Any) -> None:
    args.attributes, args.num_attributes = _OF_NO_TYPE, 1


def _refuse_to_end(sound: Sound) -> Sound:
    """Destroys nothing, and returns the error of a missing device."""

    def destroy(args: Any) -> Any:
        lookup = ffi.new("struct PJRT_Client_LookupDevice_Args*", {"client": args.client, "id": -1})
        lookup.struct_size = ffi.sizeof(lookup[0])
        return sound_table().Client_LookupDevice(lookup)

    return destroy


def _describe_the_first(sound: Sound) -> Sound:
    """Returns the text of the first memory for all."""
    first: list[Any] = []

    def describe(args: Any) -> Any:
        first.append(args.memory)
        args.memory = first[0]
        return sound(args)

    return describe


MUTANTS: Mapping[str, TableFaults] = {
    "handles.client.strings": moves(
        "Client_PlatformVersion", "platform_version", "platform_version_size"
    ),
    "handles.client.lists": moves(
        "Client_AddressableDevices", "addressable_devices", "num_addressable_devices"
    ),
    "handles.devices.strings": moves(
        "DeviceDescription_DebugString", "debug_string", "debug_string_size"
    ),
    "handles.memories.strings": moves("Memory_Kind", "kind", "kind_size"),
    "handles.client.memories": replace_function(
        "Client_AddressableMemories", then(_leave_out_the_last), 2
    ),
    "handles.descriptions": replace_function("Memory_ToString", _describe_the_first, 2),
    "handles.assignment.room": replace_function(
        "Client_DefaultDeviceAssignment", _fill_without_room
    ),
    "handles.assignment.overflow": replace_function(
        "Client_DefaultDeviceAssignment", _multiply_in_32_bits
    ),
    "handles.devices.attributes": replace_function(
        "DeviceDescription_Attributes", then(_say_of_no_type)
    ),
    "handles.ended": replace_function("Client_Destroy", _refuse_to_end),
}
