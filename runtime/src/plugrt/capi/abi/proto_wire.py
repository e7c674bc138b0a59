"""The few protocol buffers that PJRT's arguments need, written field by field.

Six bytes are a whole ``CompileOptionsProto``; leaving the rest out lets a library use its own
defaults. Numbers are those of ``xla/pjrt/proto/compile_options.proto`` and
``xla/xla_data.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from plugrt.errors import InvalidArgument
from plugrt.interface import CompileOptions, DeviceAssignment

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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


def message(field: int, content: bytes) -> bytes:
    """Returns a field that holds a message, a string or bytes."""
    return varint(field << 3 | _BYTES) + varint(len(content)) + content


def fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields (number, value) of a message; `ValueError` where it is cut or malformed."""
    at = 0

    def read() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(content) or shift > 63:
                raise ValueError("a protocol buffer is cut short or malformed")
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(content):
        key = read()
        kind = key & 7
        if kind == _VARINT:
            yield key >> 3, read()
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if kind == _BYTES:
            size = read()
        if size < 0 or at + size > len(content):
            raise ValueError("a protocol buffer is cut short or malformed")
        yield key >> 3, content[at : at + size]
        at += size


def device_assignment(assignment: DeviceAssignment) -> bytes:
    """Returns a ``DeviceAssignmentProto``."""
    out = integer(1, assignment.num_replicas) + integer(2, assignment.num_partitions)
    for column in zip(*assignment.device_ids, strict=True):
        out += message(3, message(1, b"".join(varint(i) for i in column)))
    return out


def packed(content: bytes) -> list[int]:
    """Returns the integers of a packed repeated field."""
    # Each integer is read as a field of its own, with a key before it.
    out, start = [], 0
    for i, byte in enumerate(content):
        if byte < 0x80:
            out += [v for _, v in fields(b"\x08" + content[start : i + 1]) if isinstance(v, int)]
            start = i + 1
    return out


def read_device_assignment(encoded: bytes) -> DeviceAssignment:
    """Returns the assignment of a ``DeviceAssignmentProto``; `ValueError` if it is malformed."""
    columns = []
    for number, value in fields(encoded):
        if number == 3 and isinstance(value, bytes):
            ids = [packed(v) if isinstance(v, bytes) else [v] for n, v in fields(value) if n == 1]
            columns.append([i for part in ids for i in part])
    return DeviceAssignment(tuple(zip(*columns, strict=True)))


def _override(name: str, value: str | bool | int | float) -> bytes:
    if isinstance(value, bool):
        encoded = integer(2, value)
    elif isinstance(value, int):
        encoded = integer(3, value)
    elif isinstance(value, float):
        encoded = varint(4 << 3 | _FIXED64) + struct.pack("<d", value)
    elif isinstance(value, str):
        encoded = message(1, value.encode())
    else:
        raise InvalidArgument(
            f"the compiler option {name!r} is {value!r}; a string, bool, integer or float "
            "was expected"
        )
    return message(7, message(1, name.encode()) + message(2, encoded))


def compile_options(options: CompileOptions) -> bytes:
    """Returns a ``CompileOptionsProto``; ``options.encoded`` as it is."""
    if options.encoded is not None:
        return options.encoded
    build = integer(4, options.num_replicas) + integer(5, options.num_partitions)
    if options.use_spmd_partitioning:
        build += integer(6, 1)
    if options.device_assignment is not None:
        build += message(9, device_assignment(options.device_assignment))
    if options.use_shardy_partitioner:
        build += integer(19, 1)
    out = message(3, build)
    if options.parameter_is_tupled:
        out = integer(2, 1) + out
    overrides: Mapping[str, str | bool | int | float] = options.env_overrides
    return out + b"".join(_override(*item) for item in overrides.items())


def checked_options(options: CompileOptions) -> bytes:
    """Returns a ``CompileOptionsProto`` that names its replicas and partitions.

    Raises `InvalidArgument` when ``options.encoded`` does not: a real library aborts on that.
    """
    encoded = compile_options(options)
    if not has_counts(encoded):
        raise InvalidArgument(
            "the encoded CompileOptionsProto names no positive num_replicas and num_partitions "
            "in its executable_build_options"
        )
    return encoded


def has_counts(encoded: bytes) -> bool:
    """Whether an encoded ``CompileOptionsProto`` names at least one replica and partition.

    Bytes that are no protocol buffer count as if they did: libraries refuse those cleanly.
    """
    try:
        build = b"".join(v for n, v in fields(encoded) if n == 3 and isinstance(v, bytes))
        counts = {n: v for n, v in fields(build) if n in (4, 5) and isinstance(v, int)}
    except ValueError:
        return True
    return all(0 < counts.get(n, 0) < 1 << 31 for n in (4, 5))
