"""`new_struct`: structs of the API that state the size of the library's version."""

from __future__ import annotations

from functools import cache
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._grown import GROWN


@cache
def struct_type(name: str, minor: int | None = None) -> tuple[Any, int]:
    """Returns (pointer type, size to state) of a struct, for a library of that minor version.

    The size ends with the last field that the version has; the struct itself is always whole.
    Without ``minor`` the struct must be one that is the same in all versions: else `ValueError`.
    """
    fields, ends = dict(ffi.typeof(name).fields), GROWN.get(name.removeprefix("struct "), ())
    name_of_last = next(reversed(fields))
    if ends:
        if minor is None:
            raise ValueError(f"{name} differs between versions: the library's minor is needed")
        name_of_last = next((field for since, field in ends if minor < since), name_of_last)
    last = fields[name_of_last]
    return ffi.typeof(name + "*"), last.offset + ffi.sizeof(last.type)


def new_struct(name: str, minor: int | None = None) -> Any:
    """Returns a zeroed struct that states its size, as `struct_type` has it."""
    pointer_type, size = struct_type(name, minor)
    made = ffi.new(pointer_type)
    made.struct_size = size
    return made
