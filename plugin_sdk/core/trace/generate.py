"""Makes ``descriptors.h`` from the declarations of `plugrt.capi.abi`, for the tracer in C.

Run ``python plugin_sdk/core/trace/generate.py`` after a change there; a test keeps them in step.
Each function is described by its name and its fields: where they lie, what they are, and who owns
the handles in them. The tracer reads nothing else, so that a new function needs no C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from plugrt.capi.abi import declarations as d
from plugrt.capi.abi.declarations.extensions import EXTENSION_OPAQUE
from plugrt.capi.abi.declarations.types import OPAQUE
from plugrt.capi.abi.ownership import CREATES, DESTROYS, MAY_BE_NULL

TARGET = Path(__file__).with_name("descriptors.h")
TABLES = 8
"""How many libraries a process can trace: each function has so many entry points."""

SCALARS = {
    "int": "INT32",
    "int32_t": "INT32",
    "int64_t": "INT64",
    "intptr_t": "INT64",
    "size_t": "SIZE",
    "uint64_t": "SIZE",
    "uintptr_t": "SIZE",
    "bool": "BOOL",
}
POINTERS = {"int64_t": "DIMS", "Program": "PROGRAM", "NamedValue": "NAMED_VALUES"}
BYTES = re.compile(r"serialized|compile_options|code|proto|handle")
COUNTS = {
    ("Transfers_Client_CrossHostReceiveBuffers", "buffers"): "num_shapes",
    ("Transfers_Client_CrossHostSendBuffers", "send_events"): "num_buffers",
}
"""The fields with the length of an array, where neither name nor place says which."""


@cache
def handle_types() -> list[str]:
    """Returns the types of handles. A pointer that comes with a function that frees it is no
    handle.
    """
    fields = " ".join(field for function in functions() for field in function.fields)
    with_deleter = set(re.findall(r"deleter\)\(\s*(\w+)\*", fields))
    names = [n for n in (*OPAQUE, *EXTENSION_OPAQUE) if re.search(rf"\b{n}\*", fields)]
    return [name for name in names if name not in with_deleter]


def functions() -> list[d.Entry]:
    """Returns every function: ``PJRT_Api``'s in the order of slots, then the extensions'."""
    return [*d.functions(), *(e for t in d.EXTENSIONS.values() for e in d.entries(t))]


def _type_of(field: str) -> str:
    name = d.field_name(field)
    return field.removesuffix(name).strip().removeprefix("const ")


_FIELD_MACROS = """\
#define ARGS(function) struct PJRT_##function##_Args
#define COUNTED(function, name, kind, flags, detail, count) \\
  {#name, kind, flags, detail, offsetof(ARGS(function), name), \\
   sizeof(((ARGS(function) *)0)->name), offsetof(ARGS(function), count)}
#define FIELD(function, name, kind, flags, detail) \\
  {#name, kind, flags, detail, offsetof(ARGS(function), name), \\
   sizeof(((ARGS(function) *)0)->name), 0}"""


class Fields:
    """Describes the fields of one function's argument struct."""

    def __init__(self, function: d.Entry) -> None:
        self.function = function
        self.names = [d.field_name(field) for field in function.fields]

    def lines(self) -> Iterator[str]:
        """Yields the initializer of each."""
        for field, name in zip(self.function.fields, self.names, strict=True):
            kind, detail = self._kind(field, name)
            count = self._count(field, name, kind)
            if kind in ("STRING", "DIMS") and not count:
                kind = "OPAQUE"
            told = f"{self.function.name}, {name}, {kind}, {self._flags(name)}, {detail}"
            yield f"  COUNTED({told}, {count})," if count else f"  FIELD({told}),"

    def _kind(self, field: str, name: str) -> tuple[str, str]:
        if "(*" in field:
            return "OPAQUE", "0"
        type_name = _type_of(field)
        base = type_name.replace("*", "").replace("const", "").strip()
        if type_name.endswith("*") and base in handle_types():
            stars = type_name.count("*")
            kinds = {1: "HANDLE", 2: "HANDLES", 3: "LISTS"}
            kind = "RESULT_LISTS" if name == "output_lists" else kinds[stars]
            return kind, f"TYPE_{base}"
        if type_name == "char*":
            return ("BYTES" if BYTES.search(name) else "STRING"), "0"
        if type_name.endswith("*") and base in POINTERS and type_name.count("*") == 1:
            return POINTERS[base], "0"
        if type_name in d.ENUMS:
            return "ENUM", f"ENUM_{type_name}"
        return SCALARS.get(type_name, "OPAQUE"), "0"

    def _count(self, field: str, name: str, kind: str) -> str:
        if kind not in ("HANDLES", "STRING", "BYTES", "DIMS", "NAMED_VALUES"):
            return ""
        told = COUNTS.get((self.function.name, name))
        for candidate in (told, f"{name}_size", f"num_{name}", name.replace("dims", "num_dims")):
            if candidate in self.names and candidate != name:
                return str(candidate)
        if kind in ("STRING", "BYTES"):
            return ""
        place = self.names.index(name)
        for near in range(max(place - 1, 0), place + 2)[::-1]:
            lengths = self.function.fields[near : near + 1]
            # Dimensions of several arrays in one have no field with their number.
            fits = kind != "DIMS" or "dims" in "".join(lengths)
            if fits and "".join(lengths).startswith("size_t "):
                return self.names[near]
        return "num_devices" if name == "device_complete_events" else ""

    def _flags(self, name: str) -> str:
        function = self.function
        flags = [
            ("OUT", name in function.outputs or name in CREATES.get(function.name, ())),
            ("OWNED", name in CREATES.get(function.name, ())),
            ("DESTROYED", DESTROYS.get(function.name) == name),
            ("MAY_BE_NULL", name in MAY_BE_NULL.get(function.name, ())),
        ]
        return " | ".join(flag for flag, is_set in flags if is_set) or "0"


def _names(prefix: str, names: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return f"enum {{ {', '.join(f'{prefix}_{name}' for name in names)}, {prefix}_COUNT }};"


def _texts(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def descriptors_h() -> str:
    """Returns the header with the descriptors of all functions."""
    types, members = handle_types(), functions()
    out = [
        "/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */",
        f"#define MOST_TABLES {TABLES}",
        _names("TYPE", types),
        _names("ENUM", tuple(d.ENUMS)),
        _names("FUNCTION", [entry.name for entry in members]),
        f"enum {{ API_FUNCTIONS = {len(d.functions())} }};",
        "#ifdef DESCRIBE",
        _FIELD_MACROS,
        f"const char *const type_names[] = {{{_texts(types)}}};",
    ]
    for name, values in d.ENUMS.items():
        out.append(f"static const char *const names_{name}[] = {{{_texts(values)}}};")
    out.append("const Enumeration enumerations[] = {")
    out += [f"  {{names_{name}, {len(values)}}}," for name, values in d.ENUMS.items()]
    out.append("};")
    for entry in members:
        if entry.fields:
            out += [f"static const Field fields_{entry.name}[] = {{", *Fields(entry).lines(), "};"]
    out.append("const Function functions[] = {")
    out += map(_function, members)
    out += ["};", "const Extension extensions[] = {"]
    first = len(d.functions())
    for name, table in d.EXTENSIONS.items():
        count = len(list(d.entries(table)))
        out.append(f'  {{"{name}", PJRT_Extension_Type_{name}, {first}, {count}}},')
        first += count
    out += ["};", f"const size_t num_extensions = {len(d.EXTENSIONS)};", "#endif", "#ifdef THUNKS"]
    rows = [
        f"  {'FUNCTION' if entry.returns_error else 'PROCEDURE'}(table, {number})"
        for number, entry in enumerate(members)
    ]
    out += ["#define EACH_FUNCTION(table, FUNCTION, PROCEDURE) \\", " \\\n".join(rows), "#endif"]
    return "\n".join(out) + "\n"


def _function(entry: d.Entry) -> str:
    fields = f"fields_{entry.name}" if entry.fields else "NULL"
    return (
        f'  {{"{entry.name}", {fields}, {len(entry.fields)}, {8 * entry.header}, '
        f"sizeof(struct PJRT_{entry.name}_Args), {entry.since}, {int(entry.returns_error)}}},"
    )


if __name__ == "__main__":
    TARGET.write_text(descriptors_h(), encoding="utf-8")
