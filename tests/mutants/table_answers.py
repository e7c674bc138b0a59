"""Mutants of libraries that return all objects' answers at one address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mutants.changes import Sound, then
from mutants.tables import TableFaults, keep, replace_function, replace_functions
from plugrt.capi.abi._abi import ffi
from plugrt_sdk.conformance.checks.table.table_answers import TEXTS

_ROOM = 4096


def _into(place: Any, pointer: str, count: str) -> Callable[[Any], None]:
    """Returns a function that moves an answer to an address."""

    def move(args: Any) -> None:
        kind = ffi.typeof(getattr(args, pointer))
        size = min(int(getattr(args, count)) * ffi.sizeof(kind.item), _ROOM)
        ffi.memmove(place, getattr(args, pointer), size)
        setattr(args, pointer, ffi.cast(kind, place))

    return move


def _from_one_place(name: str, pointer: str, count: str) -> TableFaults:
    """Returns a mutant that copies each answer of a function over the previous one."""
    return replace_function(name, then(_into(_place(), pointer, count)))


def _place() -> Any:
    return keep(ffi.new("char[]", _ROOM))


def _texts_from_one_place() -> TableFaults:
    place = _place()
    return replace_functions(
        {name: then(_into(place, field, f"{field}_size")) for name, field in TEXTS.items()}
    )


def _attributes_from_one_place() -> TableFaults:
    """Returns a mutant whose devices have an attribute that counts its requests."""
    place = keep(ffi.new("PJRT_NamedValue*"))
    place.struct_size, place.type, place.value_size = ffi.sizeof("PJRT_NamedValue"), 1, 1
    place.name, place.name_size = keep(ffi.new("char[]", b"asked")), len(b"asked")

    def count(args: Any) -> None:
        place.int64_value += 1
        args.attributes, args.num_attributes = place, 1

    return replace_function("DeviceDescription_Attributes", then(count))


def _names_from_one_place() -> TableFaults:
    """Returns a mutant that names programs by their addresses."""
    place = _place()

    def name(args: Any) -> None:
        found = f"program_{int(ffi.cast('uintptr_t', args.executable)):016x}".encode()
        ffi.memmove(place, found, len(found))
        args.executable_name, args.executable_name_size = place, len(found)

    return replace_function("Executable_Name", then(name))


def _message_from_one_place(sound: Sound) -> Sound:
    """Changes `PJRT_Error_Message`: every message is at the same address."""
    move = _into(_place(), "message", "message_size")

    def message(args: Any) -> None:
        sound(args)
        move(args)

    return message


MUTANTS: Mapping[str, TableFaults] = {
    "table_answers.texts": _texts_from_one_place(),
    "table_answers.attributes": _attributes_from_one_place(),
    "table_answers.errors": replace_function("Error_Message", _message_from_one_place),
    "table_answers.buffers.dims": _from_one_place("Buffer_Dimensions", "dims", "num_dims"),
    "table_answers.buffers.unpadded": _from_one_place(
        "Buffer_UnpaddedDimensions", "unpadded_dims", "num_dims"
    ),
    "table_answers.programs.types": _from_one_place(
        "Executable_OutputElementTypes", "output_types", "num_output_types"
    ),
    "table_answers.programs.dims": _from_one_place(
        "Executable_OutputDimensions", "dim_sizes", "num_outputs"
    ),
    "table_answers.programs.name": _names_from_one_place(),
    "table_answers.programs.fingerprint": _from_one_place(
        "Executable_Fingerprint", "executable_fingerprint", "executable_fingerprint_size"
    ),
}
