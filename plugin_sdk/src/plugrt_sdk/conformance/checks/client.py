"""Level 1: the client, its lookups and default assignments."""

from __future__ import annotations

from plugrt.errors import (
    HARDWARE_ABSENT,
    ArgumentTypeError,
    InvalidArgument,
    PjrtError,
    PluginUnavailable,
    PlugrtError,
    describe,
)
from plugrt.interface import Capabilities, Client, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal, expect_refusal
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.testing import ownership
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("client", Level.BUFFERS, "plugrt.interface.Client; PJRT_Client_*")

_ABSENT = [error.__name__ for error in (*HARDWARE_ABSENT, PluginUnavailable)]


@CHAPTER.check("create", why="nothing works", covers=("Client.addressable_devices",))
def create(subject: PluginSubject) -> None:
    """A client is created and has a device that this process can use."""
    try:
        client: object = subject.client
    except PlugrtError as error:
        wanted = f"a client, or {', '.join(_ABSENT[:-1])} or {_ABSENT[-1]} where there is no device"
        raise Mismatch(wanted, describe(error)) from error
    expect(isinstance(client, Client), "a plugrt.interface.Client", client)
    expect(subject.client.addressable_devices(), "an addressable device", [])


@CHAPTER.check(
    "platform",
    why="JAX chooses lowering rules and caches by the platform's name",
    covers=("Client.platform", "Client.platform_version"),
)
def platform(subject: PluginSubject) -> None:
    """Platform and version are texts that are not empty, and the same in each call."""
    first = (subject.client.platform, subject.client.platform_version)
    expect(all(isinstance(text, str) for text in first), "two texts", first)
    expect(first[0] and first[1], "a platform and a version", first)
    expect_equal((subject.client.platform, subject.client.platform_version), first, "still")


@CHAPTER.check(
    "process",
    why="multi-process programs divide their data by it",
    covers=("Client.process_index", "Client.process_count"),
)
def process(subject: PluginSubject) -> None:
    """The process index is below the process count; a single process has index 0."""
    index, count = subject.client.process_index, subject.client.process_count
    expect(0 <= index < count, "0 <= process_index < process_count", (index, count))


@CHAPTER.check(
    "capabilities", why="hosts decide by them what to ask for", covers=("Client.capabilities",)
)
def capabilities(subject: PluginSubject) -> None:
    """The client's capabilities have their declared types, and are the same in each call."""
    declared = subject.client.capabilities
    expect(isinstance(declared, Capabilities), "Capabilities", declared)
    expect_equal(subject.client.capabilities, declared, "still")
    for name, (value, _) in declared.sentences().items():
        if name not in ("max_blocking_launches", "tuple_arguments_above"):
            expect(isinstance(value, bool), f"{name} to be a bool", value)
    expect("mlir" in declared.program_formats, "'mlir' among the formats", declared.program_formats)


@CHAPTER.check("attributes", why="hosts print and compare them", covers=("Client.attributes",))
def attributes(subject: PluginSubject) -> None:
    """Attributes have names that are texts, and values of PJRT's types."""
    for name, value in subject.client.attributes.items():
        expect(isinstance(name, str) and name, "a name", name)
        whole = isinstance(value, list | tuple) and all(isinstance(v, int) for v in value)
        expect(whole or isinstance(value, str | bool | int | float), f"{name}: a PJRT value", value)


@CHAPTER.check(
    "lookup",
    why="device ids in saved programs and shardings find no device",
    covers=("Client.lookup_device", "Client.devices"),
)
def lookup(subject: PluginSubject) -> None:
    """Each device is found by its id."""
    for device in subject.client.devices():
        found = subject.client.lookup_device(device.id)
        expect(found is device, f"the device {device!r}", found)


@CHAPTER.check(
    "lookup.unknown",
    rests_on="pjrt_c_api_test.cc: LookupDeviceNegativeId",
    demand=Demand.REFERENCE,
    why="a wrong id becomes a crash, or the wrong device",
)
def lookup_unknown(subject: PluginSubject) -> None:
    """An id of no device, negative or large, is refused with InvalidArgument."""
    highest = max(device.id for device in subject.client.devices())
    for number in (-1, highest + 1, 2**31 - 1):
        expect_refusal(
            lambda number=number: subject.client.lookup_device(number),  # type: ignore[misc]
            InvalidArgument,
            what=f"lookup_device({number})",
        )


@CHAPTER.check(
    "assignment",
    rests_on="PJRT_Client_DefaultDeviceAssignment",
    why="programs for several devices land on one",
    covers=("Client.default_device_assignment",),
)
def assignment(subject: PluginSubject) -> None:
    """The default assignment has the requested shape, and existing devices."""
    ids = [device.id for device in subject.client.devices()]
    for replicas, partitions in {(1, 1), (len(ids), 1), (1, len(ids))}:
        found = subject.client.default_device_assignment(replicas, partitions)
        expect(isinstance(found, DeviceAssignment), "a DeviceAssignment", found)
        form = (found.num_replicas, found.num_partitions)
        expect_equal(form, (replicas, partitions), "the form")
        expect(set(found.flat) <= set(ids), f"ids among {ids}", found.flat)
        expect_equal(len(set(found.flat)), replicas * partitions, "distinct devices:")


@CHAPTER.check(
    "assignment.refused",
    rests_on="pjrt_c_api.h: DefaultDeviceAssignment's size",
    why="a wrong count overruns memory, or launches on nothing",
)
def assignment_refused(subject: PluginSubject) -> None:
    """More replicas than devices, none, and a negative number are refused."""
    count = len(subject.client.devices())
    for replicas, partitions in ((count + 1, 1), (1, count + 1), (0, 1), (1, 0), (-1, 1)):
        what = f"default_device_assignment({replicas}, {partitions})"
        expect_refusal(
            lambda r=replicas, p=partitions: subject.client.default_device_assignment(r, p),  # type: ignore[misc]
            PjrtError, ValueError, what=what,
        )  # fmt: skip


@CHAPTER.check(
    "identity",
    why="a persistent compilation cache hands out another build's programs",
    covers=("Client.compiler_identity",),
)
def identity(subject: PluginSubject) -> None:
    """The compiler's identity is a constant text, or is not stated."""
    first = subject.client.compiler_identity
    expect(first is None or (isinstance(first, str) and first), "a text or None", first)
    expect_equal(subject.client.compiler_identity, first, "still")


@CHAPTER.check(
    "lost", demand=Demand.PLUGRT, rests_on="plugrt.interface.Client.is_lost, Client.on_lost",
    why="a server starts its devices' process again although it lives",
    covers=("Client.is_lost", "Client.on_lost"),
)  # fmt: skip
def lost(subject: PluginSubject) -> None:
    """A client that works, or was closed, is not lost, and calls no callback of `on_lost`."""
    client = subject.make_client()
    told: list[object] = []
    expect_refusal(lambda: client.on_lost(None), ArgumentTypeError, what="on_lost(None)")  # type: ignore[arg-type]
    client.on_lost(told.append)
    expect_equal(client.is_lost, False, "is_lost:")
    client.buffer_from_host(ONE, client.addressable_devices()[0]).to_host()
    client.close()
    expect_equal(client.is_lost, False, "is_lost of a closed client:")
    expect_equal(told, [], "calls:")


@CHAPTER.check(
    "close", level=Level.BEHAVES, why="a program that ends twice crashes", covers=("Client.close",)
)
def close(subject: PluginSubject) -> None:
    """A client is closed twice without harm, with live arrays, and then refuses puts."""
    ownership.closed_clients(subject)


@CHAPTER.check("again", level=Level.BEHAVES, why="a notebook cannot start the backend again")
def again(subject: PluginSubject) -> None:
    """After a client was closed, another one is made and works."""
    subject.make_client().close()
    client = subject.make_client()
    found = client.buffer_from_host(ONE, client.addressable_devices()[0]).to_host()
    expect_equal(found.tolist(), ONE.tolist(), "an array of the second client:")
    client.close()


@CHAPTER.check(
    "exit",
    level=Level.BEHAVES,
    needs=Needs.PROCESS,
    why="programs that worked end with a crash, and their exit code says so",
)
def process_exit(subject: PluginSubject) -> None:
    """A process that used the backend and closed nothing ends with exit code 0."""
    subject.kept = subject.put(ONE)
