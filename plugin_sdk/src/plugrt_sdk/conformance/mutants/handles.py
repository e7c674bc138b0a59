"""Mutants of what a library lends and owns: tables some of whose functions are Python's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.interface import HostBufferSemantics
from plugrt_sdk.conformance.function_table import is_error, new_args, take_error
from plugrt_sdk.conformance.mutants.tables import (
    TableFaults,
    keep,
    replace_function,
    replace_functions,
    sound_table,
)

Sound = Callable[[Any], Any]
OK = ffi.NULL


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def then(change: Callable[[Any], None]) -> Callable[[Sound], Sound]:
    """Returns a maker of functions that change what the sound one has filled in."""

    def make(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            error = sound(args)
            if not is_error(error):
                change(args)
            return error

        return call

    return make


def _moves(name: str, pointer: str, size: str) -> TableFaults:
    """Returns a mutant that copies what it lends, each time that it is asked."""

    def move(args: Any) -> None:
        item = ffi.typeof(getattr(args, pointer)).item
        count = ffi.sizeof(item) * int(getattr(args, size))
        moved = keep(ffi.new("char[]", count + 8))
        ffi.memmove(moved, getattr(args, pointer), count)
        setattr(args, pointer, ffi.cast(ffi.typeof(getattr(args, pointer)), moved))

    return replace_function(name, then(move))


def _before(change: Callable[[Any], None]) -> Callable[[Sound], Sound]:
    """Returns a maker of functions that change their arguments before the sound one sees them."""

    def make(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            change(args)
            return sound(args)

        return call

    return make


def _shared_error(error: Any) -> None:
    if is_error(error):
        take_error(sound_table(), error)


# --- clients and buffers -------------------------------------------------------------------------


def _fill_without_room(sound: Sound) -> Sound:
    """Writes a whole assignment whatever the room."""

    def assign(args: Any) -> Any:
        for i in range(min(args.num_replicas * args.num_partitions, 4)):
            args.default_assignment[i] = i
        return OK

    return assign


def _multiply_in_32_bits(sound: Sound) -> Sound:
    def assign(args: Any) -> Any:
        product = ctypes.c_int32(args.num_replicas * args.num_partitions).value
        return OK if product == 0 else sound(args)

    return assign


def _borrow_dims() -> TableFaults:
    """Returns a mutant whose buffers say the dimensions that are in the host's memory."""
    borrowed: dict[Any, Any] = {}

    def put(args: Any) -> None:
        borrowed[args.buffer] = args.dims

    def dims(args: Any) -> None:
        args.dims = borrowed[args.buffer]

    return replace_functions(
        {"Client_BufferFromHostBuffer": then(put), "Buffer_Dimensions": then(dims)}
    )


_SLICE = ffi.new("char[]", b"slice")
_OF_NO_TYPE = ffi.new(
    "PJRT_NamedValue*", {"name": _SLICE, "name_size": 5, "type": 99, "value_size": 1}
)


def _say_of_no_type(args: Any) -> None:
    args.attributes, args.num_attributes = _OF_NO_TYPE, 1


def _refuse_to_end(sound: Sound) -> Sound:
    """Ends nothing, and gives the error of a device that is not there."""

    def destroy(args: Any) -> Any:
        lookup = ffi.new("struct PJRT_Client_LookupDevice_Args*", {"client": args.client, "id": -1})
        lookup.struct_size = ffi.sizeof(lookup[0])
        return sound_table().Client_LookupDevice(lookup)

    return destroy


_PADDED = ffi.new("int64_t[2]", [8, 128])


def _say_padded(args: Any) -> None:
    args.unpadded_dims = _PADDED


def _say_dynamic(args: Any) -> None:
    args.num_dynamic_dims = 1


def _read_ahead(args: Any) -> None:
    """Reads a cache line behind the array that is put."""
    size = 4
    for i in range(args.num_dims):
        size *= args.dims[i]
    ctypes.string_at(_address(args.data) + size, 64)


def _forget_size(args: Any) -> None:
    if args.dst == ffi.NULL:
        args.dst_size -= 1


def _read_in_short_room(sound: Sound) -> Sound:
    """Writes a whole array whatever the room."""

    def read(args: Any) -> Any:
        if args.dst != ffi.NULL:
            args.dst_size += 4
        return sound(args)

    return read


def _write_tail(args: Any) -> None:
    size = ffi.sizeof("struct PJRT_Client_BufferFromHostBuffer_Args")
    if args.struct_size > size:
        ffi.cast("char*", args)[size] = b"\0"


def _keep_deleted(sound: Sound) -> Sound:
    def delete(args: Any) -> Any:
        return OK

    return delete


def _count_below_none(sound: Sound) -> Sound:
    def decrease(args: Any) -> Any:
        _shared_error(sound(args))
        return OK

    return decrease


def _tell_twice(sound: Sound) -> Sound:
    """Gives the memory of a view back twice."""

    def make_view(args: Any) -> Any:
        inner, argument = args.on_delete_callback, args.on_delete_callback_arg

        def twice(pointer: Any, given: Any) -> None:
            inner(pointer, argument)
            inner(pointer, argument)

        args.on_delete_callback = keep(ffi.callback("void(*)(void*, void*)", twice))
        return sound(args)

    return make_view


def _share_event(sound: Sound) -> Sound:
    """Gives one ready event of a buffer to all who ask."""
    shared: dict[Any, Any] = {}

    def ready_event(args: Any) -> Any:
        if args.buffer in shared:
            args.event = shared[args.buffer]
            return OK
        error = sound(args)
        shared[args.buffer] = args.event
        return error

    return ready_event


def _delete(buffer: Any) -> None:
    args, _kept = new_args("Buffer_Delete")
    args.buffer = buffer
    sound_table().Buffer_Delete(args)


def _destroy_another() -> TableFaults:
    """Returns a mutant that deletes the newest buffer when it has destroyed five hundred."""
    made: list[Any] = []
    gone: list[Any] = []

    def put(args: Any) -> None:
        made.append(args.buffer)

    def destroy(args: Any) -> None:
        gone.append(args.buffer)
        if len(gone) == 500:
            _delete(next(buffer for buffer in reversed(made) if buffer not in gone))

    return replace_functions(
        {"Client_BufferFromHostBuffer": then(put), "Buffer_Destroy": _before(destroy)}
    )


HANDLES: Mapping[str, TableFaults] = {
    "handles.client.strings": _moves(
        "Client_PlatformVersion", "platform_version", "platform_version_size"
    ),
    "handles.client.lists": _moves(
        "Client_AddressableDevices", "addressable_devices", "num_addressable_devices"
    ),
    "handles.devices.strings": _moves(
        "DeviceDescription_DebugString", "debug_string", "debug_string_size"
    ),
    "handles.memories.strings": _moves("Memory_Kind", "kind", "kind_size"),
    "handles.assignment.room": replace_function(
        "Client_DefaultDeviceAssignment", _fill_without_room
    ),
    "handles.assignment.overflow": replace_function(
        "Client_DefaultDeviceAssignment", _multiply_in_32_bits
    ),
    "handles.buffers.dims": _borrow_dims(),
    "handles.devices.attributes": replace_function(
        "DeviceDescription_Attributes", then(_say_of_no_type)
    ),
    "handles.ended": replace_function("Client_Destroy", _refuse_to_end),
    "handles.buffers.unpadded": replace_function("Buffer_UnpaddedDimensions", then(_say_padded)),
    "handles.buffers.dynamic": replace_function(
        "Buffer_DynamicDimensionIndices", then(_say_dynamic)
    ),
    "handles.buffers.bounded": replace_function(
        "Client_BufferFromHostBuffer", _before(_read_ahead)
    ),
    "handles.buffers.two_calls": replace_function("Buffer_ToHostBuffer", then(_forget_size)),
    "handles.buffers.short_room": replace_function("Buffer_ToHostBuffer", _read_in_short_room),
    "handles.buffers.larger": replace_function("Client_BufferFromHostBuffer", then(_write_tail)),
    "handles.buffers.deleted": replace_function("Buffer_Delete", _keep_deleted),
    "handles.buffers.references": replace_function(
        "Buffer_DecreaseExternalReferenceCount", _count_below_none
    ),
    "handles.buffers.view": replace_function("Client_CreateViewOfDeviceBuffer", _tell_twice),
    "handles.buffers.events": replace_function("Buffer_ReadyEvent", _share_event),
    "handles.buffers.destroyed": _destroy_another(),
}


def _done_too_early(semantics: HostBufferSemantics) -> TableFaults:
    """Returns a mutant that uses the host's memory for good, and says that it is done with it."""

    def put(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            if args.host_buffer_semantics != semantics:
                return sound(args)
            args.host_buffer_semantics = int(HostBufferSemantics.IMMUTABLE_ZERO_COPY)
            error = sound(args)
            ready, _kept = new_args("Buffer_ReadyEvent")
            ready.buffer = args.buffer
            sound_table().Buffer_ReadyEvent(ready)
            args.done_with_host_buffer = ready.event
            return error

        return call

    return replace_function("Client_BufferFromHostBuffer", put)


TABLE_PUTS: Mapping[str, TableFaults] = {
    f"table_puts.{each.name.lower()}": _done_too_early(each) for each in HostBufferSemantics
}


# --- programs ------------------------------------------------------------------------------------


def _read_to_nul(args: Any) -> None:
    ctypes.string_at(_address(args.program.code))


def _borrow_program() -> TableFaults:
    """Returns a mutant that reads a program when it is launched, not when it is compiled."""
    lent: dict[Any, tuple[Any, int, bytes]] = {}

    def compile(args: Any) -> None:
        program = args.program
        text = bytes(ffi.buffer(program.code, program.code_size))
        lent[args.executable] = (program.code, int(program.code_size), text)

    def execute(sound: Sound) -> Sound:
        def launch(args: Any) -> Any:
            code, size, text = lent.get(args.executable, (ffi.NULL, 0, b""))
            changed = size and bytes(ffi.buffer(code, size)) != text
            return _refusal() if changed else sound(args)

        return launch

    return replace_functions({"Client_Compile": then(compile), "LoadedExecutable_Execute": execute})


def _refusal() -> Any:
    args, _kept = new_args("Plugin_Attributes")
    args.struct_size = 1
    return sound_table().Plugin_Attributes(args)


_MLIR = keep(ffi.new("char[]", b"mlir"))


def _take_format(matches: Callable[[bytes], bool]) -> TableFaults:
    """Returns a mutant that takes some formats for MLIR."""

    def compile(args: Any) -> None:
        program = args.program
        if matches(bytes(ffi.buffer(program.format, program.format_size))):
            program.format, program.format_size = _MLIR, 4

    return replace_function("Client_Compile", _before(compile))


def _compile_nothing(args: Any) -> None:
    """Takes a program of no bytes for the module that it is not."""
    if args.program.code_size == 0:
        args.program.code, args.program.code_size = _NOTHING, len(_NOTHING) - 1


_NOTHING = keep(ffi.new("char[]", b"func.func public @main() { return }"))


def _take_no_room(sound: Sound) -> Sound:
    """Says one byte more in the first call than it writes into in the second."""

    def optimized(args: Any) -> Any:
        program = args.program
        asked = program.code == ffi.NULL
        error = sound(args)
        if not asked:
            program.code[int(program.code_size)] = b"\0"
        return error

    return optimized


def shares(name: str, owner: str) -> TableFaults:
    """Returns a mutant that gives out one result, which the first caller frees."""
    fields = ("serialized_bytes", "serialized_bytes_size", owner, f"{owner}_deleter")
    shared: list[Any] = []
    state = {"freed": False}

    def give(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            if not shared:
                error = sound(args)
                inner, kind = getattr(args, fields[3]), ffi.typeof(getattr(args, fields[3]))

                def free(held: Any) -> None:
                    if not state["freed"]:
                        inner(held)
                    state["freed"] = True

                setattr(args, fields[3], keep(ffi.callback(kind, free)))
                shared.extend(getattr(args, field) for field in fields)
                return error
            for field, value in zip(fields, shared, strict=True):
                setattr(args, field, value)
            if state["freed"]:
                args.serialized_bytes_size = 0
            return OK

        return call

    return replace_function(name, give)


def _no_events(sound: Sound) -> Sound:
    def launch(args: Any) -> Any:
        args.device_complete_events = ffi.NULL
        return sound(args)

    return launch


def _launch_late() -> TableFaults:
    """Returns a mutant that looks at the arguments of a launch again when a result is read."""
    lists: list[tuple[Any, Any]] = []

    def launch(args: Any) -> None:
        lists.append((args.argument_lists[0], args.argument_lists[0][0]))

    def read(sound: Sound) -> Sound:
        def call(args: Any) -> Any:
            changed = lists and lists[-1][0][0] != lists[-1][1]
            return _refusal() if changed else sound(args)

        return call

    return replace_functions(
        {"LoadedExecutable_Execute": then(launch), "Buffer_ToHostBuffer": read}
    )


def _results_die_with_program() -> TableFaults:
    results: dict[Any, Any] = {}

    def launch(args: Any) -> None:
        results[args.executable] = args.output_lists[0][0]

    def destroy(args: Any) -> None:
        if args.executable in results:
            _delete(results.pop(args.executable))

    return replace_functions(
        {"LoadedExecutable_Execute": then(launch), "LoadedExecutable_Destroy": _before(destroy)}
    )


def _read_context(args: Any) -> None:
    """Reads the field that follows the options of an older host."""
    ctypes.string_at(_address(args.options.context) or _address(args.options), 1)


TABLE_PROGRAMS: Mapping[str, TableFaults] = {
    "table_programs.bounded": replace_function("Client_Compile", _before(_read_to_nul)),
    "table_programs.forgotten": _borrow_program(),
    "table_programs.format.unknown": _take_format(lambda name: name.startswith(b"no such")),
    "table_programs.format.prefix": _take_format(lambda name: b"mlir".startswith(name[:4])),
    "table_programs.empty": replace_function("Client_Compile", _before(_compile_nothing)),
    "table_programs.name": _moves("Executable_Name", "executable_name", "executable_name_size"),
    "table_programs.outputs": _moves(
        "Executable_OutputElementTypes", "output_types", "num_output_types"
    ),
    "table_programs.optimized.two_calls": replace_function(
        "Executable_OptimizedProgram", _take_no_room
    ),
    "table_programs.serialized": shares("Executable_Serialize", "serialized_executable"),
    "table_programs.assignment": shares(
        "LoadedExecutable_GetDeviceAssignment", "serialized_device_assignment"
    ),
    "table_programs.fingerprint": _moves(
        "Executable_Fingerprint", "executable_fingerprint", "executable_fingerprint_size"
    ),
    "table_programs.launch.events": replace_function("LoadedExecutable_Execute", _no_events),
    "table_programs.launch.lists": _launch_late(),
    "table_programs.destroyed": _results_die_with_program(),
    "table_programs.launch.older_options": replace_function(
        "LoadedExecutable_Execute", _before(_read_context)
    ),
}
