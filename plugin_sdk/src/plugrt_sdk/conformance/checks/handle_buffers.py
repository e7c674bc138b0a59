"""Level 1 of PJRT libraries: ownership of buffers and memory, without a host's corrections."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.check import Chapter, Demand, Level, Needs
from plugrt_sdk.conformance.checks.handles import WHY_STABLE, expect_stable
from plugrt_sdk.conformance.expect import expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_arrays import Arrays
from plugrt_sdk.conformance.table_client import FLOAT32, TableClient, expect_mistake
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter(
    "handles.buffers", Level.BUFFERS, "pjrt_c_api.h: who owns what", needs=Needs.LIBRARY_CLIENT
)


@CHAPTER.check("dims", why=WHY_STABLE)
def buffer_dims(subject: PluginSubject) -> None:
    """A buffer's dimensions keep their address, and are a copy of those that it was made with.

    They are right for each dtype and rank, on each device.
    """
    client = TableClient.of(subject)
    args = client.put_args(np.ones((2, 3), np.float32))
    expect(client.try_args("Client_BufferFromHostBuffer", args) is None, "a buffer", "an error")
    client.finish(args.done_with_host_buffer)
    args.dims[0] = args.dims[1] = 77
    expect_stable(client, "Buffer_Dimensions", "dims", "num_dims", buffer=args.buffer)
    found = client.call("Buffer_Dimensions", buffer=args.buffer)
    expect_equal(ffi.unpack(found.dims, found.num_dims), [2, 3], "the dimensions")
    _expect_dimensions(Arrays.of(subject), "Buffer_Dimensions", "dims")


def _expect_dimensions(arrays: Arrays, name: str, field: str) -> None:
    """Expects a function to return the dimensions of arrays of each dtype, rank and device."""
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        found = arrays.call(name, buffer=buffer)
        dims = tuple(ffi.unpack(getattr(found, field), found.num_dims)) if found.num_dims else ()
        expect(dims == placed.array.shape, f"the dimensions of {placed.what}", dims)
        arrays.destroy(buffer)


@CHAPTER.check(
    "unpadded", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_UnpaddedDimensions",
    why="PyTorch/XLA, which asks for no other dimensions, reads tensors of another shape",
)  # fmt: skip
def buffer_unpadded(subject: PluginSubject) -> None:
    """An array's unpadded dimensions are its dimensions, at a constant address."""
    client = TableClient.of(subject)
    buffer = client.put(np.ones((2, 3), np.float32))
    fields = ("unpadded_dims", "num_dims")
    expect_stable(client, "Buffer_UnpaddedDimensions", *fields, buffer=buffer)
    found = client.call("Buffer_UnpaddedDimensions", buffer=buffer)
    expect_equal(ffi.unpack(found.unpadded_dims, found.num_dims), [2, 3], "the dimensions")
    _expect_dimensions(Arrays.of(subject), "Buffer_UnpaddedDimensions", "unpadded_dims")


@CHAPTER.check(
    "dynamic", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_DynamicDimensionIndices",
    why="hosts take a tensor for one whose size may change, and compile for its largest",
)  # fmt: skip
def buffer_dynamic(subject: PluginSubject) -> None:
    """No dimension of a put array is dynamic, of any dtype and rank, on any device."""
    arrays = Arrays.of(subject)
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        count = arrays.call("Buffer_DynamicDimensionIndices", buffer=buffer).num_dynamic_dims
        expect(count == 0, f"no dynamic dimension of {placed.what}", count)
        arrays.destroy(buffer)


@CHAPTER.check("bounded", why="the process crashes where an array ends at a page's end")
def buffer_is_bounded(subject: PluginSubject) -> None:
    """A put reads as many bytes as the array has."""
    client = TableClient.of(subject)
    expect_same_bits(client.get(client.put(ONE), ONE.size), ONE, "the array")


@CHAPTER.check(
    "two_calls",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.dst",
    why="hosts make room for too few bytes",
)
def two_calls(subject: PluginSubject) -> None:
    """A read without a destination returns the size, and reads nothing."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    asked = client.call("Buffer_ToHostBuffer", src=buffer, dst=ffi.NULL)
    expect_equal(asked.dst_size, ONE.nbytes, "dst_size")
    expect_equal(asked.event, ffi.NULL, "no event:")
    expect_same_bits(client.get(buffer, ONE.size), ONE, "then, the array")


@CHAPTER.check(
    "short_room",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.dst_size",
    why="memory of the host is overwritten",
)
def short_room(subject: PluginSubject) -> None:
    """A read into too little memory is refused, and writes nothing beyond it."""
    client = TableClient.of(subject)
    buffer, room = client.put(ONE), np.full(ONE.size, -1, np.float32)
    args = client.args(
        "Buffer_ToHostBuffer", src=buffer, dst=ffi.from_buffer(room), dst_size=ONE.nbytes - 4
    )
    error = client.try_args("Buffer_ToHostBuffer", args)
    error = error or client.finish(args.event)
    expect_mistake(error, f"PJRT_Buffer_ToHostBuffer into {ONE.nbytes - 4} bytes")
    expect_equal(float(room[-1]), -1.0, "what is behind the room:")


@CHAPTER.check(
    "larger",
    rests_on="pjrt_c_api.h: struct_size",
    why="a newer host, whose structs are longer, cannot use it",
)
def put_takes_larger(subject: PluginSubject) -> None:
    """PJRT_Client_BufferFromHostBuffer accepts a struct that is longer than known."""
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
    "deleted",
    rests_on="pjrt_c_api.h: PJRT_Buffer_Delete",
    why="a host crashes where it should meet an error",
)
def deleted(subject: PluginSubject) -> None:
    """A deleted buffer states that, refuses to be read, and may be deleted again.

    This is so for each dtype and rank, on each device; before, the buffer states that it is alive.
    """
    arrays, room = Arrays.of(subject), np.zeros(1 << 14, np.uint8)
    place = ffi.cast("void*", room.ctypes.data)
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        is_deleted = arrays.call("Buffer_IsDeleted", buffer=buffer).is_deleted
        expect(not is_deleted, f"is_deleted of {placed.what} to be false", "true")
        for _ in range(2):
            arrays.call("Buffer_Delete", buffer=buffer)
            is_deleted = arrays.call("Buffer_IsDeleted", buffer=buffer).is_deleted
            expect(is_deleted, f"is_deleted of {placed.what}", "not")
        args, error = arrays.attempt(
            "Buffer_ToHostBuffer", src=buffer, dst=place, dst_size=room.nbytes
        )
        error = error or arrays.client.finish(args.event)
        expect(error, f"an error of the read of {placed.what}, which is deleted", "none")
        arrays.destroy(buffer)


@CHAPTER.check(
    "references",
    refusable=True,
    rests_on="pjrt_c_api_test.cc: BufferDecreaseExternalReferenceCount",
    demand=Demand.REFERENCE,
    why="a host that counts wrongly frees memory that is in use",
)
def references(subject: PluginSubject) -> None:
    """External references are counted: releasing one more than were taken is refused."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    client.call("Buffer_IncreaseExternalReferenceCount", buffer=buffer)
    client.call("Buffer_DecreaseExternalReferenceCount", buffer=buffer)
    error = client.refused("Buffer_DecreaseExternalReferenceCount", buffer=buffer)
    expect(error, "PJRT_Buffer_DecreaseExternalReferenceCount to refuse less than none", "no error")


@CHAPTER.check(
    "view",
    refusable=True,
    rests_on="pjrt_c_api.h: on_delete_callback",
    why="memory of another library is freed twice, or never",
)
def view_is_given_back_once(subject: PluginSubject) -> None:
    """A view calls its deleter once, with its argument, when the view ends."""
    client = TableClient.of(subject)
    owner = client.put(ONE)
    place = client.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=owner).device_memory_ptr
    came = threading.Semaphore(0)
    found: list[tuple[str, int]] = []

    @ffi.callback("void(*)(void*, void*)")
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
    came.acquire(timeout=0.05)  # one more than were taken
    expect_equal(found, [("the memory", 99)], "the calls")


@CHAPTER.check(
    "events",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ReadyEvent, PJRT_Event_*",
    why="a host that frees one event crashes where it waits for another",
)
def ready_events(subject: PluginSubject) -> None:
    """A buffer returns a new ready event in each call, which outlives the buffer."""
    client = TableClient.of(subject)
    buffer = client.put(ONE)
    events = [client.call("Buffer_ReadyEvent", buffer=buffer).event for _ in range(2)]
    expect(events[0] != events[1], "two events", "one address")
    expect_equal(client.finish(events[0]), None, "no error of the first:")
    client.call("Buffer_Destroy", buffer=buffer)
    expect_equal(client.finish(events[1]), None, "no error of the other:")


@CHAPTER.check(
    "destroyed",
    rests_on="pjrt_c_api.h: PJRT_Buffer_Destroy",
    why="programs that run long run out of memory, or crash",
)
def destroyed(subject: PluginSubject) -> None:
    """A thousand buffers are made, read and destroyed, while others stay alive."""
    client = TableClient.of(subject)
    kept = client.put(ONE)
    for _ in range(1000):
        client.call("Buffer_Destroy", buffer=client.put(2 * ONE))
    expect_same_bits(client.get(kept, ONE.size), ONE, "the one that was kept")
