"""Mutants of libraries that write beyond the argument structs of their callers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from mutants.arguments import take_for_whole, write_behind
from mutants.changes import Sound, then
from mutants.tables import TableFaults, replace_function, replace_functions
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.checks.table.table_structs import GROUPS, last_output

_LARGER = {
    "client": "Client_ProcessIndex",
    "device": "Device_LocalHardwareId",
    "description": "DeviceDescription_ProcessIndex",
    "memory": "Memory_AddressableByDevices",
    "buffer": "Buffer_UnpaddedDimensions",
    "event": "Event_Error",
    "loaded": "LoadedExecutable_IsDeleted",
}
_SMALLER = {
    **{kind: name for kind, name in _LARGER.items() if kind != "event"},
    "event": "Event_IsReady",
    "program": "Executable_NumOutputs",
}


def _write_eight(args: Any) -> None:
    """Writes 8 bytes beyond the size that the caller states."""
    ffi.memmove(ffi.cast("char*", args) + args.struct_size, bytes(8), 8)


def _write_later() -> TableFaults:
    """Returns a mutant that writes to the struct of a launch when its result is read."""
    launched: list[Any] = []
    known = ffi.sizeof("struct PJRT_LoadedExecutable_Execute_Args")

    def remember(args: Any) -> None:
        if args.struct_size > known:
            launched.append(args)

    def write(args: Any) -> None:
        if launched:
            ffi.cast("char*", launched.pop())[known] = b"\0"

    return replace_functions(
        {"LoadedExecutable_Execute": then(remember), "Buffer_ToHostBuffer": then(write)}
    )


def _smaller(kind: str, name: str) -> TableFaults:
    def make(sound: Sound) -> Sound:
        return take_for_whole(sound, name, last_output(name, GROUPS[kind].field))

    return replace_function(name, make)


MUTANTS: Mapping[str, TableFaults] = {
    **{
        f"table_structs.larger.{kind}": replace_function(name, partial(write_behind, name=name))
        for kind, name in _LARGER.items()
    },
    "table_structs.larger.program": replace_function(
        "Executable_SizeOfGeneratedCodeInBytes", then(_write_eight)
    ),
    "table_structs.larger.launch": _write_later(),
    **{f"table_structs.smaller.{kind}": _smaller(kind, name) for kind, name in _SMALLER.items()},
}
