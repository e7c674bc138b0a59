"""Makes ``pjrt.h`` and ``slots.h`` from the declarations of `plugrt.capi.abi`, for the core in C.

Run ``python plugin_sdk/core/generate.py`` after a change there; a test keeps them in step.
"""

from __future__ import annotations

from pathlib import Path

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import cdef

HERE = Path(__file__).parent
MADE = "/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */\n"
EXTENSIONS = ("Shardings", "Layouts", "MemoryDescriptions", "AbiVersion")
"""The extensions that the core offers."""


def pjrt_h() -> str:
    """Returns the header with all types of the PJRT C API."""
    includes = "".join(f"#include <std{name}.h>\n" for name in ("bool", "def", "int"))
    enums = (
        f"enum {{ {', '.join(f'PJRT_{name}_{value}' for value in values)} }};"
        for name, values in declarations.ENUMS.items()
    )
    version = (
        f"#define PJRT_API_MAJOR {declarations.API_MAJOR}\n"
        f"#define PJRT_API_MINOR {declarations.API_MINOR}\n"
        f"#define PJRT_API_OLDEST_MINOR {declarations.OLDEST_MINOR}\n"
    )
    text = "\n".join((includes + version + cdef(), *enums))
    return f"{MADE}#ifndef PLUGRT_PJRT_H\n#define PLUGRT_PJRT_H\n{text}\n#endif\n"


def _slots(name: str, entries: list[declarations.Entry]) -> str:
    slots = (f"  SLOT({e.name}, {e.since})" for e in entries if e.returns_error)
    return f"#define {name}(SLOT) \\\n" + " \\\n".join(slots) + "\n"


def slots_h() -> str:
    """Returns the header with a macro for each table: its functions that return an error.

    ``SLOT(name, since)`` is expanded for each, in the order of the table.
    """
    tables = {
        name: list(declarations.entries(declarations.EXTENSIONS[name])) for name in EXTENSIONS
    }
    lists = [_slots("PJRT_SLOTS", declarations.functions())]
    lists += [_slots(f"PJRT_{name.upper()}_SLOTS", table) for name, table in tables.items()]
    return MADE + "\n".join(lists)


FILES = {"pjrt.h": pjrt_h, "slots.h": slots_h}

if __name__ == "__main__":
    for name, text in FILES.items():
        (HERE / name).write_text(text(), encoding="utf-8")
