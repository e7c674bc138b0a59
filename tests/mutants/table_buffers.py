"""Mutants of the places of buffers, and of functions that few hosts call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import OK, Sound, before, every, then, type_and_rank
from mutants.tables import (
    TableFaults,
    keep,
    replace_function,
    replace_functions,
    sound_table,
)
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import new_args

_UNKNOWN, _INT16, _INT64 = 2, 3, 5
_ROWS_SIZE = 48
"""The bytes of the array that the check reads."""


def _say_first_device(sound: Sound) -> Sound:
    """States the first buffer's device for all buffers of rank 5 and of int16."""
    first: list[Any] = []

    def say(args: Any) -> None:
        first.append(args.device)
        if type_and_rank(args.buffer) == (_INT16, 5):
            args.device = first[0]

    return then(say)(sound)


def _results_on_first_device() -> TableFaults:
    """Returns a mutant whose results all state the device of the first result."""
    results: list[Any] = []
    first: list[Any] = []

    def launch(args: Any) -> None:
        results.append(args.output_lists[0][0])

    def say(args: Any) -> None:
        if args.buffer in results:
            first.append(args.device)
            args.device = first[0]

    return replace_functions(
        {"LoadedExecutable_Execute": then(launch), "Buffer_Device": then(say)}, devices=2
    )


def _wrong_copies(name: str) -> TableFaults:
    """Returns a mutant with a wrong byte in copies of int64 on the second device."""
    wrong: set[Any] = set()

    def copy(args: Any) -> None:
        wrong.discard(args.dst_buffer)
        if type_and_rank(args.dst_buffer)[0] == _INT64 and _device_of(args.dst_buffer) == 1:
            wrong.add(args.dst_buffer)

    def read(args: Any) -> None:
        if args.src in wrong and args.dst != ffi.NULL and args.dst_size:
            ffi.buffer(args.dst, 1)[0:1] = b"\x55"

    return replace_functions({name: then(copy), "Buffer_ToHostBuffer": then(read)}, devices=2)


def _device_of(buffer: Any) -> int:
    """Returns the id of a buffer's device."""
    found, _kept = new_args("Buffer_Device")
    found.buffer = buffer
    sound_table().Buffer_Device(found)
    described, _kept = new_args("Device_GetDescription")
    described.device = found.device
    sound_table().Device_GetDescription(described)
    number, _kept = new_args("DeviceDescription_Id")
    number.device_description = described.device_description
    sound_table().DeviceDescription_Id(number)
    return int(number.id)


def _read_from_begin(args: Any) -> None:
    args.offset = 0


def _read_what_is_there(sound: Sound) -> Sound:
    """Reads nothing, without an error, if the array has fewer bytes than requested."""

    def read(args: Any) -> Any:
        error = sound(args)
        if args.offset + args.transfer_size > _ROWS_SIZE:
            args.event = ffi.NULL
            return OK
        return error

    return read


def _ignore_layout(args: Any) -> None:
    args.host_layout = ffi.NULL


def _write_behind(args: Any) -> None:
    if args.dst != ffi.NULL:
        ffi.memmove(ffi.cast("char*", args.dst) + args.dst_size, bytes(4), 4)


def _say_next_address(args: Any) -> None:
    args.device_memory_ptr = ffi.cast("char*", args.device_memory_ptr) + 4


def _reverse_layout(args: Any) -> None:
    """States the dimensions of matrices in reverse order."""
    tiled = args.layout.tiled
    if tiled.minor_to_major_size == 2:
        order = ffi.unpack(tiled.minor_to_major, 2)[::-1]
        tiled.minor_to_major = keep(ffi.new("int64_t[]", order))


def _turn(args: Any) -> None:
    """Reads the dimensions in reverse order."""
    count = int(args.shape_num_dims)
    args.shape_dims = keep(ffi.new("int64_t[]", ffi.unpack(args.shape_dims, count)[::-1]))


def _lose_code(args: Any) -> None:
    args.error_code = _UNKNOWN


def _spoil_reads_of(size: int) -> TableFaults:
    """Returns a mutant that reads the first byte of arrays of so many bytes wrong."""

    def spoil(args: Any) -> None:
        if args.dst != ffi.NULL and args.dst_size == size:
            ffi.cast("char*", args.dst)[0] = b"\x55"

    return replace_function("Buffer_ToHostBuffer", then(spoil))


MUTANTS: Mapping[str, TableFaults] = {
    "table_buffers.device": replace_function("Buffer_Device", _say_first_device, devices=2),
    "table_buffers.results": _results_on_first_device(),
    "table_buffers.copy.devices": _wrong_copies("Buffer_CopyToDevice"),
    "table_buffers.copy.memories": _wrong_copies("Buffer_CopyToMemory"),
    "table_buffers.raw": replace_function(
        "Buffer_CopyRawToHost", before(every(50, _read_from_begin))
    ),
    "table_buffers.raw.bounded": replace_function("Buffer_CopyRawToHost", _read_what_is_there),
    "table_buffers.read.layout": replace_function("Buffer_ToHostBuffer", before(_ignore_layout)),
    "table_buffers.read.bounded": replace_function("Buffer_ToHostBuffer", then(_write_behind)),
    "table_buffers.read.lengths": _spoil_reads_of(2 * 4 * 251),
    "table_buffers.read.dtypes": _spoil_reads_of(16),
    "table_buffers.address": replace_function(
        "Buffer_OpaqueDeviceMemoryDataPointer", then(_say_next_address)
    ),
    "table_buffers.layout": replace_function("Buffer_GetMemoryLayout", then(_reverse_layout)),
    "table_buffers.uninitialized": replace_function(
        "Client_CreateUninitializedBuffer", before(_turn)
    ),
    "table_buffers.failed": replace_function("Client_CreateErrorBuffer", before(_lose_code)),
}
