"""Compares the declarations with an upstream ``pjrt_c_api.h``: additions and conflicts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from plugrt.capi.abi import declarations as d
from plugrt.capi.abi.declarations import field_name

_HEADER_FIELDS = ("struct_size", "extension_start")


@dataclass(slots=True)
class HeaderDiff:
    """A library of that header is compatible if ``conflicts`` is empty.

    ``added`` is only in the header, ``older`` only in the declarations.
    """

    version: tuple[int, int]
    added: list[str] = field(default_factory=list)
    older: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def _strip_comments(text: str) -> str:
    """Returns C text without comments and preprocessor lines."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def _normalize(declaration: str) -> str:
    """Returns a declaration in one spelling: no prefix, no ``struct``, no needless blanks."""
    text = re.sub(r"\bPJRT_|\bstruct\b", "", declaration)
    text = re.sub(r"\s*([*(),;{}])\s*", r"\1", " ".join(text.split()))
    # The names of a function pointer's parameters do not matter.
    return re.sub(r"(?<=[\w*]) ?\b\w+(?=[,)])", "", text) if "(*" in text else text


def _struct_fields(body: str) -> list[str]:
    return list(d.split_fields(body))


def _structs(text: str) -> dict[str, list[str]]:
    """Returns struct name (without prefix) to its field declarations."""
    found: dict[str, list[str]] = {}
    for match in re.finditer(r"\bstruct PJRT_(\w+)\s*\{", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        found.setdefault(match[1], _struct_fields(text[match.end() : end - 1]))
    return found


def _enums(text: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for match in re.finditer(r"typedef enum\s*\w*\s*\{([^}]*)\}\s*PJRT_(\w+)\s*;", text):
        values, next_value = {}, 0
        for item in filter(None, map(str.strip, match[1].split(","))):
            name, _, value = (part.strip() for part in item.partition("="))
            next_value = int(value, 0) if value else next_value
            short = name.removeprefix(f"PJRT_{match[2]}_")
            values[short.removeprefix(f"PJRT_{match[2].removesuffix('_Type')}_")] = next_value
            next_value += 1
        found[match[2]] = values
    return found


def _version(text: str) -> tuple[int, int]:
    numbers = {m[1]: int(m[2]) for m in re.finditer(r"#define PJRT_API_(M\w+) (\d+)", text)}
    return numbers.get("MAJOR", -1), numbers.get("MINOR", -1)


def compare(header: str) -> HeaderDiff:
    """Returns how the text of a header differs from the declarations.

    Raises `ValueError` for other text.
    """
    diff = HeaderDiff(_version(header))
    text = _strip_comments(header)
    slots = re.findall(r"_PJRT_API_STRUCT_FIELD\(\s*PJRT_(\w+)\s*\)", text)
    if not slots or diff.version[1] < 0:
        raise ValueError("this is no pjrt_c_api.h: it has no table of functions and no version")
    _compare_lists(diff, "function", "PJRT_Api", [f.name for f in d.functions()], slots)
    structs = _structs(text)
    ours = {f"{f.name}_Args": f for f in d.functions()}
    ours |= {entry.name: entry for entry in d.entries(d.STRUCTS)}
    for name, entry in ours.items():
        if name in structs:
            _compare_struct(diff, name, entry, structs[name])
    for name in structs:
        known = name in ours or name.endswith("FunctionTable") or name in _OTHER_STRUCTS
        if not known:
            diff.added.append(f"struct PJRT_{name}")
    enums = _enums(text)
    for name, members in d.ENUMS.items():
        if name in enums:
            theirs = [n for n, _ in sorted(enums[name].items(), key=lambda item: item[1])]
            _compare_lists(diff, "enumerator", f"PJRT_{name}", list(members), theirs)
    return diff


_OTHER_STRUCTS = ("Api", "Api_Version", "Extension_Base", "Error", "Memory")
"""Structs that `plugrt.capi.abi.generate` writes itself, or whose fields plugrt does not use."""


def _compare_struct(diff: HeaderDiff, name: str, entry: d.Entry, theirs: list[str]) -> None:
    own = [_normalize(f) for f in entry.fields]
    other = [_normalize(f) for f in theirs]
    headers = [field_name(f) for f in theirs[:2] if field_name(f) in _HEADER_FIELDS]
    if len(headers) != entry.header:
        diff.conflicts.append(f"PJRT_{name} begins with {headers}; {entry.header} fields expected")
        return
    _compare_lists(diff, "field", f"PJRT_{name}", own, other[entry.header :])


def _compare_lists(
    diff: HeaderDiff, what: str, where: str, own: list[str], theirs: list[str]
) -> None:
    """Records where two lists differ: one may only extend the other."""
    for i, (mine, other) in enumerate(zip(own, theirs, strict=False)):
        if mine != other:
            diff.conflicts.append(f"{where}: {what} {i} is {other!r} there and {mine!r} here")
            return
    diff.added += [f"{what} {item!r} of {where}" for item in theirs[len(own) :]]
    diff.older += [f"{what} {item!r} of {where}" for item in own[len(theirs) :]]
