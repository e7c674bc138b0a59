"""Makes ``pjrt_abi.h`` of the runner from the declarations of `plugrt.capi.abi`.

Run ``python plugin_sdk/runner/generate.py`` after a change of the declarations; a test checks that
the file is current.
"""

from __future__ import annotations

from pathlib import Path

from plugrt.capi.abi import declarations
from plugrt.capi.abi.generate import c_header

HERE = Path(__file__).parent
MADE = "/* Made by generate.py from plugrt.capi.abi.declarations; do not edit. */\n"


def pjrt_abi_h() -> str:
    """Returns the header: types, the size to state of each struct, and the slots by name."""
    structs = {f"{e.name}_Args": e for e in declarations.functions()}
    structs |= {e.name: e for e in declarations.entries(declarations.STRUCTS) if e.header}
    lines = [_size(name, entry) for name, entry in structs.items()]
    slots = ",\n".join(
        f'  {{"{e.name}", offsetof(PJRT_Api, {e.name})}}' for e in declarations.functions()
    )
    return (
        c_header(MADE).removesuffix("#endif\n")
        + "".join(lines)
        + f"static const struct {{ const char* name; size_t offset; }} SLOTS[] = {{\n{slots}\n}};\n"
        + "enum { SLOT_COUNT = sizeof SLOTS / sizeof *SLOTS };\n#endif\n"
    )


def _size(name: str, entry: declarations.Entry) -> str:
    """Returns the macro of a struct's size: it ends with its last field."""
    last = declarations.field_name(entry.fields[-1]) if entry.fields else "extension_start"
    kind = f"struct PJRT_{name}"
    return f"#define PJRT_{name}_SIZE (offsetof({kind}, {last}) + sizeof((({kind}*)0)->{last}))\n"


FILES = {"pjrt_abi.h": pjrt_abi_h}

if __name__ == "__main__":
    for name, make in FILES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
