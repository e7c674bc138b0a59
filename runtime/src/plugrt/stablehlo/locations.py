"""Parsing of MLIR locations: file, line and name."""

from __future__ import annotations

import re

from plugrt.stablehlo.bindings import ir

_FILE_AND_LINE = re.compile(r'"([^"]+)":(\d+):\d+')
_NAME = re.compile(r'loc\("(.*)"\)$')


def file_and_line(location: ir.Location) -> tuple[str, str] | None:
    """Returns the file and the line of a location; None if it names none."""
    found = _FILE_AND_LINE.search(str(location))
    return (found[1], found[2]) if found else None


def name_at(location: ir.Location) -> str:
    """Returns the name of a location that is a name alone, as a parameter's is; else ``""``."""
    found = _NAME.search(str(location))
    return found[1].replace('\\"', '"') if found else ""
