"""Reads the sections of MLIR bytecode, without jaxlib: its strings and its narrow types.

The format is https://mlir.llvm.org/docs/BytecodeFormat/. Truncated bytes raise `IndexError` or
`ValueError`.
"""

from __future__ import annotations

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
    content = _sections(code).get(_STRINGS)
    if content is None:
        return []
    [count], at = _numbers(content, 0, 1)
    _, at = _numbers(content, at, count)  # their lengths, unused: a NUL ends each string
    return content[at:].split(b"\0", count)[:count]


def narrow_types(code: bytes) -> set[str]:
    """Returns the element types of two and four bits in bytecode, in StableHLO's spelling."""
    sections = _sections(code)
    offsets, content = sections[_OFFSETS], sections[_TYPES]
    portable = b"StableHLO_v" in code[:64]
    [attributes, _], at = _numbers(offsets, 0, 2)
    found: set[str] = set()
    place = seen = 0
    while at < len(offsets):
        [_, count], at = _numbers(offsets, at, 2)  # the first is the dialect
        sizes, at = _numbers(offsets, at, count)
        for size in sizes:  # the lowest bit: whether it is in the dialect's form
            if seen >= attributes and 0 < size >> 1 <= 2:
                encoded = content[place : place + (size >> 1)]
                name = _portable(encoded) if portable else _builtin(encoded)
                found |= {name} if name else set()
            place += size >> 1
            seen += 1
    return found


def _portable(encoded: bytes) -> str | None:
    [kind], _ = _numbers(encoded, 0, 1)
    return _OF_STABLEHLO.get(kind)


def _builtin(encoded: bytes) -> str | None:
    [kind], at = _numbers(encoded, 0, 1)
    if kind == _INTEGER and at < len(encoded):
        [width], _ = _numbers(encoded, at, 1)
        return _OF_MLIR.get(width)
    return "f4E2M1FN" if kind == _FLOAT4 and at == len(encoded) else None


def _sections(code: bytes) -> dict[int, bytes]:
    """Returns the content of each section by its number."""
    found: dict[int, bytes] = {}
    _, at = _numbers(code, len(MAGIC), 1)  # its version
    at = code.index(b"\0", at) + 1  # its producer
    while at < len(code):
        section = code[at]
        [length], at = _numbers(code, at + 1, 1)
        if section & _HAS_ALIGNMENT:
            [alignment], at = _numbers(code, at, 1)
            at += -at % alignment
        found[section & ~_HAS_ALIGNMENT] = code[at : at + length]
        at += length
    return found


def _numbers(code: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Returns ``count`` integers of variable width and the position after them.

    The number of trailing zero bits in an integer's first byte is the number of bytes after it.
    """
    found: list[int] = []
    for _ in range(count):
        more = 8 if code[at] == 0 else (code[at] & -code[at]).bit_length() - 1
        end = at + 1 + more
        found.append(int.from_bytes(code[at:end], "little") >> (more + 1))
        at = end
    return found, at
