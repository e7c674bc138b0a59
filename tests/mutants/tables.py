"""Mutants of PJRT libraries: copies of the NumPy backend's exported table, with one change each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from plugrt.capi.abi._abi import ffi
from plugrt.capi.capsule import address_in, capsule_at
from plugrt.capi.loading.extension_chain import read_chain
from plugrt.capi.loading.process_map import AddressMap
from plugrt.plugins.library import LibraryPlugin
from plugrt_sdk.conformance.function_table import SLOTS, new_args

T = TypeVar("T")
_kept: list[Any] = []
"""Tables and functions, which live as long as the process."""


@dataclass(frozen=True, slots=True)
class TableFaults:
    """A library with one defect: ``change`` is called with a copy of a sound ``PJRT_Api``."""

    change: Callable[[Any], Any]
    devices: int = 1

    def plugin_of(self) -> LibraryPlugin:
        """Returns the mutant, as a plugin whose table is in this process."""
        table = ffi.new("PJRT_Api*")
        sound = sound_table()
        ffi.memmove(table, sound, min(int(sound.struct_size), ffi.sizeof("PJRT_Api")))
        self.change(table)
        _kept.append(table)
        found = LibraryPlugin("mutant", c_api=capsule_at(int(ffi.cast("uintptr_t", table))))
        found.conformance_options = {"num_devices": self.devices}
        return found


@dataclass(frozen=True, slots=True)
class NoLibrary:
    """A plugin whose library is not there."""

    def plugin_of(self) -> LibraryPlugin:
        """Returns the mutant."""
        return LibraryPlugin("mutant", "/nonexistent/libpjrt_mutant.so")


@cache
def sound_table() -> Any:
    """Returns the table of the NumPy backend."""
    from plugrt_numpy.backend import NumpyBackend
    from plugrt_sdk.client import BackendClient
    from plugrt_sdk.export import export_capsule

    capsule = export_capsule(lambda **options: BackendClient(NumpyBackend(**options)),
                             platform="mutant")  # fmt: skip
    _kept.append(capsule)
    return ffi.cast("PJRT_Api*", address_in(capsule, "mutant"))


# --- defects -------------------------------------------------------------------------------------


def replace_function(
    name: str, make: Callable[[Any], Callable[[Any], Any]], devices: int = 1
) -> TableFaults:
    """Returns a mutant one of whose functions is Python's: ``make`` is given the sound one."""

    def change(table: Any) -> None:
        kind = ffi.typeof(getattr(table, name))
        function = ffi.callback(kind, make(getattr(sound_table(), name)))
        _kept.append(function)
        setattr(table, name, function)

    return TableFaults(change, devices)


def replace_functions(
    made: Mapping[str, Callable[[Any], Callable[[Any], Any]]], devices: int = 1
) -> TableFaults:
    """Returns a mutant several of whose functions are Python's, as `replace_function` has one."""
    faults = [replace_function(name, make) for name, make in made.items()]

    def change(table: Any) -> None:
        for fault in faults:
            fault.change(table)

    return TableFaults(change, devices)


def replace_extension_function(
    extension: str, name: str, make: Callable[[Any], Callable[[Any], Any]]
) -> TableFaults:
    """Returns the same of a function of an extension: hosts use the first of each type."""

    def change(table: Any) -> None:
        kind = f"PJRT_{extension}_Extension*"
        node = read_chain(table.extension_start, "the table", AddressMap())[extension]
        copy = ffi.new(kind, ffi.cast(kind, node)[0])
        sound = getattr(copy, name)
        function = ffi.callback(ffi.typeof(sound), make(sound))
        copy.base.next = table.extension_start
        table.extension_start = ffi.cast("PJRT_Extension_Base*", copy)
        _kept.extend((copy, function))
        setattr(copy, name, function)

    return TableFaults(change)


def keep(made: T) -> T:
    """Returns an object that now lives as long as the process."""
    _kept.append(made)
    return made


def _set(name: str, value: Callable[[Any], Any]) -> TableFaults:
    """Returns a mutant with another pointer in the place of a function or of the extensions."""

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
    _kept.append(nodes)


def _refuse_again(sound: Any) -> Callable[[Any], Any]:
    calls: list[None] = []

    def initialize(args: Any) -> Any:
        calls.append(None)
        return sound(args) if len(calls) == 1 else an_error()

    return initialize


def an_error() -> Any:
    """Returns an error that the sound table made, for a call that it refuses."""
    args, memory = new_args("TopologyDescription_Create")
    _kept.append(memory)
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
        _kept.append(moved)
        return error

    return attributes


def _write_behind(sound: Any) -> Callable[[Any], Any]:
    def attributes(args: Any) -> Any:
        known = ffi.sizeof("struct PJRT_Plugin_Attributes_Args")
        if args.struct_size > known:
            ffi.cast("char*", args)[known] = b"\0"
        return sound(args)

    return attributes


def _read_without_look(sound: Any) -> Callable[[Any], Any]:
    def destroy(args: Any) -> None:
        if args.error == ffi.NULL:
            ctypes.string_at(8)
        sound(args)

    return destroy


def _foreign_code(sound: Any) -> Callable[[Any], Any]:
    def code(args: Any) -> Any:
        failed = sound(args)
        args.code = 77
        return failed

    return code


def _share_error(sound: Any) -> Callable[[Any], Any]:
    shared: list[Any] = []

    def create(args: Any) -> Any:
        if not shared:
            shared.append(sound(args))
        return shared[0]

    return create


def _move_message(sound: Any) -> Callable[[Any], Any]:
    def message(args: Any) -> None:
        sound(args)
        args.message = keep(ffi.new("char[]", ffi.unpack(args.message, args.message_size)))

    return message


def _repeat_payloads(sound: Any) -> Callable[[Any], Any]:
    """Visits a payload once more each time that it is asked."""
    visits: list[None] = []

    def for_each(args: Any) -> Any:
        visits.append(None)
        for _ in visits:
            args.visitor(ffi.from_buffer(b"key"), 3, ffi.from_buffer(b"value"), 5, args.user_arg)
        return sound(args)

    return for_each


def _empty(table: Any) -> None:
    for name in SLOTS:
        setattr(table, name, ffi.NULL)


TABLES: Mapping[str, TableFaults] = {
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
    "abi.destroy_null": replace_function("Error_Destroy", _read_without_look),
    "abi.errors.several": replace_function("TopologyDescription_Create", _share_error),
    "abi.errors.message": replace_function("Error_Message", _move_message),
    "abi.errors.payloads": replace_function("Error_ForEachPayload", _repeat_payloads),
    "abi.errors": replace_function("Error_GetCode", _foreign_code),
}
LIBRARIES: Mapping[str, NoLibrary] = {"host.library": NoLibrary()}
"""Plugins of libraries whose defect is not in the table."""
SICK: Mapping[str, TableFaults] = {"killer.all_null": TableFaults(_empty)}
"""A table without a single function."""
