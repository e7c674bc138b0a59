"""Encodes plain values (None, bool, int, float, str, bytes, list, dict) for messages.

A value is one byte that names its type and the contents; nothing else can be encoded, so that a
message cannot make its receiver run code.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence, Set
from typing import Any

from plugrt.errors import ArgumentTypeError, InvalidArgument

_INT, _FLOAT, _COUNT = struct.Struct("<q"), struct.Struct("<d"), struct.Struct("<I")
_MAX_DEPTH = 8


class ProtocolError(ConnectionError):
    """A message that the protocol does not allow; the connection is closed."""


def pack(value: Any) -> bytes:
    """Returns the bytes of a value; raises `ArgumentTypeError` for a type that is not listed."""
    parts: list[bytes] = []
    _pack(value, parts.append)
    return b"".join(parts)


def _pack(value: Any, add: Any) -> None:
    if value is None:
        add(b"N")
    elif isinstance(value, bool):
        add(b"T" if value else b"F")
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidArgument(f"{value} does not fit 64 bits")
        add(b"i" + _INT.pack(value))
    elif isinstance(value, float):
        add(b"d" + _FLOAT.pack(value))
    elif isinstance(value, str | bytes):
        text = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        add((b"b" if isinstance(value, bytes) else b"s") + _COUNT.pack(len(text)) + text)
    elif isinstance(value, Mapping):
        add(b"m" + _COUNT.pack(len(value)))
        for item in value.items():
            _pack(item[0], add)
            _pack(item[1], add)
    elif isinstance(value, Sequence | Set):
        add(b"l" + _COUNT.pack(len(value)))
        for part in value:
            _pack(part, add)
    else:
        raise ArgumentTypeError(f"{value!r:.60} cannot be sent to another process")


def unpack(data: bytes) -> Any:
    """Returns the value of these bytes; raises `ProtocolError` unless they encode exactly one."""
    try:
        value, end = _unpack(data, 0, 0)
    except (struct.error, IndexError, UnicodeDecodeError, TypeError) as error:
        raise ProtocolError(f"a value cannot be read: {error}") from None
    if end != len(data):
        raise ProtocolError(f"{len(data) - end} bytes follow a value")
    return value


def _unpack(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    kind = data[at]
    at += 1
    if kind in b"NTF":
        return {78: None, 84: True, 70: False}[kind], at
    if kind in b"id":
        form = _INT if kind == 105 else _FLOAT
        return form.unpack_from(data, at)[0], at + 8
    [count] = _COUNT.unpack_from(data, at)
    at += 4
    # Each part has at least one byte, so a count above the bytes left is false.
    if count > len(data) - at or depth == _MAX_DEPTH:
        raise ProtocolError(f"a value of {count} parts at depth {depth} is larger than its message")
    if kind in b"sb":
        text = data[at : at + count]
        return (text if kind == 98 else text.decode("utf-8", "surrogatepass")), at + count
    if kind not in b"lm":
        raise ProtocolError(f"no value has the type {kind}")
    parts = []
    for _ in range(count if kind == 108 else 2 * count):
        part, at = _unpack(data, at, depth + 1)
        parts.append(part)
    return (parts if kind == 108 else dict(zip(parts[::2], parts[1::2], strict=True))), at
