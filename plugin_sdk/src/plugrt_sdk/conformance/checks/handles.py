"""Level 1 of PJRT libraries: who owns what, by calls that no host corrects."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.checks.arguments import check_named_value
from plugrt_sdk.conformance.expect import Mismatch, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import FLOAT32, TableClient, text_at
from plugrt_sdk.conformance.verdict import NotTried, Verdict
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "handles", Level.BUFFERS, "pjrt_c_api.h: who owns what", needs=Needs.LIBRARY_CLIENT
)

_LARGE = 1 << 30
_WHY_STABLE = "a host that kept the pointer reads freed memory"


def _addresses(host: TableClient, name: str, fields: Sequence[str], **given: Any) -> list[Any]:
    """Returns the addresses and sizes that two calls of a function fill in."""
    found = []
    for _ in range(2):
        args = host.call(name, **given)
        values = [getattr(args, field) for field in fields]
        found.append([v if isinstance(v, int) else int(ffi.cast("uintptr_t", v)) for v in values])
    return found


def expect_stable(host: TableClient, name: str, *fields: str, **given: Any) -> None:
    """What a function fills in is the same when it is called again."""
    first, again = _addresses(host, name, fields, **given)
    expect_equal(again, first, f"of PJRT_{name} called again, {' and '.join(fields)}")


def expect_text(host: TableClient, name: str, field: str, **given: Any) -> None:
    """A string is where it was, and is the size that is stated, without a NUL among it."""
    size = f"{field}_size"
    expect_stable(host, name, field, size, **given)
    args = host.call(name, **given)
    found = text_at(getattr(args, field), getattr(args, size))
    expect(b"\0" not in found, f"of PJRT_{name}, a text without NUL", found)


@CHAPTER.check("devices.attributes", why="hosts read a coordinate from bytes that are not its own")
def device_attributes(subject: PluginSubject) -> None:
    """A device's attributes have names of UTF-8 and values of PJRT's types and of their sizes."""
    client = TableClient.of(subject)
    for device in client.devices():
        description = client.call("Device_GetDescription", device=device).device_description
        found = client.call("DeviceDescription_Attributes", device_description=description)
        for i in range(found.num_attributes):
            check_named_value(found.attributes[i])


@CHAPTER.check(
    "ended", rests_on="pjrt_c_api.h: PJRT_Client_Destroy, PJRT_Buffer_Destroy, PJRT_Event_Destroy",
    why="a host cannot give the device back, and does not learn it",
)  # fmt: skip
def ended_without_error(subject: PluginSubject) -> None:
    """A client, its buffer and the buffer's event are destroyed without an error."""
    try:
        client = TableClient(subject)
    except Mismatch as found:  # some libraries have one client in a process
        raise NotTried(Verdict.NOT_RUN, f"no second client: {found.got}", applies=False) from found
    buffer = client.put(ONE)
    client.call("Event_Destroy", event=client.call("Buffer_ReadyEvent", buffer=buffer).event)
    client.call("Buffer_Destroy", buffer=buffer)
    client.call("Client_Destroy", client=client.handle)


# --- what a client lends -------------------------------------------------------------------------


@CHAPTER.check("client.strings", why=_WHY_STABLE)
def client_strings(subject: PluginSubject) -> None:
    """The platform's name and version are at one address as long as the client lives."""
    client = TableClient.of(subject)
    for field in ("platform_name", "platform_version"):
        name = {"platform_name": "PlatformName", "platform_version": "PlatformVersion"}[field]
        expect_text(client, f"Client_{name}", field, client=client.handle)


@CHAPTER.check("client.lists", why=_WHY_STABLE)
def client_lists(subject: PluginSubject) -> None:
    """The lists of devices and memories are at one address as long as the client lives."""
    client = TableClient.of(subject)
    for name, field in (
        ("Client_Devices", "devices"),
        ("Client_AddressableDevices", "addressable_devices"),
        ("Client_AddressableMemories", "addressable_memories"),
    ):
        expect_stable(client, name, field, f"num_{field}", client=client.handle)


@CHAPTER.check("devices.strings", why=_WHY_STABLE)
def device_strings(subject: PluginSubject) -> None:
    """A device's kind and descriptions are at one address, each of the size that is stated."""
    client = TableClient.of(subject)
    for device in client.devices():
        found = client.call("Device_GetDescription", device=device).device_description
        for name, field in (
            ("Kind", "device_kind"), ("DebugString", "debug_string"), ("ToString", "to_string")
        ):  # fmt: skip
            expect_text(client, f"DeviceDescription_{name}", field, device_description=found)


@CHAPTER.check("memories.strings", refusable=True, why=_WHY_STABLE)
def memory_strings(subject: PluginSubject) -> None:
    """A memory's kind and descriptions are at one address, each of the size that is stated."""
    client = TableClient.of(subject)
    for memory in client.memories():
        for name, field in (
            ("Kind", "kind"), ("DebugString", "debug_string"), ("ToString", "to_string")
        ):  # fmt: skip
            expect_text(client, f"Memory_{name}", field, memory=memory)


def _assign(client: TableClient, replicas: int, partitions: int, room: int) -> Any:
    """Asks for an assignment into ``room`` numbers; returns its error and the four after them."""
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
    """An assignment for which there is too little room is refused, and nothing is written."""
    client = TableClient.of(subject)
    count = len(client.devices())
    error, behind = _assign(client, count, 1, count - 1)
    expect(error, "PJRT_Client_DefaultDeviceAssignment to refuse too little room", "no error")
    expect_equal(behind, [-7] * 4, "what is behind the room:")


@CHAPTER.check(
    "assignment.overflow",
    rests_on="pjrt_c_api_test.cc: ClientDefaultDeviceAssignment",
    why="memory of the host is overwritten",
)
def assignment_overflow(subject: PluginSubject) -> None:
    """An assignment whose size overflows 32 bits is refused."""
    client = TableClient.of(subject)
    error, behind = _assign(client, _LARGE, 4, 0)
    expect(error, f"PJRT_Client_DefaultDeviceAssignment to refuse {_LARGE} replicas", "no error")
    expect_equal(behind, [-7] * 4, "what is behind the room:")


# --- buffers -------------------------------------------------------------------------------------


@CHAPTER.check("buffers.dims", why=_WHY_STABLE)
def buffer_dims(subject: PluginSubject) -> None:
    """A buffer's dimensions are at one address, and its own: not those that it was made of."""
    client = TableClient.of(subject)
    args = client.put_args(np.ones((2, 3), np.float32))
    expect(client.try_args("Client_BufferFromHostBuffer", args) is None, "a buffer", "an error")
    client.finish(args.done_with_host_buffer)
    args.dims[0] = args.dims[1] = 77
    expect_stable(client, "Buffer_Dimensions", "dims", "num_dims", buffer=args.buffer)
    found = client.call("Buffer_Dimensions", buffer=args.buffer)
    expect_equal(ffi.unpack(found.dims, found.num_dims), [2, 3], "the dimensions")


@CHAPTER.check(
    "buffers.unpadded", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_UnpaddedDimensions",
    why="PyTorch/XLA, which asks for no other dimensions, reads tensors of another shape",
)  # fmt: skip
def buffer_unpadded(subject: PluginSubject) -> None:
    """An array's dimensions without padding are its dimensions, at one address."""
    client = TableClient.of(subject)
    buffer = client.put(np.ones((2, 3), np.float32))
    fields = ("unpadded_dims", "num_dims")
    expect_stable(client, "Buffer_UnpaddedDimensions", *fields, buffer=buffer)
    found = client.call("Buffer_UnpaddedDimensions", buffer=buffer)
    expect_equal(ffi.unpack(found.unpadded_dims, found.num_dims), [2, 3], "the dimensions")


@CHAPTER.check(
    "buffers.dynamic", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_DynamicDimensionIndices",
    why="hosts take a tensor for one whose size may change, and compile for its largest",
)  # fmt: skip
def buffer_dynamic(subject: PluginSubject) -> None:
    """No dimension of an array that was put is dynamic."""
    client = TableClient.of(subject)
    buffer = client.put(np.ones((2, 3), np.float32))
    found = client.call("Buffer_DynamicDimensionIndices", buffer=buffer)
    expect_equal(found.num_dynamic_dims, 0, "dynamic dimensions:")


@CHAPTER.check("buffers.bounded", why="the process crashes where an array ends at a page's end")
def buffer_is_bounded(subject: PluginSubject) -> None:
    """An array that is put is read for its size, and no further."""
    client = TableClient.of(subject)
    expect_same_bits(client.get(client.put(ONE), ONE.size), ONE, "the array")


@CHAPTER.check(
    "buffers.two_calls",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.dst",
    why="hosts make room for too few bytes",
)
def two_calls(subject: PluginSubject) -> None:
    """A read without a destination says the size, and reads nothing."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    asked = client.call("Buffer_ToHostBuffer", src=buffer, dst=ffi.NULL)
    expect_equal(asked.dst_size, ONE.nbytes, "dst_size")
    expect_equal(asked.event, ffi.NULL, "no event:")
    expect_same_bits(client.get(buffer, ONE.size), ONE, "then, the array")


@CHAPTER.check(
    "buffers.short_room",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.dst_size",
    why="memory of the host is overwritten",
)
def short_room(subject: PluginSubject) -> None:
    """A read for which there is too little room is refused, and writes nothing behind it."""
    client = TableClient.of(subject)
    buffer, room = client.put(ONE), np.full(ONE.size, -1, np.float32)
    args = client.args(
        "Buffer_ToHostBuffer", src=buffer, dst=ffi.from_buffer(room), dst_size=ONE.nbytes - 4
    )
    error = client.try_args("Buffer_ToHostBuffer", args)
    error = error or client.finish(args.event)
    expect(error, f"PJRT_Buffer_ToHostBuffer to refuse {ONE.nbytes - 4} bytes", "no error")
    expect_equal(float(room[-1]), -1.0, "what is behind the room:")


@CHAPTER.check(
    "buffers.larger",
    rests_on="pjrt_c_api.h: struct_size",
    why="a newer host, whose structs are longer, cannot use it",
)
def put_takes_larger(subject: PluginSubject) -> None:
    """PJRT_Client_BufferFromHostBuffer takes a struct that is longer than known."""
    client = TableClient.of(subject)
    args = client.put_args(ONE)
    size = ffi.sizeof("struct PJRT_Client_BufferFromHostBuffer_Args")
    longer = client.keep(ffi.new("char[]", size + 64))
    ffi.memmove(longer, args, size)
    ffi.memmove(longer + size, b"\xa5" * 64, 64)
    larger = ffi.cast("struct PJRT_Client_BufferFromHostBuffer_Args*", longer)
    larger.struct_size = size + 64
    failed = client.try_args("Client_BufferFromHostBuffer", larger)
    expect(failed is None, "a buffer", failed)
    client.finish(larger.done_with_host_buffer)
    expect_equal(bytes(ffi.buffer(longer))[size:], b"\xa5" * 64, "the tail's bytes")
    expect_same_bits(client.get(larger.buffer, ONE.size), ONE, "the array")


@CHAPTER.check(
    "buffers.deleted",
    rests_on="pjrt_c_api.h: PJRT_Buffer_Delete",
    why="a host crashes where it should meet an error",
)
def deleted(subject: PluginSubject) -> None:
    """A deleted buffer says so, refuses to be read, and may be deleted again."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    for _ in range(2):
        client.call("Buffer_Delete", buffer=buffer)
        expect(client.call("Buffer_IsDeleted", buffer=buffer).is_deleted, "is_deleted", "not")
    room = np.zeros(ONE.size, np.float32)
    args = client.args(
        "Buffer_ToHostBuffer", src=buffer, dst=ffi.from_buffer(room), dst_size=room.nbytes
    )
    error = client.try_args("Buffer_ToHostBuffer", args) or client.finish(args.event)
    expect(error, "PJRT_Buffer_ToHostBuffer to refuse a deleted buffer", "no error")


@CHAPTER.check(
    "buffers.references",
    refusable=True,
    rests_on="pjrt_c_api_test.cc: BufferDecreaseExternalReferenceCount",
    why="a host that counts wrongly frees memory that is in use",
)
def references(subject: PluginSubject) -> None:
    """External references are counted: one less than none is refused."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    client.call("Buffer_IncreaseExternalReferenceCount", buffer=buffer)
    client.call("Buffer_DecreaseExternalReferenceCount", buffer=buffer)
    error = client.refused("Buffer_DecreaseExternalReferenceCount", buffer=buffer)
    expect(error, "PJRT_Buffer_DecreaseExternalReferenceCount to refuse less than none", "no error")


@CHAPTER.check(
    "buffers.view",
    refusable=True,
    rests_on="pjrt_c_api.h: on_delete_callback",
    why="memory of another library is freed twice, or never",
)
def view_is_given_back_once(subject: PluginSubject) -> None:
    """The memory of a view is given back once, with what the view was made with, when it ends."""
    client = TableClient.of(subject)
    owner = client.put(ONE)
    place = client.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=owner).device_memory_ptr
    came = threading.Semaphore(0)
    found: list[tuple[str, int]] = []

    @ffi.callback("void(*)(void*, void*)")  # type: ignore[untyped-decorator]
    def given_back(pointer: Any, argument: Any) -> None:
        what = "the memory" if pointer == place else "other memory"
        found.append((what, int(ffi.cast("uintptr_t", argument))))
        came.release()

    client.keep(given_back)
    view = client.call(
        "Client_CreateViewOfDeviceBuffer", client=client.handle, device_buffer_ptr=place,
        dims=client.keep(ffi.new("int64_t[]", [ONE.size])), num_dims=1, element_type=FLOAT32,
        device=client.devices()[0], on_delete_callback=given_back,
        on_delete_callback_arg=ffi.cast("void*", 99),
    ).buffer  # fmt: skip
    expect_same_bits(client.get(view, ONE.size), ONE, "the view")
    expect_equal(found, [], "before the view ends, the calls")
    client.call("Buffer_Destroy", buffer=view)
    expect(came.acquire(timeout=10), "a call of on_delete_callback", "none within 10 s")
    came.acquire(timeout=0.05)  # one too many
    expect_equal(found, [("the memory", 99)], "the calls")


@CHAPTER.check(
    "buffers.events",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ReadyEvent, PJRT_Event_*",
    why="a host that frees one event crashes where it waits for another",
)
def ready_events(subject: PluginSubject) -> None:
    """Each ready event that a buffer gives is another one, and outlives the buffer."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    events = [client.call("Buffer_ReadyEvent", buffer=buffer).event for _ in range(2)]
    expect(events[0] != events[1], "two events", "one address")
    expect_equal(client.finish(events[0]), None, "no error of the first:")
    client.call("Buffer_Destroy", buffer=buffer)
    expect_equal(client.finish(events[1]), None, "no error of the other:")


@CHAPTER.check(
    "buffers.destroyed",
    rests_on="pjrt_c_api.h: PJRT_Buffer_Destroy",
    why="programs that run long run out of memory, or crash",
)
def destroyed(subject: PluginSubject) -> None:
    """A thousand buffers are made, read and destroyed, and others live on."""
    client = TableClient.of(subject)
    kept = client.put(ONE)
    for _ in range(1000):
        client.call("Buffer_Destroy", buffer=client.put(2 * ONE))
    expect_same_bits(client.get(kept, ONE.size), ONE, "the one that was kept")
