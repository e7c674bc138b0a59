"""Level 1 of PJRT libraries: places of buffers, and how hosts other than JAX make and read them.

plugrt's client calls none of these functions.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.element_types import ELEMENT_TYPES, supported_dtypes
from plugrt.interface import CompileOptions, DeviceAssignment
from plugrt_sdk.conformance.check import Chapter, Level, Needs
from plugrt_sdk.conformance.expect import Array, expect, expect_equal, expect_same_bits
from plugrt_sdk.conformance.inputs import LENGTHS, fill, patterns
from plugrt_sdk.conformance.operation_cases import SHAPES
from plugrt_sdk.conformance.subject import PluginSubject
from plugrt_sdk.conformance.table_client import FLOAT32, TableClient, text_at
from plugrt_sdk.testing import programs
from plugrt_sdk.testing.subject import ONE

CHAPTER = Chapter("table_buffers", Level.BUFFERS, "pjrt_c_api.h", needs=Needs.LIBRARY_CLIENT)

_ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
_DATA_LOSS, _TILED = 15, 0
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
    """An array that was put on a device is on it, in its default memory."""
    client = TableClient.of(subject)
    for each in client.devices():
        buffer = client.put(ONE, each)
        expect_on(client, buffer, each, "an array that was put")
        expect_same_bits(client.get(buffer, ONE.size), ONE, "the array")


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
    """A copy is on the requested device, and outlives its source."""
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


@CHAPTER.check(
    "copy.memories", refusable=True, rests_on="pjrt_c_api.h: PJRT_Buffer_CopyToMemory",
    why="arrays that were moved to the host's memory still fill the device's",
)  # fmt: skip
def copies_to_memories(subject: PluginSubject) -> None:
    """A copy to each memory of a device is in it, and outlives its source."""
    client = TableClient.of(subject)
    found = client.call("Device_AddressableMemories", device=client.devices()[0])
    for memory in ffi.unpack(found.memories, found.num_memories):
        source = client.put(ONE)
        copy = client.call("Buffer_CopyToMemory", buffer=source, dst_memory=memory).dst_buffer
        client.call("Buffer_Delete", buffer=source)
        said = client.call("Buffer_Memory", buffer=copy).memory
        _expect_place(said, memory, client.memories(), "of a copy, the memory with the index")
        expect_same_bits(client.get(copy, ONE.size), ONE, "the copy, when its source is gone,")


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
    """A read from an offset returns the array's bytes from there on, and no more."""
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


_NARROW = re.compile(r"u?int[124]$|float[46]_")
"""Dtypes whose elements a library may pack into one byte."""
_LENGTHS = tuple(n for n in LENGTHS if n <= (1 << 17) + 1)
"""Numbers of elements to read; `buffers.put_get.lengths` puts longer arrays."""
_SMALL = range(258)


def _expect_read(client: TableClient, array: Array, number: int) -> None:
    """Reads an array from one of the devices, in turn, if the library has its dtype.

    plugrt's client, and thus other checks, view the memory of devices that the host can address.
    """
    devices = client.devices()
    buffer = _put_as(client, array, devices[number % len(devices)])
    if buffer is None:
        return
    size = client.call("Buffer_ToHostBuffer", src=buffer, dst=ffi.NULL).dst_size
    found = client.read(buffer, size)
    client.call("Buffer_Destroy", buffer=buffer)
    what = f"the array of {list(array.shape)} {array.dtype}"
    narrow = _NARROW.match(array.dtype.name)
    if narrow and size != array.nbytes:  # elements share bytes
        return
    read = np.frombuffer(found, array.dtype).reshape(array.shape)
    if narrow:  # the upper bits of such a byte do not belong to the element
        read, array = (x.astype(np.float32) for x in (read, array))
    expect_same_bits(read, array, what)


@CHAPTER.check(
    "read.lengths", rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer",
    why="the last elements are lost where a length fills no vector, packet or page",
)  # fmt: skip
def read_lengths(subject: PluginSubject) -> None:
    """Rows of 0 to 257 elements, one and two, and of 2^k - 1, 2^k and 2^k + 1, are read whole."""
    client, whole = TableClient.of(subject), np.arange(_LENGTHS[-1], dtype=np.float32)
    for i, length in enumerate(_LENGTHS):
        x = whole[-length:] if length else whole[:0]
        _expect_read(client, x, i)
        if length in _SMALL:  # as the last of two dimensions
            _expect_read(client, np.stack([x, x[::-1]]), i)


@CHAPTER.check(
    "read.dtypes", rests_on="pjrt_c_api.h: PJRT_Buffer_ToHostBuffer",
    why="arrays of a dtype, or of more dimensions than an example's, are read as other numbers",
)  # fmt: skip
def read_dtypes(subject: PluginSubject) -> None:
    """Arrays of each dtype that the library has are read with the same bits, in each rank."""
    client, random = TableClient.of(subject), subject.random("read.dtypes")
    known = supported_dtypes(client.api.pjrt_api_version.minor_version)
    for dtype in sorted(known - {"void"}):
        for i, shape in enumerate(((), *SHAPES)):
            _expect_read(client, fill(dtype, shape, random), i)
        _expect_read(client, patterns(dtype), 0)


@CHAPTER.check(
    "address", refusable=True,
    rests_on="pjrt_c_api.h: PJRT_Buffer_OpaqueDeviceMemoryDataPointer, _UnsafePointer, _IsOnCpu",
    why="libraries that share an array's memory read and write another's",
)  # fmt: skip
def address(subject: PluginSubject) -> None:
    """A buffer's two addresses are equal; its bytes are there if the host can address them."""
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
