"""Makes ``_abi.py``, ``_handles.py`` and ``_grown.py`` from `plugrt.capi.abi.declarations`.

Run ``python -m plugrt.capi.abi.generate`` after a change there; a test keeps the two in step.
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path

from plugrt.capi.abi import declarations as d
from plugrt.capi.abi.declarations.extensions import (
    EXTENSION_OPAQUE,
    EXTENSION_STRUCTS,
    PROFILER,
)
from plugrt.capi.abi.declarations.ffi_handler import FFI_HANDLER
from plugrt.capi.abi.declarations.types import CALLBACKS, OPAQUE

MODULE = "plugrt.capi.abi._abi"
TARGET = Path(__file__).with_name("_abi.py")
HANDLES_TARGET = Path(__file__).with_name("_handles.py")
GROWN_TARGET = Path(__file__).with_name("_grown.py")


def _add_prefix(text: str, prefix: str = "PJRT_") -> str:
    """Returns C text with the prefix before each type name (those begin with a capital)."""
    return re.sub(r"\b(?!PJRT_|PLUGIN_|XLA_)(?=[A-Z])", prefix, text)


def _struct(name: str, entry: d.Entry, prefix: str = "PJRT_") -> str:
    header = ("size_t struct_size;", "PJRT_Extension_Base* extension_start;")[: entry.header]
    if prefix != "PJRT_":
        header = ("size_t struct_size;",)
    fields = " ".join(f"{_add_prefix(f, prefix)};" for f in entry.fields)
    # uint8_t for bool: the byte that a library writes may hold any value.
    fields = re.sub(r"\bbool\b", "uint8_t", fields)
    return f"struct {name} {{ {' '.join(header)} {fields} }};"


def _function(entry: d.Entry, prefix: str = "PJRT_") -> str:
    result = f"{prefix}Error*" if entry.returns_error else "void"
    return f"{result} (*{entry.name})(struct {prefix}{entry.name}_Args*);"


def _callback(name: str, signature: str) -> str:
    return "typedef " + _add_prefix(signature).replace("(*)", f"(*PJRT_{name})", 1) + ";"


def _table(name: str, first: str, members: list[d.Entry], prefix: str = "PJRT_") -> list[str]:
    lines = [_struct(f"{prefix}{e.name}_Args", e, prefix) for e in members]
    slots = "\n  ".join(_function(e, prefix) for e in members)
    return [*lines, f"typedef struct {{ {first}\n  {slots}\n}} {name};"]


def cdef() -> str:
    """Returns the C declarations of the whole API, for cffi."""
    structs = [*d.entries(d.STRUCTS), *d.entries(EXTENSION_STRUCTS)]
    members = d.functions()
    out = [f"typedef int PJRT_{name};" for name in d.ENUMS]
    out += [f"typedef struct PJRT_{name} PJRT_{name};" for name in (*OPAQUE, *EXTENSION_OPAQUE)]
    out += [f"typedef struct PJRT_{e.name} PJRT_{e.name};" for e in structs]
    out += [
        "typedef struct PJRT_Extension_Base { size_t struct_size; PJRT_Extension_Type type; "
        "struct PJRT_Extension_Base* next; } PJRT_Extension_Base;",
        "typedef struct { size_t struct_size; PJRT_Extension_Base* extension_start; "
        "int major_version; int minor_version; } PJRT_Api_Version;",
    ]
    out += [_callback(*item) for item in CALLBACKS.items()]
    out += [_struct(f"PJRT_{e.name}", e) for e in structs]
    first = (
        "size_t struct_size; PJRT_Extension_Base* extension_start; "
        "PJRT_Api_Version pjrt_api_version;"
    )
    out += _table("PJRT_Api", first, members)
    for name, table in d.EXTENSIONS.items():
        extension = f"PJRT_{name}_Extension"
        out += _table(extension, "PJRT_Extension_Base base;", list(d.entries(table)))
    out += [f"typedef struct PLUGIN_Profiler_{n} PLUGIN_Profiler_{n};" for n in _PROFILER_HANDLES]
    profiler_first = "size_t struct_size; void* priv;"
    profiler = list(d.entries(PROFILER))
    out += _table("PLUGIN_Profiler_Api", profiler_first, profiler, "PLUGIN_Profiler_")
    out += [
        "typedef struct { PJRT_Extension_Base base; PLUGIN_Profiler_Api* profiler_api; "
        "int64_t traceme_context_id; } PJRT_Profiler_Extension;",
        FFI_HANDLER,
        DLPACK,
        "const PJRT_Api* GetPjrtApi(void);",
    ]
    return "\n".join(out)


def c_header(comment: str) -> str:
    """Returns the declarations as a C header that begins with ``comment``, with the enums."""
    includes = "".join(f"#include <std{name}.h>\n" for name in ("bool", "def", "int"))
    enums = (
        f"enum {{ {', '.join(f'PJRT_{name}_{value}' for value in values)} }};"
        for name, values in d.ENUMS.items()
    )
    version = (
        f"#define PJRT_API_MAJOR {d.API_MAJOR}\n"
        f"#define PJRT_API_MINOR {d.API_MINOR}\n"
        f"#define PJRT_API_OLDEST_MINOR {d.OLDEST_MINOR}\n"
    )
    text = "\n".join((includes + version + cdef(), *enums))
    return f"{comment}#ifndef PLUGRT_PJRT_H\n#define PLUGRT_PJRT_H\n{text}\n#endif\n"


DLPACK = """
typedef struct {
  void* data; int32_t device_type; int32_t device_id; int32_t ndim; uint8_t code; uint8_t bits;
  uint16_t lanes; int64_t* shape; int64_t* strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor; void* manager_ctx; void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
"""
"""DLPack's tensor, as https://dmlc.github.io/dlpack/latest/c_api.html lays it out."""

_PROFILER_HANDLES = ("Error", "Profiler", "ConsumeResult")

_HANDLE = re.compile(r"(?:const )?(\w+)\* (\w+)")


def handles() -> dict[str, tuple[str, ...]]:
    """Maps each argument struct to the fields in which its function returns a handle.

    Pointers that are returned together with a function that frees them are no handles, and may be
    NULL.
    """
    members = [*d.functions(), *(e for t in d.EXTENSIONS.values() for e in d.entries(t))]
    opaque = {*OPAQUE, *EXTENSION_OPAQUE}
    found = {f"PJRT_{e.name}_Args": _handle_fields(e, opaque) for e in members}
    for entry in d.entries(PROFILER):
        fields = _handle_fields(entry, {*_PROFILER_HANDLES})
        found[f"PLUGIN_Profiler_{entry.name}_Args"] = fields
    return {struct: fields for struct, fields in found.items() if fields}


def _handle_fields(entry: d.Entry, handle_types: set[str]) -> tuple[str, ...]:
    deleters = " ".join(f for f in entry.fields if "deleter" in d.field_name(f))
    matches = filter(None, map(_HANDLE.fullmatch, entry.fields))
    return tuple(
        field
        for handle_type, field in (match.groups() for match in matches)
        if handle_type in handle_types
        and field in entry.outputs
        and f"{handle_type}*" not in deleters
    )


def handles_module() -> str:
    """Returns the text of the module ``_handles.py``."""
    lines = (f'    "{name}": {fields!r},' for name, fields in handles().items())
    return f"""# Made by plugrt.capi.abi.generate from the declarations; do not edit.
\"""Maps each argument struct to the fields in which its function returns a handle.\"""

HANDLES: dict[str, tuple[str, ...]] = {{
{chr(10).join(lines)}
}}
""".replace("'", '"')


def grown() -> dict[str, tuple[tuple[int, str], ...]]:
    """Returns each struct that has grown, with its `declarations.Entry.ends`."""
    members = [*d.functions(), *(e for t in d.EXTENSIONS.values() for e in d.entries(t))]
    structs = [*d.entries(d.STRUCTS), *d.entries(EXTENSION_STRUCTS)]
    found = {f"PJRT_{e.name}_Args": e.ends for e in members}
    found |= {f"PJRT_{e.name}": e.ends for e in structs}
    return {struct: ends for struct, ends in found.items() if ends}


def grown_module() -> str:
    """Returns the text of the module ``_grown.py``."""
    lines = []
    for name, ends in grown().items():
        lines += [f'    "{name}": (', *(f"        {end!r}," for end in ends), "    ),"]
    headers = []
    for key, known in d.HEADERS.items():
        headers += [f"    {key!r}: (", *(f"        {header!r}," for header in known), "    ),"]
    since = ", ".join(str(entry.since or d.OLDEST_MINOR) for entry in d.functions())
    return f"""# Made by plugrt.capi.abi.generate from the declarations; do not edit.
# ruff: noqa: E501
\"""Struct to (minor, field): before that minor version its stated size ends with that field.\"""

GROWN: dict[str, tuple[tuple[int, str], ...]] = {{
{chr(10).join(lines)}
}}

HEADERS: dict[tuple[int, int], tuple[dict[str, str], ...]] = {{
{chr(10).join(headers)}
}}
\"""(minor, functions in the table) to the structs of each header whose size ends otherwise.\"""

SINCE: tuple[int, ...] = (
{textwrap.indent(textwrap.fill(since, 90), "    ")},
)
\"""The minor version of each function of the table; none is older than the oldest.\"""
""".replace("'", '"')


def generate(target: Path = TARGET) -> None:
    """Writes the out-of-line module and, beside it, ``_handles.py`` and ``_grown.py``.

    Needs pycparser (a dependency of cffi), but no compiler.
    """
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(cdef())
    ffi.set_source(MODULE, None)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.py"
        ffi.emit_python_code(str(made))
        target.write_text("# ruff: noqa\n" + made.read_text())
    target.with_name(HANDLES_TARGET.name).write_text(handles_module())
    target.with_name(GROWN_TARGET.name).write_text(grown_module())


if __name__ == "__main__":
    generate()
