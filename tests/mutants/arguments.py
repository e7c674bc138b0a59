"""Mutants of argument structs, names and events: see `mutants.tables`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mutants.tables import TableFaults, keep, replace_function, sound_table
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.checks.arguments import FUNCTIONS, LAST_OUTPUT
from plugrt_sdk.conformance.function_table import is_error

Sound = Callable[[Any], Any]


def _size_of(name: str) -> int:
    return int(ffi.sizeof(f"struct PJRT_{name}_Args"))


def write_behind(sound: Sound, name: str) -> Sound:
    """Writes its own field beyond a struct that has room for it."""

    def call(args: Any) -> Any:
        if args.struct_size > _size_of(name):
            ffi.cast("char*", args)[_size_of(name)] = b"\0"
        return sound(args)

    return call


def take_for_whole(sound: Sound, name: str, last: str) -> Sound:
    """Fills in a struct of any size; sets the fields to zero after an error."""

    def call(args: Any) -> Any:
        stated, args.struct_size = args.struct_size, _size_of(name)
        found = sound(args)
        args.struct_size = stated
        if is_error(found):
            first = ffi.offsetof(f"struct PJRT_{name}_Args", last)
            nothing = bytes(_size_of(name) - first)
            ffi.memmove(ffi.cast("char*", args) + first, nothing, len(nothing))
        return found

    return call


def _refuse_extensions(sound: Sound, name: str) -> Sound:
    """Refuses a struct with an extension; a function that returns no error reads the next one."""

    def call(args: Any) -> Any:
        if args.extension_start == ffi.NULL:
            return sound(args)
        if name == "Error_Message":
            return ctypes.string_at(8)
        return _another_error()

    return call


def _another_error() -> Any:
    """Returns an error of another code than the topology's."""
    args = ffi.new("struct PJRT_Plugin_Attributes_Args*")
    args.struct_size = 1
    return sound_table().Plugin_Attributes(args)


def _keep_outputs(sound: Sound) -> Sound:
    def attributes(args: Any) -> Any:
        if args.attributes != ffi.NULL:
            return ffi.NULL
        return sound(args)

    return attributes


def _read_name(sound: Sound) -> Sound:
    """Reads a name up to a NUL, also at NULL."""

    def create(args: Any) -> Any:
        ctypes.string_at(int(ffi.cast("uintptr_t", args.topology_name)))
        return sound(args)

    return create


def _need_name(sound: Sound) -> Sound:
    def create(args: Any) -> Any:
        ctypes.string_at(int(ffi.cast("uintptr_t", args.topology_name)) or 8, 1)
        return sound(args)

    return create


def _read_options(sound: Sound) -> Sound:
    def create(args: Any) -> Any:
        for i in range(args.num_options):
            ctypes.string_at(int(ffi.cast("uintptr_t", args.create_options[i].name)))
        return sound(args)

    return create


def _count_nul(sound: Sound) -> Sound:
    """Includes the final NUL in a text's size."""

    def attributes(args: Any) -> Any:
        error = sound(args)
        moved = keep(ffi.new("PJRT_NamedValue[]", int(args.num_attributes)))
        ffi.memmove(moved, args.attributes, ffi.sizeof(moved))
        for value in moved:
            if value.type == 0:
                whole = ffi.unpack(value.string_value, value.value_size) + b"\0"
                value.string_value = keep(ffi.new("char[]", whole))
                value.value_size = len(whole)
            else:
                value.value_size = 0
        args.attributes = moved
        return error

    return attributes


MUTANTS: Mapping[str, TableFaults] = {
    **{
        f"arguments.larger.{key}": replace_function(name, partial(write_behind, name=name))
        for key, name in FUNCTIONS.items()
    },
    **{
        f"arguments.extension.{key}": replace_function(name, partial(_refuse_extensions, name=name))
        for key, name in FUNCTIONS.items()
    },
    **{
        f"arguments.smaller.{key}": replace_function(
            FUNCTIONS[key], partial(take_for_whole, name=FUNCTIONS[key], last=last)
        )
        for key, last in LAST_OUTPUT.items()
    },
    "arguments.outputs": replace_function("Plugin_Attributes", _keep_outputs),
    "arguments.name.empty": replace_function("TopologyDescription_Create", _need_name),
    "arguments.name.bounded": replace_function("TopologyDescription_Create", _read_name),
    "arguments.options.bounded": replace_function("TopologyDescription_Create", _read_options),
    "arguments.attributes.values": replace_function("Plugin_Attributes", _count_nul),
}
