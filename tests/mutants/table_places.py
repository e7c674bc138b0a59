"""Mutants of libraries' statements about assignments, logical ids and topologies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import then
from mutants.table_programs import shares
from mutants.tables import TableFaults, keep, replace_function
from plugrt.capi.abi import proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.c_values import named_values
from plugrt.interface import DeviceAssignment


def _say_another_device(args: Any) -> None:
    said = bytes(ffi.buffer(args.serialized_bytes, args.serialized_bytes_size))
    rows = proto_wire.read_device_assignment(said).device_ids
    other = DeviceAssignment(tuple(tuple(i + 1 for i in row) for row in rows))
    encoded = keep(ffi.new("char[]", proto_wire.device_assignment(other)))
    args.serialized_bytes, args.serialized_bytes_size = encoded, len(encoded) - 1


def _swap_replica_and_partition(args: Any) -> None:
    count = int(args.num_addressable_device_logical_ids)
    given = ffi.unpack(args.addressable_device_logical_ids, count)
    swapped = [(each.partition, each.replica + 1) for each in given]
    args.addressable_device_logical_ids = keep(ffi.new("PJRT_LogicalDeviceIds[]", swapped))


def _name_another_platform() -> TableFaults:
    name = keep(ffi.new("char[]", b"another"))

    def change(args: Any) -> None:
        args.platform_name, args.platform_name_size = name, len(name) - 1

    return replace_function("TopologyDescription_PlatformName", then(change))


def _repeat_attributes() -> TableFaults:
    array, _, kept = named_values({"wrap": "yes"})
    twice = keep(ffi.new("PJRT_NamedValue[2]", [array[0], array[0]]))
    keep(kept)

    def change(args: Any) -> None:
        args.attributes, args.num_attributes = twice, len(twice)

    return replace_function("TopologyDescription_Attributes", then(change))


def _find_first(sound: Any) -> Any:
    """Finds the first device, whose id is 0, for each id."""

    def lookup(args: Any) -> Any:
        args.id = 0
        return sound(args)

    return lookup


def _find_nothing(args: Any) -> None:
    args.addressable_device = ffi.NULL


MUTANTS: Mapping[str, TableFaults] = {
    "table_places.lookup": replace_function("Client_LookupAddressableDevice", then(_find_nothing)),
    "table_places.lookup.unknown": replace_function("Client_LookupDevice", _find_first),
    "table_places.assignment": replace_function(
        "LoadedExecutable_GetDeviceAssignment", then(_say_another_device)
    ),
    "table_places.logical_ids": replace_function(
        "LoadedExecutable_AddressableDeviceLogicalIds", then(_swap_replica_and_partition)
    ),
    "table_places.topology.platform": _name_another_platform(),
    "table_places.topology.attributes": _repeat_attributes(),
    "table_places.topology.serialized": shares(
        "TopologyDescription_Serialize", "serialized_topology"
    ),
}
