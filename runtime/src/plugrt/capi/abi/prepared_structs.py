"""`Prepared`: argument structs that are allocated once and reused for many calls."""

from __future__ import annotations

from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import StructSizes, struct_type

_WORD = 8
"""The alignment of every struct of the API, in bytes."""


class Prepared:
    """Structs in one block of memory, which is restored before each use.

    A library may have written to any part of it, including its inputs; and an output that it fails
    to write must not keep the value of the last call.
    """

    __slots__ = ("block", "fixed", "pristine", "structs")

    def __init__(self, *names: str, extra_bytes: int = 0, sizes: StructSizes | None = None) -> None:
        rooms = [-(-ffi.sizeof(name) // _WORD) * _WORD for name in names]
        self.block = ffi.new("char[]", sum(rooms) + extra_bytes)
        """The memory: the structs, then ``extra_bytes`` bytes for what they point to."""
        self.structs: list[Any] = []
        """Pointers to the structs, each of which states its size, as `struct_type` has it for
        ``sizes``; `block` must outlive them."""
        at = 0
        for name, room in zip(names, rooms, strict=True):
            pointer, stated = struct_type(name, sizes)
            made = ffi.cast(pointer, self.block + at)
            made.struct_size = stated
            self.structs.append(made)
            at += room
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
