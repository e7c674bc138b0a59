"""Level 1 of PJRT libraries: places of buffers, and how hosts other than JAX make and read them.

plugrt's client calls none of these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import ELEMENT_TYPES
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.inputs import LENGTHS, NARROW, SMALL, fill, patterns
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.sweeps import in_another_thread, within_limits
from plugrt_sdk.conformance.table_arrays import Arrays, Placed
from plugrt_sdk.conformance.table_client import FLOAT32, TableClient, expect_mistake, text_at
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("table_buffers", Level.BUFFERS, "pjrt_c_api.h", needs=Needs.LIBRARY_CLIENT)

_ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
_DATA_LOSS, _TILED = 15, 0
_TIMES = 1001
_PART = 0.6
"""The part of a sweep's time for copies; ``--quick`` runs them too."""
_READ_DTYPES = (np.uint8, np.float32, ml_dtypes.int4, ml_dtypes.uint4)
_WORDS = b"the cable was cut"
_WHY_PLACE = "hosts launch programs on devices that do not have their arguments"


def expect_on(client: TableClient, buffer: Any, device: Any, what: str) -> None:
    """Raises `Mismatch` unless a buffer states the default memory of a device."""
    found = client.call("Buffer_Device", buffer=buffer).device
    _expect_place(found, device, client.devices(), f"of {what}, the device with the index")
    memory = client.call("Device_DefaultMemory", device=device).memory
    found = client.call("Buffer_Memory", buffer=buffer).memory
    _expect_place(found, memory, client.memories(), f"of {what}, the memory with the index")


def _expect_place(found: Any, wanted: Any, known: list[Any], what: str) -> None:
    """Compares indices: addresses differ between the reports of two runs."""
    place = known.index(found) if found in known else "an address that is none's"
    expect_equal(place, known.index(wanted), what)


@CHAPTER.check("device", rests_on="pjrt_c_api.h: PJRT_Buffer_Device, PJRT_Buffer_Memory",
               why=_WHY_PLACE)  # fmt: skip
def device(subject: PluginSubject) -> None:
    """An array of each dtype and rank that was put on a device is on it, in its default memory."""
    arrays = Arrays.of(subject)
    memories = [arrays.call("Device_DefaultMemory", device=d).memory for d in arrays.devices]
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        _expect_placed(arrays, buffer, placed, memories[placed.place])
        arrays.destroy(buffer)


def _expect_placed(arrays: Arrays, buffer: Any, placed: Placed, memory: Any) -> None:
    """Expects a buffer to state an array's device, a memory and that it is not deleted."""
    found = arrays.call("Buffer_Device", buffer=buffer).device
    device = arrays.devices[placed.place]
    _expect_place(found, device, arrays.devices, f"of {placed.what}, the device with the index")
    found = arrays.call("Buffer_Memory", buffer=buffer).memory
    if found != memory:
        known = arrays.client.memories()
        _expect_place(found, memory, known, f"of {placed.what}, the memory with the index")
    is_deleted = arrays.call("Buffer_IsDeleted", buffer=buffer).is_deleted
    expect(not is_deleted, f"is_deleted of {placed.what} to be false", "true")


@CHAPTER.check(
    "results", level=Level.COMPUTES, why=_WHY_PLACE,
    rests_on="pjrt_c_api.h: PJRT_Buffer_Device, PJRT_LoadedExecutable_Execute",
)  # fmt: skip
def results(subject: PluginSubject) -> None:
    """The result of a launch is on the device that the program was compiled for."""
    client = TableClient.of(subject)
    for each in client.devices():
        description = client.call("Device_GetDescription", device=each).device_description
        number = client.call("DeviceDescription_Id", device_description=description).id
        options = CompileOptions(device_assignment=DeviceAssignment(((number,),)))
        loaded, _ = client.compile(programs.ADD.encode(), options)
        x = client.put(ONE, each)
        args, outputs = client.execute_args(loaded, x, x)
        failed = client.try_args("LoadedExecutable_Execute", args)
        expect(failed is None, "PJRT_LoadedExecutable_Execute to succeed", failed)
        expect_on(client, outputs[0], each, "a result")
        expect_same_bits(client.get(outputs[0], ONE.size), ONE + ONE, "the sum")


@CHAPTER.check(
    "copy.devices", level=Level.SCALES, refusable=True, why=_WHY_PLACE,
    rests_on="pjrt_c_api.h: PJRT_Buffer_CopyToDevice",
)  # fmt: skip
def copies(subject: PluginSubject) -> None:
    """A copy is on the requested device, and outlives its source.

    Arrays of each dtype, rank and small length are copied to each device, and stay as they are.
    """
    client = TableClient.of(subject)
    devices = client.devices()
    if len(devices) < 2:
        subject.refuse("there is one device")
    source = client.put(ONE, devices[0])
    copy = client.call("Buffer_CopyToDevice", buffer=source, dst_device=devices[1]).dst_buffer
    client.call("Buffer_Delete", buffer=source)
    client.call("Buffer_Destroy", buffer=source)
    client.put(-ONE, devices[0])
    expect_on(client, copy, devices[1], "a copy")
    expect_same_bits(client.get(copy, ONE.size), ONE, "the copy, when its source is gone,")
    deleted = client.put(ONE)
    client.call("Buffer_Delete", buffer=deleted)
    error = client.refused("Buffer_CopyToDevice", buffer=deleted, dst_device=devices[1])
    expect_mistake(error, "PJRT_Buffer_CopyToDevice of a deleted array")
    arrays = Arrays.of(subject)
    in_another_thread(partial(_copy_each, arrays, arrays.sweep()))
    _copy_each(arrays, arrays.sweep(*SMALL, part=_PART))


def _copy_each(arrays: Arrays, sweep: Iterator[Placed]) -> None:
    """Copies arrays to their devices from the devices before these."""
    memories = [arrays.call("Device_DefaultMemory", device=d).memory for d in arrays.devices]
    for placed in sweep:
        source = arrays.put(placed.array, device=arrays.devices[placed.place - 1])
        device = arrays.devices[placed.place]
        copy = arrays.call("Buffer_CopyToDevice", buffer=source, dst_device=device).dst_buffer
        _expect_placed(arrays, copy, placed, memories[placed.place])
        arrays.expect_read(copy, placed.array, f"the copy: {placed.what}")
        is_deleted = arrays.call("Buffer_IsDeleted", buffer=source).is_deleted
        expect(not is_deleted, f"the source of the copy to be alive: {placed.what}", "deleted")
        arrays.destroy(copy, source)


@CHAPTER.check(
    "copy.memories", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_CopyToMemory",
    why="arrays that were moved to the host's memory still fill the device's",
)  # fmt: skip
def copies_to_memories(subject: PluginSubject) -> None:
    """A copy to each memory of a device is in it, and outlives its source.

    Arrays of each dtype, rank and small length are copied, and also put into each memory.
    """
    client = TableClient.of(subject)
    found = client.call("Device_AddressableMemories", device=client.devices()[0])
    for memory in ffi.unpack(found.memories, found.num_memories):
        source = client.put(ONE)
        copy = client.call("Buffer_CopyToMemory", buffer=source, dst_memory=memory).dst_buffer
        client.call("Buffer_Delete", buffer=source)
        said = client.call("Buffer_Memory", buffer=copy).memory
        _expect_place(said, memory, client.memories(), "of a copy, the memory with the index")
        expect_same_bits(client.get(copy, ONE.size), ONE, "the copy, when its source is gone,")
    arrays = Arrays.of(subject)
    in_another_thread(partial(_move_each, arrays, arrays.sweep()))
    _move_each(arrays, arrays.sweep(*SMALL, part=_PART))


def _move_each(arrays: Arrays, sweep: Iterator[Placed]) -> None:
    """Copies arrays to a memory of their devices, and puts them into another one, in turn."""
    memories = []
    for device in arrays.devices:
        found = arrays.call("Device_AddressableMemories", device=device)
        memories.append(ffi.unpack(found.memories, found.num_memories))
    for i, placed in enumerate(sweep):
        known = memories[placed.place]
        of_put, of_copy = known[i % len(known)], known[(i // len(known)) % len(known)]
        source = arrays.put(placed.array, memory=of_put)
        _expect_placed(arrays, source, placed, of_put)
        arrays.expect_read(source, placed.array, placed.what)
        copy = arrays.call("Buffer_CopyToMemory", buffer=source, dst_memory=of_copy).dst_buffer
        _expect_placed(arrays, copy, placed, of_copy)
        arrays.expect_read(copy, placed.array, f"the copy: {placed.what}")
        is_deleted = arrays.call("Buffer_IsDeleted", buffer=source).is_deleted
        expect(not is_deleted, f"the source of the copy to be alive: {placed.what}", "deleted")
        arrays.destroy(copy, source)


def _read_raw(client: TableClient, buffer: Any, room: Any, offset: int, size: int) -> Any:
    """Reads ``size`` bytes from an offset into ``room``; returns the error."""
    args = client.args(
        "Buffer_CopyRawToHost", buffer=buffer, dst=ffi.from_buffer(room), offset=offset,
        transfer_size=size,
    )  # fmt: skip
    return client.try_args("Buffer_CopyRawToHost", args) or client.finish(args.event)


@CHAPTER.check(
    "raw", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_CopyRawToHost",
    why="hosts that read an array in parts put it together from the wrong ones",
)  # fmt: skip
def raw(subject: PluginSubject) -> None:
    """A read from an offset returns the array's bytes from there on, and no more.

    Arrays on each device are read a thousand times, and from another thread.
    """
    client = TableClient.of(subject)
    buffer = client.put(_ROWS)
    client.call(
        "Buffer_CopyRawToHost", buffer=buffer, dst=ffi.from_buffer(np.zeros(12, np.float32)),
        transfer_size=4,
    )  # fmt: skip
    room = np.full(4, -1, np.float32)
    failed = _read_raw(client, buffer, room, 20, 12)
    expect(failed is None, "PJRT_Buffer_CopyRawToHost to succeed", failed)
    expect_same_bits(room, np.array([5, 6, 7, -1], np.float32), "12 bytes from 20 on")
    arrays = Arrays.of(subject)
    in_another_thread(partial(_read_parts, arrays, 2))
    _read_parts(arrays, _TIMES)


def _read_parts(arrays: Arrays, times: int) -> None:
    """Reads parts of an array of random bytes on each device."""
    whole = np.random.default_rng(_TIMES).integers(0, 256, 4099, np.uint8)
    sizes, room = (1, 3, 8, 16, 31, 257, 1024), np.empty(4099, np.uint8)
    buffers = [arrays.put(whole, device=device) for device in arrays.devices]
    for number, (place, buffer) in within_limits(product(range(times), enumerate(buffers))):
        size = sizes[number % len(sizes)]
        offset = 7 * number % (whole.size - size)
        room[: size + 1] = ~whole[offset + size]
        args = arrays.call(
            "Buffer_CopyRawToHost", buffer=buffer, offset=offset, transfer_size=size,
            dst=ffi.cast("void*", room.ctypes.data),
        )  # fmt: skip
        arrays.finish(args.event, "a read of bytes")
        wanted = np.append(whole[offset : offset + size], ~whole[offset + size])
        what = f"{size} bytes from {offset} on, on device {place}, and the byte behind them"
        expect_same_bits(room[: size + 1], wanted, what)
    arrays.destroy(*buffers)


@CHAPTER.check(
    "raw.bounded", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_CopyRawToHost",
    why="a host reads the array beside its own, or the process crashes",
)  # fmt: skip
def raw_is_bounded(subject: PluginSubject) -> None:
    """A read of bytes outside of the array is refused."""
    client = TableClient.of(subject)
    buffer, room = client.put(_ROWS), np.zeros(16, np.float32)
    client.call("Buffer_CopyRawToHost", buffer=buffer, dst=ffi.from_buffer(room), transfer_size=4)
    for offset, size in ((44, 8), (48, 4), (-4, 4), (0, 64)):
        error = _read_raw(client, buffer, room, offset, size)
        expect(error, f"an error for {size} bytes from {offset} on, of {_ROWS.nbytes}", "none")


def _turned_layout(client: TableClient) -> Any:
    """Returns a layout of two dimensions, the first of which is the minor one."""
    layout = client.keep(ffi.new("PJRT_Buffer_MemoryLayout*"))
    layout.struct_size = ffi.sizeof("PJRT_Buffer_MemoryLayout")
    layout.type = _TILED
    layout.tiled.struct_size = ffi.sizeof("PJRT_Buffer_MemoryLayout_Tiled")
    layout.tiled.minor_to_major = client.keep(ffi.new("int64_t[]", [0, 1]))
    layout.tiled.minor_to_major_size = 2
    return layout


@CHAPTER.check(
    "read.layout", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.host_layout",
    why="hosts that keep arrays in another order of dimensions have them transposed",
)  # fmt: skip
def read_in_a_layout(subject: PluginSubject) -> None:
    """An array is read in the order of dimensions that the host requests."""
    client = TableClient.of(subject)
    turned = client.read(client.put(_ROWS), _ROWS.nbytes, host_layout=_turned_layout(client))
    found = np.frombuffer(turned, np.float32)
    expect_same_bits(found, _ROWS.T.reshape(-1), "the elements, column by column,")


def _put_as(client: TableClient, array: Array, device: Any = None) -> Any:
    """Puts an array of any dtype; returns None if the library does not have the dtype."""
    args = client.put_args(array, device)
    args.type = ELEMENT_TYPES[array.dtype]
    if client.try_args("Client_BufferFromHostBuffer", args) is not None:
        expect(array.dtype != np.float32, "a buffer of float32", "an error")
        return None
    client.finish(args.done_with_host_buffer)
    return args.buffer


@CHAPTER.check(
    "read.bounded", rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer_Args.dst_size",
    why="what the host has behind an array that it reads is overwritten",
)  # fmt: skip
def read_is_bounded(subject: PluginSubject) -> None:
    """A read writes nothing beside its destination, whatever the destination's size is."""
    client = TableClient.of(subject)
    for dtype, count in product(_READ_DTYPES, (1, 3, 17, 1001)):
        array = np.ones(count, dtype)
        buffer = _put_as(client, array)
        if buffer is None:
            continue
        size = client.call("Buffer_ToHostBuffer", src=buffer, dst=ffi.NULL).dst_size
        found, what = client.read(buffer, size), f"{count} of {array.dtype}"
        if size == array.nbytes:  # otherwise elements share bytes
            expect_same_bits(np.frombuffer(found, array.dtype), array, what)


_LARGE = tuple(n for n in LENGTHS if n > SMALL[-1][-1])
_EACH_DTYPE = 1 << 17
"""Longer arrays are read of one dtype each, in turn; other checks put them of each dtype."""


def _read_each(arrays: Arrays, sweep: Iterable[Placed]) -> None:
    """Puts arrays on their devices, and reads them.

    plugrt's client, and thus other checks, view the memory of devices that the host can address.
    """
    for placed in sweep:
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        arrays.expect_read(buffer, placed.array, placed.what)
        arrays.destroy(buffer)


def _large(arrays: Arrays, random: np.random.Generator) -> Iterator[Placed]:
    """Yields arrays of lengths next to powers of two: of each dtype on one device, in turn."""
    pools = [fill(dtype, (_LARGE[-1],), random) for dtype in arrays.dtypes()]
    for i, length in enumerate(_LARGE):
        chosen = pools if length <= _EACH_DTYPE + 1 else [pools[i % len(pools)]]
        for j, pool in enumerate(chosen):
            yield Placed(pool[-length:], (i + j) % len(arrays.devices))


@CHAPTER.check(
    "read.lengths",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer, PJRT_Client_BufferFromHostBuffer",
    why="the last elements are lost where a length fills no vector, packet or page",
)  # fmt: skip
def read_lengths(subject: PluginSubject) -> None:
    """Arrays of each dtype are put and read whole, in many lengths, on each device.

    The lengths are 0 to 257 and next to powers of two; rows end next to a tile's border.
    """
    arrays = Arrays.of(subject)
    _read_each(arrays, arrays.sweep(*SMALL))
    _read_each(arrays, within_limits(_large(arrays, subject.random("read.lengths"))))


@CHAPTER.check(
    "read.dtypes",
    rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer, PJRT_Client_BufferFromHostBuffer",
    why="arrays of a dtype, or of more dimensions than an example's, are read as other numbers",
)  # fmt: skip
def read_dtypes(subject: PluginSubject) -> None:
    """Arrays of each dtype are put and read with the same bits, in each rank, on each device."""
    arrays = Arrays.of(subject)
    in_another_thread(partial(_read_each, arrays, arrays.sweep()))
    whole = (
        Placed(patterns(dtype), place)
        for dtype in arrays.dtypes()
        for place in range(len(arrays.devices))
    )
    _read_each(arrays, within_limits(whole))


@CHAPTER.check(
    "address", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_OpaqueDeviceMemoryDataPointer, _UnsafePointer, _IsOnCpu",
    why="libraries that share an array's memory read and write another's",
)  # fmt: skip
def address(subject: PluginSubject) -> None:
    """A buffer's two addresses are equal; its bytes are there if the host can address them.

    This is so for each dtype and rank, on each device.
    """
    client = TableClient.of(subject)
    buffer = client.put(_ROWS)
    pointer = client.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer).device_memory_ptr
    place = int(ffi.cast("uintptr_t", pointer))
    expect(place, "an address", "NULL")
    unsafe = int(client.call("Buffer_UnsafePointer", buffer=buffer).buffer_pointer)
    expect(unsafe == place, "the same address from both functions", "two addresses")
    if client.call("Buffer_IsOnCpu", buffer=buffer).is_on_cpu:
        found = np.frombuffer(text_at(ffi.cast("char*", pointer), _ROWS.nbytes), np.float32)
        expect_same_bits(found.reshape(_ROWS.shape), _ROWS, "what is at the address")
    arrays = Arrays.of(subject)
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        found = arrays.call("Buffer_OpaqueDeviceMemoryDataPointer", buffer=buffer)
        place = int(ffi.cast("uintptr_t", found.device_memory_ptr))
        unsafe = int(arrays.call("Buffer_UnsafePointer", buffer=buffer).buffer_pointer)
        expect(unsafe == place, f"one address from both functions of {placed.what}", "two")
        arrays.destroy(buffer)


@CHAPTER.check(
    "layout", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_GetMemoryLayout, _UnsafePointer, _IsOnCpu",
    why="libraries that share an array's memory see it transposed",
)  # fmt: skip
def layout(subject: PluginSubject) -> None:
    """A buffer's layout says where its elements are, of each dtype and rank, on each device."""
    arrays = Arrays.of(subject)
    for placed in arrays.sweep():
        buffer = arrays.put(placed.array, device=arrays.devices[placed.place])
        order = _order(arrays.call("Buffer_GetMemoryLayout", buffer=buffer).layout)
        shape, what = placed.array.shape, f"the layout of {placed.what}"
        if order is not None:
            expect_equal(sorted(order), [*range(len(shape))], f"the dimensions of {what}:")
        is_known = order is not None and not NARROW.match(placed.array.dtype.name)
        if is_known and arrays.call("Buffer_IsOnCpu", buffer=buffer).is_on_cpu:
            place = arrays.call("Buffer_UnsafePointer", buffer=buffer).buffer_pointer
            stored = text_at(ffi.cast("char*", place), placed.array.nbytes)
            major_first = placed.array.transpose((order or [])[::-1])
            expect(stored == major_first.tobytes(), f"{what} to match its memory", order)
        arrays.destroy(buffer)


def _order(stated: Any) -> list[int] | None:
    """Returns the dimensions of a layout without tiles, the minor one first; else None."""
    if stated.type != _TILED or stated.tiled.num_tiles:
        return None
    count = stated.tiled.minor_to_major_size
    return list(ffi.unpack(stated.tiled.minor_to_major, count)) if count else []


def _shape(client: TableClient) -> dict[str, Any]:
    """Returns the fields that describe an array like ``_ROWS``, in the first device's memory."""
    memory = client.call("Device_DefaultMemory", device=client.devices()[0]).memory
    return {
        "client": client.handle, "memory": memory, "shape_element_type": FLOAT32,
        "shape_dims": client.keep(ffi.new("int64_t[]", _ROWS.shape)), "shape_num_dims": _ROWS.ndim,
    }  # fmt: skip


def expect_like_rows(client: TableClient, buffer: Any) -> None:
    """Raises `Mismatch` unless a buffer has the dtype, dimensions and place of ``_ROWS``."""
    kind = int(client.call("Buffer_ElementType", buffer=buffer).type)
    expect_equal(kind, FLOAT32, "the element type")
    found = client.call("Buffer_Dimensions", buffer=buffer)
    expect_equal(tuple(ffi.unpack(found.dims, found.num_dims)), _ROWS.shape, "the dimensions")
    expect_on(client, buffer, client.devices()[0], "it")


@CHAPTER.check(
    "uninitialized", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Client_CreateUninitializedBuffer",
    why="hosts that have programs fill in an array give them one of another shape",
)  # fmt: skip
def uninitialized(subject: PluginSubject) -> None:
    """An array without contents has the requested dtype, dimensions and memory."""
    client = TableClient.of(subject)
    made = client.call("Client_CreateUninitializedBuffer", **_shape(client)).buffer
    expect_like_rows(client, made)
    client.get(made, _ROWS.size)


@CHAPTER.check(
    "failed", refusable=True, rests_on="pjrt_c_api.h: PJRT_Client_CreateErrorBuffer",
    why="the error of a step is lost on its way to the next one",
)  # fmt: skip
def failed(subject: PluginSubject) -> None:
    """A buffer that was made of an error has it as its ready event's error, and as a read's."""
    client = TableClient.of(subject)
    words = client.keep(ffi.new("char[]", _WORDS))
    made = client.call(
        "Client_CreateErrorBuffer", error_code=_DATA_LOSS, error_message=words,
        error_message_size=len(_WORDS), **_shape(client),
    ).buffer  # fmt: skip
    expect_like_rows(client, made)
    error = client.finish(client.call("Buffer_ReadyEvent", buffer=made).event)
    expect(error and error[0] == _DATA_LOSS and _WORDS.decode() in error[1],
           f"of its ready event, code {_DATA_LOSS}: {_WORDS.decode()}", error)  # fmt: skip
    room = np.zeros(_ROWS.size, np.float32)
    args = client.args(
        "Buffer_ToHostBuffer", src=made, dst=ffi.from_buffer(room), dst_size=room.nbytes
    )
    error = client.try_args("Buffer_ToHostBuffer", args) or client.finish(args.event)
    expect(error and error[0] == _DATA_LOSS, f"of a read, code {_DATA_LOSS}", error)
