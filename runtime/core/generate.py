"""Makes ``pjrt.h`` and ``sizes.h`` from the declarations of `plugrt.capi.abi`, for the core in C.

Run ``python runtime/core/generate.py`` after a change there; a test keeps them in step.
"""

from __future__ import annotations

from pathlib import Path

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import c_header

HERE = Path(__file__).parent
MADE = "/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */\n"
USED = (
    "Buffer_CopyToDevice",
    "Buffer_Destroy",
    "Buffer_GetMemoryLayout",
    "Buffer_IsDeleted",
    "Buffer_DecreaseExternalReferenceCount",
    "Buffer_IncreaseExternalReferenceCount",
    "Buffer_OnDeviceSizeInBytes",
    "Buffer_ReadyEvent",
    "Buffer_UnsafePointer",
    "Client_BufferFromHostBuffer",
    "Error_Destroy",
    "Event_Await",
    "Event_Destroy",
    "ExecuteOptions",
    "LoadedExecutable_Execute",
)
"""What the core fills in: the arguments of these functions, and this struct."""


def sizes_h() -> str:
    """Returns the header with the size to state of each struct: it ends with the last field."""
    entries = [*declarations.functions(), *declarations.entries(declarations.STRUCTS)]
    lines = []
    for entry in sorted((e for e in entries if e.name in USED), key=lambda e: e.name):
        struct = f"PJRT_{entry.name}" if entry.slot == 0 else f"struct PJRT_{entry.name}_Args"
        last = declarations.field_name(entry.fields[-1])
        lines.append(
            f"#define SIZE_OF_{entry.name} (offsetof({struct}, {last}) + "
            f"sizeof((({struct}*)0)->{last}))\n"
        )
    assert len(lines) == len(USED), lines
    return MADE + '#include "pjrt.h"\n' + "".join(lines)


FILES = {"pjrt.h": lambda: c_header(MADE), "sizes.h": sizes_h}

if __name__ == "__main__":
    for name, text in FILES.items():
        (HERE / name).write_text(text(), encoding="utf-8")
