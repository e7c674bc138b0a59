"""Structs of the API that state the size of the library's version: new ones and reused ones."""

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


_WORD = 8
"""The alignment of every struct of the API, in bytes."""


class Prepared:
    """Structs in one block of memory, which is restored before each use.

    A library may have written to any part of it, including its inputs; and an output that it fails
    to write must not keep the value of the last call.
    """

    __slots__ = ("block", "fixed", "pristine", "structs")

    def __init__(self, *names: str, extra_bytes: int = 0, minor: int | None = None) -> None:
        sizes = [-(-ffi.sizeof(name) // _WORD) * _WORD for name in names]
        self.block = ffi.new("char[]", sum(sizes) + extra_bytes)
        """The memory: the structs, then ``extra_bytes`` bytes for what they point to."""
        self.structs: list[Any] = []
        """Pointers to the structs, each of which states its size, as `struct_type` has it for
        ``minor``; `block` must outlive them."""
        at = 0
        for name, size in zip(names, sizes, strict=True):
            pointer, stated = struct_type(name, minor)
            made = ffi.cast(pointer, self.block + at)
            made.struct_size = stated
            self.structs.append(made)
            at += size
        self.fix()

    def fix(self, size: int | None = None) -> None:
        """Makes the first ``size`` bytes as they are now (None: all) what `restore` restores."""
        size = ffi.sizeof(self.block) if size is None else size
        self.fixed = slice(0, size)
        self.pristine = ffi.new("char[]", size)
        """``block[fixed] = pristine`` restores it: the fastest way that cffi has."""
        ffi.memmove(self.pristine, self.block, size)

    def restore(self) -> None:
        """Restores the memory as it was at the last `fix`."""
        self.block[self.fixed] = self.pristine
