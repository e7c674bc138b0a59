"""Reads the sections of MLIR bytecode, without jaxlib: its strings and its narrow types.

The format is https://mlir.llvm.org/docs/BytecodeFormat/. What ends too early raises `IndexError` or
`ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = b"ML\xefR"
_STRINGS, _TYPES, _OFFSETS = 0, 2, 3
_HAS_ALIGNMENT = 0x80

_OF_STABLEHLO = {31: "i2", 32: "ui2", 10: "i4", 15: "ui4", 37: "f4E2M1FN"}
"""Codes of VHLO's types, which never change: ``stablehlo/dialect/VhloBytecode.cpp``."""
_INTEGER = 0
_OF_MLIR = {8: "i2", 10: "ui2", 16: "i4", 18: "ui4"}
"""The width of an integer and two bits for its signedness."""
_FLOAT4 = 29
"""MLIR's own code of ``f4E2M1FN``."""


def strings(code: bytes) -> list[bytes]:
    """Returns the strings of bytecode."""
    for number, content in _sections(code):
        if number == _STRINGS:
            count, at = _number(content, 0)
            for _ in range(count):  # their lengths, which end them as well as their last byte
                _, at = _number(content, at)
            return content[at:].split(b"\0", count)[:count]
    return []


def narrow_types(code: bytes) -> set[str]:
    """Returns which element types of two and four bits are in bytecode, in StableHLO's spelling."""
    sections = dict(_sections(code))
    offsets, content = sections[_OFFSETS], sections[_TYPES]
    portable = b"StableHLO_v" in code[:64]
    attributes, at = _number(offsets, 0)
    _, at = _number(offsets, at)
    found: set[str] = set()
    place = seen = 0
    while at < len(offsets):
        _, at = _number(offsets, at)  # the dialect
        count, at = _number(offsets, at)
        for _ in range(count):
            size, at = _number(offsets, at)  # the lowest bit: whether it is in the dialect's form
            if seen >= attributes and 0 < size >> 1 <= 2:
                encoded = content[place : place + (size >> 1)]
                name = _portable(encoded) if portable else _builtin(encoded)
                found |= {name} if name else set()
            place += size >> 1
            seen += 1
    return found


def _portable(encoded: bytes) -> str | None:
    return _OF_STABLEHLO.get(_number(encoded, 0)[0])


def _builtin(encoded: bytes) -> str | None:
    kind, at = _number(encoded, 0)
    if kind == _INTEGER and at < len(encoded):
        return _OF_MLIR.get(_number(encoded, at)[0])
    return "f4E2M1FN" if kind == _FLOAT4 and at == len(encoded) else None


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the content of each section."""
    at = len(MAGIC)
    _, at = _number(code, at)  # its version
    at = code.index(b"\0", at) + 1  # its producer
    while at < len(code):
        section = code[at]
        length, at = _number(code, at + 1)
        if section & _HAS_ALIGNMENT:
            alignment, at = _number(code, at)
            at += -at % alignment
        yield section & ~_HAS_ALIGNMENT, code[at : at + length]
        at += length


def _number(code: bytes, at: int) -> tuple[int, int]:
    """Returns an integer of variable width and the position after it.

    The zeros below the lowest bit of the first byte say how many bytes follow.
    """
    more = 8 if code[at] == 0 else (code[at] & -code[at]).bit_length() - 1
    value = int.from_bytes(code[at : at + 1 + more], "little") >> (more + 1)
    return value, at + 1 + more
