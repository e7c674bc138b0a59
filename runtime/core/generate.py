"""Makes ``pjrt.h`` and ``sizes.h`` for the C core from the declarations of `plugrt.capi.abi`.

Also makes ``sources.h`` for the core and ``core_sources.py`` for Python. Both have a hash of the
core's sources, so that plugrt refuses a core that was built from other sources. Run ``python
runtime/core/generate.py`` after a change of the declarations or of the core; a test checks that the
files are current. If git finds a conflict in these files, run the script to resolve it.
"""

from __future__ import annotations

from pathlib import Path

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import c_header
from plugrt.native import source_stamps

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
    "Event_IsReady",
    "Event_Destroy",
    "LoadedExecutable_Execute",
)
"""The functions that the core calls. No version has changed their argument structs.

The size of ``PJRT_ExecuteOptions``, the one other struct, is an argument of `plugrt._core.Client`.
"""


def sizes_h() -> str:
    """Returns the header with the size to state of each struct: it ends with the last field."""
    entries = [entry for entry in declarations.functions() if entry.name in USED]
    assert not any(entry.ends for entry in entries), "their size depends on the library's version"
    lines = []
    for entry in sorted(entries, key=lambda e: e.name):
        struct = f"struct PJRT_{entry.name}_Args"
        last = declarations.field_name(entry.fields[-1])
        lines.append(
            f"#define SIZE_OF_{entry.name} (offsetof({struct}, {last}) + "
            f"sizeof((({struct}*)0)->{last}))\n"
        )
    assert len(lines) == len(USED), lines
    return MADE + '#include "pjrt.h"\n' + "".join(lines)


FILES = {"pjrt.h": lambda: c_header(MADE), "sizes.h": sizes_h}
"""Beside this file."""


def sources_h() -> str:
    """Returns the header with the hash of the core's sources."""
    return source_stamps.sources_h(HERE)


def core_sources_py() -> str:
    """Returns the module with the same hash for Python."""
    return source_stamps.core_sources_py(HERE, "runtime/core/generate.py", "native_core")


SOURCE_FILES = {
    HERE / source_stamps.HEADER: sources_h,
    HERE.parent / "src/plugrt/native/core_sources.py": core_sources_py,
}
"""Made last, since the headers are sources too."""

if __name__ == "__main__":
    made = {HERE / name: text for name, text in FILES.items()} | SOURCE_FILES
    for path, text in made.items():
        path.write_text(text(), encoding="utf-8")
