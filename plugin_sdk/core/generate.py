"""Makes ``slots.h`` from the declarations of `plugrt.capi.abi`, for the core in C.

It also makes the two files that list the core's sources, ``sources.h`` for C and
``core_sources.py`` for Python, by which Python recognises a core that was built from other sources.
``pjrt.h`` is a link to the runtime's, copied into an sdist. Run ``python
plugin_sdk/core/generate.py`` after a change there or in the core; a test compares the files. Where
two branches changed the core, git may report a conflict in these files: run this again to resolve
it.
"""

from __future__ import annotations

from pathlib import Path

from plugrt.capi.abi import declarations
from plugrt.native import source_stamps

HERE = Path(__file__).parent
MADE = "/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */\n"
EXTENSIONS = ("Shardings", "Layouts", "MemoryDescriptions", "AbiVersion", "FFI")
"""The extensions that the core offers."""
LATER_FIELDS = {
    "Client_Create": "kv_try_get_callback",
    "Client_CreateErrorBuffer": "payload",
    "Client_CreateViewOfDeviceBuffer": "memory",
    "Device_MemoryStats": "peak_bytes_in_use",
    "Executable_DeserializeAndLoad": "overridden_serialized_compile_options",
    "Executable_GetCompiledMemoryStats": "host_generated_code_size_in_bytes",
    "FFI_Register_Handler": "traits",
    "FFI_Type_Register": "type_info",
}
"""Function to the first field that its arguments got in a later version than the function itself:
a host that was built before need not have it."""


def _last_field(entry: declarations.Entry) -> str:
    """Returns the last field that the arguments of every host must have."""
    names = [declarations.field_name(field) for field in entry.fields]
    if entry.name in LATER_FIELDS:
        names = names[: names.index(LATER_FIELDS[entry.name])]
    return names[-1] if names else "extension_start"


def _slots(name: str, entries: list[declarations.Entry]) -> str:
    slots = (f"  SLOT({e.name}, {e.since}, {_last_field(e)})" for e in entries if e.returns_error)
    return f"#define {name}(SLOT) \\\n" + " \\\n".join(slots) + "\n"


def slots_h() -> str:
    """Returns the header with a macro for each table: its functions that return an error.

    ``SLOT(name, since, last)`` is expanded for each, in the order of the table; ``last`` is the
    last field that the arguments of every host must have.
    """
    tables = {
        name: list(declarations.entries(declarations.EXTENSIONS[name])) for name in EXTENSIONS
    }
    lists = [_slots("PJRT_SLOTS", declarations.functions())]
    lists += [_slots(f"PJRT_{name.upper()}_SLOTS", table) for name, table in tables.items()]
    return MADE + "\n".join(lists)


def sources_h() -> str:
    """Returns the header with the hash of the core's sources."""
    return source_stamps.sources_h(HERE)


def core_sources_py() -> str:
    """Returns the module with the same hash for Python."""
    return source_stamps.core_sources_py(HERE, "plugin_sdk/core/generate.py", "native")


FILES = {"slots.h": slots_h}
"""Beside this file."""

SOURCE_FILES = {
    HERE / source_stamps.HEADER: sources_h,
    HERE.parent / "src/plugrt_sdk/export/core_sources.py": core_sources_py,
}
"""Made last, since the headers are sources too."""

if __name__ == "__main__":
    made = {HERE / name: text for name, text in FILES.items()} | SOURCE_FILES
    for path, text in made.items():
        path.write_text(text(), encoding="utf-8")
