"""Level 2 of PJRT libraries: the devices of programs, and the client's topology."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi import proto_wire
from plugrt.capi.abi._abi import ffi
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.checks.arguments import check_named_value
from plugrt_sdk.conformance.checks.handles import expect_stable, expect_text
from plugrt_sdk.conformance.checks.table.table_programs import expect_owned
from plugrt_sdk.conformance.expect import expect, expect_equal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient, expect_mistake, text_at
from plugrt_sdk.testing import programs

CHAPTER = Chapter(
    "table_places", Level.COMPUTES, "pjrt_c_api.h: PJRT_TopologyDescription_*",
    needs=Needs.LIBRARY_CLIENT,
)  # fmt: skip

_ADD = programs.ADD.encode()


def _ids(client: TableClient) -> list[int]:
    """Returns the ids of the first two devices in reverse, or of the only one."""
    ids = []
    for device in client.devices()[:2]:
        found = client.call("Device_GetDescription", device=device).device_description
        ids.append(client.call("DeviceDescription_Id", device_description=found).id)
    return ids[::-1]


def _compiled_for(client: TableClient, ids: list[int]) -> Any:
    """Returns a ``PJRT_LoadedExecutable*`` of a replica on each of these devices."""
    assignment = DeviceAssignment(tuple((i,) for i in ids))
    options = CompileOptions(device_assignment=assignment, num_replicas=len(ids))
    loaded, _ = client.compile(_ADD, options)
    return loaded


@CHAPTER.check(
    "lookup", rests_on="pjrt_c_api.h: PJRT_Client_LookupDevice, _LookupAddressableDevice",
    why="hosts that ask the library put arrays on another device than they name",
)  # fmt: skip
def lookup(subject: PluginSubject) -> None:
    """Each device is found by its id and by its local hardware id."""
    client = TableClient.of(subject)
    for i, device in enumerate(client.devices()):
        description = client.call("Device_GetDescription", device=device).device_description
        number = client.call("DeviceDescription_Id", device_description=description).id
        local = client.call("Device_LocalHardwareId", device=device).local_hardware_id
        found = client.call("Client_LookupDevice", client=client.handle, id=number)
        expect(found.device == device, f"for the id {number}, device {i}", "another address")
        if local < 0:  # it has none
            continue
        found = client.call(
            "Client_LookupAddressableDevice", client=client.handle, local_hardware_id=local
        )
        expect(found.addressable_device == device, f"for the hardware id {local}, device {i}",
               "another address")  # fmt: skip


@CHAPTER.check(
    "lookup.unknown", rests_on="pjrt_c_api.h: PJRT_Client_LookupDevice, _LookupAddressableDevice",
    why="a host that asks for a device that is not there has a wild pointer",
)  # fmt: skip
def lookup_unknown(subject: PluginSubject) -> None:
    """An id that no device has is refused."""
    client = TableClient.of(subject)
    for number in (-1, 1 << 30):
        for name, field in (
            ("Client_LookupDevice", "id"), ("Client_LookupAddressableDevice", "local_hardware_id")
        ):  # fmt: skip
            found = client.refused(name, client=client.handle, **{field: number})
            expect_mistake(found, f"PJRT_{name} for {number}")


@CHAPTER.check(
    "assignment", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_GetDeviceAssignment, a DeviceAssignmentProto",
    why="hosts place the parts of an array on the wrong devices",
)  # fmt: skip
def assignment(subject: PluginSubject) -> None:
    """A program states the device assignment that it was compiled for."""
    client = TableClient.of(subject)
    ids = _ids(client)
    args = client.call(
        "LoadedExecutable_GetDeviceAssignment", executable=_compiled_for(client, ids)
    )
    said = text_at(args.serialized_bytes, args.serialized_bytes_size)
    args.serialized_device_assignment_deleter(args.serialized_device_assignment)
    found = proto_wire.read_device_assignment(said).device_ids
    expect_equal(found, tuple((i,) for i in ids), "the device of each replica:")


@CHAPTER.check(
    "logical_ids", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
    why="hosts take the part of one replica for another's",
)  # fmt: skip
def logical_ids(subject: PluginSubject) -> None:
    """A program states the replica and the partition of each of its devices, in their order."""
    client = TableClient.of(subject)
    ids = _ids(client)
    loaded = _compiled_for(client, ids)
    name, field = "LoadedExecutable_AddressableDeviceLogicalIds", "addressable_device_logical_ids"
    args = client.call(name, executable=loaded)
    expect_equal(getattr(args, f"num_{field}"), len(ids), f"num_{field}")
    given = ffi.unpack(getattr(args, field), len(ids))
    found = [(each.replica, each.partition) for each in given]
    expect_equal(found, [(i, 0) for i in range(len(ids))], "(replica, partition) of each device:")
    expect_stable(client, name, field, f"num_{field}", executable=loaded)


def _topology(client: TableClient) -> Any:
    return client.call("Client_TopologyDescription", client=client.handle).topology


@CHAPTER.check(
    "topology.platform", refusable=True,
    why="programs that are compiled for its topology are of another platform than the client's",
)  # fmt: skip
def topology_platform(subject: PluginSubject) -> None:
    """A client's topology has its platform and a version, at constant addresses."""
    client = TableClient.of(subject)
    topology = _topology(client)
    for name, field in (
        ("PlatformName", "platform_name"), ("PlatformVersion", "platform_version")
    ):  # fmt: skip
        expect_text(client, f"TopologyDescription_{name}", field, topology=topology)
    of_topology = client.call("TopologyDescription_PlatformName", topology=topology)
    of_client = client.call("Client_PlatformName", client=client.handle)
    found, wanted = (
        text_at(args.platform_name, args.platform_name_size) for args in (of_topology, of_client)
    )
    expect_equal(found, wanted, "the platform")


@CHAPTER.check(
    "topology.attributes", refusable=True,
    why="a host that reads what the topology says of its devices reads other memory",
)  # fmt: skip
def topology_attributes(subject: PluginSubject) -> None:
    """A topology's attributes have unique names, and values of the stated sizes."""
    client = TableClient.of(subject)
    topology = _topology(client)
    name = "TopologyDescription_Attributes"
    expect_stable(client, name, "attributes", "num_attributes", topology=topology)
    args = client.call(name, topology=topology)
    given = [args.attributes[i] for i in range(args.num_attributes)]
    for one in given:
        check_named_value(one)
    names = [text_at(one.name, one.name_size) for one in given]
    expect(len(set(names)) == len(names), "no name twice", names)


@CHAPTER.check(
    "topology.serialized", refusable=True, why="bytes are freed twice, or never",
)  # fmt: skip
def topology_is_owned(subject: PluginSubject) -> None:
    """The caller frees a serialised topology with the returned function."""
    client = TableClient.of(subject)
    expect_owned(
        client, "TopologyDescription_Serialize", "serialized_topology",
        "serialized_topology_deleter", topology=_topology(client),
    )  # fmt: skip
