"""Reads MLIR's errors and locations: messages with notes, files and lines, names."""

from __future__ import annotations

import re
from typing import Any

from plugrt.stablehlo.bindings import ir

_FILE_AND_LINE = re.compile(r'"([^"]+)":(\d+):\d+')
_NAME = re.compile(r'loc\("(.*)"\)$')


def file_and_line(location: ir.Location) -> tuple[str, str] | None:
    """Returns the file and the line of a location; None if it names none."""
    found = _FILE_AND_LINE.search(str(location))
    return (found[1], found[2]) if found else None


def name_at(location: ir.Location) -> str:
    """Returns the name of a location that is only a name, as of a parameter; else ``""``."""
    found = _NAME.search(str(location))
    return found[1].replace('\\"', '"') if found else ""


_LONGEST_NOTE = 300
"""In characters: MLIR may print a whole function."""
_PLACE = re.compile(r'(?:"([^"]*)")?:(\d+):(\d+)\)?$')


def explain(error: BaseException) -> str:
    """Returns the message of an exception of MLIR's bindings: each diagnostic with its notes."""
    return "; ".join(map(message_of, getattr(error, "error_diagnostics", ()))) or str(error)


def message_of(diagnostic: Any) -> str:
    """Returns the message of a diagnostic, with its notes and their places."""
    said = [_text_of(diagnostic)]
    for note in diagnostic.notes:
        text = " ".join(_text_of(note).split())
        text = text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}…"
        found = _PLACE.search(str(note.location))
        if found is None or found[2] == "0":
            where = ""
        elif found[1] in (None, "", "-"):  # text that was parsed has no name
            where = f" at {found[2]}:{found[3]}"
        else:
            where = f" at {found[1]}:{found[2]}"
        said.append(f"note{where}: {text}")
    return "; ".join(said)


def _text_of(diagnostic: Any) -> str:
    try:
        return str(diagnostic.message)
    except RuntimeError:  # nanobind's; the C++ caller would print it with the raw text
        return "a name in the program is not UTF-8"


def place_of(diagnostic: Any) -> tuple[int, int] | None:
    """Returns the line and the column of a diagnostic; None in bytecode, which has none."""
    found = _PLACE.search(str(diagnostic.location))
    return (int(found[2]), int(found[3])) if found and found[2] != "0" else None
