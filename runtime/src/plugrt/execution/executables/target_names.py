"""Whether the bytes of a program name a custom call target, in each form that programs have.

A name within a longer one is none: a program that calls ``scale_10`` does not call ``scale_1``.
"""

from __future__ import annotations

import re

from plugrt.interface import Program
from plugrt.wire import mlir_bytecode
from plugrt.wire.protobuf import varint

_SYMBOL = rb"[\w$.-]"


def named_targets(program: Program, targets: list[str]) -> list[str]:
    """Returns those of ``targets`` that a program may call, in their order."""
    code = program.code
    near = [target for target in targets if _contains(code, target)]
    if not near:
        return near
    if program.format != "mlir":  # a string of a protocol buffer follows its length
        return [x for x in near if varint(len(x.encode())) + x.encode() in code]
    if code.startswith(mlir_bytecode.MAGIC):
        try:
            strings = set(mlir_bytecode.strings(code))
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
