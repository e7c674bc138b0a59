"""Reads FlatBuffers: tables, vectors and strings in an untrusted buffer.

https://flatbuffers.dev/internals/ has the format. Every position is checked against the buffer's
end. Offsets only lead forward, so no part contains itself; but parts may be referred to many times,
so every read counts against a budget, a multiple of the buffer's size: a small buffer cannot expand
into a large one. The module that reads a table defines the meaning of its fields:
`plugrt.programs.export_file`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_UINT16, _UINT32, _INT32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")
_SCALARS = {code: struct.Struct(f"<{code}") for code in "?bBhHiIqQ"}
_READS_PER_BYTE = 8


def root_table(content: bytes) -> Table:
    """Returns the root of a buffer; raises `ValueError` without one."""
    buffer = _Buffer(content)
    return Table(buffer, buffer.follow(0))


def require(found: T | None, what: str) -> T:
    """Returns a field; raises `ValueError` where the table lacked it."""
    if found is None:
        raise ValueError(f"it has no {what}")
    return found


class _Buffer:
    """The bytes, and how many of them may still be read."""

    __slots__ = ("content", "left")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.left = _READS_PER_BYTE * len(content) + 64

    def take(self, at: int, size: int) -> bytes:
        end = at + size
        if at < 0 or end > len(self.content):
            raise ValueError(f"a flatbuffer of {len(self.content)} bytes refers to byte {end}")
        self.left -= size
        if self.left < 0:
            raise ValueError("a flatbuffer refers to the same parts again and again")
        return self.content[at:end]

    def number(self, at: int, form: struct.Struct) -> int:
        return int(form.unpack(self.take(at, form.size))[0])

    def follow(self, at: int) -> int:
        """Returns the position that the offset at ``at`` refers to."""
        offset = self.number(at, _UINT32)
        if offset < _UINT32.size:
            raise ValueError(f"a flatbuffer has the offset {offset} at byte {at}")
        return at + offset


class Table:
    """A table: fields by their number in the schema, each of which may be missing.

    Every method raises `ValueError` for a position outside of the buffer.
    """

    __slots__ = ("_at", "_buffer", "_fields", "_size")

    def __init__(self, buffer: _Buffer, at: int) -> None:
        self._buffer, self._at = buffer, at
        self._fields = at - buffer.number(at, _INT32)
        self._size = buffer.number(self._fields, _UINT16)

    def scalar(self, field: int, code: str, default: int = 0) -> int:
        """Returns a number; ``code`` is its form as in `struct`."""
        at = self._find(field)
        return default if at is None else self._buffer.number(at, _SCALARS[code])

    def text(self, field: int) -> str | None:
        """Returns a string; None where it is missing."""
        at = self._find(field)
        return None if at is None else self._text(self._buffer.follow(at))

    def content(self, field: int) -> bytes | None:
        """Returns a vector of bytes; None where it is missing."""
        at = self._find(field)
        return None if at is None else self._content(self._buffer.follow(at))

    def table(self, field: int) -> Table | None:
        """Returns a table; None where it is missing."""
        at = self._find(field)
        return None if at is None else Table(self._buffer, self._buffer.follow(at))

    def scalars(self, field: int, code: str) -> list[int]:
        """Returns a vector of numbers; [] where it is missing."""
        form = _SCALARS[code]
        at = self._find(field)
        if at is None:
            return []
        start, count = self._vector(self._buffer.follow(at))
        packed = self._buffer.take(start, count * form.size)
        return [value for (value,) in form.iter_unpack(packed)]

    def texts(self, field: int) -> list[str]:
        """Returns a vector of strings; [] where it is missing."""
        return self._each(field, self._text)

    def tables(self, field: int) -> list[Table]:
        """Returns a vector of tables; [] where it is missing."""
        return self._each(field, lambda at: Table(self._buffer, at))

    def _find(self, field: int) -> int | None:
        """Returns where a field is; None where the table lacks it."""
        entry = 2 * (field + 2)
        if entry + 2 > self._size:
            return None
        offset = self._buffer.number(self._fields + entry, _UINT16)
        return self._at + offset if offset else None

    def _vector(self, at: int) -> tuple[int, int]:
        return at + _UINT32.size, self._buffer.number(at, _UINT32)

    def _content(self, at: int) -> bytes:
        return self._buffer.take(*self._vector(at))

    def _text(self, at: int) -> str:
        return self._content(at).decode()

    def _each(self, field: int, read: Callable[[int], T]) -> list[T]:
        at = self._find(field)
        if at is None:
            return []
        start, count = self._vector(self._buffer.follow(at))
        self._buffer.take(start, count * _UINT32.size)
        return [read(self._buffer.follow(start + i * _UINT32.size)) for i in range(count)]
