"""The PJRT C API in this project's own words: the one place that states its layout.

A table has one entry a function (or a struct), and an entry reads::

    slot[@since] Name: type field; type field; =type field; @since type field

``slot`` is the 1-based position in the table of functions, ``since`` the minor version that brought
it (those without were there before 0.29, the oldest version accepted), ``=`` marks fields that the
library fills in. ``@since`` before a field: in the headers of earlier minor versions the size that
a struct states ends before that field. A few of them had the field already without a larger
stated size, which a strict library compares all the same. Where headers of one minor version
differ, the mark names the first with the field, and `HEADERS` has the others. Names lack their
prefix ``PJRT_``. Each function takes one pointer to a struct ``PJRT_<Name>_Args`` that begins with
``size_t struct_size`` and ``extension_start``; a leading ``!`` means that ``extension_start`` is
missing, ``~`` that both are. A function returns an error, or nothing where ``void`` precedes its
name.

plugrt does not import this at run time: `plugrt.capi.abi.generate` makes the module ``_abi.py``
from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from plugrt.capi.abi.declarations.buffer import BUFFER
from plugrt.capi.abi.declarations.client import CLIENT
from plugrt.capi.abi.declarations.device import DEVICE
from plugrt.capi.abi.declarations.executable import EXECUTABLE
from plugrt.capi.abi.declarations.extensions import EXTENSIONS
from plugrt.capi.abi.declarations.types import BASICS, ENUMS, STRUCTS

API_MAJOR = 0
API_MINOR = 114
"""The version that the declarations describe."""

OLDEST_MINOR = 29
"""The oldest minor version of a library that hosts accept."""

HEADERS: dict[tuple[int, int], tuple[dict[str, str], ...]] = {
    (61, 104): (
        {"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},
        {"PJRT_Client_Create_Args": "client"},
        {
            "PJRT_Client_Create_Args": "client",
            "PJRT_ExecuteOptions": "num_non_donatable_input_indices",
        },
    ),
    (62, 104): ({},),
    (62, 110): ({"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},),
    (63, 110): ({"PJRT_ExecuteOptions": "num_non_donatable_input_indices"},),
    (65, 110): ({}, {"PJRT_Client_CreateViewOfDeviceBuffer_Args": "buffer"}),
    (71, 113): (
        {},
        {
            "PJRT_Plugin_Attributes_Args": "attributes",
            "PJRT_Executable_DeserializeAndLoad_Args": "loaded_executable",
        },
    ),
}
"""(minor version, functions in the table) to the headers that had both, where the marks are not
enough: struct to the last field of its size, where the marks say otherwise.

Measured: each version of the header in public copies of openxla/xla from 0.29 to 0.114. In 0.44 the
arguments of a function differ that hosts do not call before 0.57.
"""

_ENTRY = re.compile(
    r"(?:(?P<slot>\d+)(?:@(?P<since>\d+))? )?(?P<mark>[!~]?)(?P<void>void )?(?P<name>\w+):"
    r"(?P<fields>.*)"
)
_FIELD = re.compile(r"(?:@(?P<since>\d+) )?(?P<output>=?)(?P<text>[^@=].*)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One function with its argument struct, or one struct."""

    name: str
    fields: tuple[str, ...]
    outputs: frozenset[str]
    slot: int = 0
    since: int = 0
    returns_error: bool = True
    header: int = 2
    """How many of ``struct_size`` and ``extension_start`` it begins with."""
    ends: tuple[tuple[int, str], ...] = ()
    """(minor, field): before that minor version the size that is stated ends with that field."""


def field_name(declaration: str) -> str:
    """Returns the name that a C declaration declares, ``""`` for an unnamed union."""
    if declaration.startswith("union"):
        return ""
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    return pointer.group(1) if pointer else declaration.split()[-1].lstrip("*")


def split_fields(fields: str) -> Iterator[str]:
    """Yields the declarations of a struct's body, nested braces and parentheses kept whole."""
    depth, start = 0, 0
    for i, char in enumerate(fields):
        depth += (char in "({") - (char in ")}")
        if char == ";" and depth == 0:
            yield fields[start:i].strip()
            start = i + 1
    if fields[start:].strip():
        yield fields[start:].strip()


def _read_field(declaration: str) -> re.Match[str]:
    match = _FIELD.fullmatch(declaration)
    if match is None:
        raise ValueError(f"cannot read the declaration of a field {declaration!r}")
    return match


def entries(table: str) -> Iterator[Entry]:
    """Yields the entries of a table in its own order; a malformed one raises `ValueError`."""
    text = re.sub(r"\n\s+", " ", table)
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _ENTRY.fullmatch(line)
        if match is None:
            raise ValueError(f"cannot read the declaration {line!r}")
        parts = [_read_field(part) for part in split_fields(match["fields"])]
        names = [field_name(part["text"]) for part in parts]
        yield Entry(
            name=match["name"],
            fields=tuple(part["text"] for part in parts),
            outputs=frozenset(n for n, part in zip(names, parts, strict=True) if part["output"]),
            ends=tuple(
                (int(part["since"]), last)
                for last, part in zip(names, parts[1:], strict=False)
                if part["since"]
            ),
            slot=int(match["slot"] or 0),
            since=int(match["since"] or 0),
            returns_error=not match["void"],
            header=2 - " !~".index(match["mark"] or " "),
        )


def functions() -> list[Entry]:
    """Returns all functions of ``PJRT_Api`` in slot order."""
    chapters = (BASICS, CLIENT, DEVICE, EXECUTABLE, BUFFER)
    return sorted((e for c in chapters for e in entries(c)), key=lambda e: e.slot)


__all__ = [
    "API_MAJOR", "API_MINOR", "ENUMS", "EXTENSIONS", "HEADERS", "OLDEST_MINOR", "STRUCTS", "Entry",
    "entries", "field_name", "functions", "split_fields",
]  # fmt: skip
