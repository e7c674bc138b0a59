"""Level 1: devices and their memories."""

from __future__ import annotations

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt_sdk.conformance.asking import expect_as_noted
from plugrt_sdk.conformance.check import Chapter, Level
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_refusal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("devices", Level.BUFFERS, "plugrt.interface.Device; PJRT_Device_*")


@CHAPTER.check("ids", why="two devices of one id are one to every host", covers=("Device.id",))
def ids(subject: PluginSubject) -> None:
    """Device ids are unique, not negative, and in ascending order."""
    found = [device.id for device in subject.client.devices()]
    expect(all(isinstance(i, int) and i >= 0 for i in found), "ids from 0 on", found)
    expect_equal(found, sorted(set(found)), "different ids in order:")


@CHAPTER.check(
    "agree", rests_on="PJRT_Client_Devices, _AddressableDevices, _TopologyDescription",
    why="an array's device is none of the client's, and hosts end at their own assertions",
)  # fmt: skip
def agree(subject: PluginSubject) -> None:
    """Addressable devices are among the client's, and the topology has the same devices."""
    ids = [device.id for device in subject.client.devices()]
    usable = [device.id for device in subject.client.addressable_devices()]
    expect(set(usable) <= set(ids), f"addressable devices among those with the ids {ids}", usable)
    try:
        topology = subject.client.topology()
    except Unimplemented:
        return
    expect_equal(sorted(d.id for d in topology.devices), sorted(ids), "the topology's device ids:")


@CHAPTER.check("same_objects", why="hosts compare devices by identity")
def same_objects(subject: PluginSubject) -> None:
    """The client returns the same device objects in each call."""
    pairs = zip(subject.client.devices(), subject.client.devices(), strict=True)
    expect(all(a is b for a, b in pairs), "the same objects", "new ones")


@CHAPTER.check("client", why="arrays are sent to the wrong client", covers=("Device.client",))
def client(subject: PluginSubject) -> None:
    """Each device states its client."""
    for device in subject.client.devices():
        expect(device.client is subject.client, "its own client", device.client)


@CHAPTER.check(
    "kind",
    why="tuning tables and error messages name it",
    covers=("Device.kind", "Device.platform"),
)
def kind(subject: PluginSubject) -> None:
    """Each device has a kind and the platform of its client."""
    for device in subject.client.devices():
        expect(isinstance(device.kind, str) and device.kind, "a kind", device.kind)
        expect_equal(device.platform, subject.client.platform, "the platform")


@CHAPTER.check(
    "addressable",
    why="a process uses devices that are another's, or none",
    covers=("Device.is_addressable", "Device.process_index"),
)
def addressable(subject: PluginSubject) -> None:
    """The addressable devices are the devices of this process."""
    mine = [d for d in subject.client.devices() if d.process_index == subject.client.process_index]
    expect_equal(list(subject.client.addressable_devices()), mine, "the devices")
    for device in subject.client.devices():
        expect_equal(device.is_addressable, device in mine, f"{device!r}.is_addressable")


@CHAPTER.check(
    "hardware_id",
    why="launchers bind processes to devices by it",
    covers=("Device.local_hardware_id",),
)
def hardware_id(subject: PluginSubject) -> None:
    """The local hardware id is a number, at least 0."""
    for device in subject.client.addressable_devices():
        number = device.local_hardware_id
        expect(isinstance(number, int) and number >= 0, "a number from 0 on", number)


@CHAPTER.check(
    "attributes", why="hosts read coordinates and counts there", covers=("Device.attributes",)
)
def attributes(subject: PluginSubject) -> None:
    """The names of a device's attributes are texts."""
    for device in subject.client.devices():
        names = list(device.attributes)
        expect(all(isinstance(name, str) and name for name in names), "names", names)


@CHAPTER.check(
    "memories",
    why="arrays are put where nothing can find them",
    covers=("Device.memories", "Device.default_memory", "Device.memory", "Memory.kind"),
)
def memories(subject: PluginSubject) -> None:
    """Each addressable device has a default memory among its memories, and finds each by kind."""
    for device in subject.client.addressable_devices():
        known = device.memories()
        expect(device.default_memory() in known, "the default among the memories", known)
        for memory in known:
            expect(isinstance(memory.kind, str) and memory.kind, "a kind", memory.kind)
            expect(device.memory(memory.kind) is memory, f"{memory!r} by its kind",
                   device.memory(memory.kind))  # fmt: skip
    device = subject.client.addressable_devices()[0]
    expect_refusal(lambda: device.memory("no such kind"), InvalidArgument, what="an unknown kind")


@CHAPTER.check(
    "memories.ids",
    why="two memories of one id are one to every host",
    covers=("Memory.id", "Memory.client"),
)
def memory_ids(subject: PluginSubject) -> None:
    """Memories have unique ids, and belong to the client."""
    devices = subject.client.addressable_devices()
    known = list(dict.fromkeys(m for device in devices for m in device.memories()))
    expect_equal(len({memory.id for memory in known}), len(known), "different ids:")
    for memory in known:
        expect(memory.client is subject.client, "its own client", memory.client)


@CHAPTER.check(
    "memories.devices",
    why="a transfer goes to a device that cannot read it",
    covers=("Memory.addressable_by_devices",),
)
def memory_devices(subject: PluginSubject) -> None:
    """A device is among the devices of its memories."""
    for device in subject.client.addressable_devices():
        for memory in device.memories():
            expect(
                device in memory.addressable_by_devices(),
                f"{device!r} among the devices",
                list(memory.addressable_by_devices()),
            )


@CHAPTER.check(
    "memories.put",
    capability="memory_kinds",
    rests_on="PJRT_Buffer_CopyToMemory",
    why="offloaded arrays are lost on their way",
    covers=("Buffer.copy_to_memory",),
)
def memory_put(subject: PluginSubject) -> None:
    """An array is put in each memory of its device, and copied from there to the default one."""
    device = subject.client.addressable_devices()[0]
    others = [m for m in device.memories() if m is not device.default_memory()]
    if not others:
        subject.refuse("the device has one memory")
    for memory in others:
        x = subject.client.buffer_from_host(ONE, device, memory)
        expect(x.memory is memory, f"an array in {memory!r}", x.memory)
        expect_as_noted(x)
        back = x.copy_to_memory(device.default_memory())
        expect_as_noted(back)
        expect_same_bits(back.to_host(), ONE, f"the copy from {memory!r}:")
