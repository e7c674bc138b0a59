"""Level 1 of PJRT libraries: ownership of objects, without a host's corrections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.checks.arguments import check_named_value
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import TableClient, expect_mistake, text_at
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "handles", Level.BUFFERS, "pjrt_c_api.h: who owns what", needs=Needs.LIBRARY_CLIENT
)

_LARGE = 1 << 30
WHY_STABLE = "a host that kept the pointer reads freed memory"


def _addresses(host: TableClient, name: str, fields: Sequence[str], **given: Any) -> list[Any]:
    """Returns the addresses and sizes that two calls of a function set."""
    found = []
    for _ in range(2):
        args = host.call(name, **given)
        values = [getattr(args, field) for field in fields]
        found.append([v if isinstance(v, int) else int(ffi.cast("uintptr_t", v)) for v in values])
    return found


def expect_stable(host: TableClient, name: str, *fields: str, **given: Any) -> None:
    """Expects the same pointers and sizes from a second call of a function."""
    first, again = _addresses(host, name, fields, **given)
    expect_equal(again, first, f"of PJRT_{name} called again, {' and '.join(fields)}")


def expect_text(host: TableClient, name: str, field: str, **given: Any) -> None:
    """Expects a string at the same address, of the stated size, without a NUL in it."""
    size = f"{field}_size"
    expect_stable(host, name, field, size, **given)
    args = host.call(name, **given)
    found = text_at(getattr(args, field), getattr(args, size))
    expect(b"\0" not in found, f"of PJRT_{name}, a text without NUL", found)


@CHAPTER.check("devices.attributes", why="hosts read a coordinate from bytes that are not its own")
def device_attributes(subject: PluginSubject) -> None:
    """A device's attributes have UTF-8 names and values of PJRT's types, with their sizes."""
    client = TableClient.of(subject)
    for device in client.devices():
        description = client.call("Device_GetDescription", device=device).device_description
        found = client.call("DeviceDescription_Attributes", device_description=description)
        for i in range(found.num_attributes):
            check_named_value(found.attributes[i])


@CHAPTER.check(
    "ended", rests_on="pjrt_c_api.h: PJRT_Client_Destroy, PJRT_Buffer_Destroy, PJRT_Event_Destroy",
    why="a host cannot free the device, and gets no error",
)  # fmt: skip
def ended_without_error(subject: PluginSubject) -> None:
    """A client, its buffer and the buffer's event are destroyed without an error."""
    try:
        client = TableClient(subject)
    except Mismatch as found:  # some libraries allow one client in a process
        raise NotTried(Verdict.NOT_RUN, f"no second client: {found.got}", applies=False) from found
    buffer = client.put(ONE)
    client.call("Event_Destroy", event=client.call("Buffer_ReadyEvent", buffer=buffer).event)
    client.call("Buffer_Destroy", buffer=buffer)
    client.call("Client_Destroy", client=client.handle)


@CHAPTER.check("client.strings", why=WHY_STABLE)
def client_strings(subject: PluginSubject) -> None:
    """The platform's name and version keep their addresses while the client lives."""
    client = TableClient.of(subject)
    for field in ("platform_name", "platform_version"):
        name = {"platform_name": "PlatformName", "platform_version": "PlatformVersion"}[field]
        expect_text(client, f"Client_{name}", field, client=client.handle)


@CHAPTER.check("client.lists", why=WHY_STABLE)
def client_lists(subject: PluginSubject) -> None:
    """The lists of devices and memories keep their addresses while the client lives."""
    client = TableClient.of(subject)
    for name, field in (
        ("Client_Devices", "devices"),
        ("Client_AddressableDevices", "addressable_devices"),
        ("Client_AddressableMemories", "addressable_memories"),
    ):
        expect_stable(client, name, field, f"num_{field}", client=client.handle)


@CHAPTER.check(
    "client.memories", refusable=True, demand=Demand.REFERENCE,
    rests_on="pjrt_c_api.h: PJRT_Client_AddressableMemories, PJRT_Device_AddressableMemories",
    why="a host refuses an array in a memory that it does not know",
)  # fmt: skip
def client_memories(subject: PluginSubject) -> None:
    """The client lists the memories of its devices, and no others."""
    client = TableClient.of(subject)
    of_devices: set[Any] = set()
    for device in client.devices():
        found = client.call("Device_AddressableMemories", device=device)
        of_devices.update(found.memories[i] for i in range(found.num_memories))
    expect_equal(
        len({*client.memories()} ^ of_devices), 0, "memories of the client or a device alone"
    )


@CHAPTER.check("devices.strings", why=WHY_STABLE)
def device_strings(subject: PluginSubject) -> None:
    """A device's kind and descriptions keep their addresses, and have the stated sizes."""
    client = TableClient.of(subject)
    for device in client.devices():
        found = client.call("Device_GetDescription", device=device).device_description
        for name, field in (
            ("Kind", "device_kind"), ("DebugString", "debug_string"), ("ToString", "to_string")
        ):  # fmt: skip
            expect_text(client, f"DeviceDescription_{name}", field, device_description=found)


@CHAPTER.check("memories.strings", refusable=True, why=WHY_STABLE)
def memory_strings(subject: PluginSubject) -> None:
    """A memory's kind and descriptions keep their addresses, and have the stated sizes."""
    client = TableClient.of(subject)
    for memory in client.memories():
        for name, field in (
            ("Kind", "kind"), ("DebugString", "debug_string"), ("ToString", "to_string")
        ):  # fmt: skip
            expect_text(client, f"Memory_{name}", field, memory=memory)


@CHAPTER.check(
    "descriptions", refusable=True, demand=Demand.REFERENCE,
    rests_on="PJRT_DeviceDescription_ToString, PJRT_Memory_ToString and the debug strings",
    why="logs and errors name another device or memory",
)  # fmt: skip
def descriptions(subject: PluginSubject) -> None:
    """Each device, and each memory, has its own description."""
    client = TableClient.of(subject)
    devices = [
        client.call("Device_GetDescription", device=device).device_description
        for device in client.devices()
    ]
    for kind, field, objects in (
        ("DeviceDescription", "device_description", devices),
        ("Memory", "memory", client.memories()),
    ):
        for name, text in ("DebugString", "debug_string"), ("ToString", "to_string"):
            found = []
            for one in objects:
                answer = client.call(f"{kind}_{name}", **{field: one})
                found.append(text_at(getattr(answer, text), getattr(answer, f"{text}_size")))
            alike = len(found) - len(set(found))
            expect(not alike, f"different texts of PJRT_{kind}_{name}", found)


def _assign(client: TableClient, replicas: int, partitions: int, room: int) -> Any:
    """Requests an assignment into ``room`` numbers; returns the error and the next four numbers."""
    numbers = ffi.new("int[]", [-7] * (room + 4))
    error = client.refused(
        "Client_DefaultDeviceAssignment", client=client.handle, num_replicas=replicas,
        num_partitions=partitions, default_assignment_size=room, default_assignment=numbers,
    )  # fmt: skip
    return error, list(numbers)[room:]


@CHAPTER.check(
    "assignment.room",
    rests_on="pjrt_c_api.h: PJRT_Client_DefaultDeviceAssignment",
    why="memory of the host is overwritten",
)
def assignment_needs_room(subject: PluginSubject) -> None:
    """An assignment into too little memory is refused, and nothing is written."""
    client = TableClient.of(subject)
    count = len(client.devices())
    error, behind = _assign(client, count, 1, count - 1)
    expect_mistake(error, "PJRT_Client_DefaultDeviceAssignment into too little room")
    expect_equal(behind, [-7] * 4, "what is behind the room:")


@CHAPTER.check(
    "assignment.overflow",
    rests_on="pjrt_c_api_test.cc: ClientDefaultDeviceAssignment",
    demand=Demand.REFERENCE,
    why="memory of the host is overwritten",
)
def assignment_overflow(subject: PluginSubject) -> None:
    """An assignment whose size overflows 32 bits is refused."""
    client = TableClient.of(subject)
    error, behind = _assign(client, _LARGE, 4, 0)
    expect(error, f"PJRT_Client_DefaultDeviceAssignment to refuse {_LARGE} replicas", "no error")
    expect_equal(behind, [-7] * 4, "what is behind the room:")
