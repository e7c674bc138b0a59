"""Mutants of the places of buffers, and of functions that few hosts call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutants.changes import OK, Sound, before, delete_buffer, then
from mutants.tables import TableFaults, keep, replace_function, replace_functions
from plugrt.capi.abi._abi import ffi

_UNKNOWN = 2
_ROWS_SIZE = 48
"""The bytes of the array that the check reads."""


def _say_first_device(sound: Sound) -> Sound:
    """States the first buffer's device for all buffers."""
    first: list[Any] = []

    def say(args: Any) -> None:
        first.append(args.device)
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


def _copies_die_with_source(name: str) -> TableFaults:
    """Returns a mutant whose copies are deleted with their source."""
    copies: dict[Any, Any] = {}

    def copy(args: Any) -> None:
        copies[args.buffer] = args.dst_buffer

    def delete(args: Any) -> None:
        if args.buffer in copies:
            delete_buffer(copies.pop(args.buffer))

    return replace_functions({name: then(copy), "Buffer_Delete": before(delete)}, devices=2)


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
    "table_buffers.copy.devices": _copies_die_with_source("Buffer_CopyToDevice"),
    "table_buffers.copy.memories": _copies_die_with_source("Buffer_CopyToMemory"),
    "table_buffers.raw": replace_function("Buffer_CopyRawToHost", before(_read_from_begin)),
    "table_buffers.raw.bounded": replace_function("Buffer_CopyRawToHost", _read_what_is_there),
    "table_buffers.read.layout": replace_function("Buffer_ToHostBuffer", before(_ignore_layout)),
    "table_buffers.read.bounded": replace_function("Buffer_ToHostBuffer", then(_write_behind)),
    "table_buffers.read.lengths": _spoil_reads_of(2 * 4 * 251),
    "table_buffers.read.dtypes": _spoil_reads_of(16),
    "table_buffers.address": replace_function(
        "Buffer_OpaqueDeviceMemoryDataPointer", then(_say_next_address)
    ),
    "table_buffers.uninitialized": replace_function(
        "Client_CreateUninitializedBuffer", before(_turn)
    ),
    "table_buffers.failed": replace_function("Client_CreateErrorBuffer", before(_lose_code)),
}
