"""Whether the bytes of a program name a custom call target, in each form that programs have.

A name within a longer one is none: a program that calls ``scale_10`` does not call ``scale_1``.
"""

from __future__ import annotations

import re

from plugrt.interface import Program
from plugrt.protobuf import varint

_BYTECODE = b"ML\xefR"
_STRINGS = 0
"""The section of strings in bytecode, https://mlir.llvm.org/docs/BytecodeFormat/."""
_HAS_ALIGNMENT = 0x80
_SYMBOL = rb"[\w$.-]"


def named_targets(program: Program, targets: list[str]) -> list[str]:
    """Returns those of ``targets`` that a program may call, in their order."""
    code = program.code
    near = [target for target in targets if _contains(code, target)]
    if not near:
        return near
    if program.format != "mlir":  # a string of a protocol buffer follows its length
        return [x for x in near if varint(len(x.encode())) + x.encode() in code]
    if code.startswith(_BYTECODE):
        try:
            strings = set(_strings(code))
        except (IndexError, ValueError):  # the compiler says what is wrong with it
            return near
        return [x for x in near if x.encode() in strings]
    return [x for x in near if _in_text(code, x)]


def _contains(code: bytes, target: str) -> bool:
    return target.encode() in code or _escaped(target) in code


def _in_text(code: bytes, target: str) -> bool:
    name = re.escape(target.encode())
    bare = re.search(rb"(?<!%b)%b(?!%b)" % (_SYMBOL, name, _SYMBOL), code)
    return bare is not None or b'"%b"' % _escaped(target) in code


def _escaped(target: str) -> bytes:
    r"""Returns a name as MLIR prints it between quotes: ``\22`` for a quote."""
    quoted = bytearray()
    for c in target.encode():
        quoted += b"\\\\" if c == ord("\\") else bytes([c]) if _is_plain(c) else b"\\%02X" % c
    return bytes(quoted)


def _is_plain(c: int) -> bool:
    return 32 <= c < 127 and c != ord('"')


def _strings(code: bytes) -> list[bytes]:
    """Returns the strings of bytecode; `IndexError` or `ValueError` where it ends too early."""
    at = len(_BYTECODE)
    _, at = _number(code, at)  # its version
    at = code.index(b"\0", at) + 1  # its producer
    while at < len(code):
        section = code[at]
        length, at = _number(code, at + 1)
        if section & _HAS_ALIGNMENT:
            alignment, at = _number(code, at)
            at += -at % alignment
        if section & ~_HAS_ALIGNMENT == _STRINGS:
            count, at = _number(code, at)
            for _ in range(count):  # their lengths, which end them as well as their last byte
                _, at = _number(code, at)
            return code[at:].split(b"\0", count)[:count]
        at += length
    return []


def _number(code: bytes, at: int) -> tuple[int, int]:
    """Returns an integer of variable width and the position after it.

    The zeros below the lowest bit of the first byte say how many bytes follow.
    """
    more = 8 if code[at] == 0 else (code[at] & -code[at]).bit_length() - 1
    value = int.from_bytes(code[at : at + 1 + more], "little") >> (more + 1)
    return value, at + 1 + more
