"""Mutants of a library's handles of arrays: see `mutants.tables`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from mutants.changes import OK, Sound, address, before, delete_buffer, then, type_and_rank
from mutants.tables import TableFaults, keep, replace_function, replace_functions, sound_table
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import is_error, take_error


def _shared_error(error: Any) -> None:
    if is_error(error):
        take_error(sound_table(), error)


def _borrow_dims() -> TableFaults:
    """Returns a mutant whose buffers use the host's memory for their dimensions."""
    borrowed: dict[Any, Any] = {}

    def put(args: Any) -> None:
        borrowed[args.buffer] = args.dims

    def dims(args: Any) -> None:
        args.dims = borrowed[args.buffer]

    return replace_functions(
        {"Client_BufferFromHostBuffer": then(put), "Buffer_Dimensions": then(dims)}
    )


_INT4 = 21
_PADDED = ffi.new("int64_t[2]", [8, 128])


def _say_padded(args: Any) -> None:
    """States other dimensions for matrices of int4."""
    if type_and_rank(args.buffer) == (_INT4, 2):
        args.unpadded_dims = _PADDED


def _say_dynamic(args: Any) -> None:
    """States that a dimension is dynamic for arrays of rank 6 and of int4."""
    if type_and_rank(args.buffer) == (_INT4, 6):
        args.num_dynamic_dims = 1


def _say_alive(args: Any) -> None:
    """States that arrays of int4 are not deleted; a deleted one has no rank to ask for."""
    if args.buffer in _of_int4:
        args.is_deleted = False


_of_int4: set[Any] = set()


def _note_int4(args: Any) -> None:
    (_of_int4.add if args.type == _INT4 else _of_int4.discard)(args.buffer)


def _read_ahead(args: Any) -> None:
    """Reads a cache line beyond a put array."""
    size = 4
    for i in range(args.num_dims):
        size *= args.dims[i]
    ctypes.string_at(address(args.data) + size, 64)


def _forget_size(args: Any) -> None:
    if args.dst == ffi.NULL:
        args.dst_size -= 1


def _read_in_short_room(sound: Sound) -> Sound:
    """Writes a whole array, whatever the room is."""

    def read(args: Any) -> Any:
        if args.dst != ffi.NULL:
            args.dst_size += 4
        return sound(args)

    return read


def _write_tail(args: Any) -> None:
    size = ffi.sizeof("struct PJRT_Client_BufferFromHostBuffer_Args")
    if args.struct_size > size:
        ffi.cast("char*", args)[size] = b"\0"


def _count_below_none(sound: Sound) -> Sound:
    def decrease(args: Any) -> Any:
        _shared_error(sound(args))
        return OK

    return decrease


def _tell_twice(sound: Sound) -> Sound:
    """Frees the memory of a view twice."""

    def make_view(args: Any) -> Any:
        inner, argument = args.on_delete_callback, args.on_delete_callback_arg

        def twice(pointer: Any, given: Any) -> None:
            inner(pointer, argument)
            inner(pointer, argument)

        args.on_delete_callback = keep(ffi.callback("void(*)(void*, void*)", twice))
        return sound(args)

    return make_view


def _share_event(sound: Sound) -> Sound:
    """Returns the same ready event of a buffer in each call."""
    shared: dict[Any, Any] = {}

    def ready_event(args: Any) -> Any:
        if args.buffer in shared:
            args.event = shared[args.buffer]
            return OK
        error = sound(args)
        shared[args.buffer] = args.event
        return error

    return ready_event


def _destroy_another() -> TableFaults:
    """Returns a mutant that deletes the newest buffer after it has destroyed five hundred."""
    made: list[Any] = []
    gone: list[Any] = []

    def put(args: Any) -> None:
        made.append(args.buffer)

    def destroy(args: Any) -> None:
        gone.append(args.buffer)
        if len(gone) == 500:
            delete_buffer(next(buffer for buffer in reversed(made) if buffer not in gone))

    return replace_functions(
        {"Client_BufferFromHostBuffer": then(put), "Buffer_Destroy": before(destroy)}
    )


MUTANTS: Mapping[str, TableFaults] = {
    "handles.buffers.dims": _borrow_dims(),
    "handles.buffers.unpadded": replace_function("Buffer_UnpaddedDimensions", then(_say_padded)),
    "handles.buffers.dynamic": replace_function(
        "Buffer_DynamicDimensionIndices", then(_say_dynamic)
    ),
    "handles.buffers.bounded": replace_function("Client_BufferFromHostBuffer", before(_read_ahead)),
    "handles.buffers.two_calls": replace_function("Buffer_ToHostBuffer", then(_forget_size)),
    "handles.buffers.short_room": replace_function("Buffer_ToHostBuffer", _read_in_short_room),
    "handles.buffers.larger": replace_function("Client_BufferFromHostBuffer", then(_write_tail)),
    "handles.buffers.deleted": replace_functions(
        {"Client_BufferFromHostBuffer": then(_note_int4), "Buffer_IsDeleted": then(_say_alive)}
    ),
    "handles.buffers.references": replace_function(
        "Buffer_DecreaseExternalReferenceCount", _count_below_none
    ),
    "handles.buffers.view": replace_function("Client_CreateViewOfDeviceBuffer", _tell_twice),
    "handles.buffers.events": replace_function("Buffer_ReadyEvent", _share_event),
    "handles.buffers.destroyed": _destroy_another(),
}
