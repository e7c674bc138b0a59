"""The few lines of protobuf's wire format that we need to read XLA's protos."""

from __future__ import annotations

from collections.abc import Iterator

Field = tuple[int, int | memoryview]
"""A field's number, and its value: an integer, or the bytes of anything longer."""

_FIXED = {1: 8, 5: 4}


def fields(data: bytes | memoryview) -> Iterator[Field]:
    """Yields the fields of a message; raises `ValueError` if it is none."""
    view, at = memoryview(data), 0
    while at < len(view):
        tag, at = _varint(view, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("field number 0")
        if wire == 0:
            value, at = _varint(view, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(view, at)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise ValueError(f"wire type {wire}")
        if at + length > len(view):
            raise ValueError("it ends inside a field")
        yield number, view[at : at + length]
        at += length


def integers(data: bytes | memoryview, number: int) -> list[int]:
    """Returns the integers of a repeated field, packed or not."""
    values: list[int] = []
    for found, value in fields(data):
        if found != number:
            continue
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            item, at = _varint(value, at)
            values.append(item)
    return values


def messages(data: bytes | memoryview, number: int) -> list[memoryview]:
    """Returns the sub-messages of a field."""
    return [v for n, v in fields(data) if n == number and isinstance(v, memoryview)]


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise ValueError("it ends inside a number")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
