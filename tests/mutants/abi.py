"""Mutants of the function table: see `mutants.tables`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mutants.tables import TableFaults, keep, replace_function, sound_table
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.function_table import new_args


def _set(name: str, value: Callable[[Any], Any]) -> TableFaults:
    """Returns a mutant with another pointer for a function or for the extensions."""

    def change(table: Any) -> None:
        kind = ffi.typeof(getattr(table, name))
        setattr(table, name, ffi.cast(kind, value(table)))

    return TableFaults(change)


def _age(table: Any) -> None:
    table.pjrt_api_version.minor_version = 5


def _misstate_size(table: Any) -> None:
    table.struct_size += 3


def _repeat_extension(table: Any) -> None:
    nodes = ffi.new("PJRT_Extension_Base[2]")
    for node in nodes:
        node.struct_size, node.type = ffi.sizeof("PJRT_Extension_Base"), 3
    nodes[0].next = nodes + 1
    table.extension_start = nodes
    keep(nodes)


def _refuse_again(sound: Any) -> Callable[[Any], Any]:
    calls: list[None] = []

    def initialize(args: Any) -> Any:
        calls.append(None)
        return sound(args) if len(calls) == 1 else an_error()

    return initialize


def an_error() -> Any:
    """Returns an error of the correct table, for a call that it refuses."""
    args, memory = new_args("TopologyDescription_Create")
    keep(memory)
    return sound_table().TopologyDescription_Create(args)


def _hide_attributes(sound: Any) -> Callable[[Any], Any]:
    def attributes(args: Any) -> Any:
        error = sound(args)
        args.num_attributes = 0
        return error

    return attributes


def _move_attributes(sound: Any) -> Callable[[Any], Any]:
    def attributes(args: Any) -> Any:
        error = sound(args)
        moved = ffi.new("PJRT_NamedValue[]", int(args.num_attributes))
        ffi.memmove(moved, args.attributes, ffi.sizeof(moved))
        args.attributes = moved
        keep(moved)
        return error

    return attributes


def _write_behind(sound: Any) -> Callable[[Any], Any]:
    def attributes(args: Any) -> Any:
        known = ffi.sizeof("struct PJRT_Plugin_Attributes_Args")
        if args.struct_size > known:
            ffi.cast("char*", args)[known] = b"\0"
        return sound(args)

    return attributes


MUTANTS: Mapping[str, TableFaults] = {
    "abi.version": TableFaults(_age),
    "abi.size": TableFaults(_misstate_size),
    "abi.slots": _set("Client_Compile", lambda table: ffi.NULL),
    "abi.slots.code": _set("Client_Compile", lambda table: table),
    "abi.extensions": _set("extension_start", lambda table: 0x10),
    "abi.extensions.types": TableFaults(_repeat_extension),
    "abi.initialize": replace_function("Plugin_Initialize", _refuse_again),
    "abi.attributes": replace_function("Plugin_Attributes", _hide_attributes),
    "abi.attributes.stable": replace_function("Plugin_Attributes", _move_attributes),
    "abi.args.larger": replace_function("Plugin_Attributes", _write_behind),
}
