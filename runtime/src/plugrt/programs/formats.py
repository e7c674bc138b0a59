"""Recognises other file formats in place of a program, for error messages."""

from __future__ import annotations

import re

_PICKLE = "a pickle; of what serialize_executable.serialize returns, the bytes alone are a program"
_MAGICS = {
    b"\x93NUMPY": "a NumPy array; arrays are arguments (plugrt run FILE --input ARRAY.npy)",
    b"PK": "a zip archive, such as NumPy's .npz",
    b"\x7fELF": "a library or a program of this system",
    b"\x1f\x8b": "compressed with gzip",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF document",
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
}
_MLIR = re.compile(
    rb"""(?:\s|//.*)*              # blanks and comments
    (?: module | func\.func | "[\w.]+"   # an operation, by its name or in the generic form
      | [#!][\w.$]+\s*= | \{-\# )        # an alias, or resources""",
    re.VERBOSE,
)


def begins_as_mlir(text: bytes) -> bool:
    """Whether text begins like a StableHLO module, so that a parser's error is helpful."""
    return _MLIR.match(text) is not None


def describe_contents(code: bytes) -> str:
    """Returns the recognised format, or the first bytes, for the end of a sentence."""
    for magic, what in _MAGICS.items():
        if code.startswith(magic):
            return f"it is {what}"
    begin = code.lstrip()[:40]
    line = begin.splitlines()[0] if begin.isascii() and begin.strip() else begin[:16]
    shown = repr(line.decode()) if line.isascii() and b"\0" not in line else line.hex(" ")
    return f"it begins with {shown}"
