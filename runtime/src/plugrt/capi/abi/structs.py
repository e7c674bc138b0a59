"""Structs of the API that state the size of the library's header: new ones and reused ones."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi._grown import GROWN, HEADERS, SINCE

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_API = ffi.typeof("PJRT_Api").fields
_FIRST = int(_API[3][1].offset)
"""The offset of the first function in the table."""


class StructSizes:
    """The sizes of structs in a library's header, by its minor version and the table's size.

    Minor versions were reused: where several headers fit, a struct may have several sizes. The
    largest is stated first: XLA's libraries accept a larger struct than their own.
    ``table`` is the size that the table states; without it, only the version is used.
    """

    def __init__(self, minor: int, table: int | None = None) -> None:
        self._headers = _headers(minor, table)
        self._known: dict[str, tuple[int, ...]] = {}

    def possible(self, struct: str) -> tuple[int, ...]:
        """Returns the sizes that a struct may have, the largest first."""
        known = self._known.get(struct)  # another thread may `settle` meanwhile
        if known is None:
            sizes = {_size(struct, minor, ends.get(struct)) for minor, ends in self._headers}
            known = self._known[struct] = tuple(sorted(sizes, reverse=True))
        return known

    def settle(self, struct: str, size: int) -> None:
        """Keeps the headers with that size, which the library accepted instead of a larger one."""
        self._headers = [h for h in self._headers if _size(struct, h[0], h[1].get(struct)) == size]
        self._known.clear()


def _headers(minor: int, table: int | None) -> list[tuple[int, dict[str, str]]]:
    """Returns (minor, struct to the last field of its size) of each header that fits.

    Where no header has both that minor version and that table, two fit: one of the version, and
    one of the nearest version with such a table.
    """
    if table is None:
        return [(minor, {})]
    functions = (table - _FIRST) // ffi.sizeof("void*")
    if known := HEADERS.get((minor, functions)):
        return [(minor, ends) for ends in known]
    at = min(max(functions, 1), len(SINCE))
    oldest = SINCE[at - 1]
    newest = SINCE[at] - 1 if at < len(SINCE) else minor
    nearest = max(min(minor, newest), oldest)
    return [(version, {}) for version in dict.fromkeys((minor, nearest))]


@cache
def _size(struct: str, minor: int, end: str | None = None) -> int:
    """Returns the size to state of a struct, up to the field ``end``, else as its version has."""
    fields = dict(ffi.typeof(_name(struct)).fields)
    ends = GROWN[struct]
    since = bisect_right([since for since, _ in ends], minor)
    if end is None:
        end = ends[since][1] if since < len(ends) else next(reversed(fields))
    return int(fields[end].offset + ffi.sizeof(fields[end].type))


def _name(struct: str) -> str:
    return f"struct {struct}" if struct.endswith("_Args") else struct


@cache
def _type(name: str) -> tuple[object, int]:
    """Returns (pointer type, size) of a struct, 0 where that differs between headers."""
    if name.removeprefix("struct ") in GROWN:
        return ffi.typeof(name + "*"), 0
    last = ffi.typeof(name).fields[-1][1]
    return ffi.typeof(name + "*"), last.offset + ffi.sizeof(last.type)


def struct_type(name: str, sizes: StructSizes | None = None) -> tuple[Any, int]:
    """Returns (pointer type, size to state) of a struct, for a library whose header has ``sizes``.

    The size ends with the last field that the header has; the struct itself is always whole.
    Without ``sizes`` the struct must be one that is the same in all versions: else `ValueError`.
    """
    pointer_type, size = _type(name)
    if not size:
        if sizes is None:
            raise ValueError(f"{name} differs between versions: the library's sizes are needed")
        size = sizes.possible(name.removeprefix("struct "))[0]
    return pointer_type, size


def new_struct(name: str, sizes: StructSizes | None = None) -> CData:
    """Returns a zeroed struct that states its size, as `struct_type` has it."""
    pointer_type, size = struct_type(name, sizes)
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

    def __init__(self, *names: str, extra_bytes: int = 0, sizes: StructSizes | None = None) -> None:
        rooms = [-(-ffi.sizeof(name) // _WORD) * _WORD for name in names]
        self.block = ffi.new("char[]", sum(rooms) + extra_bytes)
        """The memory: the structs, then ``extra_bytes`` bytes for the arrays they point to."""
        self.structs: list[CData] = []
        """Pointers to the structs, each of which states its size, as in `struct_type` for
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
        """Makes the present first ``size`` bytes (None: all) the contents that `restore`
        restores.
        """
        size = ffi.sizeof(self.block) if size is None else size
        self.fixed = slice(0, size)
        self.pristine = ffi.new("char[]", size)
        """``block[fixed] = pristine`` restores it: the fastest way that cffi has."""
        ffi.memmove(self.pristine, self.block, size)

    def restore(self) -> None:
        """Restores the memory as it was at the last `fix`."""
        self.block[self.fixed] = self.pristine
