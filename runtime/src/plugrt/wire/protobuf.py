"""Reads, writes and edits the protocol buffer wire format, as far as XLA's messages need it.

https://protobuf.dev/programming-guides/encoding/ has the format. The meaning of fields is
documented where they are read: `plugrt.wire.hlo_proto`, `plugrt.capi.abi.proto_wire`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

Content = bytes | memoryview
Dropped = Mapping[int, Any]
"""The numbers of fields to drop: None drops a field, a `Dropped` drops fields of its message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Returns the wire form of an integer; negative ones as 64-bit two's complement."""
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field: int, value: int) -> bytes:
    """Returns a field that holds an integer or a bool."""
    return varint(field << 3 | _VARINT) + varint(value)


def fixed64(field: int, value: bytes) -> bytes:
    """Returns a field that holds eight bytes: a double, packed by the caller."""
    return varint(field << 3 | _FIXED64) + value


def float32(field: int, value: float) -> bytes:
    """Returns a field that holds a float."""
    return varint(field << 3 | _FIXED32) + struct.pack("<f", value)


def message(field: int, content: bytes) -> bytes:
    """Returns a field that holds a message, a string or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def fields(content: Content) -> Iterator[tuple[int, int | memoryview]]:
    """Yields (number, value) of a message: an integer, or the bytes of anything longer, uncopied.

    Raises `ValueError` where the message is cut short or malformed.
    """
    for number, _, value, _ in _spans(memoryview(content)):
        yield number, value


def _spans(view: memoryview) -> Iterator[tuple[int, int, int | memoryview, int]]:
    """Yields (number, wire type, value, end) of each field; end is its end position."""
    at = 0
    while at < len(view):
        # Most keys have one byte.
        key, at = (view[at], at + 1) if view[at] < 0x80 else read_varint(view, at)
        number, form = key >> 3, key & 7
        if number == 0:
            raise ValueError("a protocol buffer is malformed: field number 0")
        if form == _VARINT:
            value, at = read_varint(view, at)
            yield number, form, value, at
            continue
        if form == _BYTES:
            size, at = read_varint(view, at)
        elif form in _FIXED:
            size = _FIXED[form]
        else:
            raise ValueError(f"a protocol buffer is malformed: wire type {form}")
        if at + size > len(view):
            raise ValueError(
                f"a protocol buffer ends inside a field: of the {size} bytes of field {number} "
                f"{len(view) - at} are there"
            )
        yield number, form, view[at : at + size], at + size
        at += size


def find_end(content: Content) -> int:
    """Returns where a message ends that nothing but NULs follow; else the whole length."""
    at, view = 0, memoryview(content)
    try:
        for _, _, _, end in _spans(view):
            at = end
    except ValueError:
        return len(view) if any(view[at:]) else at
    return at


def integers(content: Content, number: int) -> list[int]:
    """Returns the integers of a repeated field, packed or not.

    Raises `ValueError` where they are of another wire type.
    """
    values: list[int] = []
    for value in _values(content, number, (_VARINT, _BYTES)):
        values += [value] if isinstance(value, int) else _unpack(value)
    return values


def messages(content: Content, number: int) -> list[memoryview]:
    """Returns the messages (or strings, or bytes) of a repeated field.

    Raises `ValueError` where they are of another wire type.
    """
    return [v for v in _values(content, number, (_BYTES,)) if isinstance(v, memoryview)]


def _values(content: Content, number: int, forms: tuple[int, ...]) -> Iterator[int | memoryview]:
    for found, form, value, _ in _spans(memoryview(content)):
        if found == number:
            if form not in forms:
                expected = " or ".join(map(str, forms))
                raise ValueError(
                    f"field {number} of a protocol buffer has the wire type {form}, and {expected} "
                    "was expected"
                )
            yield value


def without(content: Content, dropped: Dropped) -> bytes:
    """Returns a message without the fields of these numbers; see `Dropped`.

    Raises `ValueError` where the message is cut short or malformed.
    """
    kept, view, at = bytearray(), memoryview(content), 0
    for number, _, value, end in _spans(view):
        within = dropped.get(number, {})
        if within and isinstance(value, memoryview):
            kept += message(number, without(value, within))
        elif within is not None:
            kept += view[at:end]
        at = end
    return bytes(kept)


def _unpack(view: memoryview) -> Iterator[int]:
    at = 0
    while at < len(view):
        value, at = read_varint(view, at)
        yield value


def read_varint(view: memoryview, at: int) -> tuple[int, int]:
    """Returns the integer at a position, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise ValueError("a protocol buffer ends inside a number")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
